/**
 * The trees of chains whose beginning was pruned: what the store no longer holds of them comes from
 * the pruned points of the registry. A proof that is made of it is checked like any other, so a
 * point is believed here as it is.
 */
import { Context, Effect, Layer, Option } from "effect"
import { RegistryView } from "../../actors/follower/LogFollower.ts"
import type { TreeNode } from "../../domain/chain/MerkleTree.ts"
import { FrontierUnreadable } from "../../domain/chain/MerkleTree.ts"
import type { PrunedPoint } from "../../domain/chain/PrunedPoint.ts"
import { PrunedTree } from "../../domain/chain/PrunedTree.ts"
import { HashTree, type StoredTree, TreeUnbuildable } from "../../ports/HashTree.ts"
import { ProofRefused } from "./CheckpointFailures.ts"

/** What was removed of a tree. */
export interface Pruned {
  readonly size: number
  readonly point: PrunedPoint
  /** True for a node that can be told. */
  readonly has: (node: TreeNode) => boolean
}

export class PrunedTrees extends Context.Service<
  PrunedTrees,
  {
    /** Undefined of a tree that is whole, or whose point is none. */
    of(tree: string): { readonly point: PrunedPoint; readonly tree: PrunedTree } | undefined
  }
>()("alk/PrunedTrees") {}

const make = Effect.gen(function* () {
  const view = yield* RegistryView
  const known = new WeakMap<PrunedPoint, PrunedTree | "unreadable">()
  const treeOf = (point: PrunedPoint): PrunedTree | "unreadable" => {
    try {
      return new PrunedTree(point)
    } catch (error) {
      if (error instanceof FrontierUnreadable) return "unreadable"
      throw error
    }
  }
  return PrunedTrees.of({
    of: (tree) => {
      const point = view.registry().pruned(tree)
      if (point === undefined) return undefined
      const made = known.get(point) ?? treeOf(point)
      known.set(point, made)
      return made === "unreadable" ? undefined : { point, tree: made }
    }
  })
})

/** By the registry as this process knows it. */
export const layerPrunedTrees: Layer.Layer<PrunedTrees, never, RegistryView> = Layer.effect(
  PrunedTrees,
  make
)

/** What is said of a part of a chain that was removed. */
export const prunedText = ({ chain, pruned_at, size }: PrunedPoint): string =>
  `the ${chain === "events" ? "events" : "trace facts"} up to sequence number ${size} were removed at`
  + ` ${pruned_at}; the signed checkpoint of that size says what there was`

/** Refuses proofs of what was removed; none where nothing is ever pruned. */
export const pruningOf = Effect.gen(function* () {
  const trees = Option.getOrUndefined(yield* Effect.serviceOption(PrunedTrees))
  return {
    /** Fails unless everything is left that is needed. */
    refuse: (tree: string, isLeft: (pruned: Pruned) => boolean) =>
      Effect.suspend(() => {
        const found = trees?.of(tree)
        if (found === undefined) return Effect.void
        const { point, tree: pruned } = found
        const has = (node: TreeNode) => pruned.parts(node) !== undefined
        return isLeft({ size: pruned.size, point, has })
          ? Effect.void
          : Effect.fail(new ProofRefused({ code: "pruned", message: prunedText(point) }))
      })
  }
})

const unbuildable = ({ index, level }: TreeNode): TreeUnbuildable => {
  const leaves = 2 ** level
  const firstSequence = index * leaves + 1
  return new TreeUnbuildable({ firstSequence, lastSequence: firstSequence + leaves - 1 })
}

const withPruned = (inner: HashTree["Service"], trees: PrunedTrees["Service"]) => {
  const nodes: HashTree["Service"]["nodes"] = (tree, wanted) =>
    Effect.suspend(() => {
      const found = trees.of(tree)
      if (found === undefined) return inner.nodes(tree, wanted)
      const { point, tree: pruned } = found
      const parts: Array<TreeNode> = []
      for (const node of wanted) {
        const own = pruned.parts(node)
        if (own === undefined) return Effect.fail(unbuildable(node))
        parts.push(...own)
      }
      return Effect.map(
        inner.nodes(tree, parts, pruned.size),
        (stored): StoredTree => ({
          node: pruned.nodes(stored.node),
          eventHash: (index) =>
            index === pruned.size - 1 ? point.head_hash : stored.eventHash(index)
        })
      )
    })
  return HashTree.of({
    nodes,
    leaves: (tree, first, end) => inner.leaves(tree, first, end),
    forget: (tree) => inner.forget(tree)
  })
}

/** The trees of the store, with what the pruned points say of their beginnings. */
export const layerPrunedHashTree: Layer.Layer<HashTree, never, HashTree | PrunedTrees> =
  Layer.effect(
    HashTree,
    Effect.gen(function* () {
      return withPruned(yield* HashTree, yield* PrunedTrees)
    })
  )
