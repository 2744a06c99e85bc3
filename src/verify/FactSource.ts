/**
 * The chain of a tenant's trace facts as a source of its check: every row is recomputed here. A
 * fact without its details is right if a later fact of its execution says that they were erased.
 */
import { Effect, Stream } from "effect"
import type { ProjectionProgress } from "../actors/log/ProjectionProgress.ts"
import {
  parseFact,
  type RecomputedFact,
  recomputeFact,
  TRACE_SCHEME,
  type TraceFact
} from "../domain/traces/TraceFact.ts"
import type { EventLog } from "../ports/EventLog.ts"
import type { StoredRow } from "../ports/EventStore.ts"
import { type FactTime, TraceStore } from "../ports/TraceStore.ts"
import { caughtUp } from "./CaughtUp.ts"
import type { ChainSource, Fault, JudgedRow, TimeBounds } from "./ChainSource.ts"
import type { Break, BreakReason } from "./VerifyReport.ts"

const ABSENT = "none"
const CONFLICTS_MAX = 100
const COPIES_MAX = 100
/** Facts whose span the index does not lead to that are named, and the other way round. */
const INDEX_FAULTS_MAX = 100
/** Executions with erased facts whose erasure is looked up apart at most. */
const LOOKUPS_MAX = 10_000

/** What is wrong with a fact's columns and content, wherever its place is. */
export const contentFaults = (
  wrongColumns: ReadonlyArray<string>,
  { contentHash, detailsHash, exact, fact, hash }: RecomputedFact
): ReadonlyArray<Fault> => {
  const faults: Array<Fault> = []
  const report = (reason: BreakReason, expected: string, actual: string) =>
    faults.push({ reason, expected, actual })
  if (wrongColumns.length > 0) {
    const actual = `other values in ${wrongColumns.join(", ")}`
    report("content_mismatch", "columns equal to the stored bytes", actual)
  }
  const details = detailsHash ?? fact.details_hash
  if (details !== fact.details_hash) {
    report("content_mismatch", fact.details_hash ?? ABSENT, details ?? ABSENT)
  } else if (contentHash !== fact.content_hash) {
    report("content_mismatch", fact.content_hash, contentHash)
  } else if (hash !== fact.hash) {
    report("hash_mismatch", fact.hash, hash)
  } else if (!exact) {
    report(
      "content_mismatch",
      "the bytes that the sequencer writes for this fact",
      "the same fact in other bytes, or with members that no hash covers"
    )
  }
  return faults
}

/** Facts of one execution that lost their details at one time. */
interface Undetailed {
  readonly fact: TraceFact
  readonly row: StoredRow
  /** Number of the last of them. */
  last: number
}

const keyOf = (executionId: string, erasedAt: string): string => `${erasedAt} ${executionId}`

const isUndetailed = ({ details, details_hash }: TraceFact): boolean =>
  details === undefined && details_hash !== undefined

/** Facts without details of which no erasure was seen yet. */
class Undetaileds {
  readonly #open = new Map<string, Undetailed>()

  take(row: StoredRow, fact: TraceFact): void {
    if (fact.type === "execution.erased") this.close(fact)
    if (!isUndetailed(fact)) return
    const key = keyOf(fact.execution_id, fact.erased_at ?? "")
    const known = this.#open.get(key)
    if (known === undefined) this.#open.set(key, { fact, row, last: fact.fact_number })
    else known.last = Math.max(known.last, fact.fact_number)
  }

  /** The fact that says so has come. */
  close({ created_at, execution_id, fact_number }: TraceFact): void {
    const key = keyOf(execution_id, created_at)
    const known = this.#open.get(key)
    if (known !== undefined && known.last < fact_number) this.#open.delete(key)
  }

  get open(): ReadonlyArray<Undetailed> {
    return [...this.#open.values()]
  }
}

const judged = (tenantId: string, row: StoredRow, open: Undetaileds): JudgedRow => {
  const found = recomputeFact(row.body)
  if (found === undefined) return { row, found: undefined }
  const { fact } = found
  const faults: Array<Fault> = []
  if (fact.tenant_id !== tenantId || fact.chain_sequence !== row.sequenceNumber) {
    faults.push({
      reason: "content_mismatch",
      expected: `tenant ${tenantId}, sequence ${row.sequenceNumber}`,
      actual: `tenant ${fact.tenant_id}, sequence ${fact.chain_sequence}`
    })
  }
  faults.push(...contentFaults(row.wrongColumns, found))
  if (fact.erased_at !== undefined && fact.details !== undefined) {
    faults.push({
      reason: "content_mismatch",
      expected: "no details, since it says erased_at",
      actual: "details"
    })
  }
  open.take(row, fact)
  return {
    row,
    found: {
      id: fact.type === "span.event" ? fact.event_id : null,
      hash: fact.hash,
      prevHash: fact.prev_hash,
      recomputed: found.hash,
      time: fact.created_at,
      isErased: isUndetailed(fact),
      faults
    }
  }
}

/** The first fact that was recorded at a time or later, by halving: times never decrease. */
const firstAt = Effect.fnUntraced(function* (
  tenantId: string,
  isThere: (fact: FactTime) => boolean,
  highest: number
) {
  const store = yield* TraceStore
  let [low, high] = [1, highest + 1]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const found = yield* store.factFrom(tenantId, middle)
    if (found === undefined || found.sequence >= high) {
      high = middle
      continue
    }
    if (isThere(found)) high = middle
    else low = found.sequence + 1
  }
  return low
})

