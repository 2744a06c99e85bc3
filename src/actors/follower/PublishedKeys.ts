/**
 * The public keys that checkpoints of this service were ever signed with, as `alk.registry` has
 * them, and which of them counts for what: what a signature is checked against, and what auditors
 * are given. None is ever taken away.
 */
import { Context, type Effect } from "effect"
import type { OpenedCheckpoint } from "../../domain/chain/Checkpoint.ts"
import type { CheckedKey } from "../../domain/chain/KeyStandings.ts"
import type { LogUnavailable } from "../../ports/EventLog.ts"

export interface PublishedKey extends CheckedKey {
  /** Base64 of the 32 bytes. */
  readonly publicKey: string
  /** Canonical microsecond form. */
  readonly addedAt: string
  /** The statement of the key before it, a C2SP signed note. */
  readonly endorsement?: string
}

export class PublishedKeys extends Context.Service<
  PublishedKeys,
  {
    /** In the order in which they were added. */
    readonly all: Effect.Effect<ReadonlyArray<PublishedKey>>
    /** Succeeds when every key that was published before the call is known here. */
    readonly caughtUp: Effect.Effect<void, LogUnavailable>
    /**
     * Why none of the keys that signed a checkpoint may have signed it; undefined if one may.
     * `tree` is the name of the tree that it is of.
     */
    refusal(
      tree: string,
      checkpoint: OpenedCheckpoint
    ): Effect.Effect<string | undefined, LogUnavailable>
  }
>()("alk/PublishedKeys") {}
