/**
 * From a decoded export to the commands that the sequencer decides on: what its spans share, which
 * of them are in a command, and what of the request was repaired or refused.
 */
import type { Sliced } from "../../../domain/Slices.ts"
import { type Flaws, NO_FLAWS } from "./Flaws.ts"
import type { ExportTraceServiceRequest } from "./gen/opentelemetry/proto/collector/trace/v1/trace_service_pb.js"
import type { Span } from "./gen/opentelemetry/proto/trace/v1/trace_pb.js"
import { type ExportTooLarge, Prepared, type PreparedItems } from "./Prepared.ts"
import { noteFirst, type PrepareOptions, prepareSpan } from "./PrepareSpan.ts"
import { OPERATION_CHARACTERS } from "./SpanEvents.ts"
import { hexOf, isId, isZero, SPAN_ID_BYTES, TRACE_ID_BYTES } from "./SpanIds.ts"
import { charactersIn, type Origin, originOf, resourceOf } from "./SpanOrigins.ts"
import { defaultSpanLimits, type SpanLimits } from "./SpanParts.ts"

/** Spans of one request: twenty times what an SDK sends at once, and more than a collector does. */
export const SPANS_MAX = 20_000
/** Characters of all operations of a request: what resources and scopes repeated may add up to. */
export const REQUEST_CHARACTERS_MAX = 64 * 1_048_576

/** Characters of a span's operation at least. */
const leastCharacters = ({ resource, shared }: Origin, span: Span): number =>
  OPERATION_CHARACTERS
  + charactersIn(shared)
  + (isZero(span.parentSpanId) ? charactersIn(resource) : 0)

const numbered = (index: number): string => `span number ${index + 1} of the request`

/** Which span a refusal is about: its ids, or its place if it has none. */
const labelOf = (span: Span, index: number): string =>
  isId(span.traceId, TRACE_ID_BYTES) && isId(span.spanId, SPAN_ID_BYTES)
    ? `span ${hexOf(span.spanId)} of trace ${hexOf(span.traceId)}`
    : numbered(index)

/** Spans of an export, over all resources and scopes. */
export const countSpans = (request: ExportTraceServiceRequest): number => {
  let spans = 0
  for (const { scopeSpans } of request.resourceSpans) {
    for (const scope of scopeSpans) spans += scope.spans.length
  }
  return spans
}

/** Spans of an export and the events in them: each may become a fact. */
export const countSpansAndEvents = ({ resourceSpans }: ExportTraceServiceRequest): number => {
  let items = 0
  for (const { scopeSpans } of resourceSpans) {
    for (const { spans } of scopeSpans) {
      for (const { events } of spans) items += 1 + events.length
    }
  }
  return items
}

/** True if a span of an export has a trace id. */
export const hasTraceIds = ({ resourceSpans }: ExportTraceServiceRequest): boolean =>
  resourceSpans.some(({ scopeSpans }) =>
    scopeSpans.some(({ spans }) => spans.some(({ traceId }) => isId(traceId, TRACE_ID_BYTES)))
  )

/** Which span is at a place of an export, for people. */
export const labelsOf = (request: ExportTraceServiceRequest): ((index: number) => string) => {
  const spans = request.resourceSpans.flatMap(({ scopeSpans }) =>
    scopeSpans.flatMap((scope) => scope.spans)
  )
  return (index) => {
    const span = spans[index]
    return span === undefined ? numbered(index) : labelOf(span, index)
  }
}

function* addSpan(prepared: Prepared, span: Span, options: PrepareOptions): Sliced<void> {
  const label = labelOf(span, options.index)
  try {
    const { operations, repairs } = yield* prepareSpan(span, options)
    yield* prepared.add(label, operations, repairs)
    noteFirst(options.introduced, operations[0]!.operation)
  } catch (error) {
    prepared.refuse(label, options.index, error)
  }
}

const requestTooLarge: ExportTooLarge = {
  tooLarge:
    `the spans, each with its resource and scope, take over ${REQUEST_CHARACTERS_MAX} characters; `
    + "send fewer spans at once"
}

/** The spans of one scope. */
interface SpanGroup {
  readonly origin: Origin
  readonly spans: ReadonlyArray<Span>
}

/**
 * What spans share, made once. The sum of what all of them take at least is known before the first
 * of them is prepared.
 */
function* groupsOf(
  request: ExportTraceServiceRequest,
  { metadataBytesMax }: SpanLimits,
  flaws: Flaws,
  prepared: Prepared
): Sliced<ReadonlyArray<SpanGroup> | ExportTooLarge> {
  const groups: Array<SpanGroup> = []
  let characters = 0
  for (const [at, resourceSpans] of request.resourceSpans.entries()) {
    yield
    const label = `resource number ${at + 1} of the request`
    const resource = yield* resourceOf(resourceSpans, metadataBytesMax, flaws)
    prepared.addRepairs(label, resource.repairs)
    for (const scopeSpans of resourceSpans.scopeSpans) {
      yield
      const origin = yield* originOf(resource, scopeSpans, metadataBytesMax, flaws)
      prepared.addRepairs(label, origin.repairs)
      const { spans } = scopeSpans
      groups.push({ origin, spans })
      for (const span of spans) characters += leastCharacters(origin, span)
      if (characters > REQUEST_CHARACTERS_MAX) return requestTooLarge
    }
  }
  return groups
}

/**
 * Prepare every span of an export, a part of one in a step. `tooLarge` says what to send less of,
 * and then nothing of the export may be stored; everything else that is wrong is wrong with single
 * spans.
 */
export function* prepareSpans(
  request: ExportTraceServiceRequest,
  tenantId: string,
  limits: SpanLimits = defaultSpanLimits,
  flaws: Flaws = NO_FLAWS
): Sliced<PreparedItems | ExportTooLarge> {
  const spans = countSpans(request)
  if (spans > SPANS_MAX) return { tooLarge: `${spans} spans; send at most ${SPANS_MAX} at once` }
  const prepared = new Prepared()
  const groups = yield* groupsOf(request, limits, flaws, prepared)
  if ("tooLarge" in groups) return groups
  const introduced = new Map<string, string>()
  let index = 0
  for (const { origin, spans: ofGroup } of groups) {
    for (const span of ofGroup) {
      yield
      yield* addSpan(prepared, span, { index, origin, tenantId, limits, flaws, introduced })
      if (prepared.characters > REQUEST_CHARACTERS_MAX) return requestTooLarge
      index += 1
    }
  }
  return prepared.all
}
