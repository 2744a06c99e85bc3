/**
 * Who signs each tree, as the sequencers have written it to `alk.state`: the key of now, and the
 * last checkpoints of those before it. Checks no signature.
 */
import { Context, type Effect } from "effect"
import type { LogUnavailable } from "../../ports/EventLog.ts"

export class TreeSigners extends Context.Service<
  TreeSigners,
  {
    /** Of a tree by its name; `keyIds` are the keys that are asked about, 8 hex digits each. */
    of(
      tree: string,
      keyIds: ReadonlyArray<string>
    ): Effect.Effect<{
      /** Notes of the checkpoints with which these keys have handed the tree over. */
      readonly handOvers: ReadonlyArray<string>
      /** vkey of the key that signs the tree; absent before a sequencer has started. */
      readonly signer?: string
    }>
    /** Succeeds when what was written of the tree before the call is known here. */
    caughtUp(tree: string): Effect.Effect<void, LogUnavailable>
  }
>()("alk/TreeSigners") {}
