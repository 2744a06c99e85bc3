/**
 * Proofs out of what the store holds of a tree. None is given that does not lead to the root of a
 * signed checkpoint.
 */
import { Clock, type Context, Effect, Result } from "effect"
import type { ProjectionProgress } from "../../actors/log/ProjectionProgress.ts"
import { BoundedMap } from "../../domain/BoundedMap.ts"
import { chainOfTree } from "../../domain/chain/Chains.ts"
import type { CheckpointRecord } from "../../domain/chain/Checkpoint.ts"
import {
  consistencyParts,
  hashesOf,
  inclusionParts,
  leafHash,
  type TreeNode,
  verifyConsistency,
  verifyInclusion
} from "../../domain/chain/MerkleTree.ts"
import {
  nodesBeside,
  nodesOfTile,
  rootWithTile,
  TILE_WIDTH,
  type Tile
} from "../../domain/chain/Tile.ts"
import type { EventLog } from "../../ports/EventLog.ts"
import type { StoreUnavailable } from "../../ports/EventStore.ts"
import { HashTree, type TreeUnbuildable } from "../../ports/HashTree.ts"
import { type CheckpointFailure, mismatch } from "./CheckpointFailures.ts"
import { storeCaughtUp } from "./KnownCheckpoints.ts"
import { pruningOf } from "./PrunedTrees.ts"

/** Trees whose last mismatch is remembered. */
const MISMATCHES_MAX = 10_000
/** Milliseconds in which a tree that did not lead to its checkpoint is not computed once more. */
const RECOMPUTE_PAUSE_MS = 60_000

export interface InclusionProof {
  readonly checkpoint: CheckpointRecord
  readonly sequenceNumber: number
  /** `hash` of the event or fact, 64 hex digits. */
  readonly eventHash: string
  /** Siblings from the leaf upwards, 64 hex digits each. */
  readonly proof: ReadonlyArray<string>
}

export interface ConsistencyProof {
  readonly first: CheckpointRecord
  readonly second: CheckpointRecord
  /** As RFC 9162 orders them, 64 hex digits each. */
  readonly proof: ReadonlyArray<string>
}

export interface ProvenTile {
  /** One per place of the tile, from the first one on. */
  readonly hashes: ReadonlyArray<Buffer>
  /** The stored `hash`, 64 hex digits, of each leaf of a tile of level 0; else empty. */
  readonly entries: ReadonlyArray<string>
}

/** A part of a tree as the store holds it. */
type StoreRead<S> = Effect.Effect<S, StoreUnavailable | TreeUnbuildable>

const toHex = (hashes: ReadonlyArray<Buffer>): ReadonlyArray<string> =>
  hashes.map((hash) => hash.toString("hex"))

const rootOf = ({ root_hash }: CheckpointRecord): Buffer => Buffer.from(root_hash, "hex")

/** What `build` makes of what is read, or why that does not hold. */
const attempt = <S, A>(tree: string, read: StoreRead<S>, build: (stored: S) => A | undefined) =>
  read.pipe(
    Effect.map((stored) => {
      const built = build(stored)
      return built === undefined
        ? Result.fail(`the stored ${chainOfTree(tree).chain} do not lead to its root`)
        : Result.succeed(built)
    }),
    Effect.catchTag("TreeUnbuildable", ({ firstSequence, lastSequence }) =>
      Effect.succeed(
        Result.fail(
          `the store does not hold one hash for each of ${firstSequence} to ${lastSequence}`
        )
      )
    )
  )

/** The hashes of a tile and of the nodes beside it. */
const readTile = (
  hashTree: HashTree["Service"],
  tree: string,
  tile: Tile,
  beside: ReadonlyArray<TreeNode>
) => {
  if (tile.level > 0) {
    const own = nodesOfTile(tile)
    return Effect.map(hashTree.nodes(tree, [...own, ...beside]), ({ node }) => {
      const hashes = own.map(({ index, level }) => node(level, index))
      return { hashes, entries: [], node }
    })
  }
  // Not from memory: entries are what is stored.
  const first = tile.index * TILE_WIDTH
  const entries = hashTree.leaves(tree, first, first + tile.width)
  return Effect.zipWith(entries, hashTree.nodes(tree, beside), (entries, { node }) => ({
    hashes: entries.map(leafHash),
    entries,
    node
  }))
}

