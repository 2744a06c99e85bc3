/**
 * The facts of single executions, as the bytes they came in, and which execution a span belongs to.
 * What is in the store twice is shown once, always: so few rows are merged in no time, and
 * while an execution is being erased every fact of it is there twice for a moment.
 */
import { Effect, Stream } from "effect"
import { inSlices } from "../../../domain/InSlices.ts"
import { addTo } from "../../../domain/Lists.ts"
import { eventsCountBefore } from "../../../domain/records/FactPlace.ts"
import type { Sliced } from "../../../domain/Slices.ts"
import type {
  FactRow,
  FactSelection,
  LoadedExecution,
  LoadedFact,
  SpanOutline,
  TraceKey,
  TraceStore
} from "../../../ports/TraceStore.ts"
import { chunkEnd, inChunks } from "../client/Chunks.ts"
import type { Parameters, Statement } from "../client/Parameters.ts"
import type { RowBinary } from "../client/RowBinary.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { pairSet, textSet } from "../client/TextSets.ts"
import { insertRows } from "../topics/TopicTable.ts"
import { countedOfExecutions, countedOfSpans, ERASED } from "./CountedFacts.ts"
import { MARKED, markedFactOf } from "./MarkedFacts.ts"
import { Scope } from "./TraceColumns.ts"
import { factChunk, type PlacedFact } from "./TraceSlices.ts"
import {
  ALL_SCOPES,
  DETAILS_BYTES,
  EVENT_CALLS,
  EVENT_ID,
  IN_ORDER,
  newestBy,
  ofExecution,
  SPAN_ERROR,
  SPAN_IS_REMOTE,
  SPAN_NAME,
  SPAN_SIDE,
  STRUCTURE,
  spanHints,
  TELLS_CALLS,
  WITHOUT_DETAILS
} from "./TraceSql.ts"

/** Bytes of facts that one load answers at most. */
const LOAD_BYTES_MAX = 256 * 1_048_576
const LOAD_SETTINGS = `max_result_bytes = ${LOAD_BYTES_MAX}, result_overflow_mode = 'throw'`

type Store = TraceStore["Service"]

/** Log records whose calls a graph looks at. */
const RECORDED_CALLS_MAX = 50_000
/**
 * Bytes of what they tell, with the ids of their spans, after which no more are read: where that many
 * are, more than a graph looks at is of the calls.
 */
const RECORDED_BYTES_MAX = 80 * 1_048_576
const RECORDED_SETTINGS = `max_result_bytes = ${RECORDED_BYTES_MAX}, result_overflow_mode = 'break'`

/** Facts that are about no span have an empty text there. */
const NAMED_SPAN = "span_id != ''"

/** What an execution and, with `ofSpan`, one of its spans are shown by: ten rows at most. */
const shownBy = (
  store: StoreClient,
  ofScope: (scope: string) => string,
  ofSpan?: string
): string => {
  const ofItself = ofScope(`scope = ${Scope.execution}`)
  const itself = `scope = ${Scope.execution} AND ${countedOfExecutions(store, ofItself)}`
  if (ofSpan === undefined) return itself
  const rows = `${ofScope(`scope = ${Scope.span}`)} AND ${ofSpan}`
  return (
    `${STRUCTURE} AND (${itself} OR scope = ${Scope.span} AND ${ofSpan}`
    + ` AND ${countedOfSpans(store, rows)})`
  )
}

const selected = (
  store: StoreClient,
  selection: FactSelection,
  bind: Parameters,
  ofScope: (scope: string) => string
): string => {
  switch (selection.kind) {
    case "execution":
      return shownBy(store, ofScope)
    case "erasures":
      return (
        `scope = ${Scope.execution} AND ${ERASED}`
        + ` AND JSONExtractString(body, 'created_at') IN ${textSet(selection.times)}`
      )
    case "span":
      return shownBy(store, ofScope, `span_id = ${bind.string(selection.spanId)}`)
    case "event":
      return (
        `scope = ${Scope.event}`
        + ` AND sequence_number = ${bind.integer(selection.sequenceNumber)}`
      )
  }
}

export const makeFacts =
  (store: StoreClient): Store["facts"] =>
  (tenantId, executionId, selection) =>
    store.read(
      "facts",
      (bind) => {
        const ofScope = (scope: string) => ofExecution(tenantId, executionId, bind, scope)
        const rows = ofScope(selected(store, selection, bind, ofScope))
        return `SELECT body FROM ${store.facts} WHERE ${rows} ${IN_ORDER}`
      },
      (row) => row.string()
    )

/** A row of `span_ids` for each of these: spans, and roots that have not arrived. */
const NAMING = ["span.started", "execution.started"].map((type) => Buffer.from(`"type":"${type}"`))

