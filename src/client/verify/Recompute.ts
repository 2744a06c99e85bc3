/**
 * Recomputes the hashes of an event or of a trace fact from nothing but its content: what
 * `alk-chain-v1` and `alk-trace-v1` say. Shares no code with what the service computes them with,
 * but for RFC 8785.
 */
import { canonicalize, NotCanonicalizable } from "../../domain/json/CanonicalJson.ts"
import { isObject, type JsonObject, parseJson } from "../../domain/json/Json.ts"
import { sha256 } from "./Hashes.ts"

export type Scheme = "alk-chain-v1" | "alk-trace-v1"

/** A record as its place in the chain and its hashes say it. */
export interface ChainRecord {
  readonly scheme: Scheme
  readonly tenant: string
  /** Place in the chain, from 1. */
  readonly sequence: number
  readonly prevHash: string
  readonly hash: string
  /** Its details were erased: their hash is taken as it is. */
  readonly isErased: boolean
  readonly fields: JsonObject
}

export type MismatchReason =
  | "details_mismatch"
  | "content_mismatch"
  | "hash_mismatch"
  /** A member that no hash covers. */
  | "unhashed_member"

/** Something of a record that is not what its hashes were made of. */
export interface Mismatch {
  readonly reason: MismatchReason
  readonly expected: string
  readonly actual: string
}

/** The text is no event and no fact of a known kind. */
export class NotARecord extends Error {
  override readonly name = "NotARecord"
}

const ofChain = ["tenant_id", "created_at", "prev_hash", "content_hash", "hash"] as const

const memberOf = (fields: JsonObject, name: string): JsonObject => {
  const value = fields[name]
  if (!isObject(value)) throw new NotARecord(`${name}: must be an object`)
  return value as JsonObject
}

const textOf = (fields: JsonObject, name: string): string => {
  const value = fields[name]
  if (typeof value !== "string") throw new NotARecord(`${name}: must be a string`)
  return value
}

/** A record from its JSON, or from the value that this was parsed to. Throws NotARecord. */
export const toRecord = (source: string | Uint8Array | object): ChainRecord => {
  const fields = fieldsOf(source)
  const scheme = "chain_sequence" in fields ? "alk-trace-v1" : "alk-chain-v1"
  for (const name of ofChain) textOf(fields, name)
  const sequence = fields[scheme === "alk-trace-v1" ? "chain_sequence" : "sequence_number"]
  if (typeof sequence !== "number" || !Number.isSafeInteger(sequence)) {
    throw new NotARecord("sequence_number, or chain_sequence: must be an integer")
  }
  return {
    scheme,
    tenant: textOf(fields, "tenant_id"),
    sequence,
    prevHash: textOf(fields, "prev_hash"),
    hash: textOf(fields, "hash"),
    isErased: detailsOf(scheme, fields) === undefined && fields["details_hash"] !== undefined,
    fields
  }
}

const fieldsOf = (source: string | Uint8Array | object): JsonObject => {
  if (typeof source === "object" && !(source instanceof Uint8Array)) return source as JsonObject
  const text = typeof source === "string" ? source : new TextDecoder().decode(source)
  let value: unknown
  try {
    value = parseJson(text)
  } catch (error) {
    throw new NotARecord(`no JSON: ${String(error)}`)
  }
  if (!isObject(value)) throw new NotARecord("must be a JSON object")
  return value as JsonObject
}

const defined = (members: Readonly<Record<string, JsonObject[string] | undefined>>): JsonObject =>
  Object.fromEntries(
    Object.entries(members).filter((entry): entry is [string, JsonObject[string]] => {
      return entry[1] !== undefined
    })
  )

/** What may be erased of a record; undefined if it has nothing of that kind (any more). */
const detailsOf = (scheme: Scheme, fields: JsonObject): JsonObject | undefined => {
  if (scheme === "alk-trace-v1") return fields["details"] as JsonObject | undefined
  const details = defined({
    actor_email: memberOf(fields, "actor")["email"],
    metadata: fields["metadata"],
    resource_name: memberOf(fields, "resource")["name"]
  })
  return Object.keys(details).length === 0 ? undefined : details
}

const eventCore = (fields: JsonObject, detailsHash: string | undefined): JsonObject => {
  const actor = memberOf(fields, "actor")
  const resource = memberOf(fields, "resource")
  return defined({
    action: fields["action"],
    actor: defined({ id: actor["id"], type: actor["type"] }),
    details_hash: detailsHash,
    id: fields["id"],
    outcome: fields["outcome"],
    resource: defined({ id: resource["id"], type: resource["type"] }),
    timestamp: fields["timestamp"]
  })
}

