/**
 * The chain `alk-trace-v1` of the facts of execution traces: which bytes are hashed, and the one JSON
 * text that a fact is stored as. That text begins with exactly the bytes of its core, so the fact can
 * be hashed again from the text alone. Writer and verifiers share it.
 */
import { sha256 } from "#sha256"
import { linkHashOf } from "../chain/Chains.ts"
import { canonicalize, quote } from "../json/CanonicalJson.ts"
import { isObject, type JsonObject, parseJson } from "../json/Json.ts"
import type { FactCore, PreparedDetails, TraceFact } from "./TraceFact.ts"

export const TRACE_SCHEME = "alk-trace-v1"

export const factTypes = [
  "execution.started",
  "execution.ended",
  "execution.resumed",
  "execution.erased",
  "span.started",
  "span.ended",
  "span.amended",
  "span.event",
  "span.payload"
] as const
export type FactType = (typeof factTypes)[number]

/** 64 hex digits over salt (32 hex digits) and the RFC 8785 text of the details. */
export const factDetailsHash = (salt: string, text: string): string => sha256(`${salt}\n${text}`)

const hashMember = (hash: string | undefined): string =>
  hash === undefined ? "" : `"details_hash":${quote(hash)},`

const optionalMember = (name: string, value: string | undefined): string =>
  value === undefined ? "" : `,"${name}":${quote(value)}`

/** RFC 8785 text of a core, put together by hand: the members of a type are few and known. */
export const factCoreText = (core: FactCore, detailsHash: string | undefined): string => {
  const hash = hashMember(detailsHash)
  const execution = `"execution_id":${quote(core.execution_id)},"fact_number":${core.fact_number}`
  switch (core.type) {
    case "execution.started":
      return (
        `{"agent_id":${quote(core.agent_id)},${hash}${execution}`
        + (core.provisional === true ? ',"provisional":true' : "")
        + `,"root_span_id":${quote(core.root_span_id)},"source":${quote(core.source)}`
        + `,"started_at":${quote(core.started_at)},"started_at_given":${core.started_at_given}`
        + `,"type":"execution.started"}`
      )
    case "execution.ended":
      return (
        `{${hash}"ended_at":${quote(core.ended_at)},${execution},"status":${quote(core.status)}`
        + `,"type":"execution.ended"}`
      )
    case "execution.resumed":
      return `{${hash}${execution},"type":"execution.resumed"}`
    case "execution.erased":
      return (
        `{${hash}"erased_by":${quote(core.erased_by)},${execution}`
        + `,"reason":${quote(core.reason)},"type":"execution.erased"}`
      )
    case "span.started":
      return (
        `{"caused_by_span_ids":[${core.caused_by_span_ids.map(quote).join(",")}],${hash}${execution}`
        + optionalMember("parent_span_id", core.parent_span_id)
        + `,"span_id":${quote(core.span_id)},"span_type":${quote(core.span_type)}`
        + `,"started_at":${quote(core.started_at)},"started_at_given":${core.started_at_given}`
        + `,"type":"span.started"}`
      )
    case "span.ended":
      return (
        `{${hash}"ended_at":${quote(core.ended_at)},${execution},"span_id":${quote(core.span_id)}`
        + `,"status":${quote(core.status)},"type":"span.ended"}`
      )
    case "span.amended":
      return (
        `{${hash}${execution}${optionalMember("parent_span_id", core.parent_span_id)}`
        + `${optionalMember("shared_span_id", core.shared_span_id)}`
        + `,"span_id":${quote(core.span_id)},"type":"span.amended"}`
      )
    case "span.event":
      return (
        `{${hash}"event_id":${quote(core.event_id)},"event_type":${quote(core.event_type)}`
        + `,${execution},"sequence_number":${core.sequence_number}`
        + `,"span_id":${quote(core.span_id)},"timestamp":${quote(core.timestamp)},"type":"span.event"}`
      )
    case "span.payload":
      return `{${hash}${execution},"span_id":${quote(core.span_id)},"type":"span.payload"}`
  }
}

/** Where a fact goes. */
export interface FactPlace {
  readonly tenantId: string
  readonly chainSequence: number
  readonly createdAt: string
  readonly prevHash: string
}

/** The `hash` of a fact: 64 hex digits. */
export const factLinkHash = (
  { chainSequence, createdAt, prevHash, tenantId }: FactPlace,
  contentHash: string
): string =>
  linkHashOf(TRACE_SCHEME, {
    tenantId,
    sequenceNumber: chainSequence,
    createdAt,
    contentHash,
    prevHash
  })

export interface StoredFact {
  readonly body: string
  readonly hash: string
}

const placeOf = (fact: TraceFact): FactPlace => ({
  tenantId: fact.tenant_id,
  chainSequence: fact.chain_sequence,
  createdAt: fact.created_at,
  prevHash: fact.prev_hash
})

/** The members of a fact beside its core; salt, hash and details as they are there. */
interface Suffix {
  /** RFC 8785 text. */
  readonly details?: string | undefined
  readonly salt?: string | undefined
  readonly place: FactPlace
  readonly contentHash: string
  readonly hash: string
  /** Only on a fact whose details were erased. */
  readonly erasedAt?: string | undefined
}

