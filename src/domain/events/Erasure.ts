/**
 * The chained record that details of an event were erased: an event of the tenant's own log that
 * names the sequence and the content that it concerns. Only the service writes these.
 */
import type { AuditEvent } from "./AuditEvent.ts"

/** `action` of the event that records an erasure. */
export const ERASURE_ACTION = "alk.event.erased"
/** `resource.type` of that event; `resource.id` is the erased event's id. */
export const ERASURE_RESOURCE_TYPE = "audit_event"

/** What an erasure event says: its metadata. */
export interface Erasure {
  readonly reason: string
  readonly sequence_number: number
  readonly content_hash: string
}

/** The erasure that an event records; undefined if it records none. */
export const erasureOf = (event: AuditEvent): Erasure | undefined => {
  const { action, metadata } = event
  if (action !== ERASURE_ACTION || metadata === undefined) return undefined
  const { content_hash, reason, sequence_number } = metadata as Partial<Record<string, unknown>>
  return typeof sequence_number === "number"
    && typeof content_hash === "string"
    && typeof reason === "string"
    ? { reason, sequence_number, content_hash }
    : undefined
}
