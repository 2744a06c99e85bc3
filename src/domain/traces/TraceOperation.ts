/**
 * An operation of a client on a trace, validated and ready for the sequencer, and its form on
 * `alk.commands`: one line of JSON per operation. The sequencer decides whether it is applied.
 */
import { hash } from "node:crypto"
import { Schema } from "effect"
import { hex16, natural, sequence, text, time } from "../Forms.ts"
import { parseJson } from "../json/Json.ts"
import { PreparedPayload } from "./Payload.ts"
import { decidedRepairs } from "./Repairs.ts"
import { PreparedDetails, terminalStatuses } from "./TraceFact.ts"

/** 32 hex digits that name a trace event by tenant and id; see AddSpanEvent. */
export const traceEventKeyOf = (tenantId: string, eventId: string): string =>
  hash("sha256", `alk-trace-event\n${tenantId}\n${eventId}`, "hex").slice(0, 32)

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
const details = Schema.optionalKey(PreparedDetails)
const payloads = Schema.optionalKey(
  Schema.Array(PreparedPayload).annotate({ description: "Values that its details refer to." })
)

/** Its details: agent_name, trigger, metadata, as far as they were sent. */
export const StartExecution = Schema.Struct({
  op: Schema.Literal("execution.start"),
  index,
  executionId,
  fresh,
  agentId: text("The agent."),
  rootSpanId: text("Id of the root span."),
  startedAt,
  startedAtGiven,
  details,
  payloads,
  rootDetails: PreparedDetails.annotateKey({ description: "The name of the root span." })
})
export type StartExecution = typeof StartExecution.Type

/** Its details: metadata, if sent. */
export const EndExecution = Schema.Struct({
  op: Schema.Literal("execution.end"),
  index,
  executionId,
  status,
  endedAt,
  endedAtGiven,
  details,
  payloads
})
export type EndExecution = typeof EndExecution.Type

/** Its details: name, metadata. */
export const StartSpan = Schema.Struct({
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
  details: PreparedDetails,
  payloads
})
export type StartSpan = typeof StartSpan.Type

/** Its details: error, metadata, as far as they were sent. */
export const EndSpan = Schema.Struct({
  op: Schema.Literal("span.end"),
  index,
  spanId,
  status,
  endedAt,
  endedAtGiven,
  details,
  payloads
})
export type EndSpan = typeof EndSpan.Type

const eventFields = {
  eventId: text("Names the event."),
  eventType: text("Its type."),
  timestamp: time("When it happened."),
  details
}

/** Its details: payload, if sent. It has a key and a fingerprint if the client gave the id. */
export const AddSpanEvent = Schema.Struct({
  op: Schema.Literal("span.event"),
  index,
  spanId,
  ...eventFields,
  payloads,
  dedupKey: Schema.optionalKey(hex16("Names tenant and event id.")),
  fingerprint: Schema.optionalKey(hex16("Of what was sent."))
})
export type AddSpanEvent = typeof AddSpanEvent.Type

/** An event of an OpenTelemetry span. */
export const OtlpEvent = Schema.Struct(eventFields)
export type OtlpEvent = typeof OtlpEvent.Type

/** Kinds of spans that both sides of a call may send under one id. */
export const side = Schema.Literals(["CLIENT", "SERVER"]).annotate({
  description: "Of which side of a call it is, if its kind says so."
})
export type Side = typeof side.Type

