/**
 * The chain of a tenant's trace facts as verification goes through it: the rows in the order of the
 * chain, although the table is in that of executions, and whether the index of span ids agrees with
 * the facts. Judges nothing.
 */
import type { MisnumberedFact, TraceStore } from "../../../ports/TraceStore.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { readChunk } from "../topics/ChainTable.ts"
import { inWindows, nextSequence } from "./ChainWindows.ts"
import { disagreement } from "./TraceColumns.ts"
import { NAMES_A_SPAN } from "./TraceSql.ts"

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

/**
 * Whether the numbers of an execution's facts are one after the other, in no order: those of all but
 * the last are those before all but the first.
 */
const IN_ORDER =
  "sumWithOverflow(sipHash64(fact_number)) - sipHash64(max(fact_number))"
  + " = sumWithOverflow(sipHash64(toUInt64(fact_number - 1)))"
  + " - sipHash64(toUInt64(min(fact_number) - 1))"

/** Of few executions the facts are put in order: those whose numbers are not, and all with copies. */
export const makeMisnumbered =
  (store: StoreClient): Store["misnumbered"] =>
  (tenantId, first, last, limit) =>
    store.read(
      "misnumbered",
      (bind) => {
        const range = `${bind.tenant(tenantId)} AND ${bind.between("chain_sequence", first, last)}`
        const suspects =
          `SELECT execution_id FROM ${store.facts} WHERE ${range} GROUP BY execution_id`
          + ` HAVING NOT (${IN_ORDER})`
        const facts =
          "SELECT DISTINCT execution_id, chain_sequence, fact_number"
          + ` FROM ${store.facts} WHERE ${range} AND execution_id IN (${suspects})`
        return (
          "SELECT execution_id, chain_sequence, toUInt64(before + 1), fact_number FROM (SELECT *,"
          + " lagInFrame(fact_number, 1, toUInt64(fact_number - 1)) OVER (PARTITION BY execution_id"
          + ` ORDER BY chain_sequence, fact_number) AS before FROM (${facts}))`
          + ` WHERE fact_number != before + 1 ORDER BY chain_sequence LIMIT ${bind.integer(limit)}`
        )
      },
      (row): MisnumberedFact => ({
        executionId: row.string(),
        sequence: row.uint64(),
        expected: row.uint64(),
        actual: row.uint64()
      })
    )

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
