/**
 * The accuser of execution traces: what a check of one execution says, and who makes it. Shares only
 * the domain with the writer and believes nothing but bytes, the log's head and its records.
 */
import { Context, type Effect } from "effect"
import type { TRACE_SCHEME } from "../domain/TraceFact.ts"
import type { LogUnavailable } from "../ports/EventLog.ts"
import type { StoreUnavailable } from "../ports/EventStore.ts"
import type { Break, VerifyReport } from "./VerifyReport.ts"

/** Sequences are those of the tenant's chain of facts, `chain_sequence`. */
export interface TraceVerifyReport extends Omit<VerifyReport, "scheme" | "breaks"> {
  readonly scheme: typeof TRACE_SCHEME
  readonly execution_id: string
  /** Facts of every type; `events_checked` says the same, since facts are this chain's records. */
  readonly facts_checked: number
  readonly breaks: ReadonlyArray<TraceBreak>
}

export interface TraceBreak extends Break {
  /** Place among the execution's own facts, where there is one. */
  readonly fact_number: number | null
}

export class TraceVerifier extends Context.Service<
  TraceVerifier,
  {
    /** Undefined: the tenant has no such execution, neither in the store nor in the log. */
    verify(
      tenantId: string,
      executionId: string
    ): Effect.Effect<TraceVerifyReport | undefined, StoreUnavailable | LogUnavailable>
  }
>()("alk/TraceVerifier") {}
