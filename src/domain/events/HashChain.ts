/**
 * The hash chain `alk-chain-v1`: which bytes of an event are hashed, how one event is linked to the
 * one before it, and the one JSON text that an event is stored as. Writer and verifier share it;
 * its test vectors are in schemas/vectors.
 */
import { sha256 } from "#sha256"
import { type LinkInput, linkHashOf } from "../chain/Chains.ts"
import { canonicalInSteps, canonicalize, quote } from "../json/CanonicalJson.ts"
import { type JsonObject, parseJsonInSteps } from "../json/Json.ts"
import type { Sliced } from "../Slices.ts"
import type { AuditEvent } from "./AuditEvent.ts"
import { isEvent, parseEvent } from "./StoredEvent.ts"

export const SCHEME = "alk-chain-v1"

/** The fields that a client's event has, each as its RFC 8785 text (strings with their quotes). */
export interface CanonicalFields {
  readonly id: string
  readonly timestamp: string
  readonly actorId: string
  readonly actorType: string
  readonly actorEmail: string | undefined
  readonly action: string
  readonly resourceId: string
  readonly resourceType: string
  readonly resourceName: string | undefined
  readonly outcome: string
  readonly metadata: string | undefined
}

const member = (name: string, text: string | undefined): string =>
  text === undefined ? "" : `,"${name}":${text}`

/** The stored JSON up to and including `metadata`, without the closing brace. */
export const bodyText = (texts: CanonicalFields): string =>
  `{"id":${texts.id},"timestamp":${texts.timestamp}`
  + `,"actor":{"id":${texts.actorId},"type":${texts.actorType}${member("email", texts.actorEmail)}}`
  + `,"action":${texts.action}`
  + `,"resource":{"id":${texts.resourceId},"type":${texts.resourceType}`
  + `${member("name", texts.resourceName)}},"outcome":${texts.outcome}`
  + member("metadata", texts.metadata)

/** RFC 8785 text of the details, the part that may be erased; undefined if the event has none. */
export const detailsText = (texts: CanonicalFields): string | undefined => {
  const members =
    member("actor_email", texts.actorEmail)
    + member("metadata", texts.metadata)
    + member("resource_name", texts.resourceName)
  return members === "" ? undefined : `{${members.slice(1)}}`
}

/** RFC 8785 text of the core, the part that stays. */
export const coreText = (texts: CanonicalFields, detailsHash: string | undefined): string =>
  `{"action":${texts.action},"actor":{"id":${texts.actorId},"type":${texts.actorType}}`
  + (detailsHash === undefined ? "" : `,"details_hash":${quote(detailsHash)}`)
  + `,"id":${texts.id},"outcome":${texts.outcome}`
  + `,"resource":{"id":${texts.resourceId},"type":${texts.resourceType}}`
  + `,"timestamp":${texts.timestamp}}`

/** 64 hex digits over salt (32 hex digits) and the RFC 8785 text of the details. */
export const detailsHash = (salt: string, details: string): string => sha256(`${salt}\n${details}`)

/** 64 hex digits over the RFC 8785 text of the core. */
export const contentHash = (core: string): string => sha256(core)

/** The `hash` of an event: 64 hex digits. */
export const linkHash = (link: LinkInput): string => linkHashOf(SCHEME, link)

/** Everything that is stored after the client's fields. */
export interface ChainFields extends LinkInput {
  readonly hash: string
  readonly detailsSalt?: string | undefined
  readonly detailsHash?: string | undefined
  /** Only on an event whose details were erased. */
  readonly erasedAt?: string | undefined
}

/** The end of the stored JSON, from `,"tenant_id"` to the closing brace. */
export const appendSuffix = (suffix: ChainFields): string =>
  `,"tenant_id":${quote(suffix.tenantId)},"sequence_number":${suffix.sequenceNumber}`
  + `,"created_at":${quote(suffix.createdAt)},"prev_hash":"${suffix.prevHash}"`
  + (suffix.detailsSalt === undefined ? "" : `,"details_salt":"${suffix.detailsSalt}"`)
  + (suffix.detailsHash === undefined ? "" : `,"details_hash":"${suffix.detailsHash}"`)
  + `,"content_hash":"${suffix.contentHash}","hash":"${suffix.hash}"`
  + (suffix.erasedAt === undefined ? "}" : `,"erased_at":${quote(suffix.erasedAt)}}`)

/** What stored JSON hashes to, whatever hashes it claims to have. */
export interface Recomputed {
  readonly event: AuditEvent
  /** From salt and details; undefined if the event has no details (any more). */
  readonly detailsHash: string | undefined
  /** Over the recomputed `detailsHash`, or over the stored one if the details are gone. */
  readonly contentHash: string
  /** Over the recomputed `contentHash`. */
  readonly hash: string
  /**
   * True if the text is what the writer writes for this event, byte for byte: no other member, no
   * other order, spelling or space. The hashes then cover everything that is shown of it.
   */
  readonly exact: boolean
}

const quoteIfPresent = (text: string | undefined): string | undefined =>
  text === undefined ? undefined : quote(text)

const metadataText = ({ metadata }: AuditEvent): string | undefined =>
  metadata === undefined ? undefined : canonicalize(metadata as JsonObject)

const textsOf = (event: AuditEvent, metadata = metadataText(event)): CanonicalFields => ({
  id: quote(event.id),
  timestamp: quote(event.timestamp),
  actorId: quote(event.actor.id),
  actorType: quote(event.actor.type),
  actorEmail: quoteIfPresent(event.actor.email),
  action: quote(event.action),
  resourceId: quote(event.resource.id),
  resourceType: quote(event.resource.type),
  resourceName: quoteIfPresent(event.resource.name),
  outcome: quote(event.outcome),
  metadata
})

