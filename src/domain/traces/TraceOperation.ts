/**
 * What a client wants done to a trace, validated and ready for the sequencer, and its form on
 * `alk.commands`: one line of JSON per operation. Whether it may be done is the sequencer's to say.
 */
import { hash } from "node:crypto"
import { parseJson } from "../json/Json.ts"
import type { PreparedDetails, TerminalStatus } from "./TraceFact.ts"

/** 32 hex digits that name a trace event by tenant and id; see AddSpanEvent. */
export const traceEventKeyOf = (tenantId: string, eventId: string): string =>
  hash("sha256", `alk-trace-event\n${tenantId}\n${eventId}`, "hex").slice(0, 32)

interface Common {
  /** Place in the request, from 0. */
  readonly index: number
}

export interface StartExecution extends Common {
  readonly op: "execution.start"
  readonly executionId: string
  /** The id was made for this request, so nothing can exist under it. */
  readonly fresh: boolean
  readonly agentId: string
  readonly rootSpanId: string
  /** Canonical microsecond form, as every time here. */
  readonly startedAt: string
  readonly startedAtGiven: boolean
  /** agent_name, trigger, metadata: those that were sent. */
  readonly details?: PreparedDetails
  /** The root span's `{name}`. */
  readonly rootDetails: PreparedDetails
}

export interface EndExecution extends Common {
  readonly op: "execution.end"
  readonly executionId: string
  readonly status: TerminalStatus
  readonly endedAt: string
  readonly endedAtGiven: boolean
  /** metadata, if sent. */
  readonly details?: PreparedDetails
}

export interface StartSpan extends Common {
  readonly op: "span.start"
  readonly executionId: string
  readonly spanId: string
  /** The id was made for this request, so nothing can exist under it. */
  readonly fresh: boolean
  /** Without it the root span. */
  readonly parentSpanId?: string
  readonly causedBy: ReadonlyArray<string>
  readonly spanType: string
  readonly startedAt: string
  readonly startedAtGiven: boolean
  /** name, metadata. */
  readonly details: PreparedDetails
}

export interface EndSpan extends Common {
  readonly op: "span.end"
  readonly spanId: string
  readonly status: TerminalStatus
  readonly endedAt: string
  readonly endedAtGiven: boolean
  /** error, metadata: those that were sent. */
  readonly details?: PreparedDetails
}

export interface AddSpanEvent extends Common {
  readonly op: "span.event"
  readonly spanId: string
  readonly eventId: string
  readonly eventType: string
  readonly timestamp: string
  /** payload, if sent. */
  readonly details?: PreparedDetails
  /** 32 hex digits naming tenant and event id, and 32 of the content; if the client gave the id. */
  readonly dedupKey?: string
  readonly fingerprint?: string
}

/** An event of an OpenTelemetry span. */
export interface OtlpEvent {
  readonly eventId: string
  readonly eventType: string
  readonly timestamp: string
  readonly details?: PreparedDetails
}

/** A whole OpenTelemetry span: whatever of it is new is recorded, in whatever order spans come. */
export interface RecordOtlpSpan extends Common {
  readonly op: "otlp.span"
  /** Derived from tenant and trace id. */
  readonly executionId: string
  /** Derived from trace id: stands for the root until a span without a parent arrives. */
  readonly syntheticRootId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly causedBy: ReadonlyArray<string>
  readonly spanType: string
  readonly startedAt: string
  /** Absent while it runs. */
  readonly endedAt?: string
  readonly status: TerminalStatus
  /** name, metadata. */
  readonly details: PreparedDetails
  /** error, if there is one. */
  readonly endDetails?: PreparedDetails
  /** The agent of the execution, should this span be its root or the first of it to arrive. */
  readonly agentId: string
  readonly executionDetails?: PreparedDetails
  readonly events: ReadonlyArray<OtlpEvent>
}

export interface EraseExecution extends Common {
  readonly op: "execution.erase"
  readonly executionId: string
  readonly reason: string
  readonly erasedBy: string
}

export type TraceOperation =
  | StartExecution
  | EndExecution
  | StartSpan
  | EndSpan
  | AddSpanEvent
  | RecordOtlpSpan
  | EraseExecution

export type TraceErrorCode =
  | "not_found"
  | "already_ended"
  | "cycle_detected"
  | "idempotency_conflict"
  | "id_conflict"
  | "invalid_value"
  | "too_many_spans"
  | "unavailable"

/** What became of one operation that was not refused; part of the receipt. */
export interface TraceResult {
  readonly index: number
  readonly op: TraceOperation["op"]
  /** `existing`: it was there already and stays as it is. */
  readonly outcome: "created" | "existing"
  readonly execution_id: string
  readonly span_id?: string
  readonly event_id?: string
  /** Of a trace event. */
  readonly sequence_number?: number
}

export const traceOperations: ReadonlyArray<TraceOperation["op"]> = [
  "execution.start",
  "execution.end",
  "execution.erase",
  "span.start",
  "span.end",
  "span.event",
  "otlp.span"
]

export const encodeOperation = (operation: TraceOperation): string => JSON.stringify(operation)

/** Undefined if the line holds no operation. */
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
