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
  }
>()("alk/Heads") {}
