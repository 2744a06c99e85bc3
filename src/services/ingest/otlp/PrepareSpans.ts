/**
 * From a decoded export to operations that the sequencer can decide on: ids, times, limits, and
 * what the mapping makes of each span. What can't be stored of a span is left out and counted in
 * it; a span without usable ids or times is refused by itself. Knows no request, no clock and no
 * answer.
 */
import { defined } from "../../../domain/Defined.ts"
import { isText, METADATA_BYTES_MAX } from "../../../domain/events/AuditEvent.ts"
import { derivedUuid, sha256Hex } from "../../../domain/Identifiers.ts"
import { canonicalize, canonicalizeWith, flat, quote } from "../../../domain/json/CanonicalJson.ts"
import type { JsonObject, JsonValue } from "../../../domain/json/Json.ts"
import type { Sliced } from "../../../domain/Slices.ts"
import { formatMicros, YEAR_MAX } from "../../../domain/Timestamp.ts"
import {
  callsInEvents,
  hintsOf,
  namedCalls,
  namedHints,
  namedIds
} from "../../../domain/traces/GraphHints.ts"
import { namedSummary, summaryOf } from "../../../domain/traces/SpanSummary.ts"
import type { PreparedDetails } from "../../../domain/traces/TraceFact.ts"
import type {
  OtlpEvent,
  RecordOtlpEvents,
  RecordOtlpSpan
} from "../../../domain/traces/TraceOperation.ts"
import { hashedDetails } from "../HashedDetails.ts"
import { fittedError, ValuesApart, withoutLargeTexts } from "../LargeValues.ts"
import { tooLarge } from "../Prepare.ts"
import {
  CAUSES_MAX,
  ERROR_BYTES_MAX,
  PAYLOAD_BYTES_MAX,
  TRACE_NAME_LENGTH_MAX
} from "../PrepareTrace.ts"
import type { ExportTraceServiceRequest } from "./gen/opentelemetry/proto/collector/trace/v1/trace_service_pb.js"
import type { KeyValue } from "./gen/opentelemetry/proto/common/v1/common_pb.js"
import type { Span, Span_Event, Span_Link } from "./gen/opentelemetry/proto/trace/v1/trace_pb.js"
import {
  agentIdOf,
  agentNameOf,
  eventTypeOf,
  kindOf,
  MAPPING_VERSION,
  type MappedEvent,
  outcomeOf,
  type SpanOutcome,
  saidOfSpan,
  spanNameOf,
  spanTypeOf,
  statusOf
} from "./Mapping.ts"
import {
  attributesOf,
  LeftOut,
  type LeftOutPart,
  textOf,
  Unstorable,
  type UnstorableReason
} from "./Values.ts"

/** Spans of one request: twenty times what an SDK sends at once, and more than a collector does. */
export const SPANS_MAX = 20_000
/** Events of one span: eight times what SDKs keep. */
export const EVENTS_PER_SPAN_MAX = 1_000
/** Spans of one command, as many as other writes have items. */
export const SPANS_PER_COMMAND_MAX = 1_000
/**
 * Characters of the operations of one command, and of one span: encoded as UTF-8 inside JSON they
 * take three bytes each at most, which is well below what the log takes in one record.
 */
export const COMMAND_CHARACTERS_MAX = 4 * 1_048_576
/** Characters of all operations of a request: what resources and scopes repeated may add up to. */
export const REQUEST_CHARACTERS_MAX = 64 * 1_048_576

/** What was left out of one span, as far as it is named. */
const LEFT_OUT_NAMED_MAX = 5

/** Characters of an operation, and of an event in it, besides their details; rounded up. */
const OPERATION_CHARACTERS = 1_024
const EVENT_CHARACTERS = 512

export const TRACE_ID_BYTES = 16
export const SPAN_ID_BYTES = 8
const NANOS_PER_MICRO = 1_000n
const MICROS_MAX = BigInt(Date.UTC(YEAR_MAX + 1, 0, 1)) * 1_000n

/** Bits of the flags of a span that say that its parent is of another process. */
const PARENT_IS_REMOTE = 0x300

/** Levels of `attributes` in the metadata or payload that it belongs to, which is level 1. */
export const ATTRIBUTES_LEVEL = 2
const NESTED_ATTRIBUTES_LEVEL = 3
const LINK_ATTRIBUTES_LEVEL = 4

