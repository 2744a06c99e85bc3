/**
 * Takes the details out of an execution's stored facts. What an erased fact looks like is the
 * domain's to say; here its row replaces the old one, which is then deleted.
 */
import { Effect } from "effect"
import { eraseFact, parseFact } from "../../../domain/traces/TraceFact.ts"
import type { FactRow, TraceStore } from "../../../ports/TraceStore.ts"
import type { Statement } from "../client/Parameters.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { eraseSetAside, unerasedKeys } from "../topics/SetAside.ts"
import { insertFactRows } from "./TraceFacts.ts"
import { factChunk, type PlacedFact } from "./TraceSlices.ts"
import { ofExecution } from "./TraceSql.ts"

type Store = TraceStore["Service"]

const erased = (body: string, erasedAt: string): string | undefined => {
  const fact = parseFact(body)
  return fact === undefined ? undefined : eraseFact(fact, erasedAt)
}

const erasedRow = (
  { body, mac, offset, partition }: PlacedFact,
  erasedAt: string
): ReadonlyArray<FactRow> => {
  const left = erased(body, erasedAt)
  return left === undefined ? [] : [{ partition, offset, mac, body: Buffer.from(left, "utf8") }]
}

interface ExecutionErasure {
  readonly tenantId: string
  readonly executionId: string
  readonly beforeSequence: number
  readonly erasedAt: string
}

/** Take the details out of what was set aside of an execution. */
const eraseAside = (
  store: StoreClient,
  { beforeSequence, erasedAt, executionId, tenantId }: ExecutionErasure
) =>
  eraseSetAside(
    store,
    "facts",
    (bind) =>
      `${bind.tenant(tenantId)} AND detail = ${bind.string(executionId)}`
      + ` AND JSONExtractUInt(body, 'chain_sequence') < ${bind.integer(beforeSequence)}`,
    (body) => erased(body, erasedAt)
  )

/** Erase in what was set aside what is erased in the view. */
export const eraseCopies = Effect.fnUntraced(function* (store: StoreClient, partition: number) {
  const found = yield* store.read(
    "eraseDetails",
    (bind) => {
      const own = bind.partition(partition)
      return (
        "SELECT DISTINCT tenant_id, execution_id, chain_sequence,"
        + ` JSONExtractString(body, 'created_at') FROM ${store.facts}`
        + ` WHERE ${own} AND type = 'execution.erased' AND (tenant_id, execution_id)`
        + ` IN (${unerasedKeys(store, "facts", "detail", own)})`
      )
    },
    (row): ExecutionErasure => ({
      tenantId: row.string(),
      executionId: row.string(),
      beforeSequence: row.uint64(),
      erasedAt: row.string()
    })
  )
  for (const erasure of found) yield* eraseAside(store, erasure)
})

export const makeEraseDetails = (store: StoreClient): Store["eraseDetails"] =>
  Effect.fn("TraceStore.eraseDetails")(function* (tenantId, executionId, beforeSequence, erasedAt) {
    yield* eraseAside(store, { tenantId, executionId, beforeSequence, erasedAt })
    const withDetails: Statement = (bind) =>
      `${ofExecution(tenantId, executionId, bind)}`
      + ` AND chain_sequence < ${bind.integer(beforeSequence)} AND version != 1`
    const count = yield* store.readOne(
      "eraseDetails",
      (bind) => `SELECT count() FROM ${store.facts} WHERE ${withDetails(bind)}`,
      (row) => row.uint64()
    )
    if (count === 0) return
    // Rows that are there already were written before a start that was broken off, or a replay.
    const left: Statement = (bind) =>
      `${withDetails(bind)} AND (fact_number, hash) NOT IN (SELECT fact_number, hash`
      + ` FROM ${store.facts} WHERE ${ofExecution(tenantId, executionId, bind)} AND version = 1)`
    let last: PlacedFact | undefined
    for (;;) {
      const chunk = yield* factChunk(store, "eraseDetails", left, last)
      if (chunk.length === 0) break
      const rows = chunk.flatMap((fact) => erasedRow(fact, erasedAt))
      yield* insertFactRows(store, "eraseDetails", rows)
      last = chunk.at(-1)
    }
    yield* store.change(
      "eraseDetails",
      (bind) =>
        `DELETE FROM ${store.facts} WHERE ${withDetails(bind)}`
        + " SETTINGS lightweight_deletes_sync = 2"
    )
  })
