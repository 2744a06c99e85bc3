/**
 * Serves executions: start, end, erase, list, one, its spans, its graph, its verification. Writes
 * are answered with what the store shows once they are visible.
 */

import { Effect, Stream } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { RegistryView } from "../../actors/follower/LogFollower.ts"
import { ProjectionProgress } from "../../actors/log/ProjectionProgress.ts"
import { inSlices } from "../../domain/InSlices.ts"
import type { Sliced } from "../../domain/Slices.ts"
import { inReadTurn, inReadTurns } from "../../domain/TenantTurns.ts"
import { aggregatedGraphOf } from "../../domain/traces/AggregatedGraph.ts"
import { type GraphRequest, graphOf } from "../../domain/traces/ExecutionGraph.ts"
import type { StoreUnavailable } from "../../ports/EventStore.ts"
import { TraceStore } from "../../ports/TraceStore.ts"
import { TraceWrites } from "../../services/ingest/TraceWrites.ts"
import { TraceVerifier } from "../../verify/TraceVerifier.ts"
import type { RequestOf } from "../contract/Requests.ts"
import { createdAt, json, jsonBytes, longJson } from "../messages/Answer.ts"
import { notFound, unavailable } from "../messages/ApiError.ts"
import { ApiSettings } from "../messages/ApiSettings.ts"
import { refuseUnderHold } from "../messages/LegalHold.ts"
import { JSON_TYPE } from "../messages/MediaTypes.ts"
import { listOf, opaqueLinks, pageLinks } from "../messages/Pages.ts"
import { readableView } from "../messages/StoreView.ts"
import { topicCopyUntil } from "../messages/TopicCopy.ts"
import { transfer } from "../messages/Transfer.ts"
import { CurrentPrincipal } from "../server/Authorization.ts"
import { ingestAnswered } from "../server/Metrics.ts"
import { takeExecutionVerification } from "../verification/VerifySlots.ts"
import {
  executionParameters,
  type getAggregatedDag,
  type getDag,
  type listExecutions,
  type listSpans,
  TRACE_PAGE_BYTES_MAX,
  TRACE_PAGE_SIZE
} from "./TraceContract.ts"
import { traceGraphs } from "./TraceGraph.ts"
import { linesResponse, spanCursor, wantsLines } from "./TraceLists.ts"
import { toExecutions, traceReads } from "./TraceReads.ts"
import {
  oneOperation,
  optionalOperation,
  type ReadWrite,
  type TraceInput,
  type TraceInputOf,
  TraceRequests,
  targetAt
} from "./TraceRequest.ts"

const EXECUTIONS_PATH = "/api/v1/executions"
const SPANS_PATH = "/api/v1/spans"

/** 503 for what was committed, but is not found. */
export const readBack = <A>(value: A | undefined) =>
  value === undefined
    ? Effect.fail(unavailable("the request is committed, but can't be read for now"))
    : Effect.succeed(value)

/** Submit one operation, wait until it can be read, and count it. */
export const writeOne = Effect.fnUntraced(function* (write: ReadWrite) {
  const writes = yield* TraceWrites
  const startedAt = performance.now()
  const result = yield* writes.single(write)
  yield* ingestAnswered({
    accepted: 1,
    rejected: [],
    until: "visible",
    seconds: (performance.now() - startedAt) / 1_000
  })
  return result
})

/** Spans that are written as lines at once. */
const LINES_AT_ONCE = 50

