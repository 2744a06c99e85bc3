/**
 * The routes of executions, spans and trace events: paths, bodies, statuses. Says nothing of how
 * they are served.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { defined } from "../../domain/Defined.ts"
import { edgeKinds } from "../../domain/traces/ExecutionGraph.ts"
import { executionStatuses } from "../../domain/traces/TraceFact.ts"
import { executionSorts } from "../../ports/TraceStore.ts"
import { errorsOf } from "../contract/ContractErrors.ts"
import { createdHeaders, type HeaderParameter, operation } from "../contract/Operation.ts"
import { pathId, queryOf } from "../contract/Requests.ts"
import { LAST_EVENT_ID_HEADER, resumeParameters, slowReaders } from "../messages/EventStream.ts"
import { NDJSON_TYPE, SSE_TYPE } from "../messages/MediaTypes.ts"
import { PAGE_SIZE_DEFAULT, pageLinkHeader, pageParameters, readPage } from "../messages/Pages.ts"
import {
  booleanParameter,
  choiceParameter,
  choicesParameter,
  integerParameter,
  refuseInverted,
  textParameter,
  textsParameter,
  timeParameter
} from "../messages/QueryParameters.ts"
import { idempotencyHeader, SYNC_HEADER, syncQuery } from "../messages/WriteRequest.ts"
import { Authorization } from "../server/Authorization.ts"
import { executionsAtOnceNote } from "../verification/VerifySlots.ts"
import { eventCursor, spanCursor } from "./TraceLists.ts"
import {
  AggregatedDag,
  Dag,
  ErasedExecution,
  EraseInput,
  Execution,
  ExecutionDiff,
  ExecutionEnd,
  ExecutionInput,
  ExecutionList,
  Span,
  SpanEnd,
  SpanInput,
  SpanList,
  SpanWithEvents,
  TraceBatchAccepted,
  TraceBatchInput,
  TraceBatchResult,
  TraceEvent,
  TraceEventArray,
  TraceEventInput,
  TraceEventList,
  TraceEventsInput,
  TraceOperationArray,
  TraceVerifyReport
} from "./TraceSchemas.ts"

const MICROS_PER_MS = 1_000
/** The whole time that is supported, 1970 to 2261, rounded up. */
const DURATION_MS_MAX = 10_000_000_000_000

export const executionParameters = {
  status: choicesParameter(executionStatuses, { description: "Status." }),
  agent_id: textsParameter({ description: "`agent_id`.", example: "support-agent" }),
  name: textsParameter({ description: "`agent_name`.", example: "Support*" }),
  model: textsParameter({
    description: "A model that it, or one of its spans, names in its metadata.",
    example: "gpt-4*"
  }),
  session_id: textsParameter({
    description: "The session that it, or one of its spans, names in its metadata.",
    example: "chat-17"
  }),
  user_id: textsParameter({
    description: "The user that it, or one of its spans, names in its metadata.",
    example: "u_1"
  }),
  from: timeParameter("Inclusive lower bound on `started_at`.", "first"),
  to: timeParameter("Inclusive upper bound on `started_at`.", "last"),
  has_error: booleanParameter({
    description: "`true`: the execution has failed, or one of its spans has; `false`: neither has."
  }),
  min_duration_ms: integerParameter({
    minimum: 0,
    maximum: DURATION_MS_MAX,
    description: "Milliseconds from start to end at least. What still runs has no duration.",
    example: 1_500
  }),
  min_tokens: integerParameter({
    minimum: 0,
    description: "Tokens at least that its calls of models have read and written.",
    example: 10_000
  }),
  sort: choiceParameter(executionSorts, {
    default: "started_at",
    description:
      "`started_at`, `duration` (what still runs comes last), `errors`: the number of spans that "
      + "were ended as FAILED; those that ended with a failed execution don't count; `tokens`, read "
      + "and written, or `cost` (what says none comes last), of its calls of models. Of equal "
      + "executions the lower id comes first."
  }),
  order: choiceParameter(["asc", "desc"], {
    default: "desc",
    description: "Ascending or descending order of `sort`."
  }),
  ...pageParameters("Executions", PAGE_SIZE_DEFAULT)
}

