/**
 * The Merkle tree of RFC 9162 (section 2.1) over the hashes of a chain's events: its roots, the
 * proofs that an event is in it and that it only ever grew, and their verification. Holds no leaves:
 * callers provide the hashes of complete subtrees.
 *
 * A node (level, index) is the complete subtree over the leaves index * 2^level up to, exclusive,
 * (index + 1) * 2^level; leaf i is the event with the sequence number i + 1.
 */

import { hash as digest } from "node:crypto"
import { detachedCopy } from "../DetachedCopy.ts"
import {
  isOdd,
  isSize,
  type ProofOfGrowth,
  type ProofOfLeaf,
  powerWithin,
  rootOfProof,
  rootsOfProof
} from "./TreeShape.ts"

/** Bytes of SHA-256. */
export const HASH_BYTES = 32

const LEAF_PREFIX = 0
const NODE_PREFIX = 1

/** Root of the tree without leaves: SHA-256 of nothing. */
export const EMPTY_ROOT: Buffer = digest("sha256", "", "buffer")

// Filled and hashed within one call each, so one of each is enough.
const leafInput = Buffer.alloc(1 + HASH_BYTES, LEAF_PREFIX)
const nodeInput = Buffer.alloc(1 + 2 * HASH_BYTES, NODE_PREFIX)

/**
 * Hash of the leaf for an event's `hash` (64 hex digits).
 * @throws RangeError if it is anything else
 */
export const leafHash = (eventHash: string): Buffer => {
  const isHash = eventHash.length === 2 * HASH_BYTES
  if (!isHash || leafInput.write(eventHash, 1, "hex") !== HASH_BYTES) {
    throw new RangeError(`not 64 hex digits: ${eventHash.slice(0, 80)}`)
  }
  return digest("sha256", leafInput, "buffer")
}

/**
 * Hash of a node over the hashes of its two subtrees.
 * @throws RangeError if one of them is no hash
 */
export const nodeHash = (left: Buffer, right: Buffer): Buffer => {
  if (left.length !== HASH_BYTES || right.length !== HASH_BYTES) {
    throw new RangeError(`not two hashes: ${left.length} and ${right.length} bytes`)
  }
  nodeInput.set(left, 1)
  nodeInput.set(right, 1 + HASH_BYTES)
  return digest("sha256", nodeInput, "buffer")
}

/** Write the hash of a node's input to its place among nodes. */
const writeDigest = (input: Buffer, nodes: Buffer, at: number): void => {
  // Bytes as the characters of a text: cheaper than a Buffer for each.
  const hash = digest("sha256", input, "binary")
  for (let index = 0; index < HASH_BYTES; index++) nodes[at + index] = hash.charCodeAt(index)
}

/** The hashes of the leaves of these events, one after the other. */
const leafHashes = (hashes: Buffer): Buffer => {
  const nodes = Buffer.allocUnsafe(hashes.length)
  for (let at = 0; at < hashes.length; at += HASH_BYTES) {
    hashes.copy(leafInput, 1, at, at + HASH_BYTES)
    writeDigest(leafInput, nodes, at)
  }
  return nodes
}

const copyOf = (nodes: Buffer, index: number): Buffer =>
  detachedCopy(nodes.subarray(index * HASH_BYTES, (index + 1) * HASH_BYTES))

/**
 * Put the hashes of pairs in the place of the first `width` nodes, `left` being the sibling of the
 * first one; how many pairs there are.
 */
const pairUp = (left: Buffer | undefined, nodes: Buffer, width: number): number => {
  let from = 0
  let pairs = 0
  if (left !== undefined) {
    nodeInput.set(left, 1)
    nodes.copy(nodeInput, 1 + HASH_BYTES, 0, HASH_BYTES)
    writeDigest(nodeInput, nodes, 0)
    from = 1
    pairs = 1
  }
  for (; from + 1 < width; from += 2) {
    nodes.copy(nodeInput, 1, from * HASH_BYTES, (from + 2) * HASH_BYTES)
    writeDigest(nodeInput, nodes, pairs * HASH_BYTES)
    pairs += 1
  }
  return pairs
}

/** The hash over adjacent complete subtrees, from left to right, largest first. */
const fold = (hashes: ReadonlyArray<Buffer>): Buffer =>
  hashes.reduceRight((right, left) => nodeHash(left, right))