export interface SpanLimits {
  /** Bytes of the metadata of one span in RFC 8785 form. */
  readonly metadataBytesMax: number
  /** Bytes of the payload of one trace event in RFC 8785 form. */
  readonly payloadBytesMax: number
}

export const defaultSpanLimits: SpanLimits = {
  metadataBytesMax: METADATA_BYTES_MAX,
  payloadBytesMax: PAYLOAD_BYTES_MAX
}

/** A span that is not stored. */
export interface RefusedSpan {
  /** Place in the request, from 0, over all resources and scopes. */
  readonly index: number
  /** For counting; OTLP has no place for it. */
  readonly code: string
  /** Which span, and why; for people. */
  readonly message: string
}

/** The spans of an export. */
export interface PreparedSpans {
  /** Operations by command, in the order of the request. */
  readonly commands: ReadonlyArray<ReadonlyArray<RecordOtlpSpan>>
  readonly refused: ReadonlyArray<RefusedSpan>
  /** Spans that are stored without all of what they say, and how many of their values were cut. */
  readonly cut: ReadonlyArray<{ readonly message: string; readonly values: number }>
  /** What could not be stored, and why each of so many attributes, events, links or texts. */
  readonly leftOut: ReadonlyArray<{
    readonly message: string
    readonly reasons: ReadonlyArray<UnstorableReason>
  }>
  /** Values that are stored apart from their spans. */
  readonly apart: number
}

/** An export that is too large as a whole. */
export interface ExportTooLarge {
  readonly tooLarge: string
}

/** Execution id of a trace. */
export const executionIdOf = (tenantId: string, traceId: string): string =>
  derivedUuid("alk-otlp-execution", tenantId, traceId)

/** Span id of a span; ids as lower-case hex. */
export const spanIdOf = (tenantId: string, traceId: string, spanId: string): string =>
  derivedUuid("alk-otlp-span", tenantId, traceId, spanId)

/** Id of the root that a trace has until a span without a parent arrives. */
export const syntheticRootIdOf = (tenantId: string, traceId: string): string =>
  derivedUuid("alk-otlp-root", tenantId, traceId)

const hexOf = (id: Uint8Array): string =>
  Buffer.from(id.buffer, id.byteOffset, id.byteLength).toString("hex")

const isZero = (id: Uint8Array): boolean => id.every((byte) => byte === 0)

const isId = (id: Uint8Array, bytes: number): boolean => id.length === bytes && !isZero(id)

export const idOf = (id: Uint8Array, bytes: number, path: string): string => {
  if (isId(id, bytes)) return hexOf(id)
  throw new Unstorable(
    "id",
    `${path}: must be ${bytes} bytes, ${2 * bytes} hex digits in JSON, and not all zero`
  )
}

/** Canonical microsecond form; nanoseconds are cut. */
export const timeOf = (nanos: bigint, path: string): string => {
  const micros = nanos / NANOS_PER_MICRO
  if (nanos > 0n && micros < MICROS_MAX) return formatMicros(micros)
  throw new Unstorable(
    "time",
    nanos === 0n
      ? `${path}: missing; send nanoseconds since 1970`
      : `${path}: must be before the year ${YEAR_MAX + 1}`
  )
}

/** The RFC 8785 text of a value, its large texts put apart: at most `bytesMax` bytes. */
const canonicalWithin = (
  value: JsonObject,
  bytesMax: number,
  path: string,
  context: Context,
  write: (value: JsonObject) => string = canonicalize
): string => {
  const found = withoutLargeTexts(value, bytesMax, context.apart, write)
  if (found !== undefined) return found
  throw new Unstorable("too_large", `${path}: ${tooLarge(write(value), bytesMax)}`)
}

const count = (name: string, value: number): JsonObject => (value === 0 ? {} : { [name]: value })

export const text = (name: string, value: string, leftOut: LeftOut): JsonObject =>
  value === "" ? {} : (leftOut.unless(() => ({ [name]: textOf(value, name) })) ?? {})

/** Attributes as JSON, and how many are not among them, with those that the client has dropped. */
export const counted = (
  pairs: ReadonlyArray<KeyValue>,
  dropped: number,
  level: number,
  path: string,
  leftOut: LeftOut
) => {
  const before = leftOut.parts.length
  const attributes = attributesOf(pairs, level, path, leftOut)
  const left = leftOut.parts.length - before
  return {
    attributes,
    members: {
      ...attributesMember(attributes),
      ...count("dropped_attributes_count", dropped + left)
    }
  }
}

