/**
 * What verification asks of the table of a chain whatever its rows are: their number and ends, rows
 * that are there more than once, and records that do not link.
 */
import type { ChainExtent, ConflictRow, EventStore } from "../../../ports/EventStore.ts"
import { Parameters } from "../client/Parameters.ts"
import type { StoreClient } from "../client/StoreClient.ts"

type Store = EventStore["Service"]

/** Numbers that no double holds exactly are shown as the largest that one does. */
const shown = (number: string): string => `least(${number}, ${Number.MAX_SAFE_INTEGER})`

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