/** Query of `GET /api/v1/executions`: what to list, but for the tenant. */
const executionQuery = queryOf(executionParameters, {
  read: ({ page, page_size, ...given }, _conditions, now) => {
    const pageOf = readPage(defined({ page, page_size }), PAGE_SIZE_DEFAULT)
    const { from, min_duration_ms, order, sort, status, to } = given
    refuseInverted(["from", "to"], from, to)
    const selection = defined({
      status,
      agentId: given.agent_id,
      agentName: given.name,
      model: given.model,
      sessionId: given.session_id,
      userId: given.user_id,
      from,
      to,
      hasError: given.has_error,
      minDurationMicros:
        min_duration_ms === undefined ? undefined : min_duration_ms * MICROS_PER_MS,
      minTokens: given.min_tokens,
      sort,
      order
    })
    return { ...pageOf, selection, now }
  }
})

/** Items of one page of spans or events, at most and by default. */
export const TRACE_PAGE_SIZE = 10_000
/** Bytes of stored JSON of one page; one item always, and then as many as fit. */
export const TRACE_PAGE_BYTES_MAX = 4 * 1_048_576
/**
 * Spans, edges, and characters of names, errors and ids that one graph may show: 10,000 spans took
 * 100 MB and 0.3 to 0.6 s of a core, in slices.
 */
export const DAG_SPANS_MAX = 10_000
export const DAG_EDGES_MAX = 50_000
export const DAG_TEXT_MAX = 16 * 1_048_576
/** Characters of metadata that one graph looks at: ids of calls, steps, tokens; no messages. */
export const DAG_METADATA_MAX = 8 * 1_048_576

/** Characters of metadata and errors of each execution that are compared. */
export const DIFF_TEXT_MAX = 32 * 1_048_576
/** Values in these, about 1 s of a core for both. */
export const DIFF_VALUES_MAX = 500_000
/** Spans that a comparison shows, unless asked otherwise and at most. */
const DIFF_SPANS_DEFAULT = 1_000
const DIFF_SPANS_MAX = 20_000

const graphParameters = {
  edges: choiceParameter(edgeKinds, {
    default: "inferred",
    description:
      "`recorded`: parents and causes alone; `inferred`: also what metadata and times of the spans "
      + "tell of."
  })
}

const pageSizeParameter = (what: string) =>
  integerParameter({
    minimum: 1,
    maximum: TRACE_PAGE_SIZE,
    default: TRACE_PAGE_SIZE,
    description: `${what} per page at most; fewer if they are more than 4 MiB.`
  })

const traceEventParameters = {
  cursor: eventCursor.parameter,
  page_size: pageSizeParameter("Events"),
  execution_id: textParameter({
    description:
      "The execution. Needed of a span that was never sent, which log records of OpenTelemetry can "
      + "name: a graph shows it as `missing`."
  })
}

const spanListParameters = {
  cursor: spanCursor.parameter,
  page_size: pageSizeParameter("Spans")
}

const syncHeader: Readonly<Record<string, HeaderParameter>> = {
  [SYNC_HEADER]: {
    description:
      "Wait until everything can be read. If that takes longer than 10 s, the answer is the 202.",
    schema: { type: "string", enum: ["true"] }
  }
}

const VISIBLE =
  "Answered when it is durable and visible to every read; if that takes longer than 10 s, 503: it "
  + "may still happen, so retry with the same ids or the same key."

// The examples of bodies make what these name.
const executionId = { id: pathId("execution", "ticket-42") }
const spanId = { id: pathId("span", "ticket-42/search") }

const write = ["write"] as const
const read = ["read"] as const
const ok = HttpApiSchema.status(200)
const created = HttpApiSchema.status(201)
const writeErrors = errorsOf("text", 400, 401, 403, 404, 409, 413, 415, 422, 429, 503)
const readErrors = errorsOf("text", 400, 401, 403, 404, 503)

const startExecution = HttpApiEndpoint.post("startExecution", "/api/v1/executions", {
  payload: ExecutionInput,
  success: [Execution.pipe(ok), Execution.pipe(created)],
  error: errorsOf("text", 400, 401, 403, 409, 413, 415, 422, 429, 503)
}).pipe(
  operation({
    scopes: write,
    summary: "Start an execution",
    description:
      "With its root span. 201, or 200 with the stored execution if it was started before under "
      + `the same agent and key; 409 if that had another explicit start. ${VISIBLE}`,
    headers: idempotencyHeader,
    responseHeaders: { 201: createdHeaders }
  })
)

