/** Executions, spans, their events and the nodes of their graph, as answers show them. */
import { Schema } from "effect"
import { natural, sequence, text, time } from "../Forms.ts"
import { microsOf } from "../Timestamp.ts"
import { decidedRepairOf } from "./Repairs.ts"
import {
  executionStatuses,
  FactDetails,
  SpanType,
  spanFields,
  type TraceFact
} from "./TraceFact.ts"

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
    Schema.Literal(true).annotate({ description: "Named by another span, but never sent." })
  ),
  synthetic
}).annotate({ identifier: "DagNode" })
export type GraphNode = typeof GraphNode.Type

type FactOf<Type extends TraceFact["type"]> = Extract<TraceFact, { readonly type: Type }>

const later = (left: string, right: string): string => (left > right ? left : right)

/** The facts of one span. */
interface FactsOfSpan {
  readonly started: FactOf<"span.started">
  readonly amendments: ReadonlyArray<FactOf<"span.amended">>
  readonly ended?: FactOf<"span.ended">
}

/** True for an amendment that says nothing of the place of its span. */
const isContent = ({ parent_span_id, shared_span_id }: FactOf<"span.amended">): boolean =>
  parent_span_id === undefined && shared_span_id === undefined

/**
 * The span of these facts. Without an end of its own it ends with its execution; without a parent
 * it is the root, or a child of that.
 */
export const spanOf = (
  { amendments, ended, started }: FactsOfSpan,
  executionEnd: FactOf<"execution.ended"> | undefined,
  rootSpanId: string | undefined
): Span => {
  const { details, execution_id, span_id, started_at } = started
  // What the span said of its parent after it was moved counts.
  const moved = amendments.findLast(
    ({ fact_number, parent_span_id }) =>
      parent_span_id !== undefined && fact_number > started.fact_number
  )
  const sentParent = moved?.parent_span_id ?? started.parent_span_id
  const parentId = sentParent ?? (span_id === rootSpanId ? undefined : rootSpanId)
  const implied = ended === undefined ? executionEnd : undefined
  const status = ended?.status ?? implied?.status ?? "RUNNING"
  const endedAt = ended?.ended_at ?? (implied && later(implied.ended_at, started_at))
  const error = ended?.details?.error
  const erasedAt = started.erased_at ?? ended?.erased_at
  const isShared = amendments.some(({ shared_span_id }) => shared_span_id !== undefined)
  const repairs = [
    ...(details?.repairs ?? []),
    ...(amendments.some(isContent) ? [decidedRepairOf.other_content] : []),
    ...(isShared ? [decidedRepairOf.shared_id] : [])
  ]
  return {
    id: span_id,
    execution_id,
    ...(parentId === undefined ? {} : { parent_span_id: parentId }),
    caused_by_span_ids: started.caused_by_span_ids,
    span_type: started.span_type,
    name: details?.name ?? "",
    status,
    started_at,
    ...(endedAt === undefined ? {} : { ended_at: endedAt }),
    ...(error === undefined ? {} : { error }),
    metadata: { ...details?.metadata, ...ended?.details?.metadata },
    ...(repairs.length === 0 ? {} : { repairs }),
    ...(erasedAt === undefined ? {} : { erased_at: erasedAt })
  }
}

/** Represents the root of OpenTelemetry spans, which has not arrived. */
export const syntheticRootOf = (execution: Execution): Span => ({
  id: execution.root_span_id,
  execution_id: execution.id,
  caused_by_span_ids: [],
  span_type: "AGENT",
  name: execution.agent_name,
  status: execution.status,
  started_at: execution.started_at,
  ...(execution.ended_at === undefined ? {} : { ended_at: execution.ended_at }),
  metadata: {},
  synthetic: true
})

/** Represents a span that another names, but that was never sent. */
export const missingSpanOf = (id: string, parentId: string | undefined, namedBy: Span): Span => ({
  id,
  execution_id: namedBy.execution_id,
  ...(parentId === undefined ? {} : { parent_span_id: parentId }),
  caused_by_span_ids: [],
  span_type: "CUSTOM",
  name: id,
  status: "RUNNING",
  started_at: namedBy.started_at,
  metadata: {}
})

/** A span as a node. The members are in the order of RFC 8785, whose text is then written faster. */
export const nodeOf = (
  { ended_at, error, id, name, span_type, started_at, status, synthetic }: Span,
  depth: number,
  eventCount: number,
  isMissing: boolean
): GraphNode => ({
  depth,
  ...(ended_at === undefined
    ? {}
    : { duration_us: Math.max(0, microsOf(ended_at) - microsOf(started_at)), ended_at }),
  ...(error === undefined ? {} : { error }),
  event_count: eventCount,
  id,
  ...(isMissing ? { missing: true } : {}),
  name,
  started_at,
  status,
  ...(synthetic === true ? { synthetic: true } : {}),
  type: span_type
})
