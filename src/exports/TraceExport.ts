/**
 * The execution traces of an export, as lines of JSON. What a trace is and where it is kept is not
 * this file's business.
 */
import { Context, type Stream } from "effect"
import type { StoreUnavailable } from "../ports/EventStore.ts"

/** Whose traces, and the time that they have to overlap. Canonical microsecond form, inclusive. */
export interface TraceScope {
  readonly tenantId: string
  readonly from: string
  readonly to: string
  /** Chain sequence of the tenant's last fact that counts: both lists are of one moment. */
  readonly last?: number
}

export class TraceExport extends Context.Service<
  TraceExport,
  {
    /** One execution per text, without line feeds, by start and then id. Chunks, bounded memory. */
    executions(scope: TraceScope): Stream.Stream<ReadonlyArray<string>, StoreUnavailable>
    /** One span per text: by execution in that order, then by start and arrival. */
    spans(scope: TraceScope): Stream.Stream<ReadonlyArray<string>, StoreUnavailable>
  }
>()("alk/exports/TraceExport") {}
