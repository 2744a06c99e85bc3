/**
 * Takes the details out of an execution's stored facts. What an erased fact looks like is the
 * domain's to say; here its row replaces the old one, which is then deleted.
 */
import { Effect } from "effect"
import { eraseFact, parseFact } from "../../../domain/traces/TraceFact.ts"
import type { TraceStore } from "../../../ports/TraceStore.ts"
import { Parameters } from "../client/Parameters.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { eraseSetAside } from "../topics/SetAside.ts"
import { insertRows, type TopicRow } from "../topics/TopicTable.ts"
import { factChunk, type PlacedFact } from "./TraceSlices.ts"
import { ofExecution } from "./TraceSql.ts"

type Store = TraceStore["Service"]

const erased = (body: string, erasedAt: string): string | undefined => {
  const fact = parseFact(body)
  return fact === undefined ? undefined : eraseFact(fact, erasedAt)
}

const erasedRow = (
  { body, offset, partition }: PlacedFact,
  erasedAt: string
): ReadonlyArray<TopicRow> => {
  const left = erased(body, erasedAt)
  return left === undefined ? [] : [{ partition, offset, body: Buffer.from(left, "utf8") }]
}

interface ExecutionErasure {
  readonly tenantId: string
  readonly executionId: string
  readonly beforeFactNumber: number
  readonly erasedAt: string
}

/** Take the details out of what was set aside of an execution. */
const eraseAside = (
  store: StoreClient,
  { beforeFactNumber, erasedAt, executionId, tenantId }: ExecutionErasure
) =>
  eraseSetAside(
    store,
    "facts",
    (parameters) =>
      `tenant_id = ${parameters.string(tenantId)} AND detail = ${parameters.string(executionId)}`
      + ` AND JSONExtractUInt(body, 'fact_number') < ${parameters.integer(beforeFactNumber)}`,
    (body) => erased(body, erasedAt)
  )

/** Erase in what was set aside what is erased in the view. */
export const eraseCopies = Effect.fnUntraced(function* (store: StoreClient, partition: number) {
  const parameters = new Parameters()
  const inPartition = `kafka_partition = ${parameters.bind("UInt32", partition)}`
  const found = yield* store.read(
    {
      operation: "eraseDetails",
      parameters,
      sql:
        "SELECT DISTINCT tenant_id, execution_id, fact_number,"
        + ` JSONExtractString(body, 'created_at') FROM ${store.facts}`
        + ` WHERE ${inPartition} AND type = 'execution.erased'`
        + " AND (tenant_id, execution_id) IN (SELECT tenant_id, detail"
        + ` FROM ${store.setAside} WHERE source = 'facts' AND ${inPartition} AND erased = 0)`
    },
    (row): ExecutionErasure => ({
      tenantId: row.string(),
      executionId: row.string(),
      beforeFactNumber: row.uint64(),
      erasedAt: row.string()
    })
  )
  for (const erasure of found) yield* eraseAside(store, erasure)
})

/** Number of rows. */
const countOf = (store: StoreClient, condition: string, parameters: Parameters) =>
  store.readOne(
    {
      operation: "eraseDetails",
      parameters,
      sql: `SELECT count() FROM ${store.facts} WHERE ${condition}`
    },
    (row) => row.uint64()
  )

export const makeEraseDetails = (store: StoreClient): Store["eraseDetails"] =>
  Effect.fn("TraceStore.eraseDetails")(
    function* (tenantId, executionId, beforeFactNumber, erasedAt) {
      yield* eraseAside(store, { tenantId, executionId, beforeFactNumber, erasedAt })
      const parameters = new Parameters()
      const execution = ofExecution(tenantId, executionId, parameters)
      const told = `${execution} AND fact_number < ${parameters.integer(beforeFactNumber)} AND version != 1`
      if ((yield* countOf(store, told, parameters)) === 0) return
      const erased = `SELECT fact_number, hash FROM ${store.facts} WHERE ${execution} AND version = 1`
      // Rows that are there already were written before a start that was broken off, or a replay.
      const left = `${told} AND (fact_number, hash) NOT IN (${erased})`
      let last: PlacedFact | undefined
      for (;;) {
        const chunk = yield* factChunk(store, "eraseDetails", left, parameters, last)
        if (chunk.length === 0) break
        const rows = chunk.flatMap((fact) => erasedRow(fact, erasedAt))
        yield* insertRows(store, "eraseDetails", store.facts, rows)
        last = chunk.at(-1)
      }
      yield* store.change({
        operation: "eraseDetails",
        parameters,
        sql: `DELETE FROM ${store.facts} WHERE ${told} SETTINGS lightweight_deletes_sync = 2`
      })
    }
  )
