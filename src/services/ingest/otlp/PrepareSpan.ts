/**
 * From one span to the operation that the sequencer decides on: ids, times, limits, and what the
 * mapping makes of it. What can't be stored as it was sent is repaired; only a span without usable
 * ids or times is refused.
 */
import { isText } from "../../../domain/events/AuditEvent.ts"
import { canonicalize, canonicalizeWith, flat, quote } from "../../../domain/json/CanonicalJson.ts"
import type { JsonObject } from "../../../domain/json/Json.ts"
import type { Sliced } from "../../../domain/Slices.ts"
import { YEAR_MAX } from "../../../domain/Timestamp.ts"
import {
  callsInEvents,
  hintsOf,
  namedCalls,
  namedHints,
  namedIds
} from "../../../domain/traces/GraphHints.ts"
import { namedSummary, summaryOf } from "../../../domain/traces/SpanSummary.ts"
import type { PreparedDetails } from "../../../domain/traces/TraceFact.ts"
import type { RecordOtlpSpan } from "../../../domain/traces/TraceOperation.ts"
import { hashedDetails } from "../HashedDetails.ts"
import { fittedError, type OffloadedValues, withoutLargeTexts } from "../LargeValues.ts"
import { CAUSES_MAX, ERROR_BYTES_MAX, TRACE_NAME_LENGTH_MAX } from "../PrepareTrace.ts"
import type { Flaws } from "./Flaws.ts"
import type { Span, Span_Link } from "./gen/opentelemetry/proto/trace/v1/trace_pb.js"
import { sentId } from "./JsonIds.ts"
import {
  agentIdOf,
  agentNameOf,
  kindOf,
  MAPPING_VERSION,
  outcomeOf,
  type SpanOutcome,
  saidOfSpan,
  sideOf,
  spanNameOf,
  spanTypeOf,
  statusOf
} from "./Mapping.ts"
import type { PreparedOperation } from "./Prepared.ts"
import { RepairLog } from "./RepairLog.ts"
import { charactersOf, eventPartsOf, type ReadEvent, readEvents } from "./SpanEvents.ts"
import {
  executionIdOf,
  hexOf,
  idOf,
  isId,
  isZero,
  SPAN_ID_BYTES,
  spanIdOf,
  syntheticRootIdOf,
  TRACE_ID_BYTES
} from "./SpanIds.ts"
import {
  ATTRIBUTES_LEVEL,
  count,
  counted,
  member,
  type Origin,
  orNothing,
  textMember
} from "./SpanOrigins.ts"
import { COMMAND_CHARACTERS_MAX, type Context, canonicalWithin, timeOf } from "./SpanParts.ts"
import { Unstorable } from "./Values.ts"

const LINK_ATTRIBUTES_LEVEL = 4

/** Bits of the flags of a span that say that its parent is of another process. */
const PARENT_IS_REMOTE = 0x300

/** In the metadata of a span whose attributes are stored apart as a whole. */
const ATTRIBUTES_APART = '"attributes":{"$ref":'

/** The span of the same trace that a link names, in hex. */
const linkedSpan = (link: Span_Link, { traceId }: Context): string | undefined =>
  isId(link.spanId, SPAN_ID_BYTES) && hexOf(link.traceId) === traceId
    ? hexOf(link.spanId)
    : undefined

/** A link that is an edge, or none. */
const causeOf = (link: Span_Link, index: number, context: Context): string | undefined => {
  const { repairs, spanId, tenantId, traceId } = context
  const linked = linkedSpan(link, context)
  if (linked === undefined || index >= CAUSES_MAX) return undefined
  if (linked !== spanId) return spanIdOf(tenantId, traceId, linked)
  repairs.add("link_to_itself", () => `links[${index}]`)
  return undefined
}

