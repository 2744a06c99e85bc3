/**
 * A Merkle tree whose first leaves were removed: which of its nodes can still be told, of the
 * subtrees that were kept and of the leaves that are left.
 */
import {
  Frontier,
  FrontierUnreadable,
  type NodeSource,
  nodeHash,
  rootPart,
  type TreeNode
} from "./MerkleTree.ts"
import type { PrunedPoint } from "./PrunedPoint.ts"

const keyOf = (level: number, index: number): string => `${level}/${index}`

export class PrunedTree {
  /** Leaves that were removed. */
  readonly size: number
  readonly #peaks: ReadonlyMap<string, Buffer>

  /** @throws FrontierUnreadable if its frontier is none */
  constructor({ frontier, size }: Pick<PrunedPoint, "frontier" | "size">) {
    this.size = size
    const { peaks, size: decoded } = Frontier.decode(frontier)
    if (decoded !== size) throw new FrontierUnreadable(`of ${decoded} leaves, not of ${size}`)
    this.#peaks = new Map(
      rootPart(size).map(({ index, level }, place) => [keyOf(level, index), peaks[place]!])
    )
  }

  /**
   * The nodes over leaves that are left, of which a node is made together with the kept subtrees;
   * undefined if it is part of what was removed.
   */
  parts({ index, level }: TreeNode): ReadonlyArray<TreeNode> | undefined {
    const first = index * 2 ** level
    if (first >= this.size) return [{ level, index }]
    if (this.#peaks.has(keyOf(level, index))) return []
    if (first + 2 ** level <= this.size) return undefined
    const left = this.parts({ level: level - 1, index: 2 * index })
    const right = this.parts({ level: level - 1, index: 2 * index + 1 })
    return left === undefined || right === undefined ? undefined : [...left, ...right]
  }

  /** Any node that has parts, given those. */
  nodes(rest: NodeSource): NodeSource {
    const node: NodeSource = (level, index) => {
      if (index * 2 ** level >= this.size) return rest(level, index)
      const peak = this.#peaks.get(keyOf(level, index))
      if (peak !== undefined) return peak
      if (level === 0) throw new RangeError(`leaf ${index} was removed`)
      return nodeHash(node(level - 1, 2 * index), node(level - 1, 2 * index + 1))
    }
    return node
  }
}
