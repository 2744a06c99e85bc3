/**
 * The chain fields of a stored event or trace fact, read from the end of its JSON without parsing
 * the rest. Enough to see whether one record follows another; verification checks the hashes.
 */
import { parseJson } from "../json/Json.ts"
import type { Chain } from "./Chains.ts"
import { GENESIS_HASH } from "./Chains.ts"

export interface ChainLink {
  readonly tenantId: string
  readonly sequenceNumber: number
  readonly createdAt: string
  readonly prevHash: string
  readonly contentHash: string
  readonly hash: string
}

/** Where the sequencer's part of a stored event begins; nothing the client sent can follow it. */
const SUFFIX_START = ',"tenant_id":'

interface ChainFields {
  readonly tenant_id?: unknown
  readonly sequence_number?: unknown
  readonly chain_sequence?: unknown
  readonly created_at?: unknown
  readonly prev_hash?: unknown
  readonly content_hash?: unknown
  readonly hash?: unknown
}

/** Bytes of an end that is read without JSON: hashes, salt and time are 400, the tenant's is the rest. */
const TAIL_BYTES = 640

const HASH = "[0-9a-f]{64}"
/** An end as nearly every record has it: no escapes in the tenant's id, ASCII only. */
const TAIL = new RegExp(
  ',"tenant_id":"([ !#-\\[\\]-~]*)","(sequence_number|chain_sequence)":(0|[1-9][0-9]{0,14})'
    + `,"created_at":"([0-9TZ:.-]*)","prev_hash":"(${HASH})"`
    + `(?:,"details_salt":"[0-9a-f]{32}")?(?:,"details_hash":"${HASH}")?`
    + `,"content_hash":"(${HASH})","hash":"(${HASH})"}$`
)

/** Hot path: measured in test/bench (projection). The same as `parsedLink` where it is not undefined. */
const tailLink = (body: Buffer, chain: Chain): ChainLink | undefined => {
  const from = Math.max(0, body.length - TAIL_BYTES)
  const found = TAIL.exec(body.toString("latin1", from))
  if (found === null) return undefined
  if ((found[2] === "sequence_number") !== (chain === "events")) return undefined
  return {
    tenantId: found[1]!,
    sequenceNumber: Number(found[3]),
    createdAt: found[4]!,
    prevHash: found[5]!,
    contentHash: found[6]!,
    hash: found[7]!
  }
}

const parsedLink = (body: Buffer, chain: Chain): ChainLink | undefined => {
  const at = body.lastIndexOf(SUFFIX_START)
  if (at === -1) return undefined
  let suffix: ChainFields
  try {
    // Hot path: each member is checked below.
    suffix = parseJson(`{${body.toString("utf8", at + 1)}`) as ChainFields
  } catch {
    return undefined
  }
  const { content_hash, created_at, hash, prev_hash, tenant_id } = suffix
  const sequence = chain === "events" ? suffix.sequence_number : suffix.chain_sequence
  return typeof tenant_id === "string"
    && typeof sequence === "number"
    && typeof created_at === "string"
    && typeof prev_hash === "string"
    && typeof content_hash === "string"
    && typeof hash === "string"
    ? {
        tenantId: tenant_id,
        sequenceNumber: sequence,
        createdAt: created_at,
        prevHash: prev_hash,
        contentHash: content_hash,
        hash
      }
    : undefined
}

/** The link of a stored event or fact, or undefined if the bytes don't end like one. */
export const linkOf = (body: Buffer, chain: Chain = "events"): ChainLink | undefined =>
  tailLink(body, chain) ?? parsedLink(body, chain)

/** What of a link decides whether another one follows it. */
export type Before = Pick<ChainLink, "sequenceNumber" | "hash">

/** True if a link is the next one of the chain, or the first one. */
export const follows = (link: ChainLink, before: Before | undefined): boolean =>
  before === undefined
    ? link.sequenceNumber === 1 && link.prevHash === GENESIS_HASH
    : link.sequenceNumber === before.sequenceNumber + 1 && link.prevHash === before.hash