export const insertFactRows = (
  store: StoreClient,
  operation: string,
  rows: ReadonlyArray<FactRow>
) => insertRows(store, operation, store.facts, rows, { mac: ({ mac }) => mac })

/**
 * The ids of spans come first: a caller that goes on where the facts end has those of every fact.
 * Texts in other facts may hold the same bytes; what is then stored of them is true as well.
 */
export const makeInsertFacts =
  (store: StoreClient): Store["insertFacts"] =>
  (rows) => {
    const naming = rows.filter(({ body }) => NAMING.some((mark) => body.includes(mark)))
    return Effect.andThen(
      insertRows(store, "insertFacts", store.spanIds, naming),
      insertFactRows(store, "insertFacts", rows)
    )
  }

export const makeExecutionOfSpan =
  (store: StoreClient): Store["executionOfSpan"] =>
  (tenantId, spanId) =>
    store.readFirst(
      "executionOfSpan",
      (bind) =>
        `SELECT execution_id FROM ${store.spanIds} WHERE ${bind.tenant(tenantId)}`
        + ` AND ${NAMED_SPAN} AND span_id = ${bind.string(spanId)}`
        + " ORDER BY chain_sequence LIMIT 1",
      (row) => row.string()
    )

export const makeRecordedCalls =
  (store: StoreClient): Store["recordedCalls"] =>
  (tenantId, executionId) =>
    store.read(
      "recordedCalls",
      (bind) =>
        `SELECT span_id, ${EVENT_CALLS} FROM (SELECT span_id, body FROM ${store.facts} WHERE`
        + ` ${ofExecution(tenantId, executionId, bind, `scope = ${Scope.event}`)} AND ${TELLS_CALLS}`
        + ` ${IN_ORDER} LIMIT ${RECORDED_CALLS_MAX})`,
      (row) => ({ spanId: row.string(), calls: row.string() }),
      { settings: RECORDED_SETTINGS }
    )

export const makeEventCounts =
  (store: StoreClient): Store["eventCounts"] =>
  (tenantId, executionId, spanId) =>
    store
      .read(
        "eventCounts",
        (bind) => {
          const scope =
            `scope = ${Scope.event}`
            + (spanId === undefined ? "" : ` AND span_id = ${bind.string(spanId)}`)
          return (
            `SELECT span_id, uniqExact(fact_number, hash) FROM ${store.facts}`
            + ` WHERE ${ofExecution(tenantId, executionId, bind, scope)} GROUP BY span_id`
          )
        },
        (row) => [row.string(), row.uint64()] as const
      )
      .pipe(Effect.map((counts) => new Map(counts)))

export const makeScan =
  (store: StoreClient): Store["scan"] =>
  (tenantId, executionId, upTo) => {
    const condition: Statement = (bind) =>
      ofExecution(tenantId, executionId, bind, STRUCTURE)
      + ` AND fact_number <= ${bind.integer(upTo)}`
    return inChunks((after: PlacedFact | undefined) =>
      factChunk(store, "scan", condition, after)
    ).pipe(Stream.map((chunk) => chunk.map(({ body }) => body)))
  }

/** Facts of spans that are looked at for a graph at a time. */
const OUTLINES_AT_ONCE = 5_000
/**
 * Bytes up to which a fact is given whole: taking it apart in the statement costs three times as much
 * as reading it.
 */
const WHOLE_BYTES_MAX = 4_096
const IS_WHOLE = `length(body) <= ${WHOLE_BYTES_MAX}`

/** Of a fact that is not whole, or an empty text. */
const ifApart = (value: string): string => `if(${IS_WHOLE}, '', ${value})`

const outlineOf = (row: RowBinary): SpanOutline => {
  const [factNumber, isWhole, fact] = [row.uint64(), row.uint8() === 1, row.string()]
  const details = { name: row.string(), error: row.string(), metadata: row.string() }
  return isWhole ? { factNumber, fact } : { factNumber, fact, details }
}

/** No bulk read, which could wait behind an export: it is of bounded size, and a request needs it. */
const outlineChunk = (
  store: StoreClient,
  ofSpans: Statement,
  after: SpanOutline | undefined,
  withMetadata: boolean
) =>
  store.read(
    "outlines",
    (bind): string => {
      const beyond = `${ofSpans(bind)} AND fact_number > ${bind.integer(after?.factNumber ?? 0)}`
      // Metadata can be all of a fact, the rest is small whatever the fact holds.
      const last = withMetadata
        ? chunkEnd(store.facts, "fact_number", beyond)
        : `SELECT max(fact_number) FROM (SELECT fact_number FROM ${store.facts}`
          + ` WHERE ${beyond} ORDER BY fact_number LIMIT ${OUTLINES_AT_ONCE})`
      const metadata = withMetadata ? spanHints(bind) : "''"
      return (
        `SELECT fact_number, ${IS_WHOLE}, if(${IS_WHOLE}, body, ${WITHOUT_DETAILS}),`
        + ` ${[SPAN_NAME, SPAN_ERROR, metadata].map(ifApart).join(", ")}`
        + ` FROM ${store.facts} WHERE ${beyond} AND fact_number <= (${last}) ${IN_ORDER}`
      )
    },
    outlineOf
  )

