/**
 * The heads of all chains as the sequencers have written them to `alk.state`: what the log says,
 * independent of what the store holds.
 */
import { Context, type Effect } from "effect"
import type { LogUnavailable } from "../ports/EventLog.ts"
import type { Head } from "./SequencerState.ts"

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
    /** Every tenant that has events, as far as this process has heard. */
    readonly tenants: Effect.Effect<ReadonlyArray<string>>
  }
>()("alk/Heads") {}
