/**
 * What is missing between a backup and checkpoints that were kept outside of the service: how far each
 * chain reaches, how many of its records are gone, and whether what is there is what was signed. Pure.
 */
import type { Chain } from "../chain/Chains.ts"

/** A checkpoint that was kept outside of the service. */
export interface KeptCheckpoint {
  readonly tenantId: string
  readonly chain: Chain
  readonly treeSize: number
  /** 64 hex digits. */
  readonly rootHash: string
}

/** The same for one chain. */
export interface ChainGap {
  readonly tenant_id: string
  readonly chain: Chain
  /** The last sequence number that the backup holds; 0 if it holds none. */
  readonly reaches: number
  /** Records that the largest kept checkpoint covers. */
  readonly kept: number
  /** Records that were signed and are not in the backup. */
  readonly missing: number
  /**
   * consistent: the tree of the backup has the root of a kept checkpoint. contradicts: it has another
   * one. unknown: every kept checkpoint covers records that are not there, so no root can be compared.
   */
  readonly verdict: "consistent" | "contradicts" | "unknown"
  /** The tree sizes of kept checkpoints whose roots were compared. */
  readonly compared: ReadonlyArray<number>
}

/** What is known of the chain in the backup. */
export interface ReachedChain {
  readonly reaches: number
  /** The root of the tree at a size; undefined if it can't be computed. */
  rootAt(size: number): string | undefined
}

/** The gap of one chain, by all checkpoints of it that were kept: at least one. */
export const gapOf = (
  kept: readonly [KeptCheckpoint, ...ReadonlyArray<KeptCheckpoint>],
  { reaches, rootAt }: ReachedChain
): ChainGap => {
  const [{ chain, tenantId }] = kept
  const largest = Math.max(...kept.map(({ treeSize }) => treeSize))
  const compared: Array<number> = []
  let contradicts = false
  for (const { rootHash, treeSize } of kept) {
    const root = treeSize <= reaches ? rootAt(treeSize) : undefined
    if (root === undefined) continue
    compared.push(treeSize)
    contradicts ||= root !== rootHash
  }
  return {
    tenant_id: tenantId,
    chain,
    reaches,
    kept: largest,
    missing: Math.max(0, largest - reaches),
    verdict: contradicts ? "contradicts" : compared.length > 0 ? "consistent" : "unknown",
    compared: compared.sort((left, right) => left - right)
  }
}

/** The line of a gap for a person. */
export const gapLine = ({
  chain,
  compared,
  kept,
  missing,
  reaches,
  tenant_id,
  verdict
}: ChainGap) => {
  const reach = `${tenant_id}, ${chain}: reaches ${reaches}; the kept checkpoint covers ${kept}`
  const gap = missing === 0 ? "nothing of it is missing" : `${missing} are missing`
  switch (verdict) {
    case "consistent":
      return `${reach}; ${gap}; the tree at ${compared.at(-1)} is the one that was signed`
    case "contradicts":
      return `${reach}; ${gap}; THE TREE IS NOT THE ONE THAT WAS SIGNED`
    case "unknown":
      return `${reach}; ${gap}; no kept checkpoint is as small as the backup, so no root can be compared`
  }
}
