/**
 * Requests and answers about execution traces as the OpenAPI document shows them. Executions, spans,
 * events and the graph are the schemas of the domain, with examples. Bodies are checked by the
 * pipeline, with errors that name the field.
 */
import { Schema, Struct } from "effect"

export { TraceVerifyReport } from "../../verify/VerifyReport.ts"

import { ID_LENGTH_MAX } from "../../domain/IdForms.ts"
import { BATCH_ITEMS_MAX } from "../../domain/records/Command.ts"
import { AggregatedGraph } from "../../domain/traces/AggregatedGraph.ts"
import { ExecutionGraph } from "../../domain/traces/ExecutionGraph.ts"
import { ShownExecution } from "../../domain/traces/ExecutionSummary.ts"
import { RunTotals, SpanDiff } from "../../domain/traces/RunDiff.ts"
import { ShownSpan } from "../../domain/traces/SpanSummary.ts"
import { SpanType, terminalStatuses } from "../../domain/traces/TraceFact.ts"
import { TraceResult as StoredResult } from "../../domain/traces/TraceOperation.ts"
import * as Resources from "../../domain/traces/TraceResources.ts"
import {
  CAUSES_MAX,
  REASON_LENGTH_MAX,
  TRACE_NAME_LENGTH_MAX,
  TRIGGER_LENGTH_MAX
} from "../../services/ingest/PrepareTrace.ts"
import { optionalInput, textInput } from "../contract/Bodies.ts"
import { exampleReceiptId, TimeInput, Timestamp } from "../contract/ContractSchemas.ts"

const optional = Schema.optionalKey
const text = (description: string, lengthMax?: number) =>
  lengthMax === undefined
    ? Schema.String.annotate({ description })
    : Schema.String.check(Schema.isMaxLength(lengthMax)).annotate({ description })
const id = (description: string) =>
  Schema.String.check(
    Schema.isPattern(/^[^\x00-\x1f\x7f-\x9f]*$/u),
    Schema.isMinLength(1),
    Schema.isMaxLength(ID_LENGTH_MAX)
  ).annotate({ description })
const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const Metadata = Schema.Record(Schema.String, Schema.Unknown).annotate({
  description: "Free-form; at most 32 KiB in canonical form."
})
const EndStatus = Schema.Literals(terminalStatuses).annotate({
  description: "COMPLETED if missing."
})
const ErrorValue = Schema.Union([Schema.String, Schema.Record(Schema.String, Schema.Unknown)])
const EventType = id("A dotted lower-case name like `llm.request`; any other is kept as it is.")
const executionId = "0197a1f0-3b7c-7d51-9f6e-2f7f6b0d3a11"
const rootId = "5b1f0c9e-7d3a-8c21-a4f0-9e6d2c1b0a37"
const spanId = "0197a1f0-3b90-7a44-8c02-6d5e4f3a2b19"
const eventId = "0197a1f0-3ba1-7e07-b3d8-1a2b3c4d5e6f"
const startedAt = "2026-11-21T10:00:01.123456Z"
const endedAt = "2026-11-21T10:00:03.500000Z"

const exampleSide = {
  agent_name: "Support agent",
  started_at: startedAt,
  spans: 2,
  errors: 0,
  calls: 1,
  input_tokens: 812,
  output_tokens: 96
}

const exampleSummary = {
  spans: 2,
  errors: 0,
  calls: 1,
  input_tokens: 812,
  output_tokens: 96,
  models: ["gpt-4.1-mini"]
}

const exampleExecution = {
  id: executionId,
  agent_id: "support-agent",
  agent_name: "Support agent",
  status: "RUNNING" as const,
  root_span_id: rootId,
  trigger: "ticket.created",
  started_at: startedAt,
  metadata: { ticket: "T-42" },
  created_at: "2026-11-21T10:00:01.130000Z",
  summary: exampleSummary
}

const exampleSpan = {
  id: spanId,
  execution_id: executionId,
  parent_span_id: rootId,
  caused_by_span_ids: [],
  span_type: "TOOL_CALL",
  name: "search",
  status: "RUNNING" as const,
  started_at: startedAt,
  metadata: { tool: "search" }
}

const exampleEvent = {
  id: eventId,
  execution_id: executionId,
  span_id: spanId,
  sequence_number: 1,
  event_type: "tool.request",
  timestamp: startedAt,
  payload: { query: "refund policy" }
}

