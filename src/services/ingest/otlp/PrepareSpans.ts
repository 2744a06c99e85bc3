/**
 * From a decoded export to operations that the sequencer can decide on: ids, times, limits, and
 * what the mapping makes of each span. A span that can't be stored is refused by itself and says
 * why; the others go through. Knows no request, no clock and no answer.
 */
import { defined } from "../../../domain/Defined.ts"
import { isText, METADATA_BYTES_MAX } from "../../../domain/events/AuditEvent.ts"
import { derivedUuid, sha256Hex } from "../../../domain/Identifiers.ts"
import { canonicalize, flat, quote } from "../../../domain/json/CanonicalJson.ts"
import type { JsonObject, JsonValue } from "../../../domain/json/StrictJson.ts"
import { formatMicros, YEAR_MAX } from "../../../domain/Timestamp.ts"
import { hintsOf, namedHints } from "../../../domain/traces/GraphHints.ts"
import type { FactDetails, PreparedDetails } from "../../../domain/traces/TraceFact.ts"
import type { OtlpEvent, RecordOtlpSpan } from "../../../domain/traces/TraceOperation.ts"
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
import type { Span, Span_Event, Span_Link } from "./gen/opentelemetry/proto/trace/v1/trace_pb.js"
import {
  agentIdOf,
  agentNameOf,
  eventTypeOf,
  kindOf,
  MAPPING_VERSION,
  type MappedEvent,
  outcomeOf,
  spanNameOf,
  spanTypeOf,
  statusOf
} from "./Mapping.ts"
import { attributesOf, textOf, Unstorable } from "./Values.ts"

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

/** Characters of an operation, and of an event in it, besides their details; rounded up. */
const OPERATION_CHARACTERS = 1_024
const EVENT_CHARACTERS = 512

const TRACE_ID_BYTES = 16
const SPAN_ID_BYTES = 8
const NANOS_PER_MICRO = 1_000n
const MICROS_MAX = BigInt(Date.UTC(YEAR_MAX + 1, 0, 1)) * 1_000n

/** Levels of `attributes` in the metadata or payload that it belongs to, which is level 1. */
const ATTRIBUTES_LEVEL = 2
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

const idOf = (id: Uint8Array, bytes: number, path: string): string => {
  if (isId(id, bytes)) return hexOf(id)
  throw new Unstorable(
    `${path}: must be ${bytes} bytes, ${2 * bytes} hex digits in JSON, and not all zero`
  )
}

/** Canonical microsecond form; nanoseconds are cut. */
const timeOf = (nanos: bigint, path: string): string => {
  const micros = nanos / NANOS_PER_MICRO
  if (nanos > 0n && micros < MICROS_MAX) return formatMicros(micros)
  throw new Unstorable(
    nanos === 0n
      ? `${path}: missing; send nanoseconds since 1970`
      : `${path}: must be before the year ${YEAR_MAX + 1}`
  )
}

const prepareDetails = (details: FactDetails): PreparedDetails =>
  hashedDetails(flat(canonicalize(details as JsonObject)))

/** The RFC 8785 text of a value, its large texts put apart: at most `bytesMax` bytes. */
const canonicalWithin = (
  value: JsonObject,
  bytesMax: number,
  path: string,
  context: Context
): string => {
  const found = withoutLargeTexts(value, bytesMax, context.apart)
  if (found !== undefined) return found
  throw new Unstorable(`${path}: ${tooLarge(canonicalize(value), bytesMax)}`)
}

const count = (name: string, value: number): JsonObject => (value === 0 ? {} : { [name]: value })

const text = (name: string, value: string): JsonObject =>
  value === "" ? {} : { [name]: textOf(value, name) }

/** What the spans of one scope of one resource have in common. */
interface Origin {
  readonly resourceAttributes: JsonObject
  readonly resource: JsonObject | undefined
  readonly scope: JsonObject | undefined
}

type ResourceSpans = ExportTraceServiceRequest["resourceSpans"][number]
type ScopeSpans = ResourceSpans["scopeSpans"][number]

const member = (name: string, value: JsonValue | undefined): JsonObject =>
  value === undefined ? {} : { [name]: value }

