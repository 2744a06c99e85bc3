/**
 * What the projection has to erase before it stores a record that says so, and how a stored row may
 * differ from its record for that reason. Reads records; erases nothing itself.
 */

import type { AuditEvent } from "../../domain/events/AuditEvent.ts"
import { ERASURE_ACTION, erasureOf } from "../../domain/events/Erasure.ts"
import { eraseEvent } from "../../domain/events/HashChain.ts"
import { parseEvent } from "../../domain/events/StoredEvent.ts"
import { RecordFields } from "../../domain/json/RecordFields.ts"
import { eraseFact, parseFact } from "../../domain/traces/FactText.ts"
import type { EventErasure } from "../../ports/EventStore.ts"

/**
 * Behind the actor, whose texts hold no quote that is not escaped: the first action in the bytes of an
 * event is its own.
 */
const ACTION = Buffer.from(',"action":"')
const ERASES = Buffer.from(`${ERASURE_ACTION}"`)

/** True of every event that erases another one. */
const mayErase = (body: Buffer): boolean => {
  const at = body.indexOf(ACTION)
  const from = at + ACTION.length
  return at >= 0 && ERASES.compare(body, from, from + ERASES.length) === 0
}

/**
 * The event that the one in these bytes erases; for nearly every event none, at the cost of a search.
 * @throws RecordUnreadable for what no sequencer has written
 */
export const erasedTargetOf = (body: Buffer): EventErasure | undefined => {
  if (!mayErase(body)) return undefined
  const fields = RecordFields.of(body, "event")
  const event = fields.value as unknown as AuditEvent
  if (event.action !== ERASURE_ACTION) return undefined
  fields.time("created_at")
  fields.object("metadata").integer("sequence_number", 1)
  const erasure = erasureOf(event)
  return erasure && { sequenceNumber: erasure.sequence_number, erasedAt: event.created_at }
}

/** What erasing leaves of a record; undefined for one that is not an event. */
export const erasedRecord = (record: string, erasedAt: string): string | undefined => {
  const event = parseEvent(record)
  try {
    return event && eraseEvent(event, erasedAt)
  } catch {
    // A record that is not an event can't have been erased.
    return undefined
  }
}

/** What erasing leaves of a fact; undefined for what can't be read as one. */
export const erasedFact = (record: string, erasedAt: string): string | undefined => {
  const fact = parseFact(record)
  return fact && eraseFact(fact, erasedAt)
}

/**
 * True if one of the two is what erasing leaves of the other: the store is ahead of the topic, or the
 * topic has forgotten what a store that is behind still has.
 */
const isErasureOf = (
  record: string,
  stored: string,
  erasedAtOf: (text: string) => string | undefined,
  erased: (text: string, erasedAt: string) => string | undefined
): boolean => {
  const inStore = erasedAtOf(stored)
  if (inStore !== undefined) return erased(record, inStore) === stored
  const onTopic = erasedAtOf(record)
  return onTopic !== undefined && erased(stored, onTopic) === record
}

const eventErasedAt = (text: string) => parseEvent(text)?.erased_at

/** True of an event without its details. */
export const isErased = (record: string): boolean => eventErasedAt(record) !== undefined

const factErasedAt = (text: string) => parseFact(text)?.erased_at

/** True if the stored event is the record, or what erasing leaves of it, or has yet to be erased. */
export const isEventOf = (record: string, stored: string): boolean =>
  record === stored || isErasureOf(record, stored, eventErasedAt, erasedRecord)

/** The same for a fact. */
export const isFactOf = (record: string, stored: string): boolean =>
  record === stored || isErasureOf(record, stored, factErasedAt, erasedFact)