export const Execution = ShownExecution.annotate({ examples: [exampleExecution] })

export const Span = ShownSpan.annotate({ examples: [exampleSpan] })

export const TraceEvent = Resources.TraceEvent.annotate({ examples: [exampleEvent] })

const startFields = {
  agent_id: id("Which agent runs."),
  agent_name: optionalInput(text("`agent_id` if missing.", TRACE_NAME_LENGTH_MAX)),
  trigger: optionalInput(text("What set it off.", TRIGGER_LENGTH_MAX)),
  metadata: optionalInput(Metadata),
  idempotency_key: optionalInput(
    id("A retry with the same agent and key gives the stored execution; the id is made of both.")
  ),
  started_at: optionalInput(
    TimeInput.annotate({ description: "The service's time if missing; kept to the microsecond." })
  ),
  id: optionalInput(id("An id of your own, instead of an `idempotency_key`."))
}

const endFields = {
  status: optionalInput(EndStatus),
  ended_at: optionalInput(TimeInput.annotate({ description: "The service's time if missing." })),
  metadata: optionalInput(Metadata.annotate({ description: "Merged by top-level key." }))
}

const spanFields = {
  id: optionalInput(id("An id of your own; else one is made.")),
  parent_span_id: optionalInput(id("The root span if missing.")),
  caused_by_span_ids: optionalInput(
    Schema.Array(id("A span of the same execution.")).check(
      Schema.isMaxLength(CAUSES_MAX),
      Schema.isUnique()
    )
  ),
  span_type: SpanType,
  name: textInput(TRACE_NAME_LENGTH_MAX, "What it does."),
  started_at: optionalInput(TimeInput),
  metadata: optionalInput(Metadata),
  idempotency_key: optionalInput(id("A retry with the same key gives the stored span."))
}

const spanEndFields = {
  ...endFields,
  error: optionalInput(ErrorValue.annotate({ description: "What went wrong." }))
}

const eventFields = {
  id: optionalInput(id("An id of your own; a repeated one with the same content is stored once.")),
  event_type: EventType,
  timestamp: optionalInput(TimeInput),
  payload: optionalInput(
    Schema.Record(Schema.String, Schema.Unknown).annotate({
      description: "Free-form; at most 64 KiB in canonical form."
    })
  )
}

export const ExecutionInput = Schema.Struct(startFields).annotate({
  identifier: "ExecutionInput",
  examples: [
    {
      agent_id: "support-agent",
      agent_name: "Support agent",
      trigger: "ticket.created",
      metadata: { ticket: "T-42" },
      id: "ticket-42",
      started_at: startedAt
    }
  ]
})

export const ExecutionEnd = Schema.Struct(endFields).annotate({
  identifier: "ExecutionEnd",
  examples: [{ status: "COMPLETED", ended_at: endedAt }]
})

export const SpanInput = Schema.Struct(spanFields).annotate({
  identifier: "SpanInput",
  examples: [
    {
      id: "ticket-42/search",
      span_type: "TOOL_CALL",
      name: "search",
      metadata: { tool: "search" }
    }
  ]
})

export const SpanEnd = Schema.Struct(spanEndFields).annotate({
  identifier: "SpanEnd",
  examples: [{ status: "FAILED", error: "timeout" }]
})

export const TraceEventInput = Schema.Struct(eventFields).annotate({
  identifier: "TraceEventInput",
  examples: [{ event_type: "tool.request", payload: { query: "refund policy" } }]
})

const traceEvents = Schema.Array(TraceEventInput).check(
  Schema.isMinLength(1),
  Schema.isMaxLength(BATCH_ITEMS_MAX)
)

export const TraceEventArray = traceEvents.annotate({
  identifier: "TraceEventArray",
  description: "The events without the object around them."
})

export const TraceEventsInput = Schema.Struct({ events: traceEvents }).annotate({
  identifier: "TraceEventsInput",
  examples: [{ events: [{ event_type: "tool.request" }, { event_type: "tool.response" }] }]
})

export const EraseInput = Schema.Struct({
  reason: textInput(REASON_LENGTH_MAX, "Kept in the chain, whatever else goes.")
}).annotate({
  identifier: "TraceEraseInput",
  examples: [{ reason: "request of the data subject" }]
})