/** Complete subtrees of a tree of this size: the ones among the binary digits of the size. */
const peaksOf = (size: number): number => {
  let count = 0
  for (let rest = size; rest > 0; rest = Math.floor(rest / 2)) count += rest % 2
  return count
}

/** A text is not what `Frontier.encode` writes. */
export class FrontierUnreadable extends Error {
  override readonly name = "FrontierUnreadable"
}

const FRONTIER_FORM = /^(0|[1-9][0-9]{0,15}):([A-Za-z0-9+/]*={0,2})$/

/**
 * What a tree needs to grow: the hashes of the complete subtrees that it consists of, at most one
 * for each binary digit of its size. Mutable; one owner appends.
 */
export class Frontier {
  #size: number
  /** Largest subtree first. */
  readonly #peaks: Array<Buffer>

  private constructor(size: number, peaks: Array<Buffer>) {
    this.#size = size
    this.#peaks = peaks
  }

  static empty(): Frontier {
    return new Frontier(0, [])
  }

  /**
   * The frontier that `encode` wrote.
   * @throws FrontierUnreadable
   */
  static decode(text: string): Frontier {
    const [, digits, base64] = FRONTIER_FORM.exec(text) ?? []
    const size = Number(digits)
    const bytes = Buffer.from(base64 ?? "", "base64")
    const isWhole =
      Number.isSafeInteger(size)
      && bytes.length === peaksOf(size) * HASH_BYTES
      && bytes.toString("base64") === base64
    if (!isWhole) throw new FrontierUnreadable(`not a frontier: ${text.slice(0, 80)}`)
    const peaks: Array<Buffer> = []
    for (let at = 0; at < bytes.length; at += HASH_BYTES) {
      peaks.push(bytes.subarray(at, at + HASH_BYTES))
    }
    return new Frontier(size, peaks)
  }

  /** Leaves of the tree. */
  get size(): number {
    return this.#size
  }

