/**
 * The chain fields of a stored event or trace fact, read from the end of its JSON without parsing
 * the rest. Enough to see whether one record follows another; verification checks the hashes.
 */
import { parseJson } from "../json/Json.ts"
import {
  bytesOf,
  HASH_DIGITS,
  marks,
  SALT_DIGITS,
  SEQUENCE_DIGITS_MAX,
  TIME_LENGTH
} from "./ChainMarks.ts"
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

const QUOTE = 0x22
const BACKSLASH = 0x5c
const [ZERO, NINE] = [0x30, 0x39]
const [SPACE, TILDE] = [0x20, 0x7e]
const NOT = -1

const SEQUENCE: Readonly<Record<Chain, Uint8Array>> = {
  events: bytesOf('","sequence_number":'),
  traces: bytesOf('","chain_sequence":')
}

/** Bytes of a kind, by their value. */
const tableOf = (characters: string): Uint8Array => {
  const table = new Uint8Array(256)
  for (const byte of bytesOf(characters)) table[byte] = 1
  return table
}

const HEX = tableOf("0123456789abcdef")
const OF_TIME = tableOf("0123456789TZ:.-")

/** Where the mark begins that ends at `end`, or NOT. */
const before = (bytes: Buffer, end: number, mark: Uint8Array): number => {
  const from = end - mark.length
  if (end === NOT || from < 0) return NOT
  for (let index = 0; index < mark.length; index++) {
    if (bytes[from + index] !== mark[index]) return NOT
  }
  return from
}

/** Where so many bytes of a kind begin that end at `end`, or NOT. */
const runBefore = (bytes: Buffer, end: number, count: number, kind: Uint8Array): number => {
  const from = end - count
  if (end === NOT || from < 0) return NOT
  for (let at = from; at < end; at++) if (kind[bytes[at]!] === 0) return NOT
  return from
}

/** Where a member of so many hex digits begins, or `end` if there is none. */
const skipped = (bytes: Buffer, end: number, count: number, mark: Uint8Array): number => {
  const from = before(bytes, runBefore(bytes, end, count, HEX), mark)
  return from === NOT ? end : from
}

/** Where a number begins that ends at `end`, or NOT. */
const numberBefore = (bytes: Buffer, end: number): number => {
  let from = end
  while (from > 0 && bytes[from - 1]! >= ZERO && bytes[from - 1]! <= NINE) from--
  const count = end - from
  const isNumber = count === 1 || (count > 1 && bytes[from] !== ZERO)
  return isNumber && count <= SEQUENCE_DIGITS_MAX ? from : NOT
}

/** Where a text begins that ends at `end` and has no escapes, ASCII only; or NOT. */
const plainBefore = (bytes: Buffer, end: number): number => {
  let from = end
  while (from > 0 && bytes[from - 1] !== QUOTE) {
    const byte = bytes[--from]!
    if (byte < SPACE || byte > TILDE || byte === BACKSLASH) return NOT
  }
  return from
}

/**
 * Hot path: measured in test/bench (projection). Reads an end as nearly every record has it, from its
 * last byte on. The same as `parsedLink` where it is not undefined.
 */
const tailLink = (bytes: Buffer, chain: Chain): ChainLink | undefined => {
  const hashEnd = before(bytes, bytes.length, marks.end)
  const hash = runBefore(bytes, hashEnd, HASH_DIGITS, HEX)
  const content = runBefore(bytes, before(bytes, hash, marks.hash), HASH_DIGITS, HEX)
  const rest = before(bytes, content, marks.contentHash)
  if (rest === NOT) return undefined
  const salted = skipped(bytes, rest, HASH_DIGITS, marks.detailsHash)
  const prev = runBefore(bytes, skipped(bytes, salted, SALT_DIGITS, marks.salt), HASH_DIGITS, HEX)
  const createdEnd = before(bytes, prev, marks.prevHash)
  const created = runBefore(bytes, createdEnd, TIME_LENGTH, OF_TIME)
  const sequenceEnd = before(bytes, created, marks.created)
  if (sequenceEnd === NOT) return undefined
  const sequence = numberBefore(bytes, sequenceEnd)
  const tenantEnd = before(bytes, sequence, SEQUENCE[chain])
  if (tenantEnd === NOT) return undefined
  const tenant = plainBefore(bytes, tenantEnd)
  if (before(bytes, tenant, marks.tenant) === NOT) return undefined
  return {
    tenantId: bytes.toString("latin1", tenant, tenantEnd),
    sequenceNumber: Number(bytes.toString("latin1", sequence, sequenceEnd)),
    createdAt: bytes.toString("latin1", created, createdEnd),
    prevHash: bytes.toString("latin1", prev, prev + HASH_DIGITS),
    contentHash: bytes.toString("latin1", content, content + HASH_DIGITS),
    hash: bytes.toString("latin1", hash, hash + HASH_DIGITS)
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
