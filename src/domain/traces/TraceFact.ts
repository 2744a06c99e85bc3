/**
 * The facts of execution traces and their chain `alk-trace-v1`: what each type of fact says, which
 * bytes are hashed, and the one JSON text that a fact is stored as. That text begins with exactly
 * the bytes of its core, so whoever holds it can hash it again.
 */
import { hash as digest } from "node:crypto"
import { canonicalize, quote } from "../json/CanonicalJson.ts"
import { parseJson } from "../json/Json.ts"
import type { JsonObject } from "../json/StrictJson.ts"

export const TRACE_SCHEME = "alk-trace-v1"

export const factTypes = [
  "execution.started",
  "execution.ended",
  "execution.erased",
  "span.started",
  "span.ended",
  "span.event"
] as const
export type FactType = (typeof factTypes)[number]

export const executionStatuses = ["RUNNING", "COMPLETED", "FAILED", "CANCELLED"] as const
/** Of an execution, and of a span. */
export type TraceStatus = (typeof executionStatuses)[number]
export type TerminalStatus = Exclude<TraceStatus, "RUNNING">
export const terminalStatuses: ReadonlyArray<TerminalStatus> = ["COMPLETED", "FAILED", "CANCELLED"]

interface CommonCore {
  readonly execution_id: string
  /** From 1 per execution, without gaps: a fact that is dropped at the end is missed. */
  readonly fact_number: number
}

/**
 * An execution exists. An execution that OpenTelemetry spans made may be `provisional`: its root has
 * not arrived. The fact that follows when it has says everything again, and stands from then on.
 */
export interface ExecutionStartedCore extends CommonCore {
  readonly type: "execution.started"
  readonly agent_id: string
  readonly root_span_id: string
  readonly source: "api" | "otlp"
  /** Canonical microsecond form. */
  readonly started_at: string
  /** True if the client said when it started, not the service. */
  readonly started_at_given: boolean
  readonly provisional?: true
}

/** Spans that are still running have ended with it, not before their own start. */
export interface ExecutionEndedCore extends CommonCore {
  readonly type: "execution.ended"
  readonly status: TerminalStatus
  readonly ended_at: string
}

/** The details of every fact before this one are gone. */
export interface ExecutionErasedCore extends CommonCore {
  readonly type: "execution.erased"
  readonly reason: string
  /** Id of the API key that asked for it. */
  readonly erased_by: string
}

export interface SpanStartedCore extends CommonCore {
  readonly type: "span.started"
  readonly span_id: string
  /** Absent on the root. */
  readonly parent_span_id?: string
  readonly caused_by_span_ids: ReadonlyArray<string>
  readonly span_type: string
  readonly started_at: string
  readonly started_at_given: boolean
}

/** May follow an end that was only implied by the end of the execution, and replaces that. */
export interface SpanEndedCore extends CommonCore {
  readonly type: "span.ended"
  readonly span_id: string
  readonly status: TerminalStatus
  readonly ended_at: string
}

export interface SpanEventCore extends CommonCore {
  readonly type: "span.event"
  readonly span_id: string
  readonly event_id: string
  readonly event_type: string
  /** From 1 per execution, in the order of arrival. */
  readonly sequence_number: number
  readonly timestamp: string
}

/** What stays of a fact whatever is erased. */
export type FactCore =
  | ExecutionStartedCore
  | ExecutionEndedCore
  | ExecutionErasedCore
  | SpanStartedCore
  | SpanEndedCore
  | SpanEventCore

/**
 * What may be erased, each member only if it was sent (`name` of a span always is). Of an execution:
 * agent_name, trigger, metadata; of a span: name, metadata, error; of an event: payload.
 */
export interface FactDetails {
  readonly agent_name?: string
  readonly trigger?: string
  readonly name?: string
  readonly metadata?: JsonObject
  readonly error?: string | JsonObject
  readonly payload?: JsonObject
}