const storedText = (core: string, suffix: Suffix): string =>
  core.slice(0, -1)
  + (suffix.details === undefined ? "" : `,"details":${suffix.details}`)
  + optionalMember("details_salt", suffix.salt)
  + `,"tenant_id":${quote(suffix.place.tenantId)},"chain_sequence":${suffix.place.chainSequence}`
  + `,"created_at":${quote(suffix.place.createdAt)},"prev_hash":${quote(suffix.place.prevHash)}`
  + `,"content_hash":${quote(suffix.contentHash)},"hash":${quote(suffix.hash)}`
  + `${optionalMember("erased_at", suffix.erasedAt)}}`

/** The stored JSON of a fact, and its hash. */
export const storeFact = (
  core: FactCore,
  details: PreparedDetails | undefined,
  place: FactPlace
): StoredFact => {
  const text = factCoreText(core, details?.hash)
  const contentHash = sha256(text)
  const hash = factLinkHash(place, contentHash)
  const [salt, ofDetails] = [details?.salt, details?.text]
  return { body: storedText(text, { details: ofDetails, salt, place, contentHash, hash }), hash }
}

/** The stored JSON of the same fact without its details: what erasing leaves of it. */
export const eraseFact = (fact: TraceFact, erasedAt: string): string =>
  storedText(factCoreText(fact, fact.details_hash), {
    place: placeOf(fact),
    contentHash: fact.content_hash,
    hash: fact.hash,
    erasedAt
  })

/** What stored JSON hashes to, whatever hashes it claims to have. */
export interface RecomputedFact {
  readonly fact: TraceFact
  /** From salt and details; undefined if the fact has no details (any more). */
  readonly detailsHash: string | undefined
  readonly contentHash: string
  readonly hash: string
  /** True if the text is what the writer (or the eraser) writes for this fact, byte for byte. */
  readonly exact: boolean
}

const stringsOf: Readonly<Record<FactType, ReadonlyArray<string>>> = {
  "execution.started": ["agent_id", "root_span_id", "source", "started_at"],
  "execution.ended": ["status", "ended_at"],
  "execution.resumed": [],
  "execution.erased": ["reason", "erased_by"],
  "span.started": ["span_id", "span_type", "started_at"],
  "span.ended": ["span_id", "status", "ended_at"],
  "span.amended": ["span_id"],
  "span.event": ["span_id", "event_id", "event_type", "timestamp"],
  "span.payload": ["span_id"]
}

const optionalStrings = [
  "parent_span_id",
  "shared_span_id",
  "details_salt",
  "details_hash",
  "erased_at"
]

/** The types that hashing needs; whether the values are right, the hashes show. */
export const isFact = (value: unknown): value is TraceFact => {
  if (!isObject(value) || !factTypes.includes(value["type"] as FactType)) return false
  const type = value["type"] as FactType
  const strings = [
    "execution_id",
    "tenant_id",
    "created_at",
    "prev_hash",
    "content_hash",
    "hash",
    ...stringsOf[type]
  ]
  const causes = value["caused_by_span_ids"]
  return (
    strings.every((name) => typeof value[name] === "string")
    && optionalStrings.every((name) => value[name] === undefined || typeof value[name] === "string")
    && typeof value["fact_number"] === "number"
    && typeof value["chain_sequence"] === "number"
    && (type !== "span.event" || typeof value["sequence_number"] === "number")
    && (type !== "span.started"
      || (Array.isArray(causes) && causes.every((cause) => typeof cause === "string")))
    && (value["details"] === undefined || isObject(value["details"]))
  )
}

/**
 * The fact that a stored text holds, unchecked but for its types; undefined if it is not one. Hot
 * path: the projection and verification read every fact so. A property test ties it to the schema.
 */
export const parseFact = (storedJson: string): TraceFact | undefined => {
  try {
    const value: unknown = parseJson(storedJson)
    return isFact(value) ? value : undefined
  } catch {
    // No JSON: no writer of facts made it.
    return undefined
  }
}

const factHashes = (fact: TraceFact, place: FactPlace, detailsHash: string | undefined) => {
  const contentHash = sha256(factCoreText(fact, detailsHash))
  return { contentHash, hash: factLinkHash(place, contentHash) }
}

/** True if the hashes of a fact are what its members hash to, details aside. */
export const holdsItsHashes = (fact: TraceFact): boolean => {
  const { contentHash, hash } = factHashes(fact, placeOf(fact), fact.details_hash)
  return contentHash === fact.content_hash && hash === fact.hash
}

/** Recompute every hash of a fact that was read from a stored text. @throws NotCanonicalizable */
export const recomputedFact = (fact: TraceFact, storedJson: string): RecomputedFact => {
  const { details, details_salt: salt, erased_at: erasedAt } = fact
  const text = details === undefined ? undefined : canonicalize(details as JsonObject)
  const detailsHash = text === undefined ? undefined : factDetailsHash(salt ?? "", text)
  const place = placeOf(fact)
  const core = factCoreText(fact, detailsHash ?? fact.details_hash)
  const contentHash = sha256(core)
  const hash = factLinkHash(place, contentHash)
  const rest = text === undefined ? { erasedAt } : { details: text, salt }
  const written = storedText(core, { ...rest, place, contentHash, hash })
  return { fact, detailsHash, contentHash, hash, exact: storedJson === written }
}

/** The same of a stored text alone. Undefined if it is not a fact. */
export const recomputeFact = (storedJson: string): RecomputedFact | undefined => {
  try {
    const fact = parseFact(storedJson)
    return fact && recomputedFact(fact, storedJson)
  } catch {
    // An unpaired surrogate, or deeper than the stack: no writer of facts made it.
    return undefined
  }
}
