/**
 * Verification of one execution: recomputes what is stored of it and compares it with the end of
 * the tenant's chain on its topic and the records there. Verifier verifies the chain of all facts
 * of a tenant.
 */
import { Clock, Context, Effect, Layer, Option, Stream } from "effect"
import { ChainEnds } from "../actors/chainEnds/ChainEnds.ts"
import type { ProjectionProgress } from "../actors/log/ProjectionProgress.ts"
import { inSlices } from "../domain/InSlices.ts"
import { parseFact, TRACE_SCHEME } from "../domain/traces/FactText.ts"
import type { TraceFact } from "../domain/traces/TraceFact.ts"
import { EventLog, type LogReader, type LogUnavailable } from "../ports/EventLog.ts"
import type { StoredRow, StoreUnavailable } from "../ports/EventStore.ts"
import { TraceStore } from "../ports/TraceStore.ts"
import { caughtUp } from "./CaughtUp.ts"
import { neighboursOf, TraceCheck } from "./TraceCheck.ts"
import { reportOf, type TraceVerifyReport } from "./VerifyReport.ts"

export class TraceVerifier extends Context.Service<
  TraceVerifier,
  {
    /** Undefined: the store holds no fact of such an execution of the tenant. */
    verify(
      tenantId: string,
      executionId: string
    ): Effect.Effect<TraceVerifyReport | undefined, StoreUnavailable | LogUnavailable>
  }
>()("alk/TraceVerifier") {}

/** Time that a check waits for lost records. */
const LOOKUP_TIMEOUT = "10 seconds"
/** Facts after the last one that are looked up in the log at most. */
const MISSING_MAX = 100
const FETCH_BYTES = 4 * 1_048_576
const FETCH_WAIT_MS = 100

/** Before and after each row in the tenant's chain. */
const sequencesAround = (rows: ReadonlyArray<StoredRow>): ReadonlyArray<number> => [
  ...new Set(rows.flatMap(({ sequenceNumber }) => [sequenceNumber - 1, sequenceNumber + 1]))
]

/** The tenant's records of the topic between two offsets. */
const recordsOf = Effect.fnUntraced(function* (
  reader: LogReader,
  tenantId: string,
  from: number,
  to: number
) {
  const log = yield* EventLog
  const partition = log.partitionOf(tenantId)
  const facts: Array<TraceFact> = []
  const limits = { waitMs: FETCH_WAIT_MS, maxBytes: FETCH_BYTES }
  for (let offset = from; offset < to; ) {
    const [fetched] = yield* reader.fetch([{ topic: "traces", partition, offset }], limits)
    if (fetched === undefined) break
    for (const { key, offset: at, value } of fetched.records) {
      if (at >= to || key?.toString() !== tenantId || value === null) continue
      const fact = parseFact(value.toString())
      if (fact !== undefined) facts.push(fact)
    }
    offset = fetched.nextOffset
  }
  return facts
})

/** What the log says at sequences that the store has lost; what retention has removed is absent. */
const lostFacts = Effect.fnUntraced(function* (
  tenantId: string,
  missing: ReadonlyArray<number>,
  head: number
) {
  const log = yield* EventLog
  const store = yield* TraceStore
  const partition = log.partitionOf(tenantId)
  const reader = yield* log.reader
  const { end, start } = yield* log.bounds("traces", partition)
  const facts = new Map<number, TraceFact>()
  const wanted = new Set(missing)
  for (const sequence of missing) {
    // Its neighbours have been found with it.
    if (facts.has(sequence)) continue
    let after = sequence + 1
    while (wanted.has(after)) after += 1
    const links = yield* store.links(tenantId, [sequence - 1, after])
    const offsetOf = (place: number) =>
      links.find(({ chainSequence }) => chainSequence === place)?.offset
    const from = Math.max(start, (offsetOf(sequence - 1) ?? start - 1) + 1)
    const to = after > head ? end : (offsetOf(after) ?? end)
    for (const fact of yield* recordsOf(reader, tenantId, from, to)) {
      facts.set(fact.chain_sequence, fact)
    }
  }
  return facts
}, Effect.scoped)

/** Facts of this execution after its last one that are not in the store; true if all is known. */
const checkTail = Effect.fnUntraced(function* (
  check: TraceCheck,
  tenantId: string,
  executionId: string,
  head: number
) {
  // A number beyond the head is no fact of the chain: the check says so.
  const last = check.last ?? 0
  if (last >= head) return true
  const store = yield* TraceStore
  const missing = yield* store.missing(tenantId, last + 1, head, MISSING_MAX)
  if (missing.length === 0) return true
  const found = yield* lostFacts(tenantId, missing, head).pipe(
    Effect.timeoutOption(LOOKUP_TIMEOUT),
    // Retention has passed the place: the fact's tenant is not known any more.
    Effect.catchTag("OffsetOutOfRange", () => Effect.succeedNone)
  )
  const facts = Option.getOrElse(found, () => new Map<number, TraceFact>())
  for (const sequence of missing) {
    const fact = facts.get(sequence)
    if (fact?.execution_id === executionId) check.tailMissing(sequence, fact.fact_number)
  }
  return missing.length < MISSING_MAX && missing.every((sequence) => facts.has(sequence))
})

const verify = Effect.fn("TraceVerifier.verify")(function* (tenantId: string, executionId: string) {
  const started = yield* Clock.currentTimeMillis
  const ends = yield* ChainEnds
  const store = yield* TraceStore
  const head = yield* ends.head({ tenantId, chain: "traces" })
  yield* caughtUp(tenantId, "traces")
  const check = new TraceCheck(tenantId, executionId, head)
  yield* store
    .rows(tenantId, executionId)
    .pipe(
      Stream.runForEach((rows) =>
        Effect.flatMap(store.links(tenantId, sequencesAround(rows)), (links) =>
          inSlices(() => check.rows(rows, neighboursOf(links)))
        )
      )
    )
  if (check.checked === 0) return undefined
  const isComplete = yield* checkTail(check, tenantId, executionId, head?.sequence_number ?? 0)
  const newest = yield* ends.head({ tenantId, chain: "traces" })
  check.end(newest)
  const { checked, first, last } = check
  const report: TraceVerifyReport = yield* reportOf({
    tenantId,
    scheme: TRACE_SCHEME,
    bounds: { fromSequence: first, toSequence: last },
    eventsChecked: checked,
    first,
    last,
    head: newest,
    erased: check.erased,
    breaks: check.breaks,
    breaksTotal: check.breaksTotal,
    isComplete,
    remarks: { execution_id: executionId, facts_checked: checked },
    started
  })
  return report
})

export const layerTraceVerifier: Layer.Layer<
  TraceVerifier,
  never,
  ChainEnds | EventLog | TraceStore | ProjectionProgress
> = Layer.effect(
  TraceVerifier,
  Effect.gen(function* () {
    const context = yield* Effect.context<ChainEnds | EventLog | TraceStore | ProjectionProgress>()
    return TraceVerifier.of({
      verify: (tenantId, executionId) =>
        verify(tenantId, executionId).pipe(Effect.provideContext(context))
    })
  })
)
