/**
 * What verification asks of the table of a chain whatever its rows are: the rows with the columns
 * that disagree with their bytes, their number and ends, rows that are there more than once, and
 * records that do not link.
 */
import { Effect, Option, Stream } from "effect"
import type {
  ChainExtent,
  ConflictRow,
  EventStore,
  StoredRow,
  StoreUnavailable
} from "../../../ports/EventStore.ts"
import { CHUNK_BYTES_MAX, CHUNK_ROWS_MAX } from "../client/Chunks.ts"
import type { disagreementOf } from "../client/JsonColumns.ts"
import { Parameters } from "../client/Parameters.ts"
import type { StoreClient } from "../client/StoreClient.ts"

type Store = EventStore["Service"]

/** Numbers that no double holds exactly are shown as the largest that one does. */
const shown = (number: string): string => `least(${number}, ${Number.MAX_SAFE_INTEGER})`

interface ChunkQuery {
  readonly operation: string
  readonly table: string
  /** Name of the column with the sequence. */
  readonly sequence: string
  readonly disagreement: ReturnType<typeof disagreementOf>
  /** Which rows, the bounds of their sequences included. */
  readonly condition: (parameters: Parameters) => string
  readonly isBulk?: boolean
}

/**
 * All rows of as many sequences as fit into a chunk, so that rows which share a sequence come
 * together. Of a sequence with thousands of rows, enough to see that it has several.
 */
export const readChunk = (store: StoreClient, query: ChunkQuery) => {
  const { disagreement, isBulk = false, operation, sequence, table } = query
  const parameters = new Parameters()
  const condition = query.condition(parameters)
  const last =
    `SELECT max(${sequence}) FROM (SELECT ${sequence}, sum(bytes) OVER`
    + ` (ORDER BY ${sequence} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)`
    + ` AS bytes_before FROM (SELECT ${sequence}, length(body) AS bytes FROM ${table}`
    + ` WHERE ${condition} ORDER BY ${sequence} LIMIT ${CHUNK_ROWS_MAX}))`
    + ` WHERE bytes_before < ${CHUNK_BYTES_MAX}`
  const row = `${sequence}, hash, version, body`
  return store.read(
    {
      operation,
      parameters,
      isBulk,
      sql:
        `SELECT ${sequence}, version, body, groupUniqArrayArray(names) FROM (`
        + `WITH ${disagreement.with} SELECT ${row}, ${disagreement.names} AS names`
        + ` FROM ${table} WHERE ${condition} AND ${sequence} <= (${last}))`
        + ` GROUP BY ${row} ORDER BY ${row} LIMIT ${2 * CHUNK_ROWS_MAX}`
    },
    (row): StoredRow => ({
      sequenceNumber: row.uint64(),
      version: row.uint8(),
      body: row.string(),
      wrongColumns: [...row.list(() => row.string())].sort()
    })
  )
}

/** Chunk after chunk, each from the sequence after the last one. */
export const inChunks = (
  first: number,
  chunkFrom: (from: number) => Effect.Effect<ReadonlyArray<StoredRow>, StoreUnavailable>
): Stream.Stream<ReadonlyArray<StoredRow>, StoreUnavailable> =>
  Stream.paginate(first, (from) =>
    Effect.map(chunkFrom(from), (chunk) => {
      const last = chunk.at(-1)
      return last === undefined
        ? ([[], Option.none<number>()] as const)
        : ([[chunk], Option.some(last.sequenceNumber + 1)] as const)
    })
  )

export const makeExtent =
  (store: StoreClient, table: string, sequence: string): Store["extent"] =>
  (tenantId) => {
    const parameters = new Parameters()
    return store.readOne(
      {
        operation: "extent",
        parameters,
        sql:
          `SELECT count(), ${shown(`min(${sequence})`)}, ${shown(`max(${sequence})`)}`
          + ` FROM ${table} WHERE tenant_id = ${parameters.string(tenantId)}`
      },
      (row): ChainExtent => ({ rows: row.uint64(), lowest: row.uint64(), highest: row.uint64() })
    )
  }

/** Judged by the rows alone: the caller knows which of them an insert has repeated. */
export const makeCopies =
  (store: StoreClient, table: string, sequence: string): Store["copies"] =>
  (tenantId, first, last, limit) => {
    const parameters = new Parameters()
    return store.read(
      {
        operation: "copies",
        parameters,
        sql:
          `SELECT ${sequence} FROM ${table} WHERE tenant_id = ${parameters.string(tenantId)}`
          + ` AND ${sequence} BETWEEN ${parameters.integer(first)} AND ${parameters.integer(last)}`
          + ` GROUP BY ${sequence}, hash, version HAVING count() > 1`
          + ` ORDER BY ${sequence} LIMIT ${parameters.integer(limit)}`
      },
      (row) => row.uint64()
    )
  }

export const makeConflicts =
  (store: StoreClient, table: string): Store["conflicts"] =>
  (tenantId, limit) => {
    const parameters = new Parameters()
    return store.read(
      {
        operation: "conflicts",
        parameters,
        sql:
          "SELECT kafka_partition, kafka_offset, sequence_number, reason, body"
          + ` FROM ${table} FINAL WHERE tenant_id = ${parameters.string(tenantId)}`
          + " ORDER BY sequence_number, kafka_partition, kafka_offset"
          + ` LIMIT ${parameters.integer(limit)}`
      },
      (row): ConflictRow => ({
        partition: row.uint32(),
        offset: row.uint64(),
        tenantId,
        sequenceNumber: row.uint64(),
        reason: row.string(),
        body: row.bytes()
      })
    )
  }
