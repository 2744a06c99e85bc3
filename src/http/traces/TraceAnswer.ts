/**
 * The answers to a batch of operations on traces: before and after the sequencer's decision.
 */
import type { HttpServerResponse } from "effect/http"
import type { Receipt } from "../../domain/records/Receipt.ts"
import type { TraceOperation, TraceResult } from "../../domain/traces/TraceOperation.ts"
import type { PreparedTraces } from "../../services/ingest/PrepareTrace.ts"
import { type AnswerOptions, json } from "../messages/Answer.ts"

/** The ids that an operation is about, as far as they are known before the sequencer's decision. */
const targetOf = (operation: TraceOperation) => {
  const { index, op } = operation
  switch (operation.op) {
    case "execution.start":
    case "execution.end":
    case "execution.erase":
      return { index, op, execution_id: operation.executionId }
    case "span.start":
      return { index, op, execution_id: operation.executionId, span_id: operation.spanId }
    case "span.end":
      return { index, op, span_id: operation.spanId }
    case "span.event":
      return { index, op, span_id: operation.spanId, event_id: operation.eventId }
    case "otlp.span":
    case "otlp.events":
      return { index, op, execution_id: operation.executionId, span_id: operation.spanId }
  }
}

/** What `ids` says of an operation: the smallest thing that it is about. */
const idOf = (operation: TraceOperation): string => {
  switch (operation.op) {
    case "span.event":
      return operation.eventId
    case "span.start":
    case "span.end":
    case "otlp.span":
    case "otlp.events":
      return operation.spanId
    default:
      return operation.executionId
  }
}

/** The same of what became of one. */
const idOfResult = ({ event_id, execution_id, op, span_id }: TraceResult): string =>
  op.startsWith("execution.") ? execution_id : (event_id ?? span_id ?? execution_id)

/** The answer before the sequencer's decision: counts what passed validation. */
export const batchWritten = (
  { errors, traces }: PreparedTraces,
  receiptId: string,
  accepted: AnswerOptions
): HttpServerResponse.HttpServerResponse =>
  json(
    {
      receipt_id: receiptId,
      status: "pending",
      accepted: traces.length,
      rejected: errors.length,
      ids: traces.map(idOf),
      results: traces.map(targetOf),
      errors
    },
    accepted
  )

/** The answer when everything can be read. */
export const batchVisible = (receipt: Receipt): HttpServerResponse.HttpServerResponse => {
  const { accepted, errors, receipt_id, rejected, results = [], status } = receipt
  return json({
    receipt_id,
    status,
    accepted,
    rejected,
    ids: results.map(idOfResult),
    results,
    errors
  })
}