  /**
   * Adds the next leaf: one hash for it, and one more on average.
   * @throws RangeError if the hash is not 64 hex digits; nothing is added then
   */
  append(eventHash: string): void {
    let node = leafHash(eventHash)
    for (let rest = this.#size; isOdd(rest); rest = (rest - 1) / 2) {
      node = nodeHash(this.#peaks.pop()!, node)
    }
    this.#peaks.push(node)
    this.#size += 1
  }

  /**
   * Adds the leaves of many events, level by level. `hashes`: 32 bytes for each, one after the
   * other. Hot path: measured in test/bench/Sequencing.ts.
   */
  appendAll(hashes: Buffer): void {
    const count = hashes.length / HASH_BYTES
    refuse(!Number.isInteger(count), `no whole hashes: ${hashes.length} bytes`)
    const nodes = leafHashes(hashes)
    const size = this.#size
    const added: Array<Buffer> = []
    let rest = size
    for (let width = count; width > 0; ) {
      const isRight = isOdd(rest)
      const total = isRight ? width + 1 : width
      // What has no sibling yet is read before its place is taken.
      const lone = isOdd(total) ? copyOf(nodes, width - 1) : undefined
      const left = isRight ? this.#peaks.pop()! : undefined
      width = pairUp(left, nodes, width)
      if (lone !== undefined) added.push(lone)
      rest = isRight ? (rest - 1) / 2 : rest / 2
    }
    this.#peaks.push(...added.reverse())
    this.#size = size + count
  }

  /** The hashes of the complete subtrees that the tree consists of, largest first. */
  get peaks(): ReadonlyArray<Buffer> {
    return [...this.#peaks]
  }

  /** Root of the tree as it is. */
  root(): Buffer {
    return this.#size === 0 ? EMPTY_ROOT : fold(this.#peaks)
  }

  /** `<size>:<base64 of the subtrees' hashes, largest first>`. */
  encode(): string {
    return `${this.#size}:${Buffer.concat(this.#peaks).toString("base64")}`
  }

  clone(): Frontier {
    return new Frontier(this.#size, [...this.#peaks])
  }
}

/** A complete subtree. */
export interface TreeNode {
  readonly level: number
  readonly index: number
}

/** Where the hashes of complete subtrees come from. */
export type NodeSource = (level: number, index: number) => Buffer

/**
 * One hash of a proof: the root of a subtree, given by the complete subtrees that it consists of
 * (one, but for the subtree at the right edge), from left to right.
 */
export type ProofPart = ReadonlyArray<TreeNode>

/** Leaves of the left subtree of a tree of at least 2 leaves. */
const leftOf = (size: number): number => powerWithin(size - 1)

/** The complete subtrees of the `size` leaves from `start`, where a subtree of a tree begins. */
const partOf = (start: number, size: number): ProofPart => {
  const nodes: Array<TreeNode> = []
  let at = start
  let rest = size
  while (rest > 0) {
    const leaves = powerWithin(rest)
    nodes.push({ level: Math.log2(leaves), index: at / leaves })
    at += leaves
    rest -= leaves
  }
  return nodes
}

const refuse = (isRefused: boolean, message: string): void => {
  if (isRefused) throw new RangeError(message)
}

/** The complete subtrees whose fold is the root of a tree of this size. */
export const rootPart = (size: number): ProofPart => {
  refuse(!isSize(size), `no tree size: ${size}`)
  return partOf(0, size)
}

/**
 * From the root down to the subtree of the leaf `index` at which `isEnd`: that subtree, and the
 * siblings on the way.
 */
const descend = (
  size: number,
  index: number,
  isEnd: (start: number, length: number) => boolean
) => {
  const parts: Array<ProofPart> = []
  let [start, length] = [0, size]
  while (!isEnd(start, length)) {
    const left = leftOf(length)
    if (index < start + left) {
      parts.push(partOf(start + left, length - left))
      length = left
    } else {
      parts.push(partOf(start, left))
      start += left
      length -= left
    }
  }
  return { parts, start, length }
}

/**
 * The inclusion proof of the leaf `index` in the tree of `size` leaves, nearest sibling first.
 * @throws RangeError if the tree has no such leaf
 */
export const inclusionParts = (index: number, size: number): ReadonlyArray<ProofPart> => {
  refuse(!isSize(size) || !isSize(index) || index >= size, `no leaf ${index} of ${size}`)
  return descend(size, index, (_start, length) => length === 1).parts.reverse()
}

/**
 * The consistency proof between the trees of `first` and `second` leaves. Empty if one of them is
 * the other, or the first is empty: then there is nothing to prove.
 * @throws RangeError unless 0 <= first <= second
 */
export const consistencyParts = (first: number, second: number): ReadonlyArray<ProofPart> => {
  refuse(!isSize(first) || !isSize(second) || first > second, `no sizes: ${first}, ${second}`)
  if (first === 0 || first === second) return []
  const isEnd = (start: number, length: number) => first >= start + length
  const { length, parts, start } = descend(second, first - 1, isEnd)
  // A verifier has the root of the first tree, where that is one complete subtree.
  if (start > 0) parts.push(partOf(start, length))
  return parts.reverse()
}

/** The hashes of a proof, or of a root as a proof of one part. */
export const hashesOf = (
  parts: ReadonlyArray<ProofPart>,
  source: NodeSource
): ReadonlyArray<Buffer> =>
  parts.map((part) => fold(part.map(({ level, index }) => source(level, index))))

/** What has to hold for an inclusion proof. */
export interface InclusionClaim extends ProofOfLeaf<Buffer> {
  readonly root: Buffer
}

const areHashes = (...hashes: ReadonlyArray<Buffer>): boolean =>
  hashes.every((hash) => hash.length === HASH_BYTES)

/** RFC 9162, section 2.1.3.2. */
export const verifyInclusion = ({ root, ...proof }: InclusionClaim): boolean =>
  areHashes(proof.leaf, root, ...proof.proof) && rootOfProof(proof, nodeHash)?.equals(root) === true

/** What has to hold for a consistency proof. */
export interface ConsistencyClaim extends ProofOfGrowth<Buffer> {
  readonly secondRoot: Buffer
}

/** RFC 9162, section 2.1.4.2. Of the empty tree there is nothing to prove. */
export const verifyConsistency = (claim: ConsistencyClaim): boolean => {
  const { first, firstRoot, proof, second, secondRoot } = claim
  if (!isSize(second) || !areHashes(firstRoot, secondRoot, ...proof)) return false
  if (first === 0) {
    const isSame = second > 0 || secondRoot.equals(EMPTY_ROOT)
    return proof.length === 0 && firstRoot.equals(EMPTY_ROOT) && isSame
  }
  const roots = rootsOfProof(claim, nodeHash)
  return roots?.first.equals(firstRoot) === true && roots.second.equals(secondRoot)
}
