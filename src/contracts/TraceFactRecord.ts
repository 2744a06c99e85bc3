/**
 * The public record of `alk.traces`: one fact about an execution, a span or a trace event, with
 * CloudEvents headers. One schema for each type of fact; the contract of everyone who reads the
 * topic directly.
 */
import { Schema } from "effect"
import { TRACE_FACT_TYPE } from "../domain/records/CloudEvent.ts"
import {
  type ExecutionEndedCore,
  type ExecutionErasedCore,
  type ExecutionStartedCore,
  type FactDetails,
  type SpanEndedCore,
  type SpanEventCore,
  type SpanStartedCore,
  type TraceFact,
  terminalStatuses
} from "../domain/traces/TraceFact.ts"
import { form, hex16, sequence, sha256, tenant, text, time } from "./Forms.ts"
import { exactly, type RecordContract } from "./RecordContract.ts"

const executionId = text("The execution it is about.")
const factNumber = sequence("From 1 per execution, without gaps.")
const spanId = text("The span it is about.")
const status = Schema.Literals(terminalStatuses).annotate({ description: "How it ended." })
const givenStart = Schema.Boolean.annotate({
  description: "True if the client said when it started, not the service."
})
const erasable = { description: "As it was sent; can be erased." }
const erasableText = Schema.String.annotate(erasable)
const erasableObject = Schema.JsonObject.annotate(erasable)

/** What stays of each type of fact, whatever is erased. */
const cores = {
  executionStarted: exactly<ExecutionStartedCore>()(
    Schema.Struct({
      type: Schema.Literal("execution.started"),
      execution_id: executionId,
      fact_number: factNumber,
      agent_id: text("Whose execution it is."),
      root_span_id: text("Its root span."),
      source: Schema.Literals(["api", "otlp"]).annotate({ description: "How it came in." }),
      started_at: time("When it started."),
      started_at_given: givenStart,
      provisional: Schema.optionalKey(
        Schema.Literal(true).annotate({
          description:
            "The root of these OpenTelemetry spans has not arrived. Another fact of this type "
            + "follows when it has, and stands from then on."
        })
      )
    })
  ),
  executionEnded: exactly<ExecutionEndedCore>()(
    Schema.Struct({
      type: Schema.Literal("execution.ended"),
      execution_id: executionId,
      fact_number: factNumber,
      status,
      ended_at: time("When it ended. Spans that still ran ended then, not before their start.")
    })
  ),
  executionErased: exactly<ExecutionErasedCore>()(
    Schema.Struct({
      type: Schema.Literal("execution.erased"),
      execution_id: executionId,
      fact_number: factNumber,
      reason: Schema.String.annotate({ description: "Why." }),
      erased_by: text("Id of the API key that asked for it.")
    })
  ),
  spanStarted: exactly<SpanStartedCore>()(
    Schema.Struct({
      type: Schema.Literal("span.started"),
      execution_id: executionId,
      fact_number: factNumber,
      span_id: spanId,
      parent_span_id: Schema.optionalKey(text("Its parent; absent on the root.")),
      caused_by_span_ids: Schema.Array(Schema.NonEmptyString).annotate({
        description: "Spans that caused it."
      }),
      span_type: text("LLM_CALL, TOOL_CALL, … or a name of the client's own."),
      started_at: time("When it started."),
      started_at_given: givenStart
    })
  ),
  spanEnded: exactly<SpanEndedCore>()(
    Schema.Struct({
      type: Schema.Literal("span.ended"),
      execution_id: executionId,
      fact_number: factNumber,
      span_id: spanId,
      status,
      ended_at: time("When it ended; replaces an end that the execution's end implied.")
    })
  ),
  spanEvent: exactly<SpanEventCore>()(
    Schema.Struct({
      type: Schema.Literal("span.event"),
      execution_id: executionId,
      fact_number: factNumber,
      span_id: spanId,
      event_id: text("Id of the trace event."),
      event_type: text("llm.request, tool.response, … or a name of the client's own."),
      sequence_number: sequence("From 1 per execution, in the order of arrival."),
      timestamp: time("When it happened.")
    })
  )
}

