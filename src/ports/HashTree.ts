/**
 * What alk needs from the query store about the Merkle trees of a tenant's chains: the hashes of
 * complete subtrees over what is stored. They are a view like everything there: a proof that is
 * made of them is checked against a signed root. `tree` is the name of a tree, see domain/Chains.
 */
import { Context, type Effect, Schema } from "effect"
import type { NodeSource, TreeNode } from "../domain/chain/MerkleTree.ts"
import type { StoreUnavailable } from "./EventStore.ts"

/** The store does not hold exactly one readable hash for each of these sequences. */
export class TreeUnbuildable extends Schema.TaggedError<TreeUnbuildable>()("TreeUnbuildable", {
  firstSequence: Schema.Int,
  lastSequence: Schema.Int
}) {}

/** The part of a tree that was asked for. */
export interface StoredTree {
  /** Hash of a subtree; throws for one that was not asked for. */
  readonly node: NodeSource
  /** The stored `hash` of a leaf that was asked for, 64 hex digits. */
  readonly eventHash: (index: number) => string
}

export class HashTree extends Context.Service<
  HashTree,
  {
    /**
     * What proofs need of the tree; the larger subtrees are kept once they are computed. `base`: so
     * many of the first leaves are not in the store, and no node over one of them is asked for.
     */
    nodes(
      tree: string,
      nodes: ReadonlyArray<TreeNode>,
      base?: number
    ): Effect.Effect<StoredTree, StoreUnavailable | TreeUnbuildable>
    /**
     * The stored `hash` (64 hex digits) of each leaf from `first` up to, exclusive, `end`, as
     * it is now: read from the store at every call. At most 256 of them.
     */
    leaves(
      tree: string,
      first: number,
      end: number
    ): Effect.Effect<ReadonlyArray<string>, StoreUnavailable | TreeUnbuildable>
    /** Drop what is kept of a tree, so that it is computed anew. */
    forget(tree: string): Effect.Effect<void, StoreUnavailable>
  }
>()("alk/HashTree") {}
