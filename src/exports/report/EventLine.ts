/**
 * What a page shows of one event: its fields, each cut at a named length, so that a thousand of
 * them are small whatever was stored. Says of each text how much was cut.
 */
import {
  type ActorType,
  type AuditEvent,
  type Outcome,
  outcomes
} from "../../domain/events/AuditEvent.ts"
import { parseEvent } from "../../domain/events/StoredEvent.ts"
import { canonicalize } from "../../domain/json/CanonicalJson.ts"
import type { JsonObject } from "../../domain/json/Json.ts"
import { type CutText, cut } from "./ShownText.ts"

/** Characters of an id, type, name, address or action in a table. */
export const FIELD_LENGTH_MAX = 160
/** Characters of the metadata of a sampled event. */
export const METADATA_LENGTH_MAX = 1_200

export interface EventLine {
  readonly sequenceNumber: number
  readonly id: CutText
  readonly timestamp: string
  readonly createdAt: string
  readonly actorId: CutText
  readonly actorType: ActorType
  readonly actorEmail: CutText | undefined
  readonly action: CutText
  readonly resourceId: CutText
  readonly resourceType: CutText
  readonly resourceName: CutText | undefined
  readonly outcome: Outcome
  /** RFC 8785 text. */
  readonly metadata: CutText | undefined
  readonly contentHash: string
  readonly prevHash: string
  readonly hash: string
  readonly erasedAt: string | undefined
}

const field = (text: string): CutText => cut(text, FIELD_LENGTH_MAX)
const optional = (text: string | undefined): CutText | undefined =>
  text === undefined ? undefined : field(text)

const metadataText = (metadata: AuditEvent["metadata"]): CutText | undefined =>
  metadata === undefined
    ? undefined
    : cut(canonicalize(metadata as JsonObject), METADATA_LENGTH_MAX)

const CANONICAL_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/

const OUTCOMES: ReadonlyArray<unknown> = outcomes

/** What a report counts by is in its form. */
const hasForms = (event: AuditEvent): boolean =>
  Number.isSafeInteger(event.sequence_number)
  && [event.timestamp, event.created_at].every((time) => CANONICAL_TIME.test(time))
  && OUTCOMES.includes(event.outcome)

/** The event of a stored row; undefined for bytes that are none, which the check has reported. */
export const readEvent = (body: string): AuditEvent | undefined => {
  const event = parseEvent(body)
  return event !== undefined && hasForms(event) ? event : undefined
}

/** The metadata only where there is room for it. */
export const eventLine = (
  event: AuditEvent,
  options: { readonly metadata: boolean }
): EventLine => ({
  sequenceNumber: event.sequence_number,
  id: field(event.id),
  timestamp: event.timestamp,
  createdAt: event.created_at,
  actorId: field(event.actor.id),
  actorType: event.actor.type,
  actorEmail: optional(event.actor.email),
  action: field(event.action),
  resourceId: field(event.resource.id),
  resourceType: field(event.resource.type),
  resourceName: optional(event.resource.name),
  outcome: event.outcome,
  metadata: options.metadata ? metadataText(event.metadata) : undefined,
  contentHash: event.content_hash,
  prevHash: event.prev_hash,
  hash: event.hash,
  erasedAt: event.erased_at
})

/** Of the stored rows that hold an event. */
export const eventLines = (
  bodies: ReadonlyArray<string>,
  options: { readonly metadata: boolean }
): ReadonlyArray<EventLine> =>
  bodies.flatMap((body) => {
    const event = readEvent(body)
    return event === undefined ? [] : [eventLine(event, options)]
  })