const spanOf = Effect.fnUntraced(function* (tenantId: string, { from, to }: TimeBounds) {
  const store = yield* TraceStore
  const { highest, rows } = yield* store.extent(tenantId)
  if (rows === 0) return undefined
  const first = yield* firstAt(tenantId, ({ createdAt }) => createdAt >= from, highest)
  const end = yield* firstAt(tenantId, ({ createdAt }) => createdAt > to, highest)
  return first < end ? { first, last: end - 1 } : undefined
})

/** Erasures may lie after the range, or be stored a moment later than what they erase. */
const unexplained = Effect.fnUntraced(function* (tenantId: string, open: Undetaileds) {
  const store = yield* TraceStore
  for (const isAgain of [false, true]) {
    if (open.open.length === 0) return
    if (isAgain) yield* caughtUp(tenantId, "traces")
    const executions = new Set(open.open.map(({ fact }) => fact.execution_id))
    for (const executionId of [...executions].slice(0, LOOKUPS_MAX)) {
      const facts = yield* store.facts(tenantId, executionId, { kind: "execution" }, true)
      for (const body of facts) {
        const fact = parseFact(body)
        if (fact?.type === "execution.erased") open.close(fact)
      }
    }
  }
})

const undetailedBreak = ({ fact, row }: Undetailed): Break => ({
  sequence_number: row.sequenceNumber,
  event_id: fact.type === "span.event" ? fact.event_id : null,
  reason: "content_mismatch",
  expected: "details, or a later fact execution.erased of this time",
  actual: `no details, erased_at ${fact.erased_at ?? ABSENT}`
})

/** That the ids of spans lead to the executions that the facts say. */
const indexBreaks = Effect.fnUntraced(function* (
  tenantId: string,
  first: number,
  last: number,
  onlySpan: boolean
) {
  const store = yield* TraceStore
  const unindexed = yield* store.unindexed(tenantId, first, last, INDEX_FAULTS_MAX)
  const stray = onlySpan ? [] : yield* store.strayIndex(tenantId, INDEX_FAULTS_MAX)
  const wrong = (sequence: number, expected: string, actual: string): Break => ({
    sequence_number: sequence,
    event_id: null,
    reason: "content_mismatch",
    expected,
    actual
  })
  return [
    ...unindexed.map((sequence) =>
      wrong(sequence, "an entry for its span in the index of span ids", ABSENT)
    ),
    ...stray.map(({ spanId }) =>
      wrong(1, "no entry in the index of span ids without a fact", `one for span ${spanId}`)
    )
  ]
})

/** Over the tenant's rows in the store. */
export const factSource = Effect.fnUntraced(function* (tenantId: string) {
  const store = yield* TraceStore
  const context = yield* Effect.context<EventLog | TraceStore | ProjectionProgress>()
  const open = new Undetaileds()
  const source: ChainSource = {
    chain: "traces",
    scheme: TRACE_SCHEME,
    noun: "trace fact",
    rows: (first, last) =>
      store
        .chainRows(tenantId, first, last)
        .pipe(Stream.map((rows) => rows.map((row) => judged(tenantId, row, open)))),
    trusted: () => Effect.succeed(new Map()),
    span: (bounds) => spanOf(tenantId, bounds).pipe(Effect.provideContext(context)),
    extent: store.extent(tenantId),
    copies: (first, last) => store.copies(tenantId, first, last, COPIES_MAX),
    conflicts: store.conflicts(tenantId, CONFLICTS_MAX),
    conclude: (first, last, onlySpan) =>
      Effect.gen(function* () {
        yield* unexplained(tenantId, open)
        const index = yield* indexBreaks(tenantId, first, last, onlySpan)
        return [...open.open.map(undetailedBreak), ...index]
      }).pipe(Effect.provideContext(context))
  }
  return source
})
