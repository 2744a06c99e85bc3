/**
 * What verification reads: every row as it is, with the filter columns that disagree with its
 * bytes, and the records that did not link. Judges nothing.
 */
import { Effect, Option, Stream } from "effect"
import type { EventStore, SequenceSpan, StoredRow } from "../../../ports/EventStore.ts"
import { CHUNK_BYTES_MAX, CHUNK_ROWS_MAX } from "../client/Chunks.ts"
import { Parameters } from "../client/Parameters.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { disagreement } from "./EventColumns.ts"
import { filterCondition } from "./EventFilterSql.ts"

type Store = EventStore["Service"]

/**
 * All rows of as many sequences as fit into a chunk, so that rows which share a sequence come
 * together. Of a sequence with thousands of rows, enough to see that it has several.
 */
const rowsChunk = (store: StoreClient, tenantId: string, from: number, to: number) => {
  const parameters = new Parameters()
  const range =
    `tenant_id = ${parameters.string(tenantId)}`
    + ` AND sequence_number BETWEEN ${parameters.integer(from)}`
  const last =
    "SELECT max(sequence_number) FROM (SELECT sequence_number, sum(bytes) OVER"
    + " (ORDER BY sequence_number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    + ` AS bytes_before FROM (SELECT sequence_number, length(body) AS bytes FROM ${store.events}`
    + ` WHERE ${range} AND ${parameters.integer(to)}`
    + ` ORDER BY sequence_number LIMIT ${CHUNK_ROWS_MAX})) WHERE bytes_before < ${CHUNK_BYTES_MAX}`
  return store.read(
    {
      operation: "rows",
      parameters,
      sql:
        "SELECT sequence_number, version, body, groupUniqArrayArray(names) FROM ("
        + `WITH ${disagreement.with} SELECT sequence_number, version, hash, body,`
        + ` ${disagreement.names} AS names FROM ${store.events} WHERE ${range} AND (${last}))`
        + " GROUP BY sequence_number, hash, version, body"
        + ` ORDER BY sequence_number, hash, version, body LIMIT ${2 * CHUNK_ROWS_MAX}`
    },
    (row): StoredRow => ({
      sequenceNumber: row.uint64(),
      version: row.uint8(),
      body: row.string(),
      wrongColumns: [...row.list(() => row.string())].sort()
    })
  )
}

export const makeRows =
  (store: StoreClient): Store["rows"] =>
  (tenantId, fromSequence, toSequence) =>
    Stream.paginate(fromSequence, (from) =>
      rowsChunk(store, tenantId, from, toSequence).pipe(
        Effect.map((chunk) => {
          const last = chunk.at(-1)
          return last === undefined
            ? ([[], Option.none<number>()] as const)
            : ([[chunk], Option.some(last.sequenceNumber + 1)] as const)
        })
      )
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