/** What an edge does not say of a link; undefined if it says everything. */
function* linkMetadata(
  link: Span_Link,
  isEdge: boolean,
  index: number,
  repairs: RepairLog
): Sliced<JsonObject | undefined> {
  const path = `links[${index}].`
  const { attributes, droppedAttributesCount: dropped } = link
  const at = `${path}attributes`
  const { members } = yield* counted(attributes, dropped, LINK_ATTRIBUTES_LEVEL, at, repairs)
  const rest = {
    ...members,
    ...(yield* textMember("trace_state", link.traceState, repairs, path))
  }
  return isEdge && orNothing(rest) === undefined
    ? undefined
    : {
        trace_id: yield* repairs.text(sentId(link.traceId), () => `${path}trace_id`),
        span_id: yield* repairs.text(sentId(link.spanId), () => `${path}span_id`),
        ...rest
      }
}

interface Links {
  readonly causedBy: ReadonlyArray<string>
  readonly metadata: ReadonlyArray<JsonObject>
}

function* linksOf({ links }: Span, context: Context): Sliced<Links> {
  const { repairs } = context
  const causes = new Set<string>()
  const metadata: Array<JsonObject> = []
  for (const [index, link] of links.entries()) {
    const cause = causeOf(link, index, context)
    if (cause !== undefined) causes.add(cause)
    const more = yield* linkMetadata(link, cause !== undefined, index, repairs)
    if (more !== undefined) metadata.push(more)
  }
  if (links.length > CAUSES_MAX) {
    repairs.add("many_links", () => `links[${CAUSES_MAX}]`, String(links.length))
  }
  return { causedBy: [...causes], metadata }
}

const parentOf = ({ parentSpanId }: Span, { repairs, spanId }: Context): string | undefined => {
  if (isZero(parentSpanId)) return undefined
  if (!isId(parentSpanId, SPAN_ID_BYTES)) {
    repairs.add("unreadable_parent", () => "parent_span_id", sentId(parentSpanId))
    return undefined
  }
  const parent = hexOf(parentSpanId)
  if (parent === spanId) throw new Unstorable("parent_span_id: the span is its own parent")
  return parent
}

/** What the metadata of a span is made of. */
interface Read {
  readonly parent: string | undefined
  readonly attributes: JsonObject
  /** The attributes, and how many the client has dropped. */
  readonly members: JsonObject
  readonly links: Links
  readonly events: ReadonlyArray<ReadEvent>
  /** The name as sent, its beginning, and as it is shown. */
  readonly whole: string
  readonly sent: string
  readonly name: string
  readonly statusMessage: string
}

/** RFC 8785 text of the metadata of a span. */
function* metadataOf(span: Span, origin: Origin, read: Read, context: Context): Sliced<string> {
  const { attributes, events, links, members, name, parent, sent, statusMessage, whole } = read
  const { apart, limits, repairs, spanId, traceId } = context
  const calls = callsInEvents(events, attributes)
  const said = saidOfSpan(attributes, sent)
  const metadata = {
    mapping: MAPPING_VERSION,
    trace_id: traceId,
    span_id: spanId,
    ...member("parent_span_id", parent),
    ...(name === whole ? {} : { name: whole }),
    ...members,
    ...member("kind", kindOf(span.kind)),
    ...count("flags", span.flags),
    ...member("status", statusOf(span.status?.code ?? 0, statusMessage)),
    ...member("links", links.metadata.length === 0 ? undefined : links.metadata),
    ...(yield* textMember("trace_state", span.traceState, repairs)),
    ...count("dropped_events_count", span.droppedEventsCount),
    ...count("dropped_links_count", span.droppedLinksCount),
    ...namedCalls(calls),
    ...(orNothing(said) && namedSummary(said, summaryOf({ metadata: { attributes } })))
  }
  const write = (object: JsonObject) => canonicalizeWith(object, origin.shared.texts)
  const tried = apart.copy()
  const fitting = yield* withoutLargeTexts(metadata, limits.metadataBytesMax, tried, write)
  if (fitting !== undefined && tried.references === apart.references) return fitting
  const hints = hintsOf({ metadata: { attributes } })
  const isApart = fitting?.includes(ATTRIBUTES_APART) !== false
  const more = {
    ...namedHints(hints, calls),
    ...(isApart ? { ...namedIds(hints), ...namedSummary(said) } : {})
  }
  if (fitting !== undefined && orNothing(more) === undefined) {
    apart.merge(tried)
    return fitting
  }
  const named = { ...metadata, ...more }
  return yield* canonicalWithin(named, limits.metadataBytesMax, "metadata", apart, write)
}

