/** Pruned points for tests: one that has the form of one, and genuine ones over given hashes. */

import { chainOfTree } from "../../src/domain/chain/Chains.ts"
import { makeCheckpoint, type Signer } from "../../src/domain/chain/Checkpoint.ts"
import {
  Frontier,
  hashesOf,
  inclusionParts,
  leafHash,
  type NodeSource,
  nodeHash,
  rootPart
} from "../../src/domain/chain/MerkleTree.ts"
import { frontierText, type PrunedPoint } from "../../src/domain/chain/PrunedPoint.ts"

const TIME = "2026-11-21T12:00:00.000000Z"

/** It proves nothing. */
export const prunedPoint = (
  tenantId: string,
  size: number,
  more: Partial<PrunedPoint> = {}
): PrunedPoint => ({
  tenant_id: tenantId,
  chain: "events",
  size,
  head_hash: "a".repeat(64),
  root_hash: "b".repeat(64),
  note: "a note",
  frontier: `${size}:`,
  head_proof: [],
  recorded_before: TIME,
  pruned_at: TIME,
  pruned_by: "test",
  ...more
})

/** The complete subtrees over these hashes, computed one by one. */
export const nodesOver = (hashes: ReadonlyArray<string>): NodeSource => {
  const node: NodeSource = (level, index) =>
    level === 0
      ? leafHash(hashes[index]!)
      : nodeHash(node(level - 1, 2 * index), node(level - 1, 2 * index + 1))
  return node
}

/** The point of a chain with these hashes, at a size that is signed. */
export const genuinePoint = (
  signer: Signer,
  service: string,
  tree: string,
  hashes: ReadonlyArray<string>,
  size: number
): PrunedPoint => {
  const frontier = Frontier.empty()
  for (const hash of hashes.slice(0, size)) frontier.append(hash)
  const { chain, tenantId } = chainOfTree(tree)
  const { note, root_hash } = makeCheckpoint(signer, service, tenantId, frontier, TIME, chain)
  const node = nodesOver(hashes)
  return prunedPoint(tenantId, size, {
    chain,
    note,
    root_hash,
    head_hash: hashes[size - 1]!,
    frontier: frontierText(
      size,
      rootPart(size).map(({ index, level }) => node(level, index))
    ),
    head_proof: hashesOf(inclusionParts(size - 1, size), node).map((hash) => hash.toString("hex"))
  })
}
