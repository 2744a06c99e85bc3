/**
 * What verification asks of the table of a chain whatever its rows are: the rows with the columns
 * that disagree with their bytes, their number and ends, rows that are there more than once, and
 * records that do not link.
 */
import type { ChainExtent, ConflictRow, EventStore, StoredRow } from "../../../ports/EventStore.ts"
import { CHUNK_ROWS_MAX, chunkEnd } from "../client/Chunks.ts"
import type { disagreementOf } from "../client/JsonColumns.ts"
import type { Statement } from "../client/Parameters.ts"
import { escapedRows } from "../client/RawRows.ts"
import type { ReadOptions, StoreClient } from "../client/StoreClient.ts"

type Store = EventStore["Service"]

/** Numbers that no double holds exactly are shown as the largest that one does. */
const shown = (number: string): string => `least(${number}, ${Number.MAX_SAFE_INTEGER})`

interface RowsQuery {
  readonly operation: string
  readonly table: string
  /** Name of the column with the sequence. */
  readonly sequence: string
  /** The column with the stored bytes. */
  readonly text: "body" | "json"
  readonly disagreement: ReturnType<typeof disagreementOf>
  /** Which rows. */
  readonly condition: Statement
  /** Of a sequence with thousands of rows, enough to see that it has several. */
  readonly limit: number
}

/** Rows in order; those that are equal once. */
export const readStoredRows = (
  store: StoreClient,
  { condition, disagreement, limit, operation, sequence, table, text }: RowsQuery,
  options?: ReadOptions
) => {
  const row = `${sequence}, hash, version, stored_text`
  return store.read(
    operation,
    (bind) =>
      `SELECT ${sequence}, version, stored_text, groupUniqArrayArray(names) FROM (`
      + `${disagreement.with} SELECT ${sequence}, hash, version, ${text} AS stored_text,`
      + ` ${disagreement.names} AS names`
      + ` FROM ${table} WHERE ${condition(bind)}) GROUP BY ${row} ORDER BY ${row} LIMIT ${limit}`,
    (row): StoredRow => {
      const [sequenceNumber, version, body] = [row.uint64(), row.uint8(), row.string()]
      const names = row.list(() => row.string())
      const wrongColumns = row.takeExact() ? [...names].sort() : [...names, text].sort()
      return { sequenceNumber, version, body, wrongColumns }
    },
    options
  )
}

/**
 * All rows of as many sequences as fit into a chunk, so that rows which share a sequence come
 * together; `condition` gives the bounds of the sequences.
 */
export const readChunk = (
  store: StoreClient,
  query: Omit<RowsQuery, "limit">,
  options?: ReadOptions
) => {
  const { sequence, table } = query
  const condition: Statement = (bind) => {
    const within = query.condition(bind)
    return `${within} AND ${sequence} <= (${chunkEnd(table, sequence, within)})`
  }
  return readStoredRows(store, { ...query, condition, limit: 2 * CHUNK_ROWS_MAX }, options)
}

export const makeExtent =
  (store: StoreClient, table: string, sequence: string): Store["extent"] =>
  (tenantId) =>
    store.readOne(
      "extent",
      (bind) =>
        `SELECT count(), ${shown(`min(${sequence})`)}, ${shown(`max(${sequence})`)}`
        + ` FROM ${table} WHERE ${bind.tenant(tenantId)}`,
      (row): ChainExtent => ({ rows: row.uint64(), lowest: row.uint64(), highest: row.uint64() })
    )

/** Judged by the rows alone: the caller knows which of them an insert has repeated. */
export const makeCopies =
  (store: StoreClient, table: string, sequence: string): Store["copies"] =>
  (tenantId, first, last, limit) =>
    store.read(
      "copies",
      (bind) =>
        `SELECT ${sequence} FROM ${table} WHERE ${bind.tenant(tenantId)}`
        + ` AND ${bind.between(sequence, first, last)}`
        + ` GROUP BY ${sequence}, hash, version HAVING count() > 1`
        + ` ORDER BY ${sequence} LIMIT ${bind.integer(limit)}`,
      (row) => row.uint64()
    )

/** What did not link may be anything, so its bytes are escaped. */
export const makeInsertConflicts =
  (store: StoreClient, table: string): Store["insertConflicts"] =>
  (rows) =>
    store.insert({
      operation: "insertConflicts",
      table,
      columns: [
        "kafka_partition",
        "kafka_offset",
        "tenant_id",
        "sequence_number",
        "reason",
        "body"
      ],
      format: "TabSeparated",
      rows: rows.length,
      bytes: () =>
        escapedRows(
          rows.map(({ body, offset, partition, reason, sequenceNumber, tenantId }) => [
            partition,
            offset,
            tenantId,
            sequenceNumber,
            reason,
            body
          ])
        )
    })

export const makeConflicts =
  (store: StoreClient, table: string): Store["conflicts"] =>
  (tenantId, limit) =>
    store.read(
      "conflicts",
      (bind) =>
        "SELECT kafka_partition, kafka_offset, sequence_number, reason, body"
        + ` FROM ${table} FINAL WHERE ${bind.tenant(tenantId)}`
        + ` ORDER BY sequence_number, kafka_partition, kafka_offset LIMIT ${bind.integer(limit)}`,
      (row): ConflictRow => ({
        partition: row.uint32(),
        offset: row.uint64(),
        tenantId,
        sequenceNumber: row.uint64(),
        reason: row.string(),
        body: row.bytes()
      })
    )