type ResourceSpans = ExportTraceServiceRequest["resourceSpans"][number]
type ScopeSpans = ResourceSpans["scopeSpans"][number]

const member = (name: string, value: JsonValue | undefined): JsonObject =>
  value === undefined ? {} : { [name]: value }

export const orNothing = (value: JsonObject): JsonObject | undefined =>
  Object.keys(value).length === 0 ? undefined : value

/** A resource, or a scope, as it is in the metadata of each of its spans: made once for all of them. */
export interface SharedMember {
  /** RFC 8785 text by name: one at most. */
  readonly texts: ReadonlyMap<string, string>
  /** Values of it that are stored apart. */
  readonly apart: ValuesApart
}

export interface SharedResource extends SharedMember {
  readonly attributes: JsonObject
}

/** What the spans of one scope of one resource have in common. */
interface Origin {
  readonly resource: SharedResource
  /** Of both. */
  readonly shared: SharedMember
}

/** Of the room for metadata, what a resource and a scope may take of it. */
const RESOURCE_SHARE = 1 / 2
const SCOPE_SHARE = 1 / 4
/** Bytes that each may take at least: a reference has room in it. */
const SHARED_BYTES_MIN = 512

const shareOf = (
  name: string,
  value: JsonObject | undefined,
  bytesMax: number,
  apart: ValuesApart
): ReadonlyMap<string, string> => {
  if (value === undefined) return new Map()
  const least = Math.max(SHARED_BYTES_MIN, Math.floor(bytesMax))
  const whole = withoutLargeTexts({ [name]: value }, least, apart) ?? ""
  return new Map([[name, whole.slice(`{"${name}":`.length, -1)]])
}

export function* resourceOf(
  { resource, schemaUrl }: Pick<ResourceSpans, "resource" | "schemaUrl">,
  limits: SpanLimits,
  leftOut: LeftOut
): Sliced<SharedResource> {
  const { attributes, members } = counted(
    resource?.attributes ?? [],
    resource?.droppedAttributesCount ?? 0,
    NESTED_ATTRIBUTES_LEVEL,
    "resource.attributes",
    leftOut
  )
  const value = orNothing({ ...members, ...text("schema_url", schemaUrl, leftOut) })
  yield
  const apart = new ValuesApart()
  const texts = shareOf("resource", value, limits.metadataBytesMax * RESOURCE_SHARE, apart)
  return { attributes, texts, apart }
}

function* originOf(
  resource: SharedResource,
  { schemaUrl, scope }: ScopeSpans,
  limits: SpanLimits,
  leftOut: LeftOut
): Sliced<Origin> {
  const { members } = counted(
    scope?.attributes ?? [],
    scope?.droppedAttributesCount ?? 0,
    NESTED_ATTRIBUTES_LEVEL,
    "scope.attributes",
    leftOut
  )
  const value = orNothing({
    ...text("name", scope?.name ?? "", leftOut),
    ...text("version", scope?.version ?? "", leftOut),
    ...members,
    ...text("schema_url", schemaUrl, leftOut)
  })
  yield
  const apart = resource.apart.copy()
  const texts = shareOf("scope", value, limits.metadataBytesMax * SCOPE_SHARE, apart)
  return { resource, shared: { texts: new Map([...resource.texts, ...texts]), apart } }
}

const charactersIn = ({ texts }: SharedMember): number =>
  [...texts.values()].reduce((sum, { length }) => sum + length, 0)

/** Characters of a span's operation at least. */
const leastCharacters = ({ resource, shared }: Origin, span: Span): number =>
  OPERATION_CHARACTERS
  + charactersIn(shared)
  + (isZero(span.parentSpanId) ? charactersIn(resource) : 0)

const attributesMember = (attributes: JsonObject): JsonObject =>
  Object.keys(attributes).length === 0 ? {} : { attributes }

/** One span while it is prepared. */
export interface Context {
  readonly tenantId: string
  readonly traceId: string
  /** As sent, in hex. */
  readonly spanId: string
  readonly limits: SpanLimits
  /** Values of it that are stored apart, so far. */
  readonly apart: ValuesApart
  readonly leftOut: LeftOut
}