type Place = Omit<
  Extract<TraceFact, { readonly type: "execution.erased" }>,
  keyof ExecutionErasedCore | "details" | "details_hash" | "details_salt" | "erased_at"
>

const place = exactly<{ readonly [Name in keyof Place]: Place[Name] }>()(
  Schema.Struct({
    tenant_id: tenant("Whose chain it is in."),
    chain_sequence: sequence("Place in the tenant's chain of facts: from 1, without gaps."),
    created_at: time("When it was chained; never decreases."),
    prev_hash: sha256("hash of the fact before; 64 zeros for the first."),
    content_hash: sha256("Over the core."),
    hash: sha256("Over the content and the place in the chain.")
  })
)

/** The details that a type of fact may have; salt and hash are there if they are. */
const told = (details: { readonly [Name in keyof FactDetails]?: Schema.Constraint }) => ({
  details: Schema.optionalKey(
    Schema.Struct(details).annotate({
      description:
        "What can be erased through the API; the topic keeps it until its retention ends."
    })
  ),
  details_salt: Schema.optionalKey(hex16("Random; present with details.")),
  details_hash: Schema.optionalKey(sha256("Over salt and details; present with details."))
})

const optional = Schema.optionalKey

// An erasure never changes the topic, so a record never says that it was erased.
const ExecutionStarted = Schema.Struct({
  ...cores.executionStarted.fields,
  ...told({
    agent_name: optional(erasableText),
    trigger: optional(erasableText),
    metadata: optional(erasableObject)
  }),
  ...place.fields
}).annotate({ identifier: "ExecutionStarted", description: "An execution exists." })

const ExecutionEnded = Schema.Struct({
  ...cores.executionEnded.fields,
  ...told({ metadata: optional(erasableObject) }),
  ...place.fields
}).annotate({ identifier: "ExecutionEnded", description: "An execution has ended." })

const ExecutionErased = Schema.Struct({
  ...cores.executionErased.fields,
  ...place.fields
}).annotate({
  identifier: "ExecutionErased",
  description: "The details of every earlier fact of this execution have been erased."
})

const SpanStarted = Schema.Struct({
  ...cores.spanStarted.fields,
  ...told({ name: optional(erasableText), metadata: optional(erasableObject) }),
  ...place.fields
}).annotate({ identifier: "SpanStarted", description: "A span exists." })

const SpanEnded = Schema.Struct({
  ...cores.spanEnded.fields,
  ...told({
    error: optional(Schema.Union([erasableText, erasableObject])),
    metadata: optional(erasableObject)
  }),
  ...place.fields
}).annotate({ identifier: "SpanEnded", description: "A span has ended." })

const SpanEvent = Schema.Struct({
  ...cores.spanEvent.fields,
  ...told({ payload: optional(erasableObject) }),
  ...place.fields
}).annotate({ identifier: "SpanEvent", description: "Something happened in a span." })

export const traceFactRecord: RecordContract = {
  name: "trace-fact",
  topic: "traces",
  title: "Trace fact",
  description:
    "One fact about an execution, told apart by `type`. No other members exist in this version: "
    + "what is not listed here is not covered by the hashes.",
  key: tenant("The tenant_id. Kafka's default partitioner (murmur2) places it."),
  headers: Schema.Struct({
    ce_specversion: Schema.Literal("1.0").annotate({ description: "Version of CloudEvents." }),
    ce_type: Schema.Literal(TRACE_FACT_TYPE).annotate({
      description: "Kind and version of the record; a change that breaks readers gets a new one."
    }),
    ce_source: form(
      /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}\/(?:[a-z0-9][a-z0-9_-]{0,62}|_system)\/traces$/u,
      "`<service>/<tenant>/traces`. Unique together with ce_id."
    ),
    ce_id: form(/^[1-9][0-9]*$/u, "The fact's chain_sequence."),
    ce_time: time("The fact's created_at."),
    "content-type": Schema.Literal("application/json").annotate({ description: "Of the value." })
  }),
  value: Schema.Union([
    ExecutionStarted,
    ExecutionEnded,
    ExecutionErased,
    SpanStarted,
    SpanEnded,
    SpanEvent
  ])
}
