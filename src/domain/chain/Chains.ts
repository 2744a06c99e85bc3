/**
 * The two chains of a tenant, of audit events and of trace facts: the hash that links their records,
 * their ends, and the names of their Merkle trees. HashChain and TraceFact have their content.
 */
import { sha256 } from "#sha256"
import { quote } from "../json/CanonicalJson.ts"

export const chains = ["events", "traces"] as const
/** A chain by the name of its topic. */
export type Chain = (typeof chains)[number]

/** A tenant's chain. */
export interface ChainKey {
  readonly tenantId: string
  readonly chain: Chain
}

const TRACES_SUFFIX = "/traces"

/**
 * The name of a chain's tree: the origin of its checkpoints without the service, and what the
 * sequencer and the store keep it under. Tenant ids have no slash.
 */
export const treeNameOf = (tenantId: string, chain: Chain): string =>
  chain === "events" ? tenantId : `${tenantId}${TRACES_SUFFIX}`

/** The chain that a tree is of. */
export const chainOfTree = (treeName: string): ChainKey =>
  treeName.endsWith(TRACES_SUFFIX)
    ? { tenantId: treeName.slice(0, -TRACES_SUFFIX.length), chain: "traces" }
    : { tenantId: treeName, chain: "events" }

/** The end of one tenant's chain. */
export interface Head {
  readonly sequence_number: number
  readonly hash: string
  /** Canonical microsecond form. */
  readonly created_at: string
}

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

/** What is hashed to link a record of a chain of this scheme. */
export const linkText = (scheme: string, link: LinkInput): string =>
  `${scheme}\n${link.tenantId}\n${link.sequenceNumber}\n${link.createdAt}\n${link.contentHash}`
  + `\n${link.prevHash}`

/** The `hash` of a record in a chain of this scheme: 64 hex digits. */
export const linkHashOf = (scheme: string, link: LinkInput): string =>
  sha256(linkText(scheme, link))

/** The JSON of a record's place without the record, as packs have it. @throws NotCanonicalizable */
export const linkLine = (link: Omit<LinkInput, "tenantId"> & { readonly hash: string }): string =>
  `{"sequence_number":${link.sequenceNumber},"created_at":${quote(link.createdAt)}`
  + `,"content_hash":${quote(link.contentHash)},"prev_hash":${quote(link.prevHash)}`
  + `,"hash":${quote(link.hash)}}`