export const listExecutions = HttpApiEndpoint.get("listExecutions", "/api/v1/executions", {
  query: executionQuery,
  success: ExecutionList,
  error: errorsOf("text", 400, 401, 403, 503)
}).pipe(
  operation({
    scopes: read,
    summary: "List executions",
    description:
      "Newest start first unless `sort` says otherwise, then by id. Filters are case-sensitive and "
      + "combine with AND; `total` counts what matches. `summary` adds up what the spans say.",
    responseHeaders: pageLinkHeader
  })
)

const getExecution = HttpApiEndpoint.get("getExecution", "/api/v1/executions/:id", {
  params: executionId,
  success: Execution,
  error: readErrors
}).pipe(operation({ scopes: read, summary: "One execution", description: "As it stands now." }))

const endExecution = HttpApiEndpoint.put("endExecution", "/api/v1/executions/:id/end", {
  params: executionId,
  payload: ExecutionEnd,
  success: Execution,
  error: writeErrors
}).pipe(
  operation({
    scopes: write,
    summary: "End an execution",
    description:
      "The body may be missing. The first end stays: the same status again is 200 and changes "
      + `nothing, another one 409. Spans that still run end with it. ${VISIBLE}`,
    optionalBody: true,
    headers: idempotencyHeader
  })
)

const eraseExecution = HttpApiEndpoint.post("eraseExecution", "/api/v1/executions/:id/erase", {
  params: executionId,
  payload: EraseInput,
  success: ErasedExecution,
  error: writeErrors
}).pipe(
  operation({
    scopes: write,
    summary: "Erase what an execution says",
    description:
      "Names, trigger, metadata, payloads and errors of the execution, its spans and events are "
      + "gone from every answer and from the database; the chain still verifies. 409 `legal_hold` "
      + `while the tenant is under a hold. ${VISIBLE}`,
    headers: idempotencyHeader
  })
)

const startSpan = HttpApiEndpoint.post("startSpan", "/api/v1/executions/:id/spans", {
  params: executionId,
  payload: SpanInput,
  success: [Span.pipe(ok), Span.pipe(created)],
  error: writeErrors
}).pipe(
  operation({
    scopes: write,
    summary: "Start a span",
    description:
      "201, or 200 if the same span was started before. Parent and causes are spans of the same "
      + `execution. ${VISIBLE}`,
    headers: idempotencyHeader,
    responseHeaders: { 201: createdHeaders }
  })
)

const PAGED =
  "Complete up to 10,000 of them and 4 MiB; beyond that `next_cursor`, and the `Link` header, say "
  + "where to go on. With `Accept: application/x-ndjson` every one as a line, from `cursor` on; a "
  + "transfer that breaks off is aborted, never ended."
const pageLink = { 200: { Link: "first and next page (RFC 8288)." } }

const SpanLines = Schema.String.annotate({
  description: "Every span, one per line, in the order of the list; `page_size` is ignored."
}).pipe(HttpApiSchema.asText({ contentType: NDJSON_TYPE }))

const TraceEventLines = Schema.String.annotate({
  description: "Every event, one per line, in the order of the list; `page_size` is ignored."
}).pipe(HttpApiSchema.asText({ contentType: NDJSON_TYPE }))

export const listSpans = HttpApiEndpoint.get("listSpans", "/api/v1/executions/:id/spans", {
  params: executionId,
  query: queryOf(spanListParameters),
  success: [SpanList, SpanLines],
  error: readErrors
}).pipe(
  operation({
    scopes: read,
    summary: "The spans of an execution",
    description: `By start, then in the order of arrival. ${PAGED}`,
    responseHeaders: pageLink
  })
)

const graphErrors = errorsOf("text", 400, 401, 403, 404, 413, 503)
const graphLimits =
  "413 for an execution of more than 10,000 spans, 50,000 edges, or 16 Mi characters of "
  + "names, errors and ids: its spans can be read from `/api/v1/executions/{id}/spans`, page by page "
  + "or as NDJSON."

export const getDag = HttpApiEndpoint.get("getDag", "/api/v1/executions/:id/dag", {
  params: executionId,
  query: queryOf(graphParameters),
  success: Dag,
  error: graphErrors
}).pipe(
  operation({
    scopes: read,
    summary: "What caused what",
    description:
      "Spans as nodes, parents and causes as edges, in topological order; edges that metadata and "
      + "times tell of, each with its rule; and the critical path. Aggregated, it is at "
      + `\`/api/v1/executions/{id}/dag/aggregated\`. ${graphLimits}`
  })
)