/** A link that is an edge, or none. */
const causeOf = (link: Span_Link, { spanId, tenantId, traceId }: Context): string | undefined => {
  if (!isId(link.spanId, SPAN_ID_BYTES) || hexOf(link.traceId) !== traceId) return undefined
  const cause = hexOf(link.spanId)
  if (cause === spanId) throw new Unstorable("id", "links: the span links to itself")
  return spanIdOf(tenantId, traceId, cause)
}

/** What an edge does not say of a link; undefined if it says everything. */
const linkMetadata = (
  link: Span_Link,
  isEdge: boolean,
  index: number,
  leftOut: LeftOut
): JsonObject | undefined => {
  const path = `links[${index}].attributes`
  const { attributes, droppedAttributesCount: dropped } = link
  const rest = {
    ...counted(attributes, dropped, LINK_ATTRIBUTES_LEVEL, path, leftOut).members,
    ...text("trace_state", link.traceState, leftOut)
  }
  return isEdge && orNothing(rest) === undefined
    ? undefined
    : { trace_id: hexOf(link.traceId), span_id: hexOf(link.spanId), ...rest }
}

interface Links {
  readonly causedBy: ReadonlyArray<string>
  readonly metadata: ReadonlyArray<JsonObject>
  /** With those that the client has dropped. */
  readonly dropped: number
}

/** The first of a list, and how many are behind them. */
const atMost = <A>(
  name: string,
  all: ReadonlyArray<A>,
  most: number,
  leftOut: LeftOut
): ReadonlyArray<A> => {
  if (all.length <= most) return all
  leftOut.add("too_many", `${name}: ${all.length} of them; the first ${most} are kept`)
  return all.slice(0, most)
}

const linksOf = ({ droppedLinksCount, links }: Span, context: Context): Links => {
  const { leftOut } = context
  const read = atMost("links", links, CAUSES_MAX, leftOut).flatMap((link, index) => {
    const one = leftOut.unless(() => {
      const cause = causeOf(link, context)
      return { cause, metadata: linkMetadata(link, cause !== undefined, index, leftOut) }
    })
    return one === undefined ? [] : [one]
  })
  return {
    causedBy: [...new Set(read.flatMap(({ cause }) => cause ?? []))],
    metadata: read.map(({ metadata }) => metadata).filter((one) => one !== undefined),
    dropped: droppedLinksCount + links.length - read.length
  }
}

/** An event, and what the mapping and its id are made of. */
export interface ReadEvent extends MappedEvent {
  readonly timestamp: string
  readonly nanos: bigint
  readonly eventType: string
  readonly payload: JsonObject | undefined
}

const readEvent = (event: Span_Event, index: number, leftOut: LeftOut): ReadEvent => {
  const path = `events[${index}]`
  const name = textOf(event.name, `${path}.name`)
  const timestamp = timeOf(event.timeUnixNano, `${path}.time_unix_nano`)
  const { attributes, members } = counted(
    event.attributes,
    event.droppedAttributesCount,
    ATTRIBUTES_LEVEL,
    `${path}.attributes`,
    leftOut
  )
  const eventType = eventTypeOf(name)
  return {
    name,
    attributes,
    timestamp,
    nanos: event.timeUnixNano,
    eventType,
    payload: orNothing({ ...members, ...(name === eventType ? {} : { name }) })
  }
}

interface Events {
  readonly read: ReadonlyArray<ReadEvent>
  /** With those that the client has dropped. */
  readonly dropped: number
}

const eventsOf = ({ droppedEventsCount, events }: Span, most: number, leftOut: LeftOut): Events => {
  const read = atMost("events", events, most, leftOut).flatMap(
    (event, index) => leftOut.unless(() => readEvent(event, index, leftOut)) ?? []
  )
  return { read, dropped: droppedEventsCount + events.length - read.length }
}

/**
 * Ids say what an event is and not where it is, for an exporter that sends a span again may
 * have dropped the first ones; only equal events are distinguished by their order.
 */
