/**
 * How operations on traces are refused: each message begins with the field that it is about, names
 * the id, and says what to do. When to refuse is decided elsewhere.
 */
import type { StoredExecution } from "../../../domain/traces/StoredTrace.ts"
import type { TraceErrorCode, TraceResult } from "../../../domain/traces/TraceOperation.ts"
import { EXECUTION_WEIGHT_MAX, type LinkBudget } from "./LinkBudgets.ts"

/** Spans of one execution, its root included. */
export const SPANS_MAX = 100_000

/** An operation that can't be done. */
export interface TraceRefusal {
  readonly code: TraceErrorCode
  readonly message: string
}

/** What has become of an operation; its index is added where it is noted down. */
export type TraceDecision = Omit<TraceResult, "index" | "op"> | TraceRefusal

export const refuse = (code: TraceErrorCode, message: string): TraceRefusal => ({ code, message })

export const named = (id: string): string => JSON.stringify(id)

export const noExecution = (id: string): TraceRefusal =>
  refuse("not_found", `execution_id: there is no execution ${named(id)}; start it first`)

/** To clients it is no execution: nothing but its event can be erased, or added to. */
export const holdsValuesOnly = (id: string): TraceRefusal =>
  refuse(
    "not_found",
    `execution_id: ${named(id)} only holds values of an audit event; to erase them erase that event`
  )

export const noSpan = (id: string): TraceRefusal =>
  refuse("not_found", `span_id: there is no span ${named(id)}; start it first`)

export const executionHasEnded = (
  id: string,
  { ended_at, status }: Pick<StoredExecution, "ended_at" | "status">
): TraceRefusal =>
  refuse(
    "already_ended",
    `execution_id: ${named(id)} has ended as ${status} at ${ended_at} and takes nothing more; `
      + "start a new execution"
  )

export const spanHasEnded = (id: string, status: string): TraceRefusal =>
  refuse(
    "already_ended",
    `span_id: ${named(id)} has ended as ${status} and takes nothing more; start a new span`
  )

export const endedOtherwise = (
  what: "execution" | "span",
  id: string,
  status: string
): TraceRefusal =>
  refuse(
    "already_ended",
    `status: ${what} ${named(id)} has ended as ${status}, and that stays; to repeat the end send `
      + status
  )

const tooManySpans = (executionId: string): TraceRefusal =>
  refuse(
    "too_many_spans",
    `execution_id: ${named(executionId)} has ${SPANS_MAX} spans, the most that an execution may `
      + "have; start a new execution"
  )

/** Why an execution takes no further span; undefined if it does. */
export const fullRefusal = (
  executionId: string,
  { spanCount, weight }: { readonly spanCount: number; readonly weight: number }
): TraceRefusal | undefined => {
  if (spanCount >= SPANS_MAX) return tooManySpans(executionId)
  if (weight < EXECUTION_WEIGHT_MAX) return undefined
  return refuse(
    "too_many_spans",
    `execution_id: ${named(executionId)} has as many links between its spans as an execution may `
      + "have; start a new execution"
  )
}

const tooManyLinks = (spanId: string): TraceRefusal =>
  refuse(
    "too_many_spans",
    `span_id: ${named(spanId)} follows from more spans than can be checked for a cycle; send spans `
      + "before those that follow from them, or fewer caused_by_span_ids"
  )

const linksUsedUp = (spanId: string): TraceRefusal =>
  refuse(
    "unavailable",
    `span_id: ${named(spanId)} could not be checked for a cycle, as others took too much time to be; `
      + "try again"
  )

export const cycleOf = (spanId: string): TraceRefusal =>
  refuse(
    "cycle_detected",
    `span_id: ${named(spanId)} would follow from itself through its parent_span_id or `
      + "caused_by_span_ids; leave out what closes the cycle"
  )

/** Of a span that closes a cycle, or of which that was not found out; `left` is what was left then. */
export const cycleRefusal = (
  spanId: string,
  closes: true | undefined,
  { left }: LinkBudget
): TraceRefusal => {
  if (closes === true) return cycleOf(spanId)
  return left < 0 ? linksUsedUp(spanId) : tooManyLinks(spanId)
}
