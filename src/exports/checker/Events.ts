/** Events of a pack by themselves: their JSON, their hashes, what they refer to. */
import type { AuditEvent } from "../../domain/events/AuditEvent.ts"
import { recomputedEvent } from "../../domain/events/HashChain.ts"
import { isEvent } from "../../domain/events/StoredEvent.ts"
import { isObject } from "../../domain/json/Json.ts"
import { type Fault, fault, wrong } from "./Findings.ts"
import { isDigit, isSequence, jsonOfLine } from "./Lines.ts"

const isPlacedEvent = (value: unknown): value is AuditEvent =>
  isEvent(value) && isSequence(value.sequence_number)

/** The event of a line, or undefined if it is none. */
export const eventOf = (line: string): AuditEvent | undefined => jsonOfLine(line, isPlacedEvent)

/** What was erased of an event, and when: as often as it was asked for. */
export interface ErasureOfEvent {
  readonly contentHash: string
  readonly times: Array<string>
}

/**
 * What is wrong with an event by itself, or undefined. `erasure`: the erasure that names its
 * sequence, if there is one.
 */
export const eventFault = (
  line: string,
  event: AuditEvent,
  tenant: string,
  erasure?: ErasureOfEvent
): Fault | undefined => {
  if (event.tenant_id !== tenant) return wrong("tenant", tenant, event.tenant_id)
  const { contentHash, detailsHash, exact, hash } = recomputedEvent(event, line)
  const mayBeGone = erasure !== undefined && erasure.contentHash === event.content_hash
  const areGone = mayBeGone && detailsHash === undefined
  if (event.details_hash !== detailsHash && !areGone) {
    return wrong("details_hash", event.details_hash, detailsHash)
  }
  if (event.details_salt !== undefined && detailsHash === undefined) {
    return wrong("details_salt", undefined, event.details_salt)
  }
  if (event.erased_at !== undefined && !(areGone && erasure.times.includes(event.erased_at))) {
    return wrong("erased_at", areGone ? erasure.times[0] : undefined, event.erased_at)
  }
  if (event.content_hash !== contentHash) {
    return wrong("content_hash", event.content_hash, contentHash)
  }
  if (event.hash !== hash) return fault("hash_mismatch", hash, event.hash)
  return exact
    ? undefined
    : fault(
        "content_mismatch",
        "the bytes that the service writes for this event",
        "the same event in other bytes, or with members that no hash covers"
      )
}

const SEQUENCE_MEMBER = '"sequence_number":'
const SAID_DIGITS_MAX = 15

/** The last sequence number in a line that is no event, at most SAID_DIGITS_MAX digits; or 0. */
export const saidSequence = (line: string): number => {
  const place = line.lastIndexOf(SEQUENCE_MEMBER)
  if (place === -1) return 0
  const start = place + SEQUENCE_MEMBER.length
  let end = start
  while (end < start + SAID_DIGITS_MAX && isDigit(line.charCodeAt(end))) end += 1
  return Number(line.slice(start, end))
}

const REFERENCE = /^sha256:[0-9a-f]{64}$/

/** The values that metadata of an event refers to, each by the SHA-256 in its reference. */
export const referencesOf = (metadata: unknown): ReadonlyArray<string> => {
  const places = isObject(metadata) ? [metadata, ...Object.values(metadata)] : []
  return places
    .map((place) => (isObject(place) ? place["$ref"] : undefined))
    .filter((name): name is string => typeof name === "string" && REFERENCE.test(name))
}