export const toEvents = (
  events: ReadonlyArray<ReadEvent>,
  context: Context
): ReadonlyArray<OtlpEvent> => {
  const { limits, spanId, tenantId, traceId } = context
  const seen = new Map<string, number>()
  return events.map(({ eventType, name, nanos, payload, timestamp }, index) => {
    const canonical =
      payload && canonicalWithin(payload, limits.payloadBytesMax, `events[${index}]`, context)
    const content = sha256Hex(`${nanos}\n${quote(name)}\n${canonical ?? ""}`)
    const earlier = seen.get(content) ?? 0
    seen.set(content, earlier + 1)
    return {
      eventId: derivedUuid("alk-otlp-event", tenantId, traceId, spanId, content, String(earlier)),
      eventType,
      timestamp,
      ...(canonical === undefined
        ? {}
        : { details: hashedDetails(flat(`{"payload":${canonical}}`)) })
    }
  })
}

const parentOf = (span: Span, spanId: string): string | undefined => {
  if (isZero(span.parentSpanId)) return undefined
  const parent = idOf(span.parentSpanId, SPAN_ID_BYTES, "parent_span_id")
  if (parent === spanId) throw new Unstorable("id", "parent_span_id: the span is its own parent")
  return parent
}

/** What the metadata of a span is made of. */
interface Read {
  readonly parent: string | undefined
  readonly attributes: JsonObject
  /** The attributes, and how many are not among them. */
  readonly members: JsonObject
  readonly links: Links
  readonly events: Events
  /** The name as sent, and as it is shown. */
  readonly sent: string
  readonly name: string
  readonly statusMessage: string
}

/** In the metadata of a span whose attributes are stored apart as a whole. */
const ATTRIBUTES_APART = '"attributes":{"$ref":'