export const getAggregatedDag = HttpApiEndpoint.get(
  "getAggregatedDag",
  "/api/v1/executions/:id/dag/aggregated",
  {
    params: executionId,
    query: queryOf(graphParameters),
    success: AggregatedDag,
    error: graphErrors
  }
).pipe(
  operation({
    scopes: read,
    summary: "What caused what, aggregated",
    description:
      "The graph of a run with many spans: those of the same name and type below the same node are "
      + "one node, with counts, errors, durations and tokens; edges are counted. "
      + graphLimits
  })
)

const diffParameters = {
  all: booleanParameter({
    default: false,
    description: "`true` shows the spans that are the same in both too."
  }),
  limit: integerParameter({
    minimum: 1,
    maximum: DIFF_SPANS_MAX,
    default: DIFF_SPANS_DEFAULT,
    description: "Spans shown at most; `spans_omitted` counts the rest."
  })
}

export const diffExecutions = HttpApiEndpoint.get(
  "diffExecutions",
  "/api/v1/executions/:id/diff/:other",
  {
    params: {
      ...executionId,
      other: pathId("execution", "run-42")
    },
    query: queryOf(diffParameters, {
      read: ({ all = false, limit = DIFF_SPANS_DEFAULT }) => ({ showsSame: all, limit })
    }),
    success: ExecutionDiff,
    error: graphErrors
  }
).pipe(
  operation({
    scopes: read,
    summary: "Compare two executions",
    description:
      "Lays the trees of their spans upon each other: below a pair of spans, the first of a type and "
      + "name belongs to the first of these in the other execution, the second to the second; what is "
      + "left over is paired by type alone. Says which spans were added or removed, and in what pairs "
      + "differ: name, status, error and metadata, but for ids of answers and of tool calls; durations "
      + "are shown and make no difference. 413 if one of them has more than 10,000 spans."
  })
)

const TraceStream = Schema.String.annotate({
  description:
    "`event: execution.updated`, `span.updated` or `trace.event` with the Execution (without its "
    + "`summary`), Span or trace event on one line of `data:`; `id:` the chain sequence of its "
    + "fact, on the last message of a fact that changed several; `retry: 3000` first, a comment "
    + "every 15 s."
}).pipe(HttpApiSchema.asText({ contentType: SSE_TYPE }))

export const streamExecution = HttpApiEndpoint.get(
  "streamExecution",
  "/api/v1/executions/:id/stream",
  {
    // The handler judges it, after the query.
    params: {
      id: Schema.String.annotate({
        description: "Id of the execution, percent-encoded.",
        examples: ["ticket-42"]
      })
    },
    query: queryOf(resumeParameters),
    success: TraceStream,
    error: errorsOf("text", 400, 401, 403, 404, 413, 429, 503)
  }
).pipe(
  operation({
    scopes: read,
    summary: "Follow an execution",
    description:
      "Server-Sent Events, live only unless resumed. Every change committed after the headers is "
      + `delivered. ${slowReaders} 413 while the execution and its running spans say more than `
      + "64 MiB.",
    headers: {
      [LAST_EVENT_ID_HEADER]: {
        description: "Resume after this chain sequence, as browsers do by themselves.",
        schema: { type: "integer", minimum: 0 }
      }
    },
    responseHeaders: { 200: { "Cache-Control": "`no-store`", "X-Accel-Buffering": "`no`" } }
  })
)

const PayloadText = Schema.String.annotate({
  description: "The value: a text, or the RFC 8785 JSON of what was none (`media_type`)."
}).pipe(HttpApiSchema.asText({ contentType: "text/plain" }))

export const getPayload = HttpApiEndpoint.get("getPayload", "/api/v1/payloads/:sha256", {
  params: {
    sha256: Schema.String.annotate({
      description: "64 hex digits, as behind `sha256:` in the `$ref`.",
      examples: ["ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"]
    })
  },
  success: PayloadText,
  error: readErrors
}).pipe(
  operation({
    scopes: read,
    summary: "A value that a span or event refers to",
    description:
      "Texts of more than 8 KiB in OpenTelemetry spans, and what else has no room in a span or trace "
      + "event, or in metadata of an audit event, are stored apart: in their place stands "
      + '`{"$ref": "sha256:…", "bytes", "preview"}`. '
      + "They are facts of their execution, and go when that, or their audit event, is erased. With `truncated` a value was not "
      + "kept: it had more than 16 MiB, or its request too many such values.",
    responseHeaders: { 200: { ETag: "The hash, in quotes." } }
  })
)

