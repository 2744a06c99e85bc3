/**
 * A span of OpenTelemetry that is sent again with other content, while it runs and when it has
 * ended: what of it is known, and which content is shown. That follows from the contents alone, not
 * from their order: what has ended outranks what runs, then the later end, the worse status, the
 * larger text. When a span has started, and whether it is a root, stays as it was first sent: by that
 * it is decided what the execution is. Decides on no facts.
 */
import { sha256Hex } from "../../../domain/Identifiers.ts"
import { quote } from "../../../domain/json/CanonicalJson.ts"
import { factDetailsHash } from "../../../domain/traces/FactText.ts"
import type { StoredSpan } from "../../../domain/traces/StoredTrace.ts"
import type { PreparedDetails, TerminalStatus } from "../../../domain/traces/TraceFact.ts"
import type { RecordOtlpSpan } from "../../../domain/traces/TraceOperation.ts"
import { severityOf } from "./LocalRoots.ts"
import { laterOf } from "./TraceTimes.ts"

/** How a span has ended, as it was sent. */
export interface SpanEnd {
  readonly status: TerminalStatus
  readonly endedAt: string
}

/** Undefined while the span runs. */
export const endOf = ({ endedAt, startedAt, status }: RecordOtlpSpan): SpanEnd | undefined =>
  endedAt === undefined ? undefined : { status, endedAt: laterOf(endedAt, startedAt) }

/** Spans that the operation says its span follows from, each once. */
export const causesOf = ({ causedBy }: RecordOtlpSpan): ReadonlyArray<string> => [
  ...new Set(causedBy)
]

const isOf = (
  mark: Pick<PreparedDetails, "hash" | "salt"> | null,
  { text }: Pick<PreparedDetails, "text">
): boolean => mark !== null && factDetailsHash(mark.salt, text) === mark.hash

const isEnd = (
  end: SpanEnd | undefined,
  { ended_at, status }: Pick<StoredSpan, "ended_at" | "status">
): boolean => end === undefined || (end.endedAt === ended_at && end.status === status)

type Place = Pick<StoredSpan, "caused_by_span_ids" | "parent_span_id" | "span_type" | "started_at">

/** What is to be compared of a span besides its details and its end. */
const placeOf = ({ caused_by_span_ids, parent_span_id, span_type, started_at }: Place): string =>
  JSON.stringify([started_at, parent_span_id, span_type, caused_by_span_ids])

/** The same in 64 hex digits: a span may name many causes. */
export const placeHash = (place: Place): string => sha256Hex(placeOf(place))

const placeIn = (operation: RecordOtlpSpan): string =>
  placeOf({
    started_at: operation.startedAt,
    parent_span_id: operation.parentSpanId ?? null,
    span_type: operation.spanType,
    caused_by_span_ids: causesOf(operation)
  })

/** True if the span was started with what the operation says, the end aside. */
export const isSameStart = (span: StoredSpan, operation: RecordOtlpSpan): boolean =>
  placeOf(span) === placeIn(operation) && isOf(span.details, operation.details)

/** True if it has ended as the operation says, or that says of no end. */
export const isSameEnd = (span: StoredSpan, operation: RecordOtlpSpan): boolean =>
  isEnd(endOf(operation), span)

/** All that an operation says of its span, as the details of a span.amended. */
export const wholeContentOf = (operation: RecordOtlpSpan): PreparedDetails => {
  const { details, endDetails, parentSpanId, spanType, startedAt } = operation
  const end = endOf(operation)
  const members = [
    `"caused_by_span_ids":[${causesOf(operation).map(quote).join(",")}]`,
    `"details":${details.text}`,
    ...(endDetails === undefined ? [] : [`"end_details":${endDetails.text}`]),
    ...(end === undefined ? [] : [`"ended_at":"${end.endedAt}"`]),
    ...(parentSpanId === undefined ? [] : [`"parent_span_id":${quote(parentSpanId)}`]),
    `"span_type":${quote(spanType)}`,
    `"started_at":"${startedAt}"`,
    ...(end === undefined ? [] : [`"status":"${end.status}"`])
  ]
  const text = `{"payload":{${members.join(",")}}}`
  const { salt } = details
  return { text, salt, hash: factDetailsHash(salt, text) }
}

/** True if the span was sent with this content before, and another is shown. */
export const isKnownOther = (
  { others = [] }: StoredSpan,
  operation: RecordOtlpSpan,
  whole: PreparedDetails
): boolean => {
  if (others.length === 0) return false
  const place = sha256Hex(placeIn(operation))
  return others.some((other) =>
    other.was === undefined
      ? isOf(other, whole)
      : other.was.place === place
        && isEnd(endOf(operation), other.was)
        && isOf(other, operation.details)
  )
}

/** Texts that compare as ends and sizes do. */
const rankOf = (end: SpanEnd | undefined, bytes: number): ReadonlyArray<string> => [
  end?.endedAt ?? "",
  end === undefined ? "" : String(severityOf(end.status)),
  String(bytes).padStart(16, "0")
]

/** True if what the operation says is to be shown, not what is known of its span. */
export const outranks = (operation: RecordOtlpSpan, span: StoredSpan): boolean => {
  const { details, ended_at, parent_span_id, started_at, status } = span
  const isRoot = operation.parentSpanId === undefined
  if (operation.startedAt !== started_at || isRoot !== (parent_span_id === null)) return false
  const end = ended_at === null || status === "RUNNING" ? undefined : { endedAt: ended_at, status }
  const mine = [
    ...rankOf(endOf(operation), Buffer.byteLength(operation.details.text)),
    operation.details.hash,
    // The last: which id a parent has may depend on the order, see SharedIds.
    placeIn(operation)
  ]
  const known = [...rankOf(end, details?.bytes ?? 0), details?.hash ?? "", placeOf(span)]
  const at = mine.findIndex((one, index) => one !== known[index])
  return at !== -1 && mine[at]! > known[at]!
}