/** RFC 8785 text of the metadata of a span. */
const metadataOf = (span: Span, origin: Origin, read: Read, context: Context): string => {
  const { attributes, events, links, members, name, parent, statusMessage } = read
  const { apart, leftOut, limits } = context
  const calls = callsInEvents(events.read, attributes)
  const said = saidOfSpan(attributes, read.sent)
  const metadata = {
    mapping: MAPPING_VERSION,
    trace_id: context.traceId,
    span_id: context.spanId,
    ...member("parent_span_id", parent),
    ...(name === span.name ? {} : { name: storableText(span.name) }),
    ...members,
    ...member("kind", kindOf(span.kind)),
    ...member("status", statusOf(span.status?.code ?? 0, statusMessage)),
    ...member("links", links.metadata.length === 0 ? undefined : links.metadata),
    ...text("trace_state", span.traceState, leftOut),
    ...count("dropped_events_count", events.dropped),
    ...count("dropped_links_count", links.dropped),
    ...namedCalls(calls),
    ...(orNothing(said) && namedSummary(said, summaryOf({ metadata: { attributes } })))
  }
  const write = (object: JsonObject) => canonicalizeWith(object, origin.shared.texts)
  const tried = apart.copy()
  const whole = withoutLargeTexts(metadata, limits.metadataBytesMax, tried, write)
  if (whole !== undefined && tried.references === apart.references) return whole
  const hints = hintsOf({ metadata: { attributes } })
  const isApart = whole?.includes(ATTRIBUTES_APART) !== false
  const more = {
    ...namedHints(hints, calls),
    ...(isApart ? { ...namedIds(hints), ...namedSummary(said) } : {})
  }
  if (whole !== undefined && orNothing(more) === undefined) {
    apart.takeOver(tried)
    return whole
  }
  const named = { ...metadata, ...more }
  return canonicalWithin(named, limits.metadataBytesMax, "metadata", context, write)
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
const errorDetailsOf = (error: string, { apart }: Context): PreparedDetails =>
  hashedDetails(flat(`{"error":${fittedError(error, ERROR_BYTES_MAX, apart)!}}`))

/** A text that can be stored: U+FFFD in the place of what can't. */
const storableText = (text: string): string => text.toWellFormed().replaceAll("\u0000", "\ufffd")

const nameOf = ({ name }: Span, leftOut: LeftOut): string => {
  if (isText(name, TRACE_NAME_LENGTH_MAX)) return name
  const most = TRACE_NAME_LENGTH_MAX
  const storable = storableText(name)
  const reason = storable === name ? "too_long" : "character"
  leftOut.add(reason, `name: over ${most} characters, or U+0000 in it; the first ${most} are kept`)
  return [...storable].slice(0, most).join("")
}

/** Canonical microsecond forms; a time that is missing or impossible is that of the other end. */
const timesOf = (
  { endTimeUnixNano: end, startTimeUnixNano: start }: Span,
  leftOut: LeftOut
): { readonly startedAt: string; readonly endedAt?: string } => {
  if (start === 0n && end !== 0n) {
    leftOut.add("time", "start_time_unix_nano: missing; the end is taken")
    const endedAt = timeOf(end, "end_time_unix_nano")
    return { startedAt: endedAt, endedAt }
  }
  const startedAt = timeOf(start, "start_time_unix_nano")
  if (end === 0n) return { startedAt }
  if (end < start) {
    leftOut.add("time", "end_time_unix_nano: is before start_time_unix_nano, which is taken")
    return { startedAt, endedAt: startedAt }
  }
  return { startedAt, endedAt: timeOf(end, "end_time_unix_nano") }
}

/** What became of a span; of a code that OpenTelemetry does not have, as if none was said. */
const outcomeOfSpan = (
  { status }: Span,
  message: string,
  attributes: JsonObject,
  events: ReadonlyArray<ReadEvent>,
  leftOut: LeftOut
): SpanOutcome => {
  const { code = 0 } = status ?? {}
  const outcome = outcomeOf(code, message, attributes, events)
  if (outcome !== undefined) return outcome
  leftOut.add("status", `status.code: ${code} is no status code`)
  return { status: "COMPLETED" }
}

interface PrepareOptions {
  readonly index: number
  readonly origin: Origin
  readonly tenantId: string
  readonly limits: SpanLimits
  /** By execution the first to start of the spans so far, which says what the execution is. */
  readonly introduced: Map<string, string>
  /** Events that are kept at most. */
  readonly eventsMax: number
}

interface PreparedSpan {
  /** Without the values that it refers to. */
  readonly operation: RecordOtlpSpan
  readonly apart: ValuesApart
  /** What could not be stored. */
  readonly leftOut: ReadonlyArray<LeftOutPart>
}

const readSpan = (span: Span, eventsMax: number, context: Context): Read => {
  const { leftOut } = context
  const { attributes: pairs, droppedAttributesCount } = span
  const parent = parentOf(span, context.spanId)
  const { attributes, members } = counted(
    pairs,
    droppedAttributesCount,
    ATTRIBUTES_LEVEL,
    "attributes",
    leftOut
  )
  const message = span.status?.message ?? ""
  const sent = nameOf(span, leftOut)
  return {
    parent,
    sent,
    attributes,
    members,
    events: eventsOf(span, eventsMax, leftOut),
    links: linksOf(span, context),
    name: spanNameOf(sent, attributes),
    statusMessage: leftOut.unless(() => textOf(message, "status.message")) ?? ""
  }
}

/** The operation of a span. Throws Unstorable. */
function* prepareSpan(span: Span, options: PrepareOptions): Sliced<PreparedSpan> {
  const { eventsMax, index, introduced, limits, origin, tenantId } = options
  const traceId = idOf(span.traceId, TRACE_ID_BYTES, "trace_id")
  const spanId = idOf(span.spanId, SPAN_ID_BYTES, "span_id")
  const [apart, leftOut] = [origin.shared.apart.copy(), new LeftOut()]
  const context: Context = { tenantId, traceId, spanId, limits, apart, leftOut }
  const times = timesOf(span, leftOut)
  const read = readSpan(span, eventsMax, context)
  yield
  const { attributes, events, links, name, parent, sent, statusMessage } = read
  const outcome = outcomeOfSpan(span, statusMessage, attributes, events.read, leftOut)
  const metadata = metadataOf(span, origin, read, context)
  yield
  const isRoot = parent === undefined
  const executionId = executionIdOf(tenantId, traceId)
  const id = spanIdOf(tenantId, traceId, spanId)
  const isFirst = `${times.startedAt} ${id}` < (introduced.get(executionId) ?? "~")
  const operation: RecordOtlpSpan = {
    op: "otlp.span",
    index,
    executionId,
    syntheticRootId: syntheticRootIdOf(tenantId, traceId),
    spanId: id,
    ...(parent === undefined ? {} : { parentSpanId: spanIdOf(tenantId, traceId, parent) }),
    ...((span.flags & PARENT_IS_REMOTE) === PARENT_IS_REMOTE ? { parentIsRemote: true } : {}),
    causedBy: links.causedBy,
    spanType: spanTypeOf(attributes, sent),
    ...times,
    status: outcome.status,
    details: hashedDetails(flat(`{"metadata":${metadata},"name":${quote(name)}}`)),
    ...(times.endedAt === undefined || outcome.error === undefined
      ? {}
      : { endDetails: errorDetailsOf(outcome.error, context) }),
    agentId: agentIdOf(attributes, origin.resource.attributes),
    ...(isRoot || isFirst
      ? { executionDetails: executionDetailsOf(sent, origin, context, isRoot, attributes) }
      : {}),
    events: toEvents(events.read, context)
  }
  return { operation, apart, leftOut: leftOut.parts }
}

const noteFirst = (
  introduced: Map<string, string>,
  { executionId, spanId, startedAt }: RecordOtlpSpan
): void => {
  const place = `${startedAt} ${spanId}`
  if (place < (introduced.get(executionId) ?? "~")) introduced.set(executionId, place)
}

const numbered = (index: number): string => `span number ${index + 1} of the request`

/** Which span a refusal is about: its ids, or its place if it has none. */
const labelOf = (span: Span, index: number): string =>
  isId(span.traceId, TRACE_ID_BYTES) && isId(span.spanId, SPAN_ID_BYTES)
    ? `span ${hexOf(span.spanId)} of trace ${hexOf(span.traceId)}`
    : numbered(index)

const cutMessage = (label: string, values: number): string => {
  const many = values === 1 ? "1 value is" : `${values} values are`
  return `${label}: ${many} too large; the beginning, size and SHA-256 are kept`
}

const leftOutMessage = (label: string, parts: ReadonlyArray<LeftOutPart>): string => {
  const named = parts.slice(0, LEFT_OUT_NAMED_MAX).map(({ message }) => message)
  const more = parts.length - named.length
  return `${label}: is not stored as sent: ${[...named, ...(more === 0 ? [] : [`and ${more} more`])].join(", ")}`
}

/** What a command is made of. */
type SpanOperation = RecordOtlpEvents | RecordOtlpSpan

const charactersOf = (operation: SpanOperation): number => {
  let characters = OPERATION_CHARACTERS
  if (operation.op === "otlp.span") {
    characters += operation.details.text.length + (operation.endDetails?.text.length ?? 0)
  }
  characters += operation.executionDetails?.text.length ?? 0
  for (const { details } of operation.events) {
    characters += EVENT_CHARACTERS + (details?.text.length ?? 0)
  }
  return characters
}

/** Operations of one command, and what its operations have brought. */
class Command<Operation extends SpanOperation> {
  readonly operations: Array<Operation> = []
  characters = 0
  readonly #brought = new Set<string>()

  /** Whether a value was brought for an execution. */
  has(executionId: string): (hash: string) => boolean {
    return (hash) => this.#brought.has(`${executionId}/${hash}`)
  }

  add(operation: Operation, apart: ValuesApart, characters: number): void {
    const { executionId } = operation
    const payloads = apart.payloads(this.has(executionId))
    for (const { sha256 } of payloads ?? []) this.#brought.add(`${executionId}/${sha256}`)
    this.operations.push({ ...operation, ...defined({ payloads }) })
    this.characters += characters
  }
}

/** Cuts operations into commands. */
export class Commands<Operation extends SpanOperation = RecordOtlpSpan> {
  readonly #all: Array<Command<Operation>> = []
  characters = 0

  get all(): ReadonlyArray<ReadonlyArray<Operation>> {
    return this.#all.map(({ operations }) => operations)
  }

  add(operation: Operation, apart: ValuesApart): void {
    const own = charactersOf(operation)
    const charactersFor = (command: Command<Operation>): number =>
      own + apart.charactersIn(command.has(operation.executionId))
    const last = this.#all.at(-1)
    const fits =
      last !== undefined
      && last.operations.length < SPANS_PER_COMMAND_MAX
      && last.characters + charactersFor(last) <= COMMAND_CHARACTERS_MAX
    const command = fits ? last : new Command<Operation>()
    if (!fits) this.#all.push(command)
    const more = charactersFor(command)
    command.add(operation, apart, more)
    this.characters += more
  }
}

/** Spans of an export, over all resources and scopes. */
export const countSpans = (request: ExportTraceServiceRequest): number => {
  let spans = 0
  for (const { scopeSpans } of request.resourceSpans) {
    for (const scope of scopeSpans) spans += scope.spans.length
  }
  return spans
}

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

/** The largest part of a span that a command can hold: with its first events, if not with all. */
function* prepareFitting(
  span: Span,
  options: Omit<PrepareOptions, "eventsMax">
): Sliced<PreparedSpan> {
  for (let eventsMax = EVENTS_PER_SPAN_MAX; ; eventsMax = Math.floor(eventsMax / 2)) {
    const prepared = yield* prepareSpan(span, { ...options, eventsMax })
    if (charactersOf(prepared.operation) <= COMMAND_CHARACTERS_MAX) return prepared
    if (eventsMax === 0)
      throw new Unstorable("too_large", "span: larger than the log takes at once")
  }
}

/** What the spans of an export have become, so far. */
class Prepared {
  readonly commands = new Commands()
  readonly refused: Array<RefusedSpan> = []
  readonly cut: Array<PreparedSpans["cut"][number]> = []
  readonly leftOut: Array<PreparedSpans["leftOut"][number]> = []
  apart = 0

  addLeftOut(label: string, parts: ReadonlyArray<LeftOutPart>): void {
    if (parts.length === 0) return
    const reasons = parts.map(({ reason }) => reason)
    this.leftOut.push({ message: leftOutMessage(label, parts), reasons })
  }

  *add(span: Span, label: string, options: Omit<PrepareOptions, "eventsMax">): Sliced<void> {
    try {
      const { apart, leftOut, operation } = yield* prepareFitting(span, options)
      const { referred, truncated } = apart
      this.commands.add(operation, apart)
      this.apart += referred
      noteFirst(options.introduced, operation)
      if (truncated > 0) {
        this.cut.push({ message: cutMessage(label, truncated), values: truncated })
      }
      this.addLeftOut(label, leftOut)
    } catch (error) {
      if (!(error instanceof Unstorable)) throw error
      const message = `${label}: ${error.message}`
      this.refused.push({ index: options.index, code: "unstorable_value", message })
    }
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
 * What spans share, made once. The sum of what all of them take at least is known before the first of
 * them is prepared.
 */
function* groupsOf(
  request: ExportTraceServiceRequest,
  limits: SpanLimits,
  prepared: Prepared
): Sliced<ReadonlyArray<SpanGroup> | ExportTooLarge> {
  const groups: Array<SpanGroup> = []
  let characters = 0
  for (const [at, resourceSpans] of request.resourceSpans.entries()) {
    yield
    const leftOut = new LeftOut()
    const resource = yield* resourceOf(resourceSpans, limits, leftOut)
    for (const scopeSpans of resourceSpans.scopeSpans) {
      yield
      const origin = yield* originOf(resource, scopeSpans, limits, leftOut)
      const { spans } = scopeSpans
      groups.push({ origin, spans })
      for (const span of spans) characters += leastCharacters(origin, span)
      if (characters > REQUEST_CHARACTERS_MAX) return requestTooLarge
    }
    prepared.addLeftOut(`resource number ${at + 1} of the request`, leftOut.parts)
  }
  return groups
}

/**
 * Prepare every span of an export, a part of one in a step. `tooLarge` says what to send less of, and then nothing of the
 * export may be stored; everything else that is wrong is wrong with single spans.
 */
export function* prepareSpans(
  request: ExportTraceServiceRequest,
  tenantId: string,
  limits: SpanLimits = defaultSpanLimits
): Sliced<PreparedSpans | ExportTooLarge> {
  const spans = countSpans(request)
  if (spans > SPANS_MAX) return { tooLarge: `${spans} spans; send at most ${SPANS_MAX} at once` }
  const prepared = new Prepared()
  const groups = yield* groupsOf(request, limits, prepared)
  if ("tooLarge" in groups) return groups
  const introduced = new Map<string, string>()
  let index = 0
  for (const { origin, spans: ofGroup } of groups) {
    for (const span of ofGroup) {
      yield
      const options = { index, origin, tenantId, limits, introduced }
      yield* prepared.add(span, labelOf(span, index), options)
      if (prepared.commands.characters > REQUEST_CHARACTERS_MAX) return requestTooLarge
      index += 1
    }
  }
  const { apart, commands, cut, leftOut, refused } = prepared
  return { commands: commands.all, refused, cut, leftOut, apart }
}