const orNothing = (value: JsonObject): JsonObject | undefined =>
  Object.keys(value).length === 0 ? undefined : value

const originOf = ({ resource, schemaUrl }: ResourceSpans, from: ScopeSpans): Origin => {
  const resourceAttributes = attributesOf(
    resource?.attributes ?? [],
    NESTED_ATTRIBUTES_LEVEL,
    "resource.attributes"
  )
  const { scope } = from
  const scopeAttributes = attributesOf(
    scope?.attributes ?? [],
    NESTED_ATTRIBUTES_LEVEL,
    "scope.attributes"
  )
  return {
    resourceAttributes,
    resource: orNothing({
      ...attributesMember(resourceAttributes),
      ...count("dropped_attributes_count", resource?.droppedAttributesCount ?? 0),
      ...text("schema_url", schemaUrl)
    }),
    scope: orNothing({
      ...text("name", scope?.name ?? ""),
      ...text("version", scope?.version ?? ""),
      ...attributesMember(scopeAttributes),
      ...count("dropped_attributes_count", scope?.droppedAttributesCount ?? 0),
      ...text("schema_url", from.schemaUrl)
    })
  }
}

const attributesMember = (attributes: JsonObject): JsonObject =>
  Object.keys(attributes).length === 0 ? {} : { attributes }

/** One span while it is prepared. */
interface Context {
  readonly tenantId: string
  readonly traceId: string
  /** As sent, in hex. */
  readonly spanId: string
  readonly limits: SpanLimits
  /** Values of it that are stored apart, so far. */
  readonly apart: ValuesApart
}

/** A link that is an edge, or none. */
const causeOf = (link: Span_Link, { spanId, tenantId, traceId }: Context): string | undefined => {
  if (!isId(link.spanId, SPAN_ID_BYTES) || hexOf(link.traceId) !== traceId) return undefined
  const cause = hexOf(link.spanId)
  if (cause === spanId) throw new Unstorable("links: the span links to itself")
  return spanIdOf(tenantId, traceId, cause)
}

/** What an edge does not say of a link; undefined if it says everything. */
const linkMetadata = (link: Span_Link, isEdge: boolean, index: number): JsonObject | undefined => {
  const path = `links[${index}]`
  const attributes = attributesOf(link.attributes, LINK_ATTRIBUTES_LEVEL, `${path}.attributes`)
  const rest = {
    ...attributesMember(attributes),
    ...count("dropped_attributes_count", link.droppedAttributesCount),
    ...text("trace_state", link.traceState)
  }
  return isEdge && orNothing(rest) === undefined
    ? undefined
    : { trace_id: hexOf(link.traceId), span_id: hexOf(link.spanId), ...rest }
}

interface Links {
  readonly causedBy: ReadonlyArray<string>
  readonly metadata: ReadonlyArray<JsonObject>
}

const linksOf = (links: ReadonlyArray<Span_Link>, context: Context): Links => {
  if (links.length > CAUSES_MAX) {
    throw new Unstorable(`links: ${links.length} of them; send at most ${CAUSES_MAX}`)
  }
  const causes = links.map((link) => causeOf(link, context))
  return {
    causedBy: [...new Set(causes.filter((cause) => cause !== undefined))],
    metadata: links
      .map((link, index) => linkMetadata(link, causes[index] !== undefined, index))
      .filter((link) => link !== undefined)
  }
}

/** An event, and what the mapping and its id are made of. */
interface ReadEvent extends MappedEvent {
  readonly timestamp: string
  readonly nanos: bigint
  readonly eventType: string
  readonly payload: JsonObject | undefined
}

const readEvent = (event: Span_Event, index: number): ReadEvent => {
  const path = `events[${index}]`
  const attributes = attributesOf(event.attributes, ATTRIBUTES_LEVEL, `${path}.attributes`)
  const eventType = eventTypeOf(event.name)
  return {
    name: textOf(event.name, `${path}.name`),
    attributes,
    timestamp: timeOf(event.timeUnixNano, `${path}.time_unix_nano`),
    nanos: event.timeUnixNano,
    eventType,
    payload: orNothing({
      ...attributesMember(attributes),
      ...count("dropped_attributes_count", event.droppedAttributesCount),
      ...(event.name === eventType ? {} : text("name", event.name))
    })
  }
}

