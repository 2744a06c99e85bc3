/**
 * The heads of all chains as the sequencers have written them to `alk.state`: quick, and good for
 * serving. What verification expects is the last record of the chain's own topic, see ChainEnds.
 */
import { Context, type Effect } from "effect"
import type { ChainKey, Head } from "../../domain/chain/Chains.ts"
import type { LogUnavailable } from "../../ports/EventLog.ts"

export class Heads extends Context.Service<
  Heads,
  {
    /**
     * The tenant's head, at least as new as everything committed before the call; undefined while
     * nothing was appended.
     */
    head(tenantId: string): Effect.Effect<Head | undefined, LogUnavailable>
    /** The same for the tenant's chain of trace facts. */
    traceHead(tenantId: string): Effect.Effect<Head | undefined, LogUnavailable>
    /** The name of the tree of every chain, as far as this process has heard. */
    readonly trees: Effect.Effect<ReadonlyArray<string>>
  }
>()("alk/Heads") {}

/** The head of one chain. */
export const headOf = (heads: Heads["Service"], { chain, tenantId }: ChainKey) =>
  chain === "events" ? heads.head(tenantId) : heads.traceHead(tenantId)
