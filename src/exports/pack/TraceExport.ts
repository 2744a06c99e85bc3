/**
 * The execution traces of an export, as lines of JSON, and the facts that they are made of. What a
 * trace is and where it is kept is not this file's business.
 */
import { Context, type Stream } from "effect"
import type { StoreUnavailable } from "../../ports/EventStore.ts"
import type { FactRange } from "../../ports/TraceStore.ts"

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
    /** Every fact of these executions exactly as it is stored, ascending by chain_sequence. */
    facts(scope: TraceScope): Stream.Stream<ReadonlyArray<string>, StoreUnavailable>
    /**
     * The last bytes of each fact of the tenant's chain in a range, ascending: enough for its link.
     */
    chain(range: FactRange): Stream.Stream<ReadonlyArray<string>, StoreUnavailable>
  }
>()("alk/exports/TraceExport") {}
