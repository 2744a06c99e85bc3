/**
 * What alk needs from the query store about a tenant's Merkle tree: the hashes of complete subtrees
 * over the stored events. They are a view like everything there: whoever makes a proof of them
 * checks it against a signed root.
 */
import { Context, Schema, type Effect } from "effect"
import type { NodeSource, TreeNode } from "../domain/MerkleTree.ts"
import type { StoreUnavailable } from "./EventStore.ts"

/** The store does not hold exactly one event with a readable hash for each of these sequences. */
export class TreeUnbuildable extends Schema.TaggedError<TreeUnbuildable>()("TreeUnbuildable", {
  firstSequence: Schema.Int,
  lastSequence: Schema.Int
}) {}

/** The part of a tree that was asked for. */
export interface StoredTree {
  /** Hash of a subtree; throws for one that was not asked for. */
  readonly node: NodeSource
  /** The stored `hash` of the event behind a leaf that was asked for, 64 hex digits. */
  readonly eventHash: (index: number) => string
}

export class HashTree extends Context.Service<
  HashTree,
  {
    /** What proofs need of the tree; the larger subtrees are kept once they are computed. */
    nodes(
      tenantId: string,
      nodes: ReadonlyArray<TreeNode>
    ): Effect.Effect<StoredTree, StoreUnavailable | TreeUnbuildable>
    /** Drop what is kept of the tenant's tree, so that it is computed anew. */
    forget(tenantId: string): Effect.Effect<void, StoreUnavailable>
  }
>()("alk/HashTree") {}
