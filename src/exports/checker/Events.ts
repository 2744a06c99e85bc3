/** Events of a pack by themselves: their JSON, their hashes, what they refer to. */
import type { AuditEvent } from "../../domain/events/AuditEvent.ts"
import { faultOf, recomputedEvent } from "../../domain/events/HashChain.ts"
import { isEvent } from "../../domain/events/StoredEvent.ts"
import { isObject } from "../../domain/json/Json.ts"
import { type Fault, otherBytes, wrong } from "./Findings.ts"
import { isSequence, jsonOfLine } from "./Lines.ts"

const isPlacedEvent = (value: unknown): value is AuditEvent =>
  isEvent(value) && isSequence(value.sequence_number)

/** The event of a line, or undefined if it is not one. */
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
  const recomputed = recomputedEvent(event, line)
  const { details_salt: salt, erased_at: time } = event
  const isNamed = erasure !== undefined && erasure.contentHash === event.content_hash
  const areGone = isNamed && recomputed.detailsHash === undefined && salt === undefined
  if (areGone && time !== undefined && !erasure.times.includes(time)) {
    return wrong("erased_at", erasure.times[0], time)
  }
  const found = faultOf(recomputed, undefined, isNamed)
  return found ?? (recomputed.exact ? undefined : otherBytes("event"))
}

const SEQUENCE_MEMBER = '"sequence_number":'

/** The last sequence number in a line that is not an event, at most 15 digits; or 0. */
export const saidSequence = (line: string): number => {
  const place = line.lastIndexOf(SEQUENCE_MEMBER)
  const digits = /^[0-9]{0,15}/.exec(line.slice(place + SEQUENCE_MEMBER.length))
  return place === -1 ? 0 : Number(digits![0])
}

const REFERENCE = /^sha256:[0-9a-f]{64}$/

/** The values that metadata of an event refers to, each by the SHA-256 in its reference. */
export const referencesOf = (metadata: unknown): ReadonlyArray<string> => {
  const places = isObject(metadata) ? [metadata, ...Object.values(metadata)] : []
  return places
    .map((place) => (isObject(place) ? place["$ref"] : undefined))
    .filter((name): name is string => typeof name === "string" && REFERENCE.test(name))
}