/** The answer that a large page is, in pieces: nothing of it is held as a whole. */
const largePage = (
  request: HttpServerRequest.HttpServerRequest,
  tenantId: string,
  executions: Stream.Stream<ReadonlyArray<unknown>, StoreUnavailable>,
  /** Every member but `executions`. */
  rest: object,
  link: string
) => {
  let separator = ""
  function* pieceOf(some: ReadonlyArray<unknown>): Sliced<string> {
    let piece = ""
    for (const execution of some) {
      yield
      piece += separator + JSON.stringify(execution)
      separator = ","
    }
    return piece
  }
  const pieces = Stream.mapEffect(executions, (some) => inSlices(() => pieceOf(some)))
  const text = Stream.succeed('{"executions":[').pipe(
    Stream.concat(pieces),
    Stream.concat(Stream.succeed(`],${JSON.stringify(rest).slice(1)}`)),
    Stream.encodeText
  )
  return HttpServerResponse.stream(
    transfer(request, text, { operation: "listExecutions", tenantId }),
    { contentType: JSON_TYPE, headers: { link } }
  )
}

/** What the lists are read from. */
interface ReadParts {
  readonly publicUrl: string | undefined
  readonly store: TraceStore["Service"]
  readonly projection: ProjectionProgress["Service"]
  readonly reads: ReturnType<typeof traceReads>
}

/** A page of executions. */
const pageOfExecutions = Effect.fnUntraced(function* (
  { projection, publicUrl, store }: ReadParts,
  input: RequestOf<typeof listExecutions>
) {
  const { query: asked, request } = input
  const { now, page, pageSize, selection } = asked
  const { tenantId } = yield* CurrentPrincipal
  const { deduplicate } = yield* readableView(projection, tenantId)
  const offset = (page - 1) * pageSize
  const query = { tenantId, ...selection, offset, limit: pageSize }
  const found = yield* inReadTurn(tenantId, store.page(query, deduplicate))
  const chunks = inReadTurns(tenantId, found.executions).pipe(
    Stream.mapEffect((some) => inSlices(() => toExecutions(some)))
  )
  const rest = { total: found.total, page, page_size: pageSize }
  const of = listOf(request, publicUrl, { table: { parameters: executionParameters }, now })
  const link = pageLinks(of, asked, found.total)
  if (found.isLarge) return largePage(request, tenantId, chunks, rest, link)
  const executions = (yield* Stream.runCollect(chunks)).flat()
  return yield* longJson({ executions, ...rest }, { headers: { link } })
})

/** Spans of an execution: a page, or all of them as lines. */
const spansOfExecution = Effect.fnUntraced(function* (
  { projection, publicUrl, reads }: ReadParts,
  input: RequestOf<typeof listSpans>
) {
  const { params, query, request } = input
  const { id } = params
  const { cursor: after, page_size: itemsMax = TRACE_PAGE_SIZE } = query
  const { tenantId } = yield* CurrentPrincipal
  yield* readableView(projection, tenantId)
  if (wantsLines(request)) {
    const chunks = yield* reads.allSpans(tenantId, id, after)
    if (chunks === undefined) return yield* notFound("execution")
    const items = chunks.pipe(Stream.flattenIterable, Stream.grouped(LINES_AT_ONCE))
    return linesResponse(request, items, { operation: "listSpans", tenantId })
  }
  const bounds = { itemsMax, bytesMax: TRACE_PAGE_BYTES_MAX }
  const found = yield* reads.spans(tenantId, id, after, bounds)
  if (found === undefined) return yield* notFound("execution")
  const { next, spans } = found
  const cursor = next && spanCursor.write(next)
  return yield* longJson(
    { spans, next_cursor: cursor },
    { headers: { link: opaqueLinks(listOf(request, publicUrl), cursor) } }
  )
})

