/** The events of a span: what each says, its id, and how many have room in one operation. */
import { derivedUuid } from "../../../domain/Identifiers.ts"
import { flat, quote } from "../../../domain/json/CanonicalJson.ts"
import type { JsonObject } from "../../../domain/json/Json.ts"
import type { Sliced } from "../../../domain/Slices.ts"
import { sha256InSteps } from "../../../domain/TextPieces.ts"
import type {
  OtlpEvent,
  RecordOtlpEvents,
  RecordOtlpSpan
} from "../../../domain/traces/TraceOperation.ts"
import { hashedDetails } from "../HashedDetails.ts"
import { OffloadedValues } from "../LargeValues.ts"
import type { Span, Span_Event } from "./gen/opentelemetry/proto/trace/v1/trace_pb.js"
import { eventTypeOf, type MappedEvent } from "./Mapping.ts"
import type { RepairLog } from "./RepairLog.ts"
import { ATTRIBUTES_LEVEL, counted, orNothing } from "./SpanOrigins.ts"
import { COMMAND_CHARACTERS_MAX, type Context, canonicalWithin, timeOf } from "./SpanParts.ts"

/** Events of one operation: eight times what SDKs keep of a span. */
export const EVENTS_PER_OPERATION_MAX = 1_000

/** Characters of an operation, and of an event in it, besides their details; rounded up. */
export const OPERATION_CHARACTERS = 1_024
const EVENT_CHARACTERS = 512

/** An event, and what the mapping and its id are made of. */
export interface ReadEvent extends MappedEvent {
  readonly timestamp: string
  readonly nanos: bigint
  readonly eventType: string
  readonly payload: JsonObject | undefined
}

/** The time of an event that has none, or an impossible one, is that of the start of its span. */
const eventTimeOf = (
  nanos: bigint,
  startedAt: string,
  path: string,
  repairs: RepairLog
): string => {
  const time = timeOf(nanos)
  if (time !== undefined) return time
  const sent = nanos === 0n ? undefined : String(nanos)
  repairs.add("event_time", () => `${path}.time_unix_nano`, sent)
  return startedAt
}

function* readEvent(
  event: Span_Event,
  index: number,
  startedAt: string,
  repairs: RepairLog
): Sliced<ReadEvent> {
  const path = `events[${index}]`
  const name = yield* repairs.text(event.name, () => `${path}.name`)
  const timestamp = eventTimeOf(event.timeUnixNano, startedAt, path, repairs)
  const { attributes, members } = yield* counted(
    event.attributes,
    event.droppedAttributesCount,
    ATTRIBUTES_LEVEL,
    `${path}.attributes`,
    repairs
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

export function* readEvents(
  { events }: Span,
  startedAt: string,
  repairs: RepairLog
): Sliced<ReadonlyArray<ReadEvent>> {
  const read: Array<ReadEvent> = []
  for (const [index, event] of events.entries()) {
    read.push(yield* readEvent(event, index, startedAt, repairs))
  }
  return read
}

/**
 * Makes the events of a span. Ids say what an event is and not where it is, for an exporter that
 * sends a span again may have dropped the first ones; only equal events are distinguished by their
 * order.
 */
export class EventMaker {
  readonly #context: Context
  readonly #seen = new Map<string, number>()

  constructor(context: Context) {
    this.#context = context
  }

  *make(event: ReadEvent, index: number, apart: OffloadedValues): Sliced<OtlpEvent> {
    const { limits, spanId, tenantId, traceId } = this.#context
    const { eventType, name, nanos, payload, timestamp } = event
    const canonical =
      payload
      && (yield* canonicalWithin(payload, limits.payloadBytesMax, `events[${index}]`, apart))
    const content = yield* sha256InSteps(`${nanos}\n${quote(name)}\n${canonical ?? ""}`)
    const earlier = this.#seen.get(content) ?? 0
    this.#seen.set(content, earlier + 1)
    return {
      eventId: derivedUuid("alk-otlp-event", tenantId, traceId, spanId, content, String(earlier)),
      eventType,
      timestamp,
      ...(canonical === undefined
        ? {}
        : { details: hashedDetails(flat(`{"payload":${canonical}}`)) })
    }
  }
}

/** What a command is made of. */
export type SpanOperation = RecordOtlpEvents | RecordOtlpSpan

const eventCharacters = ({ details }: OtlpEvent): number =>
  EVENT_CHARACTERS + (details?.text.length ?? 0)

/** Characters of an operation in a command, without the values that it refers to. */
export const charactersOf = (operation: SpanOperation): number => {
  let characters = OPERATION_CHARACTERS
  if (operation.op === "otlp.span") {
    characters += operation.details.text.length + (operation.endDetails?.text.length ?? 0)
  }
  characters += operation.executionDetails?.text.length ?? 0
  for (const event of operation.events) characters += eventCharacters(event)
  return characters
}

interface EventPart {
  readonly events: Array<OtlpEvent>
  readonly apart: OffloadedValues
  characters: number
}

const hasRoom = (part: EventPart, characters: number): boolean =>
  part.events.length < EVENTS_PER_OPERATION_MAX
  && part.characters + characters <= COMMAND_CHARACTERS_MAX

/**
 * The operation with its first events, and the same operation again for each further part of them:
 * of a span that exists, the sequencer records what is new. Values that events of one part refer to
 * may come with the part before.
 */
export function* eventPartsOf(
  events: ReadonlyArray<ReadEvent>,
  operation: RecordOtlpSpan,
  context: Context
): Sliced<ReadonlyArray<{ readonly operation: RecordOtlpSpan; readonly apart: OffloadedValues }>> {
  const own = charactersOf(operation)
  const maker = new EventMaker(context)
  let part: EventPart = { events: [], apart: context.apart, characters: own }
  const parts = [part]
  for (const [index, event] of events.entries()) {
    yield
    if (!hasRoom(part, EVENT_CHARACTERS)) parts.push((part = emptyPart(own)))
    const made = yield* maker.make(event, index, part.apart)
    const characters = eventCharacters(made)
    if (!hasRoom(part, characters) && part.events.length > 0) parts.push((part = emptyPart(own)))
    part.events.push(made)
    part.characters += characters
  }
  return parts.map((one) => ({ operation: { ...operation, events: one.events }, apart: one.apart }))
}

const emptyPart = (characters: number): EventPart => ({
  events: [],
  apart: new OffloadedValues(),
  characters
})
