/**
 * The chain of a tenant's trace facts as a source of its check: every row is recomputed here. A
 * fact may be without its details if a later fact of its execution records their erasure.
 */
import { Effect, Stream } from "effect"
import type { ProjectionProgress } from "../actors/log/ProjectionProgress.ts"
import { inSlices } from "../domain/InSlices.ts"
import { eachInStep } from "../domain/Slices.ts"
import { type RecomputedFact, recomputeFact, TRACE_SCHEME } from "../domain/traces/FactText.ts"
import type { TraceFact } from "../domain/traces/TraceFact.ts"
import type { EventLog } from "../ports/EventLog.ts"
import type { StoredRow } from "../ports/EventStore.ts"
import { TraceStore } from "../ports/TraceStore.ts"
import { caughtUp } from "./CaughtUp.ts"
import { type Chained, chainedFacts } from "./ChainProofs.ts"
import { type ChainSource, contentFault, type Fault, type JudgedRow } from "./ChainSource.ts"
import { ABSENT, type Break } from "./VerifyReport.ts"

const CONFLICTS_MAX = 100
const COPIES_MAX = 100
/** Facts without an entry in the index of span ids that are named, and entries without a fact. */
const INDEX_FAULTS_MAX = 100
/** Facts that are named whose numbers do not follow. */
const NUMBER_FAULTS_MAX = 100
/** Executions with erased facts whose erasure is looked up apart at most. */
const LOOKUPS_MAX = 10_000
/** Times of erasures that one statement looks for. */
const TIMES_AT_ONCE = 1_000

/** What is wrong with a fact's columns and content, wherever its place is. */
export const contentFaults = (
  wrongColumns: ReadonlyArray<string>,
  { contentHash, detailsHash, exact, fact, hash }: RecomputedFact
): ReadonlyArray<Fault> => {
  const faults: Array<Fault> = []
  if (wrongColumns.length > 0) {
    const actual = `other values in ${wrongColumns.join(", ")}`
    faults.push(contentFault("columns equal to the stored bytes", actual))
  }
  const details = detailsHash ?? fact.details_hash
  if (details !== fact.details_hash) {
    faults.push(contentFault(fact.details_hash ?? ABSENT, details ?? ABSENT))
  } else if (contentHash !== fact.content_hash) {
    faults.push(contentFault(fact.content_hash, contentHash))
  } else if (hash !== fact.hash) {
    faults.push({ reason: "hash_mismatch", expected: fact.hash, actual: hash })
  } else if (!exact) {
    const expected = "the bytes that the sequencer writes for this fact"
    const actual = "the same fact in other bytes, or with members that no hash covers"
    faults.push(contentFault(expected, actual))
  }
  if (fact.erased_at !== undefined && fact.details !== undefined) {
    faults.push(contentFault("no details, since it says erased_at", "details"))
  }
  return faults
}

/** Facts of one execution that lost their details at one time: a few words, there may be many. */
interface Undetailed {
  readonly executionId: string
  readonly erasedAt: string | undefined
  /** Of the first of them: where it was found, and its number and event as it says. */
  readonly sequence: number
  readonly factNumber: number
  readonly eventId: string | null
  /** Sequence of the last of them. */
  last: number
}

const keyOf = (executionId: string, erasedAt: string): string => `${erasedAt} ${executionId}`

/** True if its details were erased. */
export const isUndetailed = ({ details, details_hash }: TraceFact): boolean =>
  details === undefined && details_hash !== undefined

/**
 * Facts without details whose erasure was not found yet: some 300 bytes for each erasure that is
 * still to come, however many facts it has erased, and whatever they say.
 */
export class UndetailedFacts {
  readonly #open = new Map<string, Undetailed>()

  /** `sequence` is where it was found. */
  take(sequence: number, fact: TraceFact): void {
    if (fact.type === "execution.erased") this.close(fact)
    if (!isUndetailed(fact)) return
    const { chain_sequence, erased_at, execution_id, fact_number } = fact
    const key = keyOf(execution_id, erased_at ?? "")
    const known = this.#open.get(key)
    if (known !== undefined) known.last = Math.max(known.last, chain_sequence)
    else {
      this.#open.set(key, {
        executionId: execution_id,
        erasedAt: erased_at,
        sequence,
        factNumber: fact_number,
        eventId: eventIdOf(fact),
        last: chain_sequence
      })
    }
  }

  /** The fact that records an erasure was found. */
  close({ chain_sequence, created_at, execution_id }: TraceFact): void {
    const key = keyOf(execution_id, created_at)
    const known = this.#open.get(key)
    if (known !== undefined && known.last < chain_sequence) this.#open.delete(key)
  }

  get open(): ReadonlyArray<Undetailed> {
    return [...this.#open.values()]
  }
}

const judged = (tenantId: string, row: StoredRow, open: UndetailedFacts): JudgedRow => {
  const found = recomputeFact(row.body)
  if (found === undefined) return { row, found: undefined }
  const { fact } = found
  const faults: Array<Fault> = []
  if (fact.tenant_id !== tenantId || fact.chain_sequence !== row.sequenceNumber) {
    const expected = `tenant ${tenantId}, sequence ${row.sequenceNumber}`
    const actual = `tenant ${fact.tenant_id}, sequence ${fact.chain_sequence}`
    faults.push(contentFault(expected, actual))
  }
  faults.push(...contentFaults(row.wrongColumns, found))
  open.take(row.sequenceNumber, fact)
  return {
    row,
    found: {
      id: eventIdOf(fact),
      hash: fact.hash,
      prevHash: fact.prev_hash,
      recomputed: found.hash,
      time: fact.created_at,
      isErased: isUndetailed(fact),
      faults
    }
  }
}