/**
 * Ids say what an event is and not where it is, for an exporter that sends a span again may
 * have dropped the first ones; only equal events are distinguished by their order.
 */
const toEvents = (events: ReadonlyArray<ReadEvent>, context: Context): ReadonlyArray<OtlpEvent> => {
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
  if (parent === spanId) throw new Unstorable("parent_span_id: the span is its own parent")
  return parent
}

/** RFC 8785 text of the metadata of a span. */
const metadataOf = (
  span: Span,
  origin: Origin,
  context: Context,
  parent: string | undefined,
  attributes: JsonObject,
  links: ReadonlyArray<JsonObject>
): string => {
  const message = textOf(span.status?.message ?? "", "status.message")
  const metadata = {
    mapping: MAPPING_VERSION,
    trace_id: context.traceId,
    span_id: context.spanId,
    ...member("parent_span_id", parent),
    ...member("name", spanNameOf(span.name, attributes) === span.name ? undefined : span.name),
    ...attributesMember(attributes),
    ...member("resource", origin.resource),
    ...member("scope", origin.scope),
    ...member("kind", kindOf(span.kind)),
    ...member("status", statusOf(span.status?.code ?? 0, message)),
    ...member("links", links.length === 0 ? undefined : links),
    ...text("trace_state", span.traceState),
    ...count("dropped_attributes_count", span.droppedAttributesCount),
    ...count("dropped_events_count", span.droppedEventsCount),
    ...count("dropped_links_count", span.droppedLinksCount)
  }
  const { apart, limits } = context
  const tried = apart.copy()
  const whole = withoutLargeTexts(metadata, limits.metadataBytesMax, tried)
  if (whole !== undefined && tried.references === apart.references) return whole
  const hints = namedHints(hintsOf({ metadata: { attributes } }))
  return canonicalWithin({ ...metadata, ...hints }, limits.metadataBytesMax, "metadata", context)
}

/** What the execution says if this span is what makes it. */
const executionDetailsOf = (
  span: Span,
  origin: Origin,
  { traceId }: Context,
  isRoot: boolean,
  attributes: JsonObject
): PreparedDetails => {
  const agentName = agentNameOf(attributes)
  return prepareDetails({
    ...(agentName === undefined ? {} : { agent_name: agentName }),
    metadata: {
      mapping: MAPPING_VERSION,
      trace_id: traceId,
      ...(isRoot ? { name: span.name } : {}),
      ...(origin.resource === undefined ? {} : { resource: origin.resource })
    }
  })
}

/** A text always has a reference that fits. */
const errorDetailsOf = (error: string, { apart }: Context): PreparedDetails =>
  hashedDetails(flat(`{"error":${fittedError(error, ERROR_BYTES_MAX, apart)!}}`))

const nameOf = (span: Span): string => {
  if (!isText(span.name, TRACE_NAME_LENGTH_MAX)) {
    throw new Unstorable(`name: must be at most ${TRACE_NAME_LENGTH_MAX} characters without U+0000`)
  }
  return span.name
}

interface PrepareOptions {
  readonly index: number
  readonly origin: Origin
  readonly tenantId: string
  readonly limits: SpanLimits
  /** Traces of this request that have a span already that says what their execution is. */
  readonly introduced: Set<string>
}

interface PreparedSpan {
  readonly operation: RecordOtlpSpan
  /** Values that were too large, of which only the beginning is kept. */
  readonly cut: number
  /** Values that it refers to. */
  readonly apart: number
}

