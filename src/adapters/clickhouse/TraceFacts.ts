/**
 * The facts of single executions, as the bytes they came in, and which execution a span belongs to.
 * What stands in the store twice is shown once, always: so few rows are merged in no time, and
 * while an execution is being erased every fact of it is there twice for a moment.
 */
import { Effect } from "effect"
import type {
  FactSelection,
  LoadedExecution,
  TraceKey,
  TraceStore
} from "../../ports/TraceStore.ts"
import { Parameters } from "./EventFilterSql.ts"
import { CHUNK_BYTES_MAX, CHUNK_ROWS_MAX } from "./EventPages.ts"
import type { StoreClient } from "./StoreClient.ts"
import { pairSet, textSet } from "./TextSets.ts"
import { insertRows } from "./TopicTable.ts"
import { Scope } from "./TraceColumns.ts"

/** Bytes of facts that one load answers at most. */
const LOAD_BYTES_MAX = 256 * 1_048_576

type Store = TraceStore["Service"]

const ALL_SCOPES = `scope IN (${Scope.execution}, ${Scope.span}, ${Scope.event})`
const STRUCTURE = `scope IN (${Scope.execution}, ${Scope.span})`

/** Facts that are about no span have an empty text there. */
const NAMED_SPAN = "span_id != ''"

/** Rows of one execution; with the scopes named, they are ranges of the primary key. */
export const ofExecution = (
  tenantId: string,
  executionId: string,
  parameters: Parameters,
  scopes: string = ALL_SCOPES
): string =>
  `tenant_id = ${parameters.string(tenantId)} AND ${scopes}`
  + ` AND execution_id = ${parameters.string(executionId)}`

/** Rows of several executions. */
export const ofExecutions = (
  tenantId: string,
  executionIds: ReadonlyArray<string>,
  parameters: Parameters
): string =>
  `tenant_id = ${parameters.string(tenantId)} AND ${ALL_SCOPES}`
  + ` AND execution_id IN ${textSet(executionIds)}`

const selected = (selection: FactSelection, parameters: Parameters): string => {
  switch (selection.kind) {
    case "all":
      return ALL_SCOPES
    case "structure":
      return STRUCTURE
    case "execution":
      return `scope = ${Scope.execution}`
    case "span":
      return `${STRUCTURE} AND (scope = ${Scope.execution}`
        + ` OR span_id = ${parameters.string(selection.spanId)})`
    case "event":
      return `scope = ${Scope.event}`
        + ` AND sequence_number = ${parameters.integer(selection.sequenceNumber)}`
    case "events":
      return `scope = ${Scope.event} AND span_id = ${parameters.string(selection.spanId)}`
  }
}

export const makeFacts = (store: StoreClient): Store["facts"] =>
  (tenantId, executionId, selection) => {
    const parameters = new Parameters()
    const scopes = selected(selection, parameters)
    return store.read({
      operation: "facts",
      parameters,
      sql: `SELECT body FROM ${store.facts}`
        + ` WHERE ${ofExecution(tenantId, executionId, parameters, scopes)}`
        + " ORDER BY fact_number, hash, version DESC LIMIT 1 BY fact_number, hash"
    }, (row) => row.string())
  }

/** A row of `span_ids` for each of these: spans, and roots that have not arrived. */
const NAMING = ["span.started", "execution.started"].map((type) => Buffer.from(`"type":"${type}"`))

/**
 * The ids of spans come first: whoever goes on where the facts end has those of every fact. Texts
 * in other facts may hold the same bytes; what is then stored of them is true as well.
 */
export const makeInsertFacts = (store: StoreClient): Store["insertFacts"] => (rows) => {
  const naming = rows.filter(({ body }) => NAMING.some((mark) => body.includes(mark)))
  return Effect.andThen(
    insertRows(store, "insertFacts", store.spanIds, naming),
    insertRows(store, "insertFacts", store.facts, rows)
  )
}

export const makeExecutionOfSpan = (store: StoreClient): Store["executionOfSpan"] =>
  (tenantId, spanId) => {
    const parameters = new Parameters()
    return store.read({
      operation: "executionOfSpan",
      parameters,
      sql: `SELECT execution_id FROM ${store.spanIds}`
        + ` WHERE tenant_id = ${parameters.string(tenantId)}`
        + ` AND ${NAMED_SPAN} AND span_id = ${parameters.string(spanId)}`
        + " ORDER BY chain_sequence LIMIT 1"
    }, (row) => row.string()).pipe(Effect.map(([executionId]) => executionId))
  }

export const makeEventCounts = (store: StoreClient): Store["eventCounts"] =>
  (tenantId, executionId) => {
    const parameters = new Parameters()
    const scope = `scope = ${Scope.event}`
    return store.read({
      operation: "eventCounts",
      parameters,
      sql: `SELECT span_id, uniqExact(fact_number, hash) FROM ${store.facts}`
        + ` WHERE ${ofExecution(tenantId, executionId, parameters, scope)} GROUP BY span_id`
    }, (row) => [row.string(), row.uint64()] as const).pipe(
      Effect.map((counts) => new Map(counts))
    )
  }

/** A stored fact, and where it stands in the topic. */
export interface PlacedFact {
  readonly partition: number
  readonly offset: number
  readonly factNumber: number
  readonly hash: string
  readonly body: string
}

