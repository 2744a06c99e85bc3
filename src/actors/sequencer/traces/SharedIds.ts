/**
 * Two spans under one id: the client and the server side of a call, as Zipkin and Envoy send them.
 * The one that comes second has a derived id, since facts and answers have named the first by the id
 * as sent. Where they are follows from the set of spans: the server is below the client, what a
 * server begins below the client, everything else that names the id below the server.
 */
import { derivedUuid } from "../../../domain/Identifiers.ts"
import type { RecordOtlpSpan, Side } from "../../../domain/traces/TraceOperation.ts"
import type { ExecutionEntry } from "./TraceEntry.ts"

/** Id of the second span, by that of the first and the side that the second is on. */
const derivedIdOf = (tenantId: string, spanId: string, side: Side): string =>
  derivedUuid("alk-otlp-side", tenantId, spanId, side)

const opposite = (side: Side): Side => (side === "CLIENT" ? "SERVER" : "CLIENT")

/** The other one of two spans, by the id as sent; undefined if there is one only. */
export const otherSpanOf = (entry: ExecutionEntry, spanId: string): string | undefined => {
  const span = entry.span(spanId)
  return span?.shared !== true || span.side === undefined
    ? undefined
    : derivedIdOf(entry.tenantId, spanId, opposite(span.side))
}

/** Of two spans with an id the one that a child with this side is below. */
export const parentFor = (
  entry: ExecutionEntry,
  parentId: string,
  childSide: Side | undefined,
  other = otherSpanOf(entry, parentId)
): string => {
  const wanted = childSide === "SERVER" ? "CLIENT" : "SERVER"
  return other === undefined || entry.span(parentId)?.side === wanted ? parentId : other
}

/** The operation with the ids that its span and its parent have here. */
export const placed = (
  entry: ExecutionEntry | undefined,
  operation: RecordOtlpSpan
): RecordOtlpSpan => {
  const { parentSpanId, side, spanId } = operation
  const known = entry?.span(spanId)
  if (entry === undefined) return operation
  if (side !== undefined && known?.side !== undefined && known.side !== side) {
    const derived = derivedIdOf(entry.tenantId, spanId, side)
    if (side === "CLIENT") return { ...withParent(entry, operation), spanId: derived }
    return { ...operation, spanId: derived, parentSpanId: spanId }
  }
  const client = known?.side === "SERVER" ? otherSpanOf(entry, spanId) : undefined
  if (client !== undefined) return { ...operation, parentSpanId: client }
  return parentSpanId === undefined ? operation : withParent(entry, operation)
}

const withParent = (entry: ExecutionEntry, operation: RecordOtlpSpan): RecordOtlpSpan => {
  const { parentSpanId, side } = operation
  if (parentSpanId === undefined) return operation
  const parent = parentFor(entry, parentSpanId, side)
  return parent === parentSpanId ? operation : { ...operation, parentSpanId: parent }
}
