/** One operation on traces as a line of a command on `alk.commands`: compact JSON. */
import { Schema } from "effect"
import { type PreparedDetails, terminalStatuses } from "../domain/traces/TraceFact.ts"
import type { TraceOperation } from "../domain/traces/TraceOperation.ts"
import { hex16, natural, sha256, text, time } from "./Forms.ts"
import { exactly } from "./RecordContract.ts"

const Details = exactly<PreparedDetails>()(
  Schema.Struct({
    text: text("RFC 8785 text of what may be erased."),
    salt: hex16("Salt of the hash."),
    hash: sha256("Over salt and text.")
  }).annotate({ identifier: "PreparedDetails" })
)

const index = natural("Place of the operation in the request.")
const executionId = text("The execution.")
const spanId = text("The span.")
const status = Schema.Literals(terminalStatuses)
const fresh = Schema.Boolean.annotate({
  description: "The id was made for this request: nothing can exist under it."
})
const startedAt = time("When it started.")
const startedAtGiven = Schema.Boolean.annotate({ description: "The client said so." })
const endedAt = time("When it ended.")
const endedAtGiven = Schema.Boolean.annotate({ description: "The client said so." })
const causedBy = Schema.Array(Schema.String)
const spanType = text("Its type.")
const details = Schema.optionalKey(Details)
const event = {
  eventId: text("Names the event."),
  eventType: text("Its type."),
  timestamp: time("When it happened."),
  details
}

export const TraceLine = exactly<TraceOperation>()(
  Schema.Union([
    Schema.Struct({
      op: Schema.Literal("execution.start"),
      index,
      executionId,
      fresh,
      agentId: text("The agent."),
      rootSpanId: text("Id of the root span."),
      startedAt,
      startedAtGiven,
      details,
      rootDetails: Details
    }),
    Schema.Struct({
      op: Schema.Literal("execution.end"),
      index,
      executionId,
      status,
      endedAt,
      endedAtGiven,
      details
    }),
    Schema.Struct({
      op: Schema.Literal("span.start"),
      index,
      executionId,
      spanId,
      fresh,
      parentSpanId: Schema.optionalKey(text("Its parent; without it the root span.")),
      causedBy,
      spanType,
      startedAt,
      startedAtGiven,
      details: Details
    }),
    Schema.Struct({
      op: Schema.Literal("span.end"),
      index,
      spanId,
      status,
      endedAt,
      endedAtGiven,
      details
    }),
    Schema.Struct({
      op: Schema.Literal("span.event"),
      index,
      spanId,
      ...event,
      dedupKey: Schema.optionalKey(hex16("Names tenant and event id.")),
      fingerprint: Schema.optionalKey(hex16("Of what was sent."))
    }),
    Schema.Struct({
      op: Schema.Literal("otlp.span"),
      index,
      executionId,
      syntheticRootId: text("Stands for the root until it arrives."),
      spanId,
      parentSpanId: Schema.optionalKey(text("Its parent.")),
      causedBy,
      spanType,
      startedAt,
      endedAt: Schema.optionalKey(endedAt),
      status,
      details: Details,
      endDetails: details,
      agentId: text("The agent, should this be the root."),
      executionDetails: details,
      events: Schema.Array(Schema.Struct(event))
    }),
    Schema.Struct({
      op: Schema.Literal("execution.erase"),
      index,
      executionId,
      reason: text("Why."),
      erasedBy: text("Id of the API key.")
    })
  ]).annotate({ description: "One operation on traces as compact JSON." })
)