/** The handlers of the routes below `/api/v1/executions`, but for the stream. */
export const makeExecutionHandlers = Effect.gen(function* () {
  const { publicUrl, topicRetentionMs } = yield* ApiSettings
  const requests = yield* TraceRequests
  const store = yield* TraceStore
  const verifier = yield* TraceVerifier
  const projection = yield* ProjectionProgress
  const registry = yield* RegistryView
  const writes = yield* TraceWrites
  const graphBytes = traceGraphs(store)
  const graphAnswer = Effect.fnUntraced(function* (
    { params: { id }, query }: RequestOf<typeof getDag>,
    make: (request: GraphRequest) => Sliced<object>,
    readsMetadata: boolean
  ) {
    const { tenantId } = yield* CurrentPrincipal
    const { deduplicate } = yield* readableView(projection, tenantId)
    const execution = yield* store.facts(tenantId, id, { kind: "execution" }, deduplicate)
    const of = { tenantId, executionId: id, execution, readsMetadata, ...query }
    return jsonBytes(yield* graphBytes(of, make))
  })
  const reads = traceReads(store, projection)
  const parts: ReadParts = { publicUrl, store, projection, reads }
  const write = (operation: ReadWrite) =>
    Effect.provideService(writeOne(operation), TraceWrites, writes)

  return {
    startExecution: Effect.fnUntraced(function* (input: TraceInput) {
      const operation = yield* requests.read(
        input,
        { op: "execution.start", id: undefined },
        oneOperation
      )
      const { execution_id, outcome } = yield* write(operation)
      const execution = yield* readBack(yield* reads.execution(operation.tenantId, execution_id))
      if (outcome !== "created") return json(execution)
      const headers = createdAt(publicUrl, EXECUTIONS_PATH, execution.id)
      return json(execution, { status: 201, headers })
    }),

    endExecution: Effect.fnUntraced(function* (input: TraceInputOf) {
      const target = targetAt("execution.end", input.params.id)
      const operation = yield* requests.read(input, target, optionalOperation)
      const { execution_id } = yield* write(operation)
      return json(yield* readBack(yield* reads.execution(operation.tenantId, execution_id)))
    }),

    eraseExecution: Effect.fnUntraced(function* (input: TraceInputOf) {
      const target = targetAt("execution.erase", input.params.id)
      const operation = yield* requests.read(input, target, oneOperation)
      yield* refuseUnderHold(registry, operation.tenantId)
      const { execution_id } = yield* write(operation)
      const execution = yield* readBack(yield* reads.execution(operation.tenantId, execution_id))
      const since = execution.erased_at ?? execution.created_at
      return json({ ...execution, topic_copy_until: topicCopyUntil(since, topicRetentionMs) })
    }),

    listExecutions: (input: RequestOf<typeof listExecutions>) => pageOfExecutions(parts, input),

    getExecution: Effect.fnUntraced(function* ({ params: { id } }: TraceInputOf) {
      const { tenantId } = yield* CurrentPrincipal
      yield* readableView(projection, tenantId)
      const execution = yield* reads.execution(tenantId, id)
      return execution === undefined ? yield* notFound("execution") : json(execution)
    }),

    startSpan: Effect.fnUntraced(function* (input: TraceInputOf) {
      const target = targetAt("span.start", input.params.id)
      const operation = yield* requests.read(input, target, oneOperation)
      const { execution_id, outcome, span_id = "" } = yield* write(operation)
      const span = yield* readBack(yield* reads.spanIn(operation.tenantId, execution_id, span_id))
      if (outcome !== "created") return json(span)
      return json(span, { status: 201, headers: createdAt(publicUrl, SPANS_PATH, span.id) })
    }),

    listSpans: (input: RequestOf<typeof listSpans>) => spansOfExecution(parts, input),

    getDag: (input: RequestOf<typeof getDag>) =>
      graphAnswer(input, graphOf, input.query.edges !== "recorded"),

    getAggregatedDag: (input: RequestOf<typeof getAggregatedDag>) =>
      graphAnswer(input, aggregatedGraphOf, true),

    verifyExecution: Effect.fnUntraced(function* ({ params: { id } }: TraceInputOf) {
      const { tenantId } = yield* CurrentPrincipal
      yield* readableView(projection, tenantId)
      yield* takeExecutionVerification(tenantId)
      const report = yield* verifier.verify(tenantId, id)
      return report === undefined ? yield* notFound("execution") : json(report)
    })
  }
})