const OperationName = Schema.Literals([
  "execution.start",
  "execution.end",
  "span.start",
  "span.end",
  "span.event"
])

const operationOf = <F extends Schema.Struct.Fields>(identifier: string, fields: F) =>
  Schema.Struct(fields).annotate({ identifier })

/** One of the operations, with the fields of the single endpoint and the ids of its path. */
export const TraceOperationInput = Schema.Union([
  operationOf("ExecutionStartOperation", { op: Schema.Literal("execution.start"), ...startFields }),
  operationOf("ExecutionEndOperation", {
    op: Schema.Literal("execution.end"),
    execution_id: id("The execution that ends."),
    ...endFields
  }),
  operationOf("SpanStartOperation", {
    op: Schema.Literal("span.start"),
    execution_id: id("The execution that it belongs to."),
    ...spanFields
  }),
  operationOf("SpanEndOperation", {
    op: Schema.Literal("span.end"),
    span_id: id("The span that ends."),
    ...spanEndFields
  }),
  operationOf("SpanEventOperation", {
    op: Schema.Literal("span.event"),
    span_id: id("The span that it happened in."),
    ...eventFields
  })
]).annotate({ identifier: "TraceOperationInput" })

const operations = Schema.Array(TraceOperationInput).check(
  Schema.isMinLength(1),
  Schema.isMaxLength(BATCH_ITEMS_MAX)
)

export const TraceOperationArray = operations.annotate({
  identifier: "TraceOperationArray",
  description: "The operations without the object around them."
})

export const TraceBatchInput = Schema.Struct({ operations }).annotate({
  identifier: "TraceBatchInput",
  examples: [
    {
      operations: [
        { op: "execution.start", agent_id: "support-agent", id: "run-42" },
        {
          op: "span.start",
          execution_id: "run-42",
          id: "run-42/search",
          span_type: "TOOL_CALL",
          name: "search"
        },
        { op: "span.event", span_id: "run-42/search", event_type: "tool.request" },
        { op: "span.end", span_id: "run-42/search" },
        { op: "execution.end", execution_id: "run-42" }
      ]
    }
  ]
})

const ItemErrorCode = Schema.Literals([
  "missing_field",
  "invalid_value",
  "invalid_timestamp",
  "unstorable_value",
  "metadata_too_large",
  "payload_too_large",
  "event_too_large",
  "not_found",
  "already_ended",
  "cycle_detected",
  "idempotency_conflict",
  "id_conflict",
  "too_many_spans",
  "unavailable"
])

export const TraceItemError = Schema.Struct({
  index: Count.annotate({ description: "Place in the request, from 0." }),
  code: ItemErrorCode,
  message: text("Names the field or the id.")
}).annotate({ identifier: "TraceItemError" })

const resultFields = {
  index: Count.annotate({ description: "Place in the request, from 0." }),
  op: OperationName
}

/** The receipt has the same, of OpenTelemetry and of erasures too. */
export const TraceResult = StoredResult.mapFields(Struct.assign(resultFields)).annotate({
  identifier: "TraceResult",
  description: "What became of one operation."
})

const TraceTarget = Schema.Struct({
  ...resultFields,
  execution_id: optional(Schema.String),
  span_id: optional(Schema.String),
  event_id: optional(Schema.String)
}).annotate({
  identifier: "TraceTarget",
  description: "Which ids an operation is about, given or made."
})

const counts = {
  accepted: Count,
  rejected: Count,
  ids: Schema.Array(Schema.String).annotate({
    description: "What each accepted operation is about, in the order of the request."
  }),
  errors: Schema.Array(TraceItemError)
}

const receipt = {
  receipt_id: text("Names the request: `GET /v1/receipts/{id}`.")
}

const exampleCounts = { accepted: 1, rejected: 0, ids: [executionId], errors: [] }

export const TraceBatchAccepted = Schema.Struct({
  ...receipt,
  status: Schema.Literal("pending"),
  ...counts,
  results: Schema.Array(TraceTarget)
}).annotate({
  identifier: "TraceBatchAccepted",
  description: "Written to the log; counts what passed validation. The receipt is final.",
  examples: [
    {
      receipt_id: exampleReceiptId,
      status: "pending",
      ...exampleCounts,
      results: [{ index: 0, op: "execution.start", execution_id: executionId }]
    }
  ]
})

