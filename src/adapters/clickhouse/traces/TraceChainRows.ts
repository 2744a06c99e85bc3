/**
 * The chain of a tenant's trace facts as verification goes through it: the rows in the order of the
 * chain, although the table is in that of executions, and whether the index of span ids agrees with
 * the facts. Judges nothing.
 */
import type { FactTime, TraceStore } from "../../../ports/TraceStore.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { readChunk } from "../topics/ChainTable.ts"
import { inWindows, nextSequence } from "./ChainWindows.ts"
import { disagreement } from "./TraceColumns.ts"

type Store = TraceStore["Service"]

export const makeChainRows =
  (store: StoreClient): Store["chainRows"] =>
  (tenantId, first, last) =>
    inWindows({
      first,
      last,
      rows: (from, end) =>
        readChunk(
          store,
          {
            operation: "chainRows",
            table: store.facts,
            sequence: "chain_sequence",
            text: "body",
            disagreement,
            condition: (bind) =>
              `${bind.tenant(tenantId)} AND ${bind.between("chain_sequence", from, end)}`
          },
          { isBulk: true }
        ),
      sequenceOf: ({ sequenceNumber }) => sequenceNumber,
      next: (from) => nextSequence(store, from, last, (bind) => bind.tenant(tenantId))
    })

export const makeFactFrom =
  (store: StoreClient): Store["factFrom"] =>
  (tenantId, sequence) =>
    store.readFirst(
      "factFrom",
      (bind) =>
        "SELECT chain_sequence, JSONExtractString(body, 'created_at')"
        + ` FROM ${store.facts} WHERE ${bind.tenant(tenantId)} AND chain_sequence =`
        + ` (SELECT min(chain_sequence) FROM ${store.facts} WHERE ${bind.tenant(tenantId)}`
        + ` AND chain_sequence >= ${bind.integer(sequence)}) LIMIT 1`,
      (row): FactTime => ({ sequence: row.uint64(), createdAt: row.string() })
    )

const NAMES_A_SPAN = "type IN ('span.started', 'execution.started') AND span_id != ''"

export const makeUnindexed =
  (store: StoreClient): Store["unindexed"] =>
  (tenantId, first, last, limit) =>
    store.read(
      "unindexed",
      (bind) => {
        const tenant = bind.tenant(tenantId)
        const facts =
          `FROM ${store.facts} WHERE ${tenant} AND ${NAMES_A_SPAN}`
          + ` AND ${bind.between("chain_sequence", first, last)}`
        return (
          `SELECT DISTINCT chain_sequence ${facts} AND (span_id, execution_id) NOT IN`
          + ` (SELECT span_id, execution_id FROM ${store.spanIds} WHERE ${tenant}`
          + ` AND span_id IN (SELECT span_id ${facts}))`
          + ` ORDER BY chain_sequence LIMIT ${bind.integer(limit)}`
        )
      },
      (row) => row.uint64()
    )

export const makeStrayIndex =
  (store: StoreClient): Store["strayIndex"] =>
  (tenantId, limit) =>
    store.read(
      "strayIndex",
      (bind) =>
        `SELECT DISTINCT span_id FROM ${store.spanIds} WHERE ${bind.tenant(tenantId)}`
        + " AND span_id != '' AND (span_id, execution_id) NOT IN (SELECT span_id, execution_id"
        + ` FROM ${store.facts} WHERE ${bind.tenant(tenantId)})`
        + ` ORDER BY span_id LIMIT ${bind.integer(limit)}`,
      (row) => ({ spanId: row.string() })
    )