export const makeOutlines =
  (store: StoreClient): Store["outlines"] =>
  (tenantId, executionId, withMetadata) => {
    const ofSpans: Statement = (bind) =>
      ofExecution(tenantId, executionId, bind, `scope = ${Scope.span}`)
    const end = store.readOne(
      "outlines",
      (bind) => `SELECT max(fact_number) FROM ${store.facts} WHERE ${ofSpans(bind)}`,
      (row) => row.uint64()
    )
    return Stream.unwrap(
      Effect.map(end, (last) =>
        inChunks(
          (after: SpanOutline | undefined) => outlineChunk(store, ofSpans, after, withMetadata()),
          ({ factNumber }) => factNumber >= last
        )
      )
    )
  }

export const makeSpanCount =
  (store: StoreClient): Store["spanCount"] =>
  (tenantId, executionId) =>
    store.readOne(
      "spanCount",
      (bind) =>
        `SELECT uniqExact(span_id) FROM ${store.facts}`
        + ` WHERE ${ofExecution(tenantId, executionId, bind, `scope = ${Scope.span}`)}`,
      (row) => row.uint64()
    )

/** The execution that has a value, the first of several. */
const holderOf = (store: StoreClient, tenantId: string, has: Statement) =>
  store.readFirst(
    "payload",
    (bind) =>
      `SELECT execution_id FROM ${store.facts} WHERE ${bind.tenant(tenantId)}`
      + ` AND scope = ${Scope.payload} AND ${has(bind)} ORDER BY execution_id LIMIT 1`,
    (row) => row.string()
  )

export const makePayload =
  (store: StoreClient): Store["payload"] =>
  (tenantId, hash) => {
    const has: Statement = (bind) => `payload_hash = ${bind.string(hash)}`
    const pieces = (executionId: string) =>
      inChunks((after: PlacedFact | undefined) =>
        factChunk(
          store,
          "payload",
          (bind) =>
            ofExecution(tenantId, executionId, bind, `scope = ${Scope.payload}`)
            + ` AND ${has(bind)}`,
          after
        )
      ).pipe(Stream.map((chunk) => chunk.map(({ body }) => body)))
    return Stream.unwrap(
      Effect.map(holderOf(store, tenantId, has), (executionId) =>
        executionId === undefined ? Stream.empty : pieces(executionId)
      )
    )
  }

/** One key of two texts, neither of which holds U+0000. */
const keyOf = (tenantId: string, id: string): string => `${tenantId}\0${id}`

const pairsOf = (keys: ReadonlyArray<TraceKey>): string =>
  pairSet(keys.map(({ id, tenantId }) => [tenantId, id]))

/** Which tenants to look at: everything else is found from there. */
const ofTenants = (keys: ReadonlyArray<{ readonly tenantId: string }>): string =>
  `tenant_id IN ${textSet(keys.map(({ tenantId }) => tenantId))}`

/** Rows by their execution; one in a step. */
function* byExecution<Row extends { readonly tenantId: string; readonly executionId: string }>(
  rows: ReadonlyArray<Row>
): Sliced<Map<string, Array<Row>>> {
  const found = new Map<string, Array<Row>>()
  for (const row of rows) {
    addTo(found, keyOf(row.tenantId, row.executionId), row)
    yield
  }
  return found
}

/** The executions that hold the spans. */
const executionsOf = (store: StoreClient, spans: ReadonlyArray<TraceKey>) => {
  const wanted = new Set(spans.map(({ id, tenantId }) => keyOf(tenantId, id)))
  return store
    .read(
      "load",
      () =>
        `SELECT DISTINCT tenant_id, span_id, execution_id FROM ${store.spanIds}`
        + ` WHERE ${ofTenants(spans)} AND ${NAMED_SPAN}`
        + ` AND span_id IN ${textSet(spans.map(({ id }) => id))}`,
      (row) => ({ tenantId: row.string(), spanId: row.string(), id: row.string() })
    )
    .pipe(
      // A second list of pairs would double the time that the statement takes to be read.
      Effect.map((found) =>
        found.filter(({ spanId, tenantId }) => wanted.has(keyOf(tenantId, spanId)))
      )
    )
}

/** Every row of the executions, with what its MAC covers. */
const markedFacts = (store: StoreClient, executions: ReadonlyArray<TraceKey>) =>
  store.read(
    "load",
    () =>
      `SELECT DISTINCT ${MARKED} FROM ${store.facts} WHERE ${ofTenants(executions)}`
      + ` AND ${ALL_SCOPES} AND (tenant_id, execution_id) IN ${pairsOf(executions)}`
      + " ORDER BY tenant_id, execution_id, fact_number",
    markedFactOf,
    { settings: LOAD_SETTINGS }
  )