/** The fact of a stored text, if it is one of the tenant and holds by itself. */
export const factIn = (body: string, tenantId: string): TraceFact | undefined => {
  const found = recomputeFact(body)
  if (found === undefined || contentFaults([], found).length > 0) return undefined
  return found.fact.tenant_id === tenantId ? found.fact : undefined
}

/** The same, if it records the erasure of this execution. */
const erasureIn = (body: string, tenantId: string, executionId: string): TraceFact | undefined => {
  const fact = factIn(body, tenantId)
  return fact?.type === "execution.erased" && fact.execution_id === executionId ? fact : undefined
}

/**
 * An erasure may be after the range, where it has to be in the chain, or be stored a moment later
 * than what it erases.
 */
const unexplained = Effect.fnUntraced(function* (
  tenantId: string,
  open: UndetailedFacts,
  chained: Chained
) {
  const store = yield* TraceStore
  for (const isAgain of [false, true]) {
    if (open.open.length === 0) return
    if (isAgain) yield* caughtUp(tenantId, "traces")
    const executions = Map.groupBy(open.open, ({ executionId }) => executionId)
    const found: Array<TraceFact> = []
    for (const [executionId, erased] of [...executions].slice(0, LOOKUPS_MAX)) {
      for (let from = 0; from < erased.length; from += TIMES_AT_ONCE) {
        const some = erased.slice(from, from + TIMES_AT_ONCE)
        const times = some.map(({ erasedAt }) => erasedAt ?? "")
        const selection = { kind: "erasures", times } as const
        const facts = yield* store.facts(tenantId, executionId, selection, true)
        found.push(...facts.flatMap((body) => erasureIn(body, tenantId, executionId) ?? []))
      }
    }
    const proven = yield* chained(
      found.map(({ chain_sequence, hash }) => ({ sequenceNumber: chain_sequence, hash }))
    )
    for (const fact of found) if (proven.has(fact.hash)) open.close(fact)
  }
})

/** Id of the trace event that a fact records, if it records one. */
export const eventIdOf = (fact: TraceFact): string | null =>
  fact.type === "span.event" ? fact.event_id : null

export const undetailedFault = ({ erasedAt }: Undetailed): Fault =>
  contentFault(
    "details, or a later fact execution.erased of this time",
    `no details, erased_at ${erasedAt ?? ABSENT}`
  )

const undetailedBreak = (undetailed: Undetailed): Break => ({
  sequence_number: undetailed.sequence,
  event_id: undetailed.eventId,
  ...undetailedFault(undetailed)
})

/** Of a fact that is not an event. */
const breakAt = (sequence: number, expected: string, actual: string): Break => ({
  sequence_number: sequence,
  event_id: null,
  ...contentFault(expected, actual)
})

/** That the ids of spans lead to the executions that the facts say. */
const indexBreaks = Effect.fnUntraced(function* (
  tenantId: string,
  first: number,
  last: number,
  onlyRange: boolean
) {
  const store = yield* TraceStore
  const unindexed = yield* store.unindexed(tenantId, first, last, INDEX_FAULTS_MAX)
  const stray = onlyRange ? [] : yield* store.strayIndex(tenantId, INDEX_FAULTS_MAX)
  return [
    ...unindexed.map((sequence) =>
      breakAt(sequence, "an entry for its span in the index of span ids", ABSENT)
    ),
    ...stray.map(({ spanId }) =>
      breakAt(1, "no entry in the index of span ids without a fact", `one for span ${spanId}`)
    )
  ]
})

/** That the facts of each execution are numbered one after the other, as far as they are there. */
const numberBreaks = Effect.fnUntraced(function* (
  tenantId: string,
  first: number,
  last: number,
  isWhole: boolean
) {
  const store = yield* TraceStore
  const found = yield* store.misnumbered(tenantId, first, last, NUMBER_FAULTS_MAX)
  return found
    .filter(({ actual, expected }) => isWhole || actual < expected)
    .map(({ actual, executionId, expected, sequence }) =>
      breakAt(
        sequence,
        `fact_number ${expected} of the execution ${executionId}`,
        `fact_number ${actual}`
      )
    )
})

/** Over the tenant's rows in the store. */
export const factSource = Effect.fnUntraced(function* (tenantId: string) {
  const store = yield* TraceStore
  const context = yield* Effect.context<EventLog | TraceStore | ProjectionProgress>()
  const chained = yield* chainedFacts(tenantId)
  const open = new UndetailedFacts()
  let [isWhole, sequence] = [true, 0]
  const judge = (row: StoredRow): JudgedRow => {
    isWhole &&= sequence === 0 || row.sequenceNumber <= sequence + 1
    sequence = row.sequenceNumber
    return judged(tenantId, row, open)
  }
  const source: ChainSource = {
    chain: "traces",
    scheme: TRACE_SCHEME,
    noun: "trace fact",
    rows: (first, last) =>
      store
        .chainRows(tenantId, first, last)
        .pipe(Stream.mapEffect((rows) => inSlices(() => eachInStep(rows, judge)))),
    trusted: () => Effect.succeed(new Map()),
    extent: store.extent(tenantId),
    copies: (first, last) => store.copies(tenantId, first, last, COPIES_MAX),
    conflicts: store.conflicts(tenantId, CONFLICTS_MAX),
    conclude: (first, last, onlyRange) =>
      Effect.gen(function* () {
        yield* unexplained(tenantId, open, chained)
        const index = yield* indexBreaks(tenantId, first, last, onlyRange)
        const numbers = yield* numberBreaks(tenantId, first, last, isWhole)
        return [...open.open.map(undetailedBreak), ...index, ...numbers]
      }).pipe(Effect.provideContext(context))
  }
  return source
})
