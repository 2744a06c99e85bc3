/** The hash that ties a record to the one before it, the same in both chains. */
import { hash as digest } from "node:crypto"

/** `prev_hash` of the first record of a chain. */
export const GENESIS_HASH = "0".repeat(64)

/** What ties a record to its place. */
export interface LinkInput {
  readonly tenantId: string
  readonly sequenceNumber: number
  /** Canonical microsecond form. */
  readonly createdAt: string
  readonly contentHash: string
  readonly prevHash: string
}

/** The `hash` of a record in a chain of this scheme: 64 hex digits. */
export const linkHashOf = (scheme: string, link: LinkInput): string =>
  digest(
    "sha256",
    `${scheme}\n${link.tenantId}\n${link.sequenceNumber}\n${link.createdAt}\n${link.contentHash}`
      + `\n${link.prevHash}`,
    "hex"
  )
