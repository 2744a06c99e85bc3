/**
 * That one event stands in the tree of a signed checkpoint: the proof as it is shown, and whether it
 * leads to the signed root.
 */
import { Effect } from "effect"
import { leafHash, verifyInclusion } from "../domain/MerkleTree.ts"
import { isForged, type SignedCheckpoints } from "./SignedCheckpoints.ts"

export interface EventInclusion {
  readonly valid: boolean
  readonly tree_size: number
  readonly leaf_index: number
  /** 64 hex digits. */
  readonly root_hash: string
  /** Siblings from the leaf upwards, 64 hex digits each. */
  readonly proof: ReadonlyArray<string>
  /** The signed note that the root stands in. */
  readonly checkpoint: string
}

/** By the newest checkpoint; undefined while none covers the event. */
export const inclusionOf = Effect.fn("EventInclusion.of")(function*(
  checkpoints: SignedCheckpoints["Service"],
  tenantId: string,
  sequenceNumber: number,
  hash: string
) {
  const newest = yield* checkpoints.newestAtOrBelow(tenantId, Number.MAX_SAFE_INTEGER)
  if (newest === undefined || isForged(newest)) return undefined
  const { note, rootHash, treeSize } = newest
  if (treeSize < sequenceNumber) return undefined
  const proof = yield* checkpoints.inclusion(tenantId, sequenceNumber, treeSize)
  if (proof === undefined) return undefined
  const index = sequenceNumber - 1
  const root = Buffer.from(rootHash, "hex")
  const inclusion: EventInclusion = {
    valid: verifyInclusion({ leaf: leafHash(hash), index, size: treeSize, root, proof }),
    tree_size: treeSize,
    leaf_index: index,
    root_hash: rootHash,
    proof: proof.map((node) => node.toString("hex")),
    checkpoint: note
  }
  return inclusion
})