export const TraceBatchResult = Schema.Struct({
  ...receipt,
  status: Schema.Literal("committed"),
  ...counts,
  results: Schema.Array(TraceResult)
}).annotate({
  identifier: "TraceBatchResult",
  description: "Durable, chained and visible to every read.",
  examples: [
    {
      receipt_id: exampleReceiptId,
      status: "committed",
      ...exampleCounts,
      results: [{ index: 0, op: "execution.start", outcome: "created", execution_id: executionId }]
    }
  ]
})

export const ExecutionList = Schema.Struct({
  executions: Schema.Array(Execution),
  total: Count.annotate({ description: "Executions that match the filter, exact." }),
  page: Count,
  page_size: Count
}).annotate({
  identifier: "ExecutionList",
  examples: [{ executions: [exampleExecution], total: 1, page: 1, page_size: 50 }]
})

const NextCursor = Schema.String.annotate({
  description: "There is more: give this as `cursor`. Absent at the end."
})

export const SpanList = Schema.Struct({
  spans: Schema.Array(Span),
  next_cursor: optional(NextCursor)
}).annotate({
  identifier: "SpanList",
  examples: [{ spans: [exampleSpan] }]
})

export const SpanWithEvents = Schema.Struct({
  span: Span,
  events: Schema.Array(TraceEvent),
  next_cursor: optional(
    NextCursor.annotate({ description: "There are more: `cursor` of the route of its events." })
  ),
  events_total: Count.annotate({ description: "Events of the span, those not shown too." })
}).annotate({
  identifier: "SpanWithEvents",
  examples: [{ span: exampleSpan, events: [exampleEvent], events_total: 1 }]
})

export const TraceEventList = Schema.Struct({
  events: Schema.Array(TraceEvent),
  next_cursor: optional(NextCursor)
}).annotate({ identifier: "TraceEventList", examples: [{ events: [exampleEvent] }] })

export const Dag = ExecutionGraph

const ComparedExecution = Schema.Struct({
  execution_id: Schema.String,
  agent_name: Schema.String,
  status: Schema.String,
  started_at: Timestamp,
  ...RunTotals.fields
}).annotate({ identifier: "ComparedExecution" })

export const ExecutionDiff = Schema.Struct({
  a: ComparedExecution,
  b: ComparedExecution,
  counts: Schema.Struct({ same: Count, changed: Count, added: Count, removed: Count }).annotate({
    description: "Pairs of spans, and spans without one; those that are not shown count too."
  }),
  spans: Schema.Array(SpanDiff).annotate({
    description:
      "Those above before those below, in the order of the first execution; what was added stands "
      + "behind what it was added to."
  }),
  spans_omitted: Count.annotate({ description: "Spans beyond `limit`." }),
  metadata_incomplete: optional(
    Schema.Literal(true).annotate({
      description:
        "One of them has more metadata than is compared; of its last spans it is left out."
    })
  )
}).annotate({
  identifier: "ExecutionDiff",
  description: "What differs between two executions, `a` and `b`.",
  examples: [
    {
      a: { ...exampleSide, execution_id: executionId, status: "COMPLETED" },
      b: { ...exampleSide, execution_id: "0197a1f0-3b7c-7d51-9f6e-2f7f6b0d3a12", status: "FAILED" },
      counts: { same: 1, changed: 1, added: 0, removed: 0 },
      spans: [
        {
          change: "changed",
          type: "LLM_CALL",
          name: "draft an answer",
          depth: 1,
          a: { span_id: spanId, status: "COMPLETED", duration_us: 812_000 },
          b: { span_id: eventId, status: "FAILED", duration_us: 30_000_000 },
          differences: [{ field: "status", a: '"COMPLETED"', b: '"FAILED"' }]
        }
      ],
      spans_omitted: 0
    }
  ]
})

export const AggregatedDag = AggregatedGraph

export const ErasedExecution = Schema.Struct({
  ...Execution.fields,
  topic_copy_until: optional(Schema.NullOr(Timestamp)).annotate({
    description:
      "When the copies in the topic are gone by themselves; null: as long as the topic keeps them."
  })
}).annotate({ identifier: "ErasedExecution" })