/** What the execution says if this span is what makes it. */
export const executionDetailsOf = (
  name: string,
  origin: Pick<Origin, "resource">,
  { traceId }: Context,
  isRoot: boolean,
  attributes: JsonObject
): PreparedDetails => {
  const own = { mapping: MAPPING_VERSION, trace_id: traceId, ...(isRoot ? { name } : {}) }
  const metadata = canonicalizeWith(own, origin.resource.texts)
  const agentName = member("agent_name", agentNameOf(attributes))
  return hashedDetails(canonicalizeWith(agentName, new Map([["metadata", metadata]])))
}

/** A text always has a reference that fits. */
function* errorDetailsOf(error: string, apart: OffloadedValues): Sliced<PreparedDetails> {
  return hashedDetails(flat(`{"error":${(yield* fittedError(error, ERROR_BYTES_MAX, apart))!}}`))
}

/** The beginning of a name. */
const beginningOf = (name: string, repairs: RepairLog): string => {
  if (isText(name, TRACE_NAME_LENGTH_MAX)) return name
  repairs.add("long_name", () => "name")
  return [...name.slice(0, 2 * TRACE_NAME_LENGTH_MAX)].slice(0, TRACE_NAME_LENGTH_MAX).join("")
}

interface Times {
  readonly startedAt: string
  readonly endedAt?: string
}

const START = "start_time_unix_nano"
const END = "end_time_unix_nano"

/** Of a span whose start is missing or impossible. Throws Unstorable. */
const timesByEnd = (
  { endTimeUnixNano, startTimeUnixNano: start }: Span,
  repairs: RepairLog
): Times => {
  const endedAt = timeOf(endTimeUnixNano)
  if (endedAt === undefined) {
    throw new Unstorable(
      start === 0n
        ? `${START}: missing; send nanoseconds since 1970`
        : `${START}: must be before the year ${YEAR_MAX + 1}`
    )
  }
  if (start === 0n) repairs.add("missing_start", () => START)
  else repairs.add("impossible_time", () => START, String(start))
  return { startedAt: endedAt, endedAt }
}

/** Canonical microsecond forms. */
const timesOf = (span: Span, repairs: RepairLog): Times => {
  const { endTimeUnixNano: end, startTimeUnixNano: start } = span
  const startedAt = timeOf(start)
  if (startedAt === undefined) return timesByEnd(span, repairs)
  if (end === 0n) return { startedAt }
  const endedAt = timeOf(end)
  if (endedAt !== undefined && end >= start) return { startedAt, endedAt }
  const code = endedAt === undefined ? "impossible_time" : "end_before_start"
  repairs.add(code, () => END, String(end))
  return { startedAt, endedAt: startedAt }
}

/** What became of a span; of a code that OpenTelemetry does not have, as if none was said. */
const outcomeOfSpan = (
  { status }: Span,
  { attributes, events, statusMessage }: Read,
  repairs: RepairLog
): SpanOutcome => {
  const { code = 0 } = status ?? {}
  const outcome = outcomeOf(code, statusMessage, attributes, events)
  if (outcome !== undefined) return outcome
  repairs.add("unknown_status", () => "status.code", String(code))
  return { status: "COMPLETED" }
}

export interface PrepareOptions {
  readonly index: number
  readonly origin: Origin
  readonly tenantId: string
  readonly limits: Context["limits"]
  readonly flaws: Flaws
  /** By execution the first to start of the spans so far, which says what the execution is. */
  readonly introduced: Map<string, string>
}

export interface PreparedSpan {
  /** One, and one more for each part of its events that has no room in it. */
  readonly operations: ReadonlyArray<PreparedOperation>
  /** Of the span itself. */
  readonly repairs: RepairLog
}