/** The operation of a span. Throws Unstorable. */
const prepareSpan = (span: Span, options: PrepareOptions): PreparedSpan => {
  const { index, introduced, limits, origin, tenantId } = options
  const traceId = idOf(span.traceId, TRACE_ID_BYTES, "trace_id")
  const spanId = idOf(span.spanId, SPAN_ID_BYTES, "span_id")
  const context: Context = { tenantId, traceId, spanId, limits, apart: new ValuesApart() }
  const parent = parentOf(span, spanId)
  const startedAt = timeOf(span.startTimeUnixNano, "start_time_unix_nano")
  const isRunning = span.endTimeUnixNano === 0n
  if (!isRunning && span.endTimeUnixNano < span.startTimeUnixNano) {
    throw new Unstorable("end_time_unix_nano: is before start_time_unix_nano")
  }
  if (span.events.length > EVENTS_PER_SPAN_MAX) {
    throw new Unstorable(
      `events: ${span.events.length} of them; send at most ${EVENTS_PER_SPAN_MAX}`
    )
  }
  const attributes = attributesOf(span.attributes, ATTRIBUTES_LEVEL, "attributes")
  const events = span.events.map(readEvent)
  const links = linksOf(span.links, context)
  const { code = 0, message = "" } = span.status ?? {}
  const outcome = outcomeOf(code, message, attributes, events)
  if (outcome === undefined) throw new Unstorable(`status.code: ${code} is no status code`)
  const sent = nameOf(span)
  const name = spanNameOf(sent, attributes)
  const metadata = metadataOf(span, origin, context, parent, attributes, links.metadata)
  const introduces = parent === undefined || !introduced.has(traceId)
  const operation: RecordOtlpSpan = {
    op: "otlp.span",
    index,
    executionId: executionIdOf(tenantId, traceId),
    syntheticRootId: syntheticRootIdOf(tenantId, traceId),
    spanId: spanIdOf(tenantId, traceId, spanId),
    ...(parent === undefined ? {} : { parentSpanId: spanIdOf(tenantId, traceId, parent) }),
    causedBy: links.causedBy,
    spanType: spanTypeOf(attributes, sent),
    startedAt,
    ...(isRunning ? {} : { endedAt: timeOf(span.endTimeUnixNano, "end_time_unix_nano") }),
    status: outcome.status,
    details: hashedDetails(flat(`{"metadata":${metadata},"name":${quote(name)}}`)),
    ...(isRunning || outcome.error === undefined
      ? {}
      : { endDetails: errorDetailsOf(outcome.error, context) }),
    agentId: agentIdOf(attributes, origin.resourceAttributes),
    ...(introduces
      ? {
          executionDetails: executionDetailsOf(
            span,
            origin,
            context,
            parent === undefined,
            attributes
          )
        }
      : {}),
    events: toEvents(events, context)
  }
  const { apart } = context
  const { referred, truncated } = apart
  return {
    operation: { ...operation, ...defined({ payloads: apart.payloads() }) },
    cut: truncated,
    apart: referred
  }
}

/** Which span a refusal is about: its ids, or its place if it has none. */
const labelOf = (span: Span, index: number): string =>
  isId(span.traceId, TRACE_ID_BYTES) && isId(span.spanId, SPAN_ID_BYTES)
    ? `span ${hexOf(span.spanId)} of trace ${hexOf(span.traceId)}`
    : `span number ${index + 1} of the request`

const cutMessage = (span: Span, index: number, values: number): string => {
  const many = values === 1 ? "1 value is" : `${values} values are`
  return `${labelOf(span, index)}: ${many} too large; the beginning, size and SHA-256 are kept`
}

const charactersOf = (operation: RecordOtlpSpan): number => {
  let characters = OPERATION_CHARACTERS + operation.details.text.length
  characters += operation.endDetails?.text.length ?? 0
  characters += operation.executionDetails?.text.length ?? 0
  for (const { details } of operation.events) {
    characters += EVENT_CHARACTERS + (details?.text.length ?? 0)
  }
  return characters
}

/** As a command has them: as strings in JSON. */
const payloadCharacters = ({ payloads = [] }: RecordOtlpSpan): number => {
  let characters = 0
  for (const { chunks = [] } of payloads) {
    for (const { text } of chunks) characters += JSON.stringify(text).length
  }
  return characters
}

/** Operations of one command, and what its operations have brought. */
class Command {
  readonly operations: Array<RecordOtlpSpan> = []
  characters = 0
  readonly #brought = new Set<string>()

