/**
 * How a write to a trace ends for a client: every failure of the pipeline as one of the documented
 * refusals, and the receipt of a batch as its answer.
 */
import { Effect } from "effect"
import type { HttpServerResponse } from "effect/http"
import {
  type ExecutionTooLarge,
  type ExecutionUnknown,
  FOLLOWED_BYTES_MAX
} from "../../actors/feeds/TraceFeed.ts"
import { defined } from "../../domain/Defined.ts"
import type { Receipt } from "../../domain/records/Receipt.ts"
import type { TraceOperation, TraceResult } from "../../domain/traces/TraceOperation.ts"
import type { PreparedTraces } from "../../services/ingest/PrepareTrace.ts"
import type {
  TraceFailed,
  TraceMismatch,
  TraceRefused,
  TraceUndecided
} from "../../services/ingest/TraceWrites.ts"
import { type AnswerOptions, type Failure, json } from "../messages/Answer.ts"
import { ApiError, notFound, unavailable } from "../messages/ApiError.ts"
import { fieldOf, IDEMPOTENCY_HEADER } from "../messages/WriteRequest.ts"

/** What only writes to traces and their streams fail with. */
export type TraceFailure =
  | ExecutionTooLarge
  | ExecutionUnknown
  | TraceFailed
  | TraceMismatch
  | TraceRefused
  | TraceUndecided

const refusal = ({ code, message }: TraceRefused): ApiError => {
  if (code === "unavailable") return unavailable(message)
  const field = fieldOf(message)
  return new ApiError({
    code: code === "invalid_value" || code === "too_many_spans" ? "invalid_request" : code,
    message,
    ...defined({ field })
  })
}

const toApiError = (failure: TraceFailure): ApiError => {
  switch (failure._tag) {
    case "ExecutionTooLarge":
      return new ApiError({
        code: "payload_too_large",
        message:
          `what the execution says of itself and of running spans is over ${FOLLOWED_BYTES_MAX} `
          + "bytes, more than can be followed; read its spans from /api/v1/executions/{id}/spans"
      })
    case "ExecutionUnknown":
      return notFound("execution")
    case "TraceFailed":
      return unavailable(`the request was not applied: ${failure.message}`)
    case "TraceMismatch":
      return new ApiError({
        code: "idempotency_mismatch",
        message: `${IDEMPOTENCY_HEADER}: was used before with another body`,
        field: IDEMPOTENCY_HEADER
      })
    case "TraceRefused":
      return refusal(failure)
    case "TraceUndecided":
      return unavailable(
        "the request is stored, but did not become visible in time; it may still happen, so retry "
          + "with the same ids or the same key"
      )
  }
}

/** An effect whose failures are those that every handler may have. */
export const refusing = <A, E extends Failure | TraceFailure, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, ApiError | Exclude<E, TraceFailure>, R> =>
  Effect.catch(effect, (error): Effect.Effect<never, ApiError | Exclude<E, TraceFailure>> => {
    const failure: Failure | TraceFailure = error
    switch (failure._tag) {
      case "ExecutionTooLarge":
      case "ExecutionUnknown":
      case "TraceFailed":
      case "TraceMismatch":
      case "TraceRefused":
      case "TraceUndecided":
        return Effect.fail(toApiError(failure))
      default:
        return Effect.fail(error as Exclude<E, TraceFailure>)
    }
  })

/** The ids that an operation is about, as far as they are known before the sequencer's word. */
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
      return operation.spanId
    default:
      return operation.executionId
  }
}

/** The same of what became of one. */
const idOfResult = ({ event_id, execution_id, op, span_id }: TraceResult): string =>
  op.startsWith("execution.") ? execution_id : (event_id ?? span_id ?? execution_id)

/** The answer before the sequencer's word: counts what passed validation. */
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