/** What ties a fact to its place in the tenant's chain. */
interface ChainFields {
  readonly tenant_id: string
  /** From 1 per tenant, without gaps. */
  readonly chain_sequence: number
  /** When it was chained, canonical microsecond form; never decreases. */
  readonly created_at: string
  readonly prev_hash: string
  readonly content_hash: string
  readonly hash: string
  readonly details?: FactDetails
  readonly details_salt?: string
  readonly details_hash?: string
  /** When the details were erased. */
  readonly erased_at?: string
}

/** A fact as it stands on `alk.traces` and in the store. */
export type TraceFact = FactCore & ChainFields

/** Details, ready to be hashed into a fact. */
export interface PreparedDetails {
  /** RFC 8785 text of FactDetails. */
  readonly text: string
  /** 32 hex digits. */
  readonly salt: string
  /** 64 hex digits over salt and text. */
  readonly hash: string
}

/** 64 hex digits over salt (32 hex digits) and the RFC 8785 text of the details. */
export const factDetailsHash = (salt: string, text: string): string =>
  digest("sha256", `${salt}\n${text}`, "hex")

const hashMember = (hash: string | undefined): string =>
  hash === undefined ? "" : `"details_hash":"${hash}",`

/** RFC 8785 text of a core, put together by hand: the members of a type are few and known. */
export const factCoreText = (core: FactCore, detailsHash: string | undefined): string => {
  const hash = hashMember(detailsHash)
  const execution = `"execution_id":${quote(core.execution_id)},"fact_number":${core.fact_number}`
  switch (core.type) {
    case "execution.started":
      return (
        `{"agent_id":${quote(core.agent_id)},${hash}${execution}`
        + (core.provisional === true ? ',"provisional":true' : "")
        + `,"root_span_id":${quote(core.root_span_id)},"source":"${core.source}"`
        + `,"started_at":"${core.started_at}","started_at_given":${core.started_at_given}`
        + `,"type":"execution.started"}`
      )
    case "execution.ended":
      return (
        `{${hash}"ended_at":"${core.ended_at}",${execution},"status":"${core.status}"`
        + `,"type":"execution.ended"}`
      )
    case "execution.erased":
      return (
        `{${hash}"erased_by":${quote(core.erased_by)},${execution}`
        + `,"reason":${quote(core.reason)},"type":"execution.erased"}`
      )
    case "span.started":
      return (
        `{"caused_by_span_ids":[${core.caused_by_span_ids.map(quote).join(",")}],${hash}${execution}`
        + (core.parent_span_id === undefined
          ? ""
          : `,"parent_span_id":${quote(core.parent_span_id)}`)
        + `,"span_id":${quote(core.span_id)},"span_type":${quote(core.span_type)}`
        + `,"started_at":"${core.started_at}","started_at_given":${core.started_at_given}`
        + `,"type":"span.started"}`
      )
    case "span.ended":
      return (
        `{${hash}"ended_at":"${core.ended_at}",${execution},"span_id":${quote(core.span_id)}`
        + `,"status":"${core.status}","type":"span.ended"}`
      )
    case "span.event":
      return (
        `{${hash}"event_id":${quote(core.event_id)},"event_type":${quote(core.event_type)}`
        + `,${execution},"sequence_number":${core.sequence_number}`
        + `,"span_id":${quote(core.span_id)},"timestamp":"${core.timestamp}","type":"span.event"}`
      )
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
export const factLinkHash = (place: FactPlace, contentHash: string): string =>
  digest(
    "sha256",
    `${TRACE_SCHEME}\n${place.tenantId}\n${place.chainSequence}\n${place.createdAt}`
      + `\n${contentHash}\n${place.prevHash}`,
    "hex"
  )

export interface StoredFact {
  readonly body: string
  readonly hash: string
}

/** The stored JSON of a fact, and its hash. */
export const storeFact = (
  core: FactCore,
  details: PreparedDetails | undefined,
  place: FactPlace
): StoredFact => {
  const text = factCoreText(core, details?.hash)
  const contentHash = digest("sha256", text, "hex")
  const hash = factLinkHash(place, contentHash)
  const body =
    text.slice(0, -1)
    + (details === undefined ? "" : `,"details":${details.text},"details_salt":"${details.salt}"`)
    + `,"tenant_id":${quote(place.tenantId)},"chain_sequence":${place.chainSequence}`
    + `,"created_at":"${place.createdAt}","prev_hash":"${place.prevHash}"`
    + `,"content_hash":"${contentHash}","hash":"${hash}"}`
  return { body, hash }
}

/** The stored JSON of the same fact without its details: what erasing leaves of it. */
export const eraseFact = (fact: TraceFact, erasedAt: string): string => {
  const core = factCoreText(fact, fact.details_hash)
  return (
    core.slice(0, -1)
    + `,"tenant_id":${quote(fact.tenant_id)},"chain_sequence":${fact.chain_sequence}`
    + `,"created_at":"${fact.created_at}","prev_hash":"${fact.prev_hash}"`
    + `,"content_hash":"${fact.content_hash}","hash":"${fact.hash}","erased_at":"${erasedAt}"}`
  )
}

/** What stored JSON hashes to, whatever hashes it claims to have. */
export interface RecomputedFact {
  readonly fact: TraceFact
  /** From salt and details; absent if the fact has no details (any more). */
  readonly detailsHash?: string
  readonly contentHash: string
  readonly hash: string
  /** True if the text is what the writer (or the eraser) writes for this fact, byte for byte. */
  readonly exact: boolean
}

type Fields = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const stringsOf: Readonly<Record<FactType, ReadonlyArray<string>>> = {
  "execution.started": ["agent_id", "root_span_id", "source", "started_at"],
  "execution.ended": ["status", "ended_at"],
  "execution.erased": ["reason", "erased_by"],
  "span.started": ["span_id", "span_type", "started_at"],
  "span.ended": ["span_id", "status", "ended_at"],
  "span.event": ["span_id", "event_id", "event_type", "timestamp"]
}

/** The types that hashing needs; whether the values make sense is the hashes' business. */
const isFact = (value: unknown): value is TraceFact => {
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
    && ["parent_span_id", "details_salt", "details_hash", "erased_at"].every(
      (name) => value[name] === undefined || typeof value[name] === "string"
    )
    && typeof value["fact_number"] === "number"
    && typeof value["chain_sequence"] === "number"
    && (type !== "span.event" || typeof value["sequence_number"] === "number")
    && (type !== "span.started"
      || (Array.isArray(causes) && causes.every((cause) => typeof cause === "string")))
    && (value["details"] === undefined || isObject(value["details"]))
  )
}

/** The fact that a stored text holds, unchecked but for its shape; undefined if it is none. */
export const parseFact = (storedJson: string): TraceFact | undefined => {
  try {
    const value: unknown = parseJson(storedJson)
    return isFact(value) ? value : undefined
  } catch {
    // No JSON: no writer of facts made it.
    return undefined
  }
}

/** Recompute every hash of a fact from nothing but its stored JSON. Undefined if it is no fact. */
export const recomputeFact = (storedJson: string): RecomputedFact | undefined => {
  const fact = parseFact(storedJson)
  if (fact === undefined) return undefined
  try {
    const details =
      fact.details === undefined ? undefined : canonicalize(fact.details as JsonObject)
    const detailsHash =
      details === undefined ? undefined : factDetailsHash(fact.details_salt ?? "", details)
    const place: FactPlace = {
      tenantId: fact.tenant_id,
      chainSequence: fact.chain_sequence,
      createdAt: fact.created_at,
      prevHash: fact.prev_hash
    }
    const contentHash = digest(
      "sha256",
      factCoreText(fact, detailsHash ?? fact.details_hash),
      "hex"
    )
    const written =
      fact.erased_at === undefined
        ? storeFact(
            fact,
            details === undefined || detailsHash === undefined
              ? undefined
              : { text: details, salt: fact.details_salt ?? "", hash: detailsHash },
            place
          ).body
        : eraseFact(fact, fact.erased_at)
    return {
      fact,
      ...(detailsHash === undefined ? {} : { detailsHash }),
      contentHash,
      hash: factLinkHash(place, contentHash),
      exact: storedJson === written
    }
  } catch {
    // Half a surrogate pair, or deeper than the stack: no writer of facts made it.
    return undefined
  }
}
