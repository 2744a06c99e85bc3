/**
 * What a page shows of one event: its fields, each cut at a named length, so that a thousand of
 * them are small whatever was stored. Says of each text how much was cut.
 */
import type { ActorType, AuditEvent, Outcome } from "../../domain/AuditEvent.ts"
import { canonicalize } from "../../domain/CanonicalJson.ts"
import { parseJson } from "../../domain/Json.ts"
import type { JsonObject } from "../../domain/StrictJson.ts"
import { cut, type CutText } from "./ShownText.ts"

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

/** Of a stored event's JSON; the metadata only where there is room for it. */
export const eventLine = (body: string, options: { readonly metadata: boolean }): EventLine => {
  const event = parseJson(body) as AuditEvent
  return {
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
  }
}