export const makeStoredEvents =
  (store: StoreClient): Store["storedEvents"] =>
  (sought) =>
    store.read(
      "storedEvents",
      () =>
        `SELECT DISTINCT ${MARKED}, ${WITHOUT_DETAILS} FROM ${store.facts}`
        + ` WHERE ${ofTenants(sought)} AND scope = ${Scope.event} AND (tenant_id, execution_id) IN `
        + pairSet(sought.map(({ executionId, tenantId }) => [tenantId, executionId]))
        + ` AND span_id IN ${textSet(sought.flatMap(({ spanIds }) => spanIds))}`
        + ` AND ${EVENT_ID} IN ${textSet(sought.flatMap(({ eventIds }) => eventIds))}`,
      (row) => ({ marked: markedFactOf(row), body: row.string() }),
      { settings: LOAD_SETTINGS }
    )

export const makeReach =
  (store: StoreClient): Store["reach"] =>
  (tenantId, executionId) =>
    store.readFirst(
      "reach",
      (bind) =>
        `SELECT max(fact_number) FROM ${store.facts}`
        + ` WHERE ${ofExecution(tenantId, executionId, bind)} HAVING count() > 0`,
      (row) => row.uint64()
    )

/** Facts of several executions without their details, in order for each; of some their events too. */
const structures = (
  store: StoreClient,
  executions: ReadonlyArray<TraceKey>,
  withEvents: ReadonlyArray<TraceKey>
) => {
  const scopes =
    withEvents.length === 0
      ? STRUCTURE
      : `${ALL_SCOPES} AND (${STRUCTURE} OR scope = ${Scope.event}`
        + ` AND (tenant_id, execution_id) IN ${pairsOf(withEvents)})`
  return store.read(
    "load",
    () =>
      `SELECT tenant_id, execution_id, fact_number, ${WITHOUT_DETAILS},`
      + ` toUInt64(${DETAILS_BYTES}), ${SPAN_SIDE}, ${SPAN_IS_REMOTE}, scope FROM ${store.facts}`
      + ` WHERE ${ofTenants(executions)} AND ${scopes}`
      + ` AND (tenant_id, execution_id) IN ${pairsOf(executions)}`
      + ` ${newestBy("tenant_id, execution_id, fact_number, hash")}`,
    (row) => ({
      tenantId: row.string(),
      executionId: row.string(),
      factNumber: row.uint64(),
      body: row.string(),
      detailsBytes: row.uint64(),
      side: row.string(),
      isRemote: row.uint8() === 1,
      isEvent: row.uint8() === Scope.event
    }),
    { settings: LOAD_SETTINGS }
  )
}

/**
 * Three statements at most, whatever is asked for: who holds the spans, which facts each execution
 * has, and what those up to there say. Facts arrive in the order of their numbers, so the last two
 * are of one moment.
 */
export const makeLoad = (store: StoreClient): Store["load"] =>
  Effect.fn("TraceStore.load")(function* (executions, spans) {
    const holders = spans.length === 0 ? [] : yield* executionsOf(store, spans)
    const wanted = new Map(
      [...executions, ...holders].map((key) => [keyOf(key.tenantId, key.id), key])
    )
    if (wanted.size === 0) return []
    const rows = yield* markedFacts(store, [...wanted.values()])
    const found = yield* inSlices(() => byExecution(rows))
    if (found.size === 0) return []
    const executionsFound = [...found].map(([key, marked]) => {
      return { key, marked, eventsBefore: eventsCountBefore(marked) }
    })
    const said = yield* structures(
      store,
      executionsFound.map(({ key }) => wanted.get(key)!),
      executionsFound.flatMap(({ eventsBefore, key }) =>
        eventsBefore === 0 ? [] : [wanted.get(key)!]
      )
    )
    const facts = yield* inSlices(() => byExecution(said))
    return yield* inSlices(function* () {
      const loaded: Array<LoadedExecution> = []
      for (const { eventsBefore, key, marked } of executionsFound) {
        const { executionId, factNumber: last, tenantId } = marked.at(-1)!
        const own: Array<LoadedFact> = []
        for (const { body, detailsBytes, factNumber, isEvent, isRemote, side } of facts.get(key)
          ?? []) {
          yield
          if (factNumber > last || (isEvent && factNumber >= eventsBefore)) continue
          own.push({
            body,
            detailsBytes,
            ...(side === "CLIENT" || side === "SERVER" ? { side } : {}),
            ...(isRemote ? { parentIsRemote: true } : {})
          })
        }
        loaded.push({ tenantId, executionId, marked, facts: own })
      }
      return loaded
    })
  })