const verifyExecution = HttpApiEndpoint.get("verifyExecution", "/api/v1/executions/:id/verify", {
  params: executionId,
  success: TraceVerifyReport,
  error: errorsOf("text", 400, 401, 403, 404, 429, 503)
}).pipe(
  operation({
    scopes: read,
    summary: "Verify an execution",
    description:
      "Recomputes every fact of the execution and its link to the tenant's chain of facts. A "
      + `finished check answers 200, whatever it found. ${executionsAtOnceNote}`
  })
)

const getSpan = HttpApiEndpoint.get("getSpan", "/api/v1/spans/:id", {
  params: spanId,
  success: SpanWithEvents,
  error: readErrors
}).pipe(
  operation({
    scopes: read,
    summary: "One span",
    description:
      "With its events, by `sequence_number`: all of them, or the first 10,000 or 4 MiB, and "
      + "then `next_cursor` and the `Link` header say where to go on, at "
      + "`/api/v1/spans/{id}/events`. `events_total` counts all.",
    responseHeaders: { 200: { Link: "first and next page of its events (RFC 8288)." } }
  })
)

const endSpan = HttpApiEndpoint.put("endSpan", "/api/v1/spans/:id/end", {
  params: spanId,
  payload: SpanEnd,
  success: Span,
  error: writeErrors
}).pipe(
  operation({
    scopes: write,
    summary: "End a span",
    description:
      "The body may be missing. The first end stays: the same status again is 200 and changes "
      + `nothing, another one 409. ${VISIBLE}`,
    optionalBody: true,
    headers: idempotencyHeader
  })
)

const addTraceEvents = HttpApiEndpoint.post("addTraceEvents", "/api/v1/spans/:id/events", {
  params: spanId,
  payload: [TraceEventInput, TraceEventsInput, TraceEventArray],
  success: [
    Schema.Union([TraceEvent, TraceBatchResult])
      .annotate({
        description: "The event that was there already, or what came of each of several."
      })
      .pipe(ok),
    TraceEvent.pipe(created)
  ],
  error: writeErrors
}).pipe(
  operation({
    scopes: write,
    summary: "Record what happened in a span",
    description:
      "One event: 201 and the event, 200 if it was stored before. `{events: [...]}`, up to 1000: "
      + `200 and a result per event. ${VISIBLE}`,
    headers: idempotencyHeader
  })
)

export const listTraceEvents = HttpApiEndpoint.get("listTraceEvents", "/api/v1/spans/:id/events", {
  params: spanId,
  query: queryOf(traceEventParameters),
  success: [TraceEventList, TraceEventLines],
  error: readErrors
}).pipe(
  operation({
    scopes: read,
    summary: "The events of a span",
    description: `By \`sequence_number\`. ${PAGED}`,
    responseHeaders: pageLink
  })
)

export const createTraces = HttpApiEndpoint.post("createTraces", "/api/v1/traces/batch", {
  query: syncQuery,
  payload: [TraceBatchInput, TraceOperationArray],
  success: [TraceBatchResult.pipe(ok), TraceBatchAccepted.pipe(HttpApiSchema.status(202))],
  error: errorsOf("text", 400, 401, 403, 413, 415, 422, 429, 503)
}).pipe(
  operation({
    scopes: write,
    summary: "Up to 1000 operations at once",
    description:
      "What is wrong with an operation is in `errors`, and the others go through; parents "
      + "and causes may be anywhere in the same request. 202 when it is durable; with sync, 200 "
      + "with a result per operation when everything can be read.",
    headers: { ...syncHeader, ...idempotencyHeader },
    responseHeaders: {
      202: {
        Location: "Where the receipt is.",
        "Retry-After": "Seconds until it is worth asking."
      }
    }
  })
)

/** The routes of the tag Executions, but for OpenTelemetry's. */
export class TraceApi extends HttpApiGroup.make("Executions")
  .add(
    startExecution,
    listExecutions,
    getExecution,
    endExecution,
    eraseExecution,
    startSpan,
    listSpans,
    getDag,
    getAggregatedDag,
    diffExecutions,
    streamExecution,
    getPayload,
    verifyExecution,
    getSpan,
    endSpan,
    addTraceEvents,
    listTraceEvents,
    createTraces
  )
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({ description: "What agents did, step by step, and what caused what." })
  ) {}
