/**
 * What verification reads: every row as it is, with the filter columns that disagree with its
 * bytes, and the records that did not link. Judges nothing.
 */
import { Effect } from "effect"
import type { EventStore, SequenceSpan } from "../../../ports/EventStore.ts"
import { Parameters } from "../client/Parameters.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { inChunks, readChunk } from "../topics/ChainTable.ts"
import { disagreement } from "./EventColumns.ts"
import { filterCondition } from "./EventFilterSql.ts"

type Store = EventStore["Service"]

export const makeRows =
  (store: StoreClient): Store["rows"] =>
  (tenantId, fromSequence, toSequence) =>
    inChunks(fromSequence, (from) =>
      readChunk(store, {
        operation: "rows",
        table: store.events,
        sequence: "sequence_number",
        disagreement,
        condition: (parameters) =>
          `tenant_id = ${parameters.string(tenantId)} AND sequence_number`
          + ` BETWEEN ${parameters.integer(from)} AND ${parameters.integer(toSequence)}`
      })
    )

export const makeSequenceSpan =
  (store: StoreClient): Store["sequenceSpan"] =>
  (tenantId, from, to) => {
    const parameters = new Parameters()
    const condition = filterCondition(
      tenantId,
      {
        metadata: [],
        ...(from === undefined ? {} : { from }),
        ...(to === undefined ? {} : { to })
      },
      parameters
    )
    return store
      .readOne(
        {
          operation: "sequenceSpan",
          parameters,
          sql:
            "SELECT min(sequence_number), max(sequence_number), count()"
            + ` FROM ${store.eventsOf(true)} WHERE ${condition}`
        },
        (row) => ({ first: row.uint64(), last: row.uint64(), eventsInBounds: row.uint64() })
      )
      .pipe(
        Effect.map((span): SequenceSpan | undefined =>
          span.eventsInBounds === 0 ? undefined : span
        )
      )
  }
