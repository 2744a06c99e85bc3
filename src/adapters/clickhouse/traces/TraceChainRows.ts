/**
 * The chain of a tenant's trace facts as verification goes through it: the rows in the order of the
 * chain, although the table is in that of executions, and whether the index of span ids agrees with
 * the facts. Judges nothing.
 */
import { Effect } from "effect"
import type { StoredRow } from "../../../ports/EventStore.ts"
import type { FactTime, TraceStore } from "../../../ports/TraceStore.ts"
import { CHUNK_BYTES_MAX, CHUNK_ROWS_MAX } from "../client/Chunks.ts"
import { Parameters } from "../client/Parameters.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { inWindows, nextSequence } from "./ChainWindows.ts"
import { disagreement } from "./TraceColumns.ts"

type Store = TraceStore["Service"]

/** Rows of a window up to the bytes of a chunk; rows that share a sequence come together. */
const windowRows = (store: StoreClient, tenantId: string, first: number, last: number) => {
  const parameters = new Parameters()
  const within =
    `tenant_id = ${parameters.string(tenantId)}`
    + ` AND chain_sequence BETWEEN ${parameters.integer(first)} AND ${parameters.integer(last)}`
  const end =
    "SELECT max(chain_sequence) FROM (SELECT chain_sequence, sum(bytes) OVER"
    + " (ORDER BY chain_sequence ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    + " AS bytes_before FROM (SELECT chain_sequence, length(body) AS bytes"
    + ` FROM ${store.facts} WHERE ${within} ORDER BY chain_sequence LIMIT ${CHUNK_ROWS_MAX}))`
    + ` WHERE bytes_before < ${CHUNK_BYTES_MAX}`
  return store.read(
    {
      operation: "chainRows",
      parameters,
      isBulk: true,
      sql:
        "SELECT chain_sequence, version, body, groupUniqArrayArray(names) FROM ("
        + `WITH ${disagreement.with} SELECT chain_sequence, version, hash, body,`
        + ` ${disagreement.names} AS names FROM ${store.facts}`
        + ` WHERE ${within} AND chain_sequence <= (${end}))`
        + " GROUP BY chain_sequence, hash, version, body"
        + ` ORDER BY chain_sequence, hash, version, body LIMIT ${2 * CHUNK_ROWS_MAX}`
    },
    (row): StoredRow => ({
      sequenceNumber: row.uint64(),
      version: row.uint8(),
      body: row.string(),
      wrongColumns: [...row.list(() => row.string())].sort()
    })
  )
}

export const makeChainRows =
  (store: StoreClient): Store["chainRows"] =>
  (tenantId, first, last) =>
    inWindows({
      first,
      last,
      rows: (from, end) => windowRows(store, tenantId, from, end),
      sequenceOf: ({ sequenceNumber }) => sequenceNumber,
      next: (from) =>
        nextSequence(
          store,
          from,
          last,
          (parameters) => `tenant_id = ${parameters.string(tenantId)}`
        )
    })

export const makeFactFrom =
  (store: StoreClient): Store["factFrom"] =>
  (tenantId, sequence) => {
    const parameters = new Parameters()
    return store
      .read(
        {
          operation: "factFrom",
          parameters,
          sql:
            "SELECT chain_sequence, JSONExtractString(body, 'created_at')"
            + ` FROM ${store.facts} WHERE tenant_id = ${parameters.string(tenantId)}`
            + ` AND chain_sequence = (SELECT min(chain_sequence) FROM ${store.facts}`
            + ` WHERE tenant_id = ${parameters.string(tenantId)}`
            + ` AND chain_sequence >= ${parameters.integer(sequence)}) LIMIT 1`
        },
        (row): FactTime => ({ sequence: row.uint64(), createdAt: row.string() })
      )
      .pipe(Effect.map(([found]) => found))
  }

const NAMES_A_SPAN = "type IN ('span.started', 'execution.started') AND span_id != ''"

export const makeUnindexed =
  (store: StoreClient): Store["unindexed"] =>
  (tenantId, first, last, limit) => {
    const parameters = new Parameters()
    const tenant = `tenant_id = ${parameters.string(tenantId)}`
    const facts =
      `FROM ${store.facts} WHERE ${tenant} AND ${NAMES_A_SPAN} AND chain_sequence`
      + ` BETWEEN ${parameters.integer(first)} AND ${parameters.integer(last)}`
    return store.read(
      {
        operation: "unindexed",
        parameters,
        sql:
          `SELECT DISTINCT chain_sequence ${facts} AND (span_id, execution_id) NOT IN`
          + ` (SELECT span_id, execution_id FROM ${store.spanIds} WHERE ${tenant}`
          + ` AND span_id IN (SELECT span_id ${facts}))`
          + ` ORDER BY chain_sequence LIMIT ${parameters.integer(limit)}`
      },
      (row) => row.uint64()
    )
  }

export const makeStrayIndex =
  (store: StoreClient): Store["strayIndex"] =>
  (tenantId, limit) => {
    const parameters = new Parameters()
    const tenant = `tenant_id = ${parameters.string(tenantId)}`
    return store.read(
      {
        operation: "strayIndex",
        parameters,
        sql:
          `SELECT DISTINCT span_id FROM ${store.spanIds} WHERE ${tenant} AND span_id != ''`
          + ` AND (span_id, execution_id) NOT IN (SELECT span_id, execution_id FROM ${store.facts}`
          + ` WHERE ${tenant}) ORDER BY span_id LIMIT ${parameters.integer(limit)}`
      },
      (row) => ({ spanId: row.string() })
    )
  }
