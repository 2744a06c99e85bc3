/**
 * Takes the details out of stored facts of executions. What an erased fact looks like is the
 * domain's to say; here its row replaces the old one, which is then deleted.
 */
import { Effect } from "effect"
import { firstAbove } from "../../../domain/SortedLists.ts"
import { eraseFact, parseFact } from "../../../domain/traces/FactText.ts"
import type { ExecutionErasure, FactRow, TraceStore } from "../../../ports/TraceStore.ts"
import type { Parameters, Statement } from "../client/Parameters.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { eraseSetAside, unerasedKeys } from "../topics/SetAside.ts"
import { insertFactRows } from "./TraceFacts.ts"
import { factChunk, type PlacedFact } from "./TraceSlices.ts"
import { ALL_SCOPES, ofExecutions } from "./TraceSql.ts"

type Store = TraceStore["Service"]

/** Executions of one tenant by their id, whose details go, each with its erasures in order. */
type Erasures = ReadonlyMap<string, ReadonlyArray<ExecutionErasure>>

const byExecution = (erasures: ReadonlyArray<ExecutionErasure>): Erasures =>
  Map.groupBy(erasures, ({ executionId }) => executionId)

/** What the first erasure after it leaves of a fact; undefined for what can't be read as one. */
const erasedBy =
  (erasures: Erasures) =>
  (body: string): string | undefined => {
    const fact = parseFact(body)
    if (fact === undefined) return undefined
    const all = erasures.get(fact.execution_id) ?? []
    const by = firstAbove(all, ({ beforeSequence }) => beforeSequence, fact.chain_sequence)
    return by === undefined ? undefined : eraseFact(fact, by.erasedAt)
  }

const erasedRows = (
  facts: ReadonlyArray<PlacedFact>,
  erased: (body: string) => string | undefined
): ReadonlyArray<FactRow> =>
  facts.flatMap(({ body, mac, offset, partition }) => {
    const left = erased(body)
    return left === undefined ? [] : [{ partition, offset, mac, body: Buffer.from(left, "utf8") }]
  })

/** Facts whose sequence is before that of the last erasure of their execution. */
const before = (
  erasures: Erasures,
  executionId: string,
  sequence: string,
  bind: Parameters
): string => {
  const last = [...erasures.values()].map((all) => all.at(-1)!.beforeSequence)
  const sequences = last.map((beforeSequence) => `toUInt64(${bind.integer(beforeSequence)})`)
  return (
    `${sequence} < transform(CAST(${executionId}, 'String'), [${bind.strings([...erasures.keys()])}],`
    + ` [${sequences.join(", ")}], toUInt64(0))`
  )
}

/** Take the details out of what was set aside of executions. */
const eraseAside = (store: StoreClient, tenantId: string, erasures: Erasures) =>
  eraseSetAside(
    store,
    "facts",
    (bind) =>
      `${bind.tenant(tenantId)} AND detail IN (${bind.strings([...erasures.keys()])})`
      + ` AND ${before(erasures, "detail", "JSONExtractUInt(body, 'chain_sequence')", bind)}`,
    erasedBy(erasures)
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
    (row) => ({
      tenantId: row.string(),
      executionId: row.string(),
      beforeSequence: row.uint64(),
      erasedAt: row.string()
    })
  )
  for (const { tenantId, ...erasure } of found) {
    yield* eraseAside(store, tenantId, byExecution([erasure]))
  }
})

/** Executions whose details go with one statement. */
const ERASED_TOGETHER_MAX = 1_000

const eraseTogether = Effect.fnUntraced(function* (
  store: StoreClient,
  tenantId: string,
  erasures: Erasures
) {
  yield* eraseAside(store, tenantId, erasures)
  const ids = [...erasures.keys()]
  const own: Statement = (bind) => ofExecutions(tenantId, ids, bind, ALL_SCOPES)
  const withDetails: Statement = (bind) =>
    `${own(bind)} AND version != 1`
    + ` AND ${before(erasures, "execution_id", "chain_sequence", bind)}`
  const count = yield* store.readOne(
    "eraseDetails",
    (bind) => `SELECT count() FROM ${store.facts} WHERE ${withDetails(bind)}`,
    (row) => row.uint64()
  )
  if (count === 0) return
  // Rows that are there already were written before a start that was broken off, or a replay.
  const left: Statement = (bind) =>
    `${withDetails(bind)} AND (execution_id, fact_number, hash) NOT IN`
    + ` (SELECT execution_id, fact_number, hash FROM ${store.facts}`
    + ` WHERE ${own(bind)} AND version = 1)`
  let last: PlacedFact | undefined
  for (;;) {
    const chunk = yield* factChunk(store, "eraseDetails", left, last)
    if (chunk.length === 0) break
    yield* insertFactRows(store, "eraseDetails", erasedRows(chunk, erasedBy(erasures)))
    last = chunk.at(-1)
  }
  yield* store.change(
    "eraseDetails",
    (bind) =>
      `DELETE FROM ${store.facts} WHERE ${withDetails(bind)}`
      + " SETTINGS lightweight_deletes_sync = 2"
  )
})

export const makeEraseDetails = (store: StoreClient): Store["eraseDetails"] =>
  Effect.fn("TraceStore.eraseDetails")(function* (tenantId, erasures) {
    for (let at = 0; at < erasures.length; at += ERASED_TOGETHER_MAX) {
      const some = byExecution(erasures.slice(at, at + ERASED_TOGETHER_MAX))
      yield* eraseTogether(store, tenantId, some)
    }
  })
