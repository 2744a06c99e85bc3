/**
 * The two chains of a tenant, of audit events and of trace facts, and the names of their Merkle
 * trees. What is in them, HashChain and TraceFact say.
 */

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