/** A whole OpenTelemetry span: whatever of it is new is recorded, in whatever order spans come. */
export const RecordOtlpSpan = Schema.Struct({
  op: Schema.Literal("otlp.span"),
  index,
  executionId: text("The execution: derived from tenant and trace id."),
  syntheticRootId: text("Represents the root until it arrives: derived from the trace id."),
  spanId,
  parentSpanId: Schema.optionalKey(text("Its parent.")),
  parentIsRemote: Schema.optionalKey(
    Schema.Literal(true).annotate({
      description: "The flags of the span say that its parent is of another process."
    })
  ),
  side: Schema.optionalKey(side),
  causedBy,
  spanType,
  startedAt,
  endedAt: Schema.optionalKey(time("When it ended. Absent while it runs.")),
  status,
  details: PreparedDetails.annotateKey({ description: "name, metadata, repairs." }),
  endDetails: details.annotateKey({ description: "error, if there is one." }),
  agentId: text("The agent, should this be the root or the first span to arrive."),
  executionDetails: details,
  events: Schema.Array(OtlpEvent),
  payloads
})
export type RecordOtlpSpan = typeof RecordOtlpSpan.Type

/** Log records of OpenTelemetry that belong to a span, as its events: it may come later. */
export const RecordOtlpEvents = Schema.Struct({
  op: Schema.Literal("otlp.events"),
  index,
  executionId: text("The execution: derived from tenant and trace id."),
  syntheticRootId: text("Represents the root until it arrives: derived from the trace id."),
  spanId,
  startedAt: time("When the execution has started, if this is the first to arrive of it."),
  agentId: text("The agent in that case."),
  executionDetails: details,
  events: Schema.Array(OtlpEvent),
  payloads
})
export type RecordOtlpEvents = typeof RecordOtlpEvents.Type

export const EraseExecution = Schema.Struct({
  op: Schema.Literal("execution.erase"),
  index,
  executionId,
  reason: text("Why."),
  erasedBy: text("Id of the API key."),
  holdsValues: Schema.optionalKey(
    Schema.Literal(true).annotate({ description: "Of what holds values of an event, which goes." })
  )
})
export type EraseExecution = typeof EraseExecution.Type

/** One line of a command. */
export const TraceOperation = Schema.Union([
  StartExecution,
  EndExecution,
  StartSpan,
  EndSpan,
  AddSpanEvent,
  RecordOtlpSpan,
  RecordOtlpEvents,
  EraseExecution
]).annotate({ description: "One operation on traces as compact JSON." })
export type TraceOperation = typeof TraceOperation.Type

/** Every reason for which the sequencer refuses an operation. */
export const traceErrorCodes = [
  "not_found",
  "already_ended",
  "cycle_detected",
  "idempotency_conflict",
  "id_conflict",
  "invalid_value",
  "too_many_spans",
  "unavailable"
] as const
export type TraceErrorCode = (typeof traceErrorCodes)[number]

export const traceOperations = [
  "execution.start",
  "execution.end",
  "execution.erase",
  "span.start",
  "span.end",
  "span.event",
  "otlp.span",
  "otlp.events"
] as const satisfies ReadonlyArray<TraceOperation["op"]>

/** What became of one operation that was not refused; part of the receipt. */
export const TraceResult = Schema.Struct({
  index,
  op: Schema.Literals(traceOperations),
  outcome: Schema.Literals(["created", "existing"]).annotate({
    description: "existing: it was there already and is unchanged."
  }),
  execution_id: text("The execution it belongs to."),
  span_id: Schema.optionalKey(text("The span it belongs to.")),
  event_id: Schema.optionalKey(text("The trace event.")),
  sequence_number: Schema.optionalKey(sequence("Of the trace event, per execution.")),
  repairs: Schema.optionalKey(
    Schema.Array(Schema.Literals(decidedRepairs)).annotate({
      description: "What was repaired because of what was there before."
    })
  )
})
export type TraceResult = typeof TraceResult.Type

export const encodeOperation = (operation: TraceOperation): string => JSON.stringify(operation)

/**
 * Undefined if the line holds no operation. Hot path, read by hand: the MAC of the command says that
 * this service wrote the line, so only its kind and index are checked.
 */
export const decodeOperation = (line: string): TraceOperation | undefined => {
  try {
    const value = parseJson(line) as TraceOperation
    const { index, op } = value
    return traceOperations.includes(op) && Number.isSafeInteger(index) ? value : undefined
  } catch {
    // The caller sets the whole command aside.
    return undefined
  }
}
