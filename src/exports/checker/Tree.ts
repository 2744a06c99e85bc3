/** The Merkle tree of RFC 9162 over the hashes of links, without what only the service needs. */
import { sha256Bytes } from "#sha256"
import { bytesOfHex, hexOf, writeHex } from "../../domain/Bytes.ts"
import { type ProofOfLeaf, rootOfProof } from "../../domain/chain/TreeShape.ts"

const HASH_BYTES = 32

// Filled and hashed within one call each, so one of each is enough.
const leafInput = new Uint8Array(1 + HASH_BYTES)
const nodeInput = new Uint8Array(1 + 2 * HASH_BYTES).fill(1, 0, 1)

export const leafHash = (hash: string): Uint8Array => {
  writeHex(hash, leafInput, 1)
  return sha256Bytes(leafInput)
}

export const nodeHash = (left: Uint8Array, right: Uint8Array): Uint8Array => {
  nodeInput.set(left, 1)
  nodeInput.set(right, 1 + HASH_BYTES)
  return sha256Bytes(nodeInput)
}

/** The tree that grows leaf by leaf: complete subtrees from left to right, largest first. */
export class Tree {
  readonly #peaks: Array<{ readonly level: number; readonly node: Uint8Array }>
  size: number

  constructor(before?: Tree) {
    this.#peaks = before === undefined ? [] : [...before.#peaks]
    this.size = before?.size ?? 0
  }

  /** A complete subtree of 2^level leaves, at the right edge. `hash`: 64 hex digits. */
  push(level: number, hash: string): void {
    this.#push(level, bytesOfHex(hash))
  }

  /** The next leaf: a record of this hash, 64 hex digits. */
  leaf(hash: string): void {
    this.#push(0, leafHash(hash))
  }

  #push(of: number, hash: Uint8Array): void {
    let [level, node] = [of, hash]
    this.size += 2 ** level
    while (this.#peaks.at(-1)?.level === level) {
      node = nodeHash(this.#peaks.pop()!.node, node)
      level += 1
    }
    this.#peaks.push({ level, node })
  }

  /** 64 hex digits. */
  root(): string {
    const nodes = this.#peaks.map(({ node }) => node)
    const root = nodes.reduceRight<Uint8Array | undefined>(
      (right, left) => (right === undefined ? left : nodeHash(left, right)),
      undefined
    )
    return hexOf(root ?? sha256Bytes(""))
  }
}

/** Levels of the complete subtrees that the leaves from `start` to `end` consist of. */
export const subtreeLevels = (start: number, end: number): ReadonlyArray<number> => {
  const levels: Array<number> = []
  for (let at = start; at < end; at += 2 ** levels.at(-1)!) {
    let level = 0
    while (at % 2 ** (level + 1) === 0 && at + 2 ** (level + 1) <= end) level += 1
    levels.push(level)
  }
  return levels
}

/** Says whether an inclusion proof leads from a leaf to a root, all in hex digits. */
export const isIncluded = (
  { leaf, proof, ...place }: ProofOfLeaf<string>,
  root: string
): boolean => {
  const path = { ...place, leaf: leafHash(leaf), proof: proof.map(bytesOfHex) }
  const reached = rootOfProof(path, nodeHash)
  return reached !== undefined && hexOf(reached) === root
}
