/**
 * The parts of a tenant's Merkle tree that tie a span of links to a signed checkpoint: the complete
 * subtrees on its left and on its right, and inclusion proofs for events after it. With them and
 * the links themselves a reader can compute the root that was signed.
 */
import { Effect } from "effect"
import { hashesOf, inclusionParts, type TreeNode } from "../../domain/chain/MerkleTree.ts"
import { EvidenceSeal } from "../EvidenceSeal.ts"

/** The complete subtrees that the leaves from `start` to, exclusive, `end` consist of, in order. */
export const subtreesOf = (start: number, end: number): ReadonlyArray<TreeNode> => {
  const nodes: Array<TreeNode> = []
  for (let at = start; at < end; ) {
    let level = 0
    while (at % 2 ** (level + 1) === 0 && at + 2 ** (level + 1) <= end) level += 1
    nodes.push({ level, index: at / 2 ** level })
    at += 2 ** level
  }
  return nodes
}

/** `checkpoints/tree.json`: the subtrees beside the links of a pack. */
export interface TreeEdges {
  /** The tree of the events before the first link. */
  readonly left: { readonly size: number; readonly hashes: ReadonlyArray<string> }
  /** The events from the last link up to the size of the covering checkpoint. */
  readonly right: {
    readonly start: number
    readonly end: number
    readonly hashes: ReadonlyArray<string>
  }
}

/** Of a pack without links, and of a chain that makes no tree. */
export const noEdges: TreeEdges = {
  left: { size: 0, hashes: [] },
  right: { start: 0, end: 0, hashes: [] }
}

/**
 * The edges around the links `first` to `last` in the tree of `size` events. A chain that is broken
 * makes no tree; its pack says so by edges that don't fit.
 */
export const treeEdges = Effect.fn("PackTree.edges")(
  function* (
    tenantId: string,
    { first, last, size }: { readonly first: number; readonly last: number; readonly size: number }
  ) {
    const seal = yield* EvidenceSeal
    const left = subtreesOf(0, first - 1)
    const right = subtreesOf(last, size)
    if (left.length + right.length === 0) {
      return { ...noEdges, right: { start: last, end: size, hashes: [] } } satisfies TreeEdges
    }
    const tree = yield* seal.nodes(tenantId, [...left, ...right])
    const hashes = (nodes: ReadonlyArray<TreeNode>) =>
      nodes.map(({ index, level }) => tree.node(level, index).toString("hex"))
    const edges: TreeEdges = {
      left: { size: first - 1, hashes: hashes(left) },
      right: { start: last, end: size, hashes: hashes(right) }
    }
    return edges
  },
  Effect.catchTag("TreeUnbuildable", () => Effect.succeed(noEdges))
)

/** A line of `checkpoints/erasure-proofs.ndjson`. */
export interface ErasureProof {
  readonly sequence_number: number
  readonly tree_size: number
  readonly proof: ReadonlyArray<string>
}

/** Inclusion proofs of these events in the tree of `size` events; none if there is no such tree. */
export const inclusionProofs = Effect.fn("PackTree.proofs")(
  function* (tenantId: string, sequences: ReadonlyArray<number>, size: number) {
    const seal = yield* EvidenceSeal
    const parts = sequences.map((sequence) => inclusionParts(sequence - 1, size))
    const tree = yield* seal.nodes(tenantId, parts.flat(2))
    return parts.map(
      (proof, at): ErasureProof => ({
        sequence_number: sequences[at]!,
        tree_size: size,
        proof: hashesOf(proof, tree.node).map((hash) => hash.toString("hex"))
      })
    )
  },
  Effect.catchTag("TreeUnbuildable", () => Effect.succeed<ReadonlyArray<ErasureProof>>([]))
)