function* readSpan(span: Span, startedAt: string, context: Context): Sliced<Read> {
  const { repairs } = context
  const { attributes: pairs, droppedAttributesCount: dropped } = span
  const parent = parentOf(span, context)
  const read = yield* counted(pairs, dropped, ATTRIBUTES_LEVEL, "attributes", repairs)
  const { attributes, members } = read
  const whole = yield* repairs.text(span.name, () => "name")
  const sent = beginningOf(whole, repairs)
  return {
    parent,
    whole,
    sent,
    attributes,
    members,
    events: yield* readEvents(span, startedAt, repairs),
    links: yield* linksOf(span, context),
    name: spanNameOf(sent, attributes),
    statusMessage: yield* repairs.text(span.status?.message ?? "", () => "status.message")
  }
}

/** Those of the span, and of what it has of its resource and scope. */
const detailsOf = (metadata: string, name: string, origin: Origin, own: RepairLog) => {
  const all = new RepairLog()
  for (const log of [own, origin.repairs, origin.resource.repairs]) all.inherit(log)
  const repairs = all.all === undefined ? "" : `,"repairs":${canonicalize(all.all)}`
  return hashedDetails(flat(`{"metadata":${metadata},"name":${quote(name)}${repairs}}`))
}

/** Of the spans of an execution the first to start has the least. */
const placeOf = (startedAt: string, spanId: string): string => `${startedAt} ${spanId}`
/** After all others. */
const NO_PLACE = "~"

/** Of a span that was prepared. */
export const noteFirst = (
  introduced: Map<string, string>,
  { executionId, spanId, startedAt }: RecordOtlpSpan
): void => {
  const place = placeOf(startedAt, spanId)
  if (place < (introduced.get(executionId) ?? NO_PLACE)) introduced.set(executionId, place)
}

/** The operations of a span. Throws Unstorable. */
export function* prepareSpan(span: Span, options: PrepareOptions): Sliced<PreparedSpan> {
  const { flaws, index, introduced, limits, origin, tenantId } = options
  const unread = flaws.unreadable(span)
  if (unread !== undefined) throw new Unstorable(`can't be read: ${unread.message}`)
  const traceId = idOf(span.traceId, TRACE_ID_BYTES, "trace_id")
  const spanId = idOf(span.spanId, SPAN_ID_BYTES, "span_id")
  const [apart, repairs] = [origin.shared.apart.copy(), new RepairLog()]
  const context: Context = { tenantId, traceId, spanId, limits, apart, repairs }
  for (const { message, sent } of flaws.of(span)) repairs.add("unknown_name", () => message, sent)
  const times = timesOf(span, repairs)
  const read = yield* readSpan(span, times.startedAt, context)
  yield
  const { attributes, events, links, name, parent, sent } = read
  const outcome = outcomeOfSpan(span, read, repairs)
  yield* repairs.hashed()
  const metadata = yield* metadataOf(span, origin, read, context)
  yield
  const isRoot = parent === undefined
  const executionId = executionIdOf(tenantId, traceId)
  const id = spanIdOf(tenantId, traceId, spanId)
  const isFirst = placeOf(times.startedAt, id) < (introduced.get(executionId) ?? NO_PLACE)
  const operation: RecordOtlpSpan = {
    op: "otlp.span",
    index,
    executionId,
    syntheticRootId: syntheticRootIdOf(tenantId, traceId),
    spanId: id,
    ...(parent === undefined ? {} : { parentSpanId: spanIdOf(tenantId, traceId, parent) }),
    ...((span.flags & PARENT_IS_REMOTE) === PARENT_IS_REMOTE ? { parentIsRemote: true } : {}),
    ...member("side", sideOf(span.kind)),
    causedBy: links.causedBy,
    spanType: spanTypeOf(attributes, sent),
    ...times,
    status: outcome.status,
    details: detailsOf(metadata, name, origin, repairs),
    ...(times.endedAt === undefined || outcome.error === undefined
      ? {}
      : { endDetails: yield* errorDetailsOf(outcome.error, apart) }),
    agentId: agentIdOf(attributes, origin.resource.attributes),
    ...(isRoot || isFirst
      ? { executionDetails: executionDetailsOf(sent, origin, context, isRoot, attributes) }
      : {}),
    events: []
  }
  if (charactersOf(operation) > COMMAND_CHARACTERS_MAX) {
    throw new Unstorable("span: larger than the log takes at once")
  }
  const operations = yield* eventPartsOf(events, operation, context)
  return { operations, repairs }
}
