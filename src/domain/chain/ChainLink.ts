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

/** The link of a stored event or fact, or undefined if the bytes don't end like one. */
export const linkOf = (body: Buffer, chain: Chain = "events"): ChainLink | undefined => {
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

/** What of a link decides whether another one follows it. */
export type Before = Pick<ChainLink, "sequenceNumber" | "hash">

/** True if a link is the next one of the chain, or the first one. */
export const follows = (link: ChainLink, before: Before | undefined): boolean =>
  before === undefined
    ? link.sequenceNumber === 1 && link.prevHash === GENESIS_HASH
    : link.sequenceNumber === before.sequenceNumber + 1 && link.prevHash === before.hash