  /** An operation without the values that the command has, which were brought for its execution. */
  without(operation: RecordOtlpSpan): RecordOtlpSpan {
    const { executionId, payloads } = operation
    if (payloads === undefined) return operation
    return {
      ...operation,
      payloads: payloads.map(({ sha256, ...rest }) =>
        this.#brought.has(`${executionId}/${sha256}`) ? { sha256 } : { sha256, ...rest }
      )
    }
  }

  add(operation: RecordOtlpSpan, characters: number): void {
    const { executionId, payloads = [] } = operation
    for (const { sha256 } of payloads) this.#brought.add(`${executionId}/${sha256}`)
    this.operations.push(operation)
    this.characters += characters
  }
}

/** Cuts operations into commands. */
class Commands {
  readonly #all: Array<Command> = []
  characters = 0

  get all(): ReadonlyArray<ReadonlyArray<RecordOtlpSpan>> {
    return this.#all.map(({ operations }) => operations)
  }

  add(operation: RecordOtlpSpan): void {
    const own = charactersOf(operation)
    if (own > COMMAND_CHARACTERS_MAX) {
      throw new Unstorable("span: larger than the log takes at once; send fewer or smaller events")
    }
    const last = this.#all.at(-1)
    const short = last?.without(operation) ?? operation
    const more = own + payloadCharacters(short)
    const fits =
      last !== undefined
      && last.operations.length < SPANS_PER_COMMAND_MAX
      && last.characters + more <= COMMAND_CHARACTERS_MAX
    if (fits) {
      last.add(short, more)
      this.characters += more
      return
    }
    const next = new Command()
    const characters = own + payloadCharacters(operation)
    next.add(operation, characters)
    this.#all.push(next)
    this.characters += characters
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

/** Which span is at this place of an export, for people. */
export const labelAt = (request: ExportTraceServiceRequest, index: number): string => {
  let first = 0
  for (const { scopeSpans } of request.resourceSpans) {
    for (const { spans } of scopeSpans) {
      const span = spans[index - first]
      if (span !== undefined) return labelOf(span, index)
      first += spans.length
    }
  }
  return `span number ${index + 1}`
}

/** The operation, or why there is none. */
const attempt = <A>(make: () => A): { readonly ok: A } | { readonly reason: string } => {
  try {
    return { ok: make() }
  } catch (error) {
    if (error instanceof Unstorable) return { reason: error.message }
    throw error
  }
}

/**
 * Prepare every span of an export. `tooLarge` says what to send less of, and then nothing of the
 * export may be stored; everything else that is wrong is wrong with single spans.
 */
export const prepareSpans = (
  request: ExportTraceServiceRequest,
  tenantId: string,
  limits: SpanLimits = defaultSpanLimits
): PreparedSpans | ExportTooLarge => {
  const spans = countSpans(request)
  if (spans > SPANS_MAX) return { tooLarge: `${spans} spans; send at most ${SPANS_MAX} at once` }
  const commands = new Commands()
  const refused: Array<RefusedSpan> = []
  const cut: Array<PreparedSpans["cut"][number]> = []
  const introduced = new Set<string>()
  let valuesApart = 0
  let index = 0
  for (const resourceSpans of request.resourceSpans) {
    for (const scopeSpans of resourceSpans.scopeSpans) {
      const origin = attempt(() => originOf(resourceSpans, scopeSpans))
      for (const span of scopeSpans.spans) {
        const result =
          "reason" in origin
            ? origin
            : attempt(() => {
                const options = { index, origin: origin.ok, tenantId, limits, introduced }
                const { apart, cut: values, operation } = prepareSpan(span, options)
                valuesApart += apart
                commands.add(operation)
                introduced.add(hexOf(span.traceId))
                if (values > 0) cut.push({ message: cutMessage(span, index, values), values })
              })
        if ("reason" in result) {
          refused.push({
            index,
            code: "unstorable_value",
            message: `${labelOf(span, index)}: ${result.reason}`
          })
        }
        if (commands.characters > REQUEST_CHARACTERS_MAX) {
          return { tooLarge: "the spans with their resources are too large; send fewer at once" }
        }
        index += 1
      }
    }
  }
  return { commands: commands.all, refused, cut, apart: valuesApart }
}