/** Members of a fact that are not part of its content. */
const outsideOfFact: ReadonlyArray<string> = [
  ...ofChain,
  "chain_sequence",
  "details",
  "details_hash",
  "details_salt",
  "erased_at"
]

/** Everything else, so that it holds for types of facts that come later too. */
const factCore = (fields: JsonObject, detailsHash: string | undefined): JsonObject => ({
  ...Object.fromEntries(Object.entries(fields).filter(([name]) => !outsideOfFact.includes(name))),
  ...defined({ details_hash: detailsHash })
})

/** The members that an event has; no hash covers another one. */
const eventMembers: Readonly<Record<string, ReadonlyArray<string>>> = {
  "": [
    ...ofChain,
    "action",
    "actor",
    "details_hash",
    "details_salt",
    "erased_at",
    "id",
    "metadata",
    "outcome",
    "resource",
    "sequence_number",
    "timestamp"
  ],
  actor: ["email", "id", "type"],
  resource: ["id", "name", "type"]
}

/** A member that was added: nothing says that it is genuine. */
const unhashedMember = ({ fields, scheme }: ChainRecord): string | undefined => {
  if (scheme === "alk-trace-v1") return undefined
  for (const [outer, known] of Object.entries(eventMembers)) {
    const names = Object.keys(outer === "" ? fields : memberOf(fields, outer))
    const name = names.find((one) => !known.includes(one))
    if (name !== undefined) return outer === "" ? name : `${outer}.${name}`
  }
  return undefined
}

/** The hashes of a record as they have to be, whatever it says of them. */
export interface Recomputed {
  readonly hasDetails: boolean
  /** Of the details; of a record without them what it says. */
  readonly detailsHash: string | undefined
  readonly contentHash: string
  readonly hash: string
}

export const recompute = async (record: ChainRecord): Promise<Recomputed> => {
  const { fields, prevHash, scheme, sequence, tenant } = record
  const details = detailsOf(scheme, fields)
  const stated = fields["details_hash"] as string | undefined
  const salt = fields["details_salt"] as string | undefined
  const detailsHash =
    details === undefined ? stated : await sha256(`${salt ?? ""}\n${canonicalize(details)}`)
  const core = scheme === "alk-trace-v1" ? factCore : eventCore
  const contentHash = await sha256(canonicalize(core(fields, detailsHash)))
  const created = fields["created_at"]
  const hash = await sha256([scheme, tenant, sequence, created, contentHash, prevHash].join("\n"))
  return { hasDetails: details !== undefined, detailsHash, contentHash, hash }
}

/** What an erasure leaves: no details and no salt, and the time of it. */
const erasureFault = ({ fields, isErased, scheme }: ChainRecord): Mismatch | undefined => {
  const reason = "details_mismatch"
  const hasDetails = detailsOf(scheme, fields) !== undefined
  const hasTime = fields["erased_at"] !== undefined
  if (isErased && !hasTime) {
    return { reason, expected: "details, or erased_at", actual: "neither of them" }
  }
  if (hasDetails && hasTime) {
    return { reason, expected: "details, or erased_at", actual: "both of them" }
  }
  return hasDetails || fields["details_salt"] === undefined
    ? undefined
    : { reason, expected: "no details_salt without details", actual: "details_salt" }
}

/**
 * What does not agree with the hashes that a record states; undefined if everything does. Throws
 * NotARecord for a text that no service has written.
 */
export const mismatchOf = async (record: ChainRecord): Promise<Mismatch | undefined> => {
  try {
    return await compare(record)
  } catch (error) {
    if (error instanceof NotCanonicalizable || error instanceof RangeError) {
      throw new NotARecord(`no canonical JSON: ${error.message}`)
    }
    throw error
  }
}

const compare = async (record: ChainRecord): Promise<Mismatch | undefined> => {
  const { fields, hash } = record
  const member = unhashedMember(record)
  if (member !== undefined) {
    return { reason: "unhashed_member", expected: "no such member", actual: member }
  }
  const fault = erasureFault(record)
  if (fault !== undefined) return fault
  const found = await recompute(record)
  const stated = fields["details_hash"] as string | undefined
  if (found.detailsHash !== stated) {
    const [expected, actual] = [stated ?? "none", found.detailsHash ?? "none"]
    return { reason: "details_mismatch", expected, actual }
  }
  const content = textOf(fields, "content_hash")
  if (found.contentHash !== content) {
    return { reason: "content_mismatch", expected: content, actual: found.contentHash }
  }
  return found.hash === hash
    ? undefined
    : { reason: "hash_mismatch", expected: found.hash, actual: hash }
}
