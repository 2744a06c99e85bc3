/** Executions, spans, their events and the nodes of their graph, as answers show them. */
import { Schema } from "effect"
import { natural, sequence, text, time } from "../Forms.ts"
import { executionStatuses, FactDetails, SpanType, spanFields } from "./TraceFact.ts"

const optional = Schema.optionalKey
const Status = Schema.Literals(executionStatuses)
const { error, repairs } = FactDetails.fields
const Metadata = Schema.JsonObject.annotate({
  description: "Free-form; at most 32 KiB in canonical form."
})
const erasedAt = optional(time("When its details were erased."))
const synthetic = optional(
  Schema.Literal(true).annotate({
    description: "A root that represents one that OpenTelemetry has not sent yet."
  })
)

export const Execution = Schema.Struct({
  id: Schema.String,
  agent_id: Schema.String,
  agent_name: Schema.String.annotate({ description: "`agent_id` if none was sent." }),
  status: Status,
  root_span_id: Schema.String,
  trigger: optional(Schema.String),
  started_at: time("When it started."),
  ended_at: optional(time("When it ended.")),
  metadata: Metadata,
  created_at: time("When its first fact was chained."),
  erased_at: erasedAt
}).annotate({ identifier: "Execution" })
export type Execution = typeof Execution.Type

export const Span = Schema.Struct({
  id: Schema.String,
  execution_id: Schema.String,
  parent_span_id: optional(Schema.String.annotate({ description: "Absent on the root." })),
  ...spanFields,
  span_type: SpanType,
  name: Schema.String,
  status: Status,
  ended_at: optional(time("When it ended.")),
  error,
  metadata: Metadata,
  repairs,
  synthetic,
  erased_at: erasedAt
}).annotate({ identifier: "Span" })
export type Span = typeof Span.Type

export const TraceEvent = Schema.Struct({
  id: Schema.String,
  execution_id: Schema.String,
  span_id: Schema.String,
  sequence_number: sequence("From 1 per execution without gaps, in the order of arrival."),
  event_type: text("A dotted lower-case name like `llm.request`; any other is kept as it is."),
  timestamp: time("When it happened."),
  payload: FactDetails.fields.payload,
  erased_at: erasedAt
}).annotate({ identifier: "TraceEvent" })
export type TraceEvent = typeof TraceEvent.Type

export const GraphNode = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  type: Schema.String,
  status: Status,
  started_at: time("When it started."),
  ended_at: optional(time("When it ended.")),
  duration_us: optional(natural("Microseconds from start to end.")),
  depth: natural("Parents above it."),
  event_count: natural("Its trace events."),
  error,
  missing: optional(
    Schema.Literal(true).annotate({
      description: "Named by another span or by events, but never sent."
    })
  ),
  synthetic
}).annotate({ identifier: "DagNode" })
export type GraphNode = typeof GraphNode.Type