/** The facts of one execution that follow `after`, as many as fit into a chunk. */
export const factChunk = (
  store: StoreClient,
  operation: string,
  condition: string,
  parameters: Parameters,
  after: Pick<PlacedFact, "factNumber" | "hash"> | undefined
) => {
  const columns = "kafka_partition, kafka_offset, fact_number, hash, body"
  const beyond =
    after === undefined
      ? ""
      : ` AND (fact_number, hash) > (${parameters.integer(after.factNumber)},`
        + ` ${parameters.string(after.hash)})`
  return store.read({
    operation,
    parameters,
    sql: `SELECT ${columns} FROM (SELECT ${columns}, sum(length(body)) OVER`
      + " (ORDER BY fact_number, hash ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
      + ` AS bytes_before FROM (SELECT ${columns} FROM ${store.facts}`
      + ` WHERE ${condition}${beyond} ORDER BY fact_number, hash, version DESC`
      + ` LIMIT 1 BY fact_number, hash LIMIT ${CHUNK_ROWS_MAX}))`
      + ` WHERE bytes_before < ${CHUNK_BYTES_MAX} ORDER BY fact_number, hash`
  }, (row): PlacedFact => ({
    partition: row.uint32(),
    offset: row.uint64(),
    factNumber: row.uint64(),
    hash: row.string(),
    body: row.string()
  }))
}

type Summary = Omit<LoadedExecution, "facts">

/** One key of two texts, neither of which holds U+0000. */
const keyOf = (tenantId: string, id: string): string => `${tenantId}\0${id}`

const pairsOf = (keys: ReadonlyArray<TraceKey>): string =>
  pairSet(keys.map(({ id, tenantId }) => [tenantId, id]))

/** Which tenants to look at: everything else is found from there. */
const ofTenants = (keys: ReadonlyArray<{ readonly tenantId: string }>): string =>
  `tenant_id IN ${textSet(keys.map(({ tenantId }) => tenantId))}`

/** The executions that hold the spans. */
const executionsOf = (store: StoreClient, spans: ReadonlyArray<TraceKey>) => {
  const wanted = new Set(spans.map(({ id, tenantId }) => keyOf(tenantId, id)))
  return store.read({
    operation: "load",
    parameters: new Parameters(),
    sql: `SELECT DISTINCT tenant_id, span_id, execution_id FROM ${store.spanIds}`
      + ` WHERE ${ofTenants(spans)} AND ${NAMED_SPAN}`
      + ` AND span_id IN ${textSet(spans.map(({ id }) => id))}`
  }, (row) => ({ tenantId: row.string(), spanId: row.string(), id: row.string() })).pipe(
    // A second list of pairs would double the time that the statement takes to be read.
    Effect.map((found) =>
      found.filter(({ spanId, tenantId }) => wanted.has(keyOf(tenantId, spanId)))
    )
  )
}

/** How far the executions reach. */
const summaries = (store: StoreClient, executions: ReadonlyArray<TraceKey>) =>
  store.read({
    operation: "load",
    parameters: new Parameters(),
    sql: "SELECT tenant_id, execution_id, max(fact_number), max(sequence_number),"
      + ` max(kafka_offset) FROM ${store.facts} WHERE ${ofTenants(executions)} AND ${ALL_SCOPES}`
      + ` AND (tenant_id, execution_id) IN ${pairsOf(executions)}`
      + " GROUP BY tenant_id, execution_id"
  }, (row): Summary => ({
    tenantId: row.string(),
    executionId: row.string(),
    factCount: row.uint64(),
    eventCount: row.uint64(),
    lastOffset: row.uint64()
  }))

/** Facts of several executions, in order for each. */
const structures = (store: StoreClient, executions: ReadonlyArray<Summary>) => {
  const pairs = executions.map(({ executionId, tenantId }) => [tenantId, executionId] as const)
  return store.read({
    operation: "load",
    parameters: new Parameters(),
    sql: `SELECT tenant_id, execution_id, fact_number, body FROM ${store.facts}`
      + ` WHERE ${ofTenants(executions)} AND ${STRUCTURE}`
      + ` AND (tenant_id, execution_id) IN ${pairSet(pairs)}`
      + " ORDER BY tenant_id, execution_id, fact_number, hash, version DESC"
      + " LIMIT 1 BY tenant_id, execution_id, fact_number, hash",
    settings: `max_result_bytes = ${LOAD_BYTES_MAX}, result_overflow_mode = 'throw'`
  }, (row) => ({
    tenantId: row.string(),
    executionId: row.string(),
    factNumber: row.uint64(),
    body: row.string()
  }))
}

/**
 * Three statements at most, whatever is asked for: who holds the spans, how far each execution
 * reaches, its facts up to there. Facts arrive in the order of their numbers, so the last two are
 * of one moment.
 */
export const makeLoad = (store: StoreClient): Store["load"] =>
  Effect.fn("TraceStore.load")(function*(executions, spans) {
    const holders = spans.length === 0 ? [] : yield* executionsOf(store, spans)
    const wanted = new Map(
      [...executions, ...holders].map((key) => [keyOf(key.tenantId, key.id), key])
    )
    if (wanted.size === 0) return []
    const found = yield* summaries(store, [...wanted.values()])
    if (found.length === 0) return []
    const rows = Map.groupBy(yield* structures(store, found), ({ executionId, tenantId }) =>
      keyOf(tenantId, executionId)
    )
    return found.map((summary) => ({
      ...summary,
      facts: (rows.get(keyOf(summary.tenantId, summary.executionId)) ?? [])
        .filter(({ factNumber }) => factNumber <= summary.factCount)
        .map(({ body }) => body)
    }))
  })
