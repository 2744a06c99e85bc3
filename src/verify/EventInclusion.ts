/**
 * That one event is in the tree of a signed checkpoint: the proof as it is shown, and whether
 * it leads to the signed root.
 */
import { Effect } from "effect"
import { leafHash, verifyInclusion } from "../domain/chain/MerkleTree.ts"
import type { SignedCheckpoint, SignedCheckpoints } from "./SignedCheckpoints.ts"

export interface EventInclusion {
  readonly valid: boolean
  readonly tree_size: number
  readonly leaf_index: number
  /** 64 hex digits. */
  readonly root_hash: string
  /** Siblings from the leaf upwards, 64 hex digits each. */
  readonly proof: ReadonlyArray<string>
  /** The signed note that the root is in. */
  readonly checkpoint: string
}

type Checkpoints = SignedCheckpoints["Service"]

/** A proof, and whether it leads from the event's hash to the signed root. */
export interface CheckedProof {
  readonly valid: boolean
  readonly proof: ReadonlyArray<Buffer>
}

/**
 * The proof for an event of a signed tree; undefined if the store can't make one. One that does not
 * hold is made anew, in case it was the tree that was kept, not the event, that was changed.
 */
export const checkedProof = Effect.fnUntraced(function* (
  checkpoints: Checkpoints,
  tree: string,
  { rootHash, treeSize }: SignedCheckpoint,
  sequenceNumber: number,
  hash: string
) {
  const index = sequenceNumber - 1
  const root = Buffer.from(rootHash, "hex")
  let checked: CheckedProof | undefined
  for (const anew of [false, true]) {
    const proof = yield* checkpoints.inclusion(tree, sequenceNumber, treeSize, anew)
    if (proof === undefined) return undefined
    const valid = verifyInclusion({ leaf: leafHash(hash), index, size: treeSize, root, proof })
    checked = { valid, proof }
    if (valid) break
  }
  return checked
})

/** By the newest checkpoint; undefined while none covers the event. */
export const inclusionOf = Effect.fn("EventInclusion.of")(function* (
  checkpoints: Checkpoints,
  tree: string,
  sequenceNumber: number,
  hash: string
) {
  const newest = yield* checkpoints.published(tree)
  if (newest === undefined || newest.treeSize < sequenceNumber) return undefined
  const checked = yield* checkedProof(checkpoints, tree, newest, sequenceNumber, hash)
  if (checked === undefined) return undefined
  const inclusion: EventInclusion = {
    valid: checked.valid,
    tree_size: newest.treeSize,
    leaf_index: sequenceNumber - 1,
    root_hash: newest.rootHash,
    proof: checked.proof.map((node) => node.toString("hex")),
    checkpoint: newest.note
  }
  return inclusion
})
