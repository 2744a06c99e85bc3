/**
 * What verification reads: every row as it is, with the filter columns that disagree with its
 * bytes, and the records that did not link. Judges nothing.
 */
import { Effect } from "effect"
import { defined } from "../../../domain/Defined.ts"
import type { EventStore, SequenceSpan } from "../../../ports/EventStore.ts"
import { inChunks } from "../client/Chunks.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { readChunk } from "../topics/ChainTable.ts"
import { disagreement } from "./EventColumns.ts"
import { filterCondition } from "./EventFilterSql.ts"

type Store = EventStore["Service"]

export const makeRows =
  (store: StoreClient): Store["rows"] =>
  (tenantId, fromSequence, toSequence) =>
    inChunks((last) =>
      readChunk(store, {
        operation: "rows",
        table: store.events,
        sequence: "sequence_number",
        text: "json",
        disagreement,
        condition: (bind) => {
          const from = last === undefined ? fromSequence : last.sequenceNumber + 1
          return `${bind.tenant(tenantId)} AND ${bind.between("sequence_number", from, toSequence)}`
        }
      })
    )

export const makeSequenceSpan =
  (store: StoreClient): Store["sequenceSpan"] =>
  (tenantId, from, to) => {
    const bounds = defined({ metadata: [], from, to })
    return store
      .readOne(
        "sequenceSpan",
        (bind) =>
          "SELECT min(sequence_number), max(sequence_number), count()"
          + ` FROM ${store.eventsOf(true)}`
          + ` WHERE ${filterCondition(store.events, tenantId, bounds, bind)}`,
        (row) => ({ first: row.uint64(), last: row.uint64(), eventsInBounds: row.uint64() })
      )
      .pipe(
        Effect.map((span): SequenceSpan | undefined =>
          span.eventsInBounds === 0 ? undefined : span
        )
      )
  }
