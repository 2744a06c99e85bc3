/**
 * The chain fields of a stored event, read from the end of its JSON without parsing the rest. Enough
 * to see whether one record follows another; whether the hashes are right is verification's business.
 */
import { parseJson } from "./Json.ts"

export interface Link {
  readonly tenantId: string
  readonly sequenceNumber: number
  readonly createdAt: string
  readonly prevHash: string
  readonly contentHash: string
  readonly hash: string
}

/** Where the sequencer's part of a stored event begins; nothing the client sent can follow it. */
const MARK = ',"tenant_id":'

interface Suffix {
  readonly tenant_id?: unknown
  readonly sequence_number?: unknown
  readonly created_at?: unknown
  readonly prev_hash?: unknown
  readonly content_hash?: unknown
  readonly hash?: unknown
}

/** The link of a stored event, or undefined if the bytes don't end like one. */
export const linkOf = (body: Buffer): Link | undefined => {
  const at = body.lastIndexOf(MARK)
  if (at === -1) return undefined
  let suffix: Suffix
  try {
    suffix = parseJson(`{${body.toString("utf8", at + 1)}`) as Suffix
  } catch {
    return undefined
  }
  const { content_hash, created_at, hash, prev_hash, sequence_number, tenant_id } = suffix
  return typeof tenant_id === "string" &&
    typeof sequence_number === "number" &&
    typeof created_at === "string" &&
    typeof prev_hash === "string" &&
    typeof content_hash === "string" &&
    typeof hash === "string"
    ? {
        tenantId: tenant_id,
        sequenceNumber: sequence_number,
        createdAt: created_at,
        prevHash: prev_hash,
        contentHash: content_hash,
        hash
      }
    : undefined
}
