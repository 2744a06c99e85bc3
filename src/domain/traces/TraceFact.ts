/** The facts of execution traces: what each type of fact says. */
import { Schema, Struct } from "effect"
import { hex16, sequence, sha256, tenant, text, time } from "../Forms.ts"
import { Repair } from "./Repairs.ts"

export const executionStatuses = ["RUNNING", "COMPLETED", "FAILED", "CANCELLED"] as const
/** Of an execution, and of a span. */
export type TraceStatus = (typeof executionStatuses)[number]
export type TerminalStatus = (typeof terminalStatuses)[number]
export const terminalStatuses = ["COMPLETED", "FAILED", "CANCELLED"] as const

const ofExecution = {
  execution_id: text("The execution it is about."),
  fact_number: sequence("From 1 per execution, without gaps.")
}
const spanId = text("The span it is about.")
const status = Schema.Literals(terminalStatuses).annotate({ description: "How it ended." })
const startedAtGiven = Schema.Boolean.annotate({
  description: "True if the client said when it started, not the service."
})
const optional = Schema.optionalKey

/**
 * An execution exists. An execution that OpenTelemetry spans made may be `provisional`: no span
 * without a parent has arrived. A fact of this type that follows says everything again, and replaces
 * this one: the first of the spans says what their execution is, whatever order they arrive in.
 */
export const ExecutionStartedCore = Schema.Struct({
  type: Schema.Literal("execution.started"),
  ...ofExecution,
  agent_id: text("Whose execution it is."),
  root_span_id: text("Its root span."),
  source: Schema.Literals(["api", "otlp"]).annotate({ description: "How it came in." }),
  started_at: time("When it started."),
  started_at_given: startedAtGiven,
  provisional: optional(
    Schema.Literal(true).annotate({
      description:
        "No root of these OpenTelemetry spans has arrived. Another fact of this type follows when "
        + "one has, and replaces this one."
    })
  )
})
export type ExecutionStartedCore = typeof ExecutionStartedCore.Type

export const ExecutionEndedCore = Schema.Struct({
  type: Schema.Literal("execution.ended"),
  ...ofExecution,
  status,
  ended_at: time(
    "When it ended; replaces an earlier end. Spans that still ran ended then, not before their start."
  )
})
export type ExecutionEndedCore = typeof ExecutionEndedCore.Type

/** A span came after the end, and the execution runs with it. */
export const ExecutionResumedCore = Schema.Struct({
  type: Schema.Literal("execution.resumed"),
  ...ofExecution
})
export type ExecutionResumedCore = typeof ExecutionResumedCore.Type

/** The details of every fact before this one are gone. */
export const ExecutionErasedCore = Schema.Struct({
  type: Schema.Literal("execution.erased"),
  ...ofExecution,
  reason: Schema.String.annotate({ description: "Why." }),
  erased_by: text("Id of the API key that asked for it.")
})
export type ExecutionErasedCore = typeof ExecutionErasedCore.Type

/**
 * The known span types are a convention; any name of this form is kept. With the flag u, without
 * which the published schemas would not say it.
 */
export const SPAN_TYPE_FORM = /^[A-Z][A-Z0-9_]*$/u
/** Characters of a span type. */
export const SPAN_TYPE_LENGTH_MAX = 128

/** The type of a span as clients send it. */
export const SpanType = Schema.String.check(
  Schema.isPattern(SPAN_TYPE_FORM),
  Schema.isMaxLength(SPAN_TYPE_LENGTH_MAX)
).annotate({
  description:
    "AGENT, LLM_CALL, TOOL_CALL, RETRIEVAL, RERANK, EMBEDDING, PLANNING, MEMORY, WORKFLOW, "
    + "GUARDRAIL, EVALUATION, PROMPT, HUMAN_APPROVAL, HANDOFF, CUSTOM, or any other such name."
})

/** What a span is from its start on, in every record and answer. */
export const spanFields = {
  caused_by_span_ids: Schema.Array(Schema.NonEmptyString).annotate({
    description: "Spans that caused it."
  }),
  span_type: text("LLM_CALL, TOOL_CALL, … or a name of the client's own."),
  started_at: time("When it started.")
}

export const SpanStartedCore = Schema.Struct({
  type: Schema.Literal("span.started"),
  ...ofExecution,
  span_id: spanId,
  parent_span_id: optional(text("Its parent; absent on the root, and on others without one.")),
  ...spanFields,
  started_at_given: startedAtGiven
})
export type SpanStartedCore = typeof SpanStartedCore.Type

export const SpanEndedCore = Schema.Struct({
  type: Schema.Literal("span.ended"),
  ...ofExecution,
  span_id: spanId,
  status,
  ended_at: time("When it ended; replaces an end that the execution's end implied.")
})
export type SpanEndedCore = typeof SpanEndedCore.Type

/**
 * A span of OpenTelemetry was sent again with other content: what is shown is in the last
 * span.started; of the others one is in an earlier fact, or in the details of this one. Or its id was
 * used for two spans, and it is below another one from then on.
 */
export const SpanAmendedCore = Schema.Struct({
  type: Schema.Literal("span.amended"),
  ...ofExecution,
  span_id: spanId,
  parent_span_id: optional(text("Its parent, in the place of any other.")),
  shared_span_id: optional(text("The other one of two spans that were sent under one id."))
})
export type SpanAmendedCore = typeof SpanAmendedCore.Type