/** A text of hex digits is as it is; any other one is of a foreign writer. */
const inner = (text: string): string => quote(text).slice(1, -1)

const innerIfPresent = (text: string | undefined): string | undefined =>
  text === undefined ? undefined : inner(text)

const storedSuffix = (event: AuditEvent): string =>
  appendSuffix({
    tenantId: event.tenant_id,
    sequenceNumber: event.sequence_number,
    createdAt: event.created_at,
    prevHash: inner(event.prev_hash),
    contentHash: inner(event.content_hash),
    hash: inner(event.hash),
    detailsSalt: innerIfPresent(event.details_salt),
    detailsHash: innerIfPresent(event.details_hash),
    erasedAt: event.erased_at
  })

/** Recompute every hash of an event that was read from a stored text. @throws NotCanonicalizable */
export const recomputedEvent = (
  event: AuditEvent,
  storedJson: string,
  texts: CanonicalFields = textsOf(event)
): Recomputed => {
  const details = detailsText(texts)
  const recomputedDetails =
    details === undefined ? undefined : detailsHash(event.details_salt ?? "", details)
  const content = contentHash(coreText(texts, recomputedDetails ?? event.details_hash))
  return {
    event,
    detailsHash: recomputedDetails,
    contentHash: content,
    hash: linkHash({
      tenantId: event.tenant_id,
      sequenceNumber: event.sequence_number,
      createdAt: event.created_at,
      contentHash: content,
      prevHash: event.prev_hash
    }),
    exact: storedJson === bodyText(texts) + storedSuffix(event)
  }
}

/**
 * Recompute every hash of an event from nothing but its stored JSON. Undefined if the text is not
 * the JSON of an event at all. Takes the same event in another spelling too, and says so (`exact`).
 */
export const recompute = (storedJson: string): Recomputed | undefined => {
  try {
    const event = parseEvent(storedJson)
    return event && recomputedEvent(event, storedJson)
  } catch {
    // An unpaired surrogate, or deeper than the stack: no writer of events made it.
    return undefined
  }
}

/** The same in steps, for an event that may be most of a request. */
export function* recomputeInSteps(storedJson: string): Sliced<Recomputed | undefined> {
  try {
    const event = yield* parseJsonInSteps(storedJson)
    if (!isEvent(event)) return undefined
    yield
    const { metadata } = event
    const text =
      metadata === undefined ? undefined : yield* canonicalInSteps(metadata as JsonObject)
    yield
    return recomputedEvent(event, storedJson, textsOf(event, text))
  } catch {
    // As above, or no JSON.
    return undefined
  }
}

/**
 * The stored JSON of the same event without its details: what erasing leaves of it. Its hashes stay
 * what they are.
 */
export const eraseEvent = (event: AuditEvent, erasedAt: string): string => {
  const { details_salt: _salt, erased_at: _erasedAt, ...kept } = event
  const texts = textsOf(kept)
  return (
    bodyText({ ...texts, actorEmail: undefined, resourceName: undefined, metadata: undefined })
    + storedSuffix({ ...kept, erased_at: erasedAt })
  )
}

/** Why an event does not hold, apart from its place in the chain. */
export interface Fault {
  readonly reason: "content_mismatch" | "prev_hash_mismatch" | "hash_mismatch"
  readonly expected: string
  readonly actual: string
}

const ABSENT = "none"

const mismatch = (
  what: string,
  expected: string | undefined,
  actual: string | undefined
): Fault => ({
  reason: "content_mismatch",
  expected: `${what} ${expected ?? ABSENT}`,
  actual: `${what} ${actual ?? ABSENT}`
})

/** A record of a chain, and what it hashes to. */
interface Hashed extends Pick<Recomputed, "contentHash" | "detailsHash" | "hash"> {
  readonly event: Pick<AuditEvent, "content_hash" | "hash" | "prev_hash"> & {
    readonly details_hash?: string
    readonly details_salt?: string
    readonly erased_at?: string
  }
}

/** The fields about details have to agree with the details that are there. */
const detailsFault = ({ detailsHash, event }: Hashed, isErased: boolean): Fault | undefined => {
  const areGone = isErased && detailsHash === undefined
  if (event.details_hash !== detailsHash && !areGone) {
    return mismatch("details_hash", event.details_hash, detailsHash)
  }
  // Hashed together with the details only, so without them it could say anything.
  if (event.details_salt !== undefined && detailsHash === undefined) {
    return mismatch("details_salt", undefined, event.details_salt)
  }
  return event.erased_at !== undefined && !areGone
    ? mismatch("erased_at", undefined, event.erased_at)
    : undefined
}

/**
 * The first thing that is wrong with an event that has to follow `prevHash` (undefined: not known),
 * or undefined if it holds. `isErased`: a chained erasure event names it, so its details may be
 * gone.
 */
export const faultOf = (
  recomputed: Hashed,
  prevHash: string | undefined,
  isErased: boolean
): Fault | undefined => {
  const { contentHash, event, hash } = recomputed
  const fault = detailsFault(recomputed, isErased)
  if (fault !== undefined) return fault
  if (event.content_hash !== contentHash) {
    return mismatch("content_hash", event.content_hash, contentHash)
  }
  if (prevHash !== undefined && event.prev_hash !== prevHash) {
    return { reason: "prev_hash_mismatch", expected: prevHash, actual: event.prev_hash }
  }
  return event.hash === hash
    ? undefined
    : { reason: "hash_mismatch", expected: hash, actual: event.hash }
}