/** The nodes of a tile, which have to be left. */
const ownNodes = (tile: Tile): ReadonlyArray<TreeNode> =>
  tile.level > 0 ? nodesOfTile(tile) : [{ level: 0, index: tile.index * TILE_WIDTH }]

/** Makes proofs that hold: of what is stored, else of what is stored once it is all there, anew. */
const prover = (
  hashTree: HashTree["Service"],
  context: Context.Context<EventLog | ProjectionProgress>
) => {
  const mismatches = new BoundedMap<number>(MISMATCHES_MAX)
  return Effect.fnUntraced(function* <S, A>(
    tree: string,
    { tree_size }: CheckpointRecord,
    read: StoreRead<S>,
    build: (stored: S) => A | undefined
  ): Effect.fn.Return<A, CheckpointFailure> {
    const first = yield* attempt(tree, read, build)
    if (Result.isSuccess(first)) return first.success
    const { chain, tenantId } = chainOfTree(tree)
    yield* storeCaughtUp(tenantId, chain).pipe(Effect.provideContext(context))
    const second = yield* attempt(tree, read, build)
    if (Result.isSuccess(second)) return second.success
    const now = yield* Clock.currentTimeMillis
    if ((mismatches.get(tree) ?? 0) + RECOMPUTE_PAUSE_MS > now) {
      return yield* mismatch(tree, tree_size, second.failure)
    }
    yield* hashTree.forget(tree)
    const third = yield* attempt(tree, read, build)
    if (Result.isFailure(third)) {
      mismatches.set(tree, now)
      return yield* mismatch(tree, tree_size, third.failure)
    }
    mismatches.delete(tree)
    yield* Effect.logError("what was kept of a Merkle tree was wrong and has been made anew", {
      tree
    })
    return third.success
  })
}

export const makeStoredProofs = Effect.gen(function* () {
  const context = yield* Effect.context<EventLog | ProjectionProgress>()
  const hashTree = yield* HashTree
  const pruning = yield* pruningOf
  const proven = prover(hashTree, context)

  /** That a leaf is in the tree of a checkpoint that has it. */
  const inclusion = Effect.fnUntraced(function* (
    tree: string,
    checkpoint: CheckpointRecord,
    sequenceNumber: number
  ) {
    yield* pruning.refuse(tree, ({ size }) => sequenceNumber > size)
    const size = checkpoint.tree_size
    const index = sequenceNumber - 1
    const parts = inclusionParts(index, size)
    const root = rootOf(checkpoint)
    const read = hashTree.nodes(tree, [{ level: 0, index }, ...parts.flat()])
    return yield* proven(tree, checkpoint, read, (stored) => {
      const proof = hashesOf(parts, stored.node)
      const eventHash = stored.eventHash(index)
      return verifyInclusion({ leaf: leafHash(eventHash), index, size, root, proof })
        ? { eventHash, proof: toHex(proof) }
        : undefined
    })
  })

  /** That the tree of the first checkpoint is the beginning of the second's. */
  const consistency = Effect.fnUntraced(function* (
    tree: string,
    first: CheckpointRecord,
    second: CheckpointRecord
  ) {
    yield* pruning.refuse(tree, ({ size }) => first.tree_size >= size)
    const parts = consistencyParts(first.tree_size, second.tree_size)
    return yield* proven(tree, second, hashTree.nodes(tree, parts.flat()), (stored) => {
      const proof = hashesOf(parts, stored.node)
      const isConsistent = verifyConsistency({
        first: first.tree_size,
        firstRoot: rootOf(first),
        second: second.tree_size,
        secondRoot: rootOf(second),
        proof
      })
      return isConsistent ? toHex(proof) : undefined
    })
  })

  /** A tile of the tree of a checkpoint. */
  const tile = Effect.fnUntraced(function* (
    tree: string,
    checkpoint: CheckpointRecord,
    asked: Tile
  ) {
    yield* pruning.refuse(tree, ({ has }) => ownNodes(asked).every(has))
    const size = checkpoint.tree_size
    const read = readTile(hashTree, tree, asked, nodesBeside(asked, size))
    return yield* proven(tree, checkpoint, read, ({ entries, hashes, node }) =>
      rootWithTile(asked, hashes, size, node).equals(rootOf(checkpoint))
        ? { hashes, entries }
        : undefined
    )
  })

  return { inclusion, consistency, tile }
})