export const SpanEventCore = Schema.Struct({
  type: Schema.Literal("span.event"),
  ...ofExecution,
  span_id: spanId,
  event_id: text("Id of the trace event."),
  event_type: text("llm.request, tool.response, … or a name of the client's own."),
  sequence_number: sequence("From 1 per execution, in the order of arrival."),
  timestamp: time("When it happened.")
})
export type SpanEventCore = typeof SpanEventCore.Type

/** A piece of a value that has no room in its span; which value, and what it says, are details. */
export const SpanPayloadCore = Schema.Struct({
  type: Schema.Literal("span.payload"),
  ...ofExecution,
  span_id: spanId
})
export type SpanPayloadCore = typeof SpanPayloadCore.Type

/** What stays of a fact whatever is erased. */
export type FactCore =
  | ExecutionStartedCore
  | ExecutionEndedCore
  | ExecutionResumedCore
  | ExecutionErasedCore
  | SpanStartedCore
  | SpanEndedCore
  | SpanAmendedCore
  | SpanEventCore
  | SpanPayloadCore

const erasable = { description: "As it was sent; can be erased." }
const erasableText = Schema.String.annotate(erasable)
const erasableObject = Schema.JsonObject.annotate(erasable)

const repairsMade = Schema.Array(Repair).annotate({
  description: "What was repaired so that it could be stored; can be erased."
})

/** What may be erased, each member only if it was sent (`name` of a span always is). */
export const FactDetails = Schema.Struct({
  agent_name: optional(erasableText),
  trigger: optional(erasableText),
  name: optional(erasableText),
  error: optional(Schema.Union([erasableText, erasableObject])),
  metadata: optional(erasableObject),
  payload: optional(erasableObject),
  repairs: optional(repairsMade)
})
export type FactDetails = typeof FactDetails.Type

const place = {
  tenant_id: tenant("Whose chain it is in."),
  chain_sequence: sequence("Place in the tenant's chain of facts: from 1, without gaps."),
  created_at: time("When it was chained; never decreases."),
  prev_hash: sha256("hash of the fact before; 64 zeros for the first."),
  content_hash: sha256("Over the core."),
  hash: sha256("Over the content and the place in the chain.")
}

/** The details that a type of fact may have; salt and hash are there if they are. */
const erasableFields = (...names: ReadonlyArray<keyof FactDetails>) => ({
  details: optional(
    FactDetails.mapFields(Struct.pick(names)).annotate({
      description:
        "What can be erased through the API; the topic keeps it until its retention ends."
    })
  ),
  details_salt: optional(hex16("Random; present with details.")),
  details_hash: optional(sha256("Over salt and details; present with details."))
})

const erasedAt = optional(time("When the details were erased."))

const factOf = <Core extends Schema.Struct.Fields>(
  identifier: string,
  description: string,
  core: Schema.Struct<Core>,
  ...details: ReadonlyArray<keyof FactDetails>
) =>
  Schema.Struct({
    ...core.fields,
    ...(details.length === 0 ? {} : erasableFields(...details)),
    ...place,
    erased_at: erasedAt
  }).annotate({ identifier, description })

/** One schema for each type of fact. */
const facts = [
  factOf(
    "ExecutionStarted",
    "An execution exists.",
    ExecutionStartedCore,
    "agent_name",
    "trigger",
    "metadata"
  ),
  factOf("ExecutionEnded", "An execution has ended.", ExecutionEndedCore, "metadata"),
  factOf(
    "ExecutionResumed",
    "A span came after the end of its execution, which runs with it.",
    ExecutionResumedCore
  ),
  factOf(
    "ExecutionErased",
    "The details of every earlier fact of this execution have been erased.",
    ExecutionErasedCore
  ),
  factOf(
    "SpanStarted",
    "A span exists; replaces an earlier one of its span.",
    SpanStartedCore,
    "name",
    "metadata",
    "repairs"
  ),
  factOf("SpanEnded", "A span has ended.", SpanEndedCore, "error", "metadata"),
  factOf(
    "SpanAmended",
    "A span was sent again with other content, in `payload` where that is not shown.",
    SpanAmendedCore,
    "payload"
  ),
  factOf("SpanEvent", "Something happened in a span.", SpanEventCore, "payload"),
  factOf(
    "SpanPayload",
    "A piece of a value that has no room in its span, in `payload`: see PayloadChunk.",
    SpanPayloadCore,
    "payload"
  )
]

/** A fact as `alk.traces`, the store and packs have it. */
export const StoredFact = Schema.Union(facts)

/** What ties a fact to its place in the tenant's chain, and what of it can be erased. */
const ChainFields = Schema.Struct({
  ...place,
  details: optional(FactDetails),
  details_salt: optional(hex16("Random; present with details.")),
  details_hash: optional(sha256("Over salt and details.")),
  erased_at: erasedAt
})

/** A fact as it is on `alk.traces` and in the store. */
export type TraceFact = FactCore & typeof ChainFields.Type

/** Details, ready to be hashed into a fact. */
export const PreparedDetails = Schema.Struct({
  text: text("RFC 8785 text of what may be erased."),
  salt: hex16("Salt of the hash."),
  hash: sha256("Over salt and text.")
}).annotate({ identifier: "PreparedDetails" })
export type PreparedDetails = typeof PreparedDetails.Type
