/**
 * Signed checkpoints and the proofs that refer to them. Asks the sequencer for a checkpoint when
 * the chain has grown since the newest one; makes proofs of what the store holds, and gives none
 * that does not lead to a root that one of the published keys has signed.
 */
import { Context, Effect, Layer, Redacted } from "effect"
import type { ChainEnds } from "../../actors/chainEnds/ChainEnds.ts"
import { Heads, headOf } from "../../actors/follower/Heads.ts"
import type { PublishedKeys } from "../../actors/follower/PublishedKeys.ts"
import type { Receipts } from "../../actors/follower/Receipts.ts"
import type { ProjectionProgress } from "../../actors/log/ProjectionProgress.ts"
import { chainOfTree } from "../../domain/chain/Chains.ts"
import type { CheckpointRecord } from "../../domain/chain/Checkpoint.ts"
import { leavesUpTo, type Tile } from "../../domain/chain/Tile.ts"
import type { CheckpointStore } from "../../ports/CheckpointStore.ts"
import type { EventLog, LogUnavailable } from "../../ports/EventLog.ts"
import type { StoreUnavailable } from "../../ports/EventStore.ts"
import type { HashTree } from "../../ports/HashTree.ts"
import type { CommandLog } from "../commands/CommandLog.ts"
import { type CheckpointFailure, ProofRefused } from "./CheckpointFailures.ts"
import { makeCheckpointRequests } from "./CheckpointRequests.ts"
import { type CheckpointPage, makeKnownCheckpoints } from "./KnownCheckpoints.ts"
import {
  type ConsistencyProof,
  type InclusionProof,
  makeStoredProofs,
  type ProvenTile
} from "./StoredProofs.ts"

type Answer<A> = Effect.Effect<A, CheckpointFailure>

/** `tree` is the name of a tree, see domain/Chains. */
export class Checkpoints extends Context.Service<
  Checkpoints,
  {
    /** The newest one that there is; undefined if there is none. Signs nothing. */
    held(tree: string): Answer<CheckpointRecord | undefined>
    /** One of the whole chain as it is, signed now if need be. */
    latest(tree: string): Answer<CheckpointRecord>
    /** `beforeSize` is exclusive. */
    list(
      tree: string,
      page: { readonly beforeSize?: number; readonly limit: number }
    ): Effect.Effect<CheckpointPage, LogUnavailable | StoreUnavailable>
    /** That a leaf is part of the tree of a checkpoint, the newest one if no size is given. */
    inclusion(tree: string, sequenceNumber: number, treeSize?: number): Answer<InclusionProof>
    /** A tile as the store holds it now, which leads to the root of a signed checkpoint. */
    tile(tree: string, tile: Tile): Answer<ProvenTile>
    /** That one checkpoint's tree is the beginning of the other's, the newest one if not given. */
    consistency(tree: string, first: number, second?: number): Answer<ConsistencyProof>
  }
>()("alk/Checkpoints") {}

export interface CheckpointSettings {
  readonly secret: Redacted.Redacted
  readonly serviceName: string
}

/** What the leaves of a tree are. */
const nounOf = (tree: string): string =>
  chainOfTree(tree).chain === "events" ? "event" : "trace fact"

const make = Effect.fnUntraced(function* ({ secret, serviceName }: CheckpointSettings) {
  const heads = yield* Heads
  const known = yield* makeKnownCheckpoints(serviceName)
  const request = yield* makeCheckpointRequests(known, Redacted.value(secret))
  const proofs = yield* makeStoredProofs

  const latest = Effect.fn("Checkpoints.latest")(function* (
    tree: string
  ): Effect.fn.Return<CheckpointRecord, CheckpointFailure> {
    const head = yield* headOf(heads, chainOfTree(tree))
    if (head === undefined) {
      return yield* new ProofRefused({ code: "not_found", message: "the chain is empty" })
    }
    const newest = yield* known.newest(tree)
    if (newest !== undefined && newest.tree_size >= head.sequence_number) return newest
    const asked = yield* request(tree)
    // Another request may have asked before this chain had grown.
    return asked.tree_size >= head.sequence_number ? asked : yield* request(tree)
  })

  /** The newest checkpoint, or if it doesn't reach this far, one that is made now. */
  const reaching = Effect.fnUntraced(function* (tree: string, sequenceNumber: number) {
    const newest = yield* known.newest(tree)
    if (newest !== undefined && newest.tree_size >= sequenceNumber) return newest
    return yield* latest(tree)
  })

  const inclusion: Checkpoints["Service"]["inclusion"] = Effect.fn("Checkpoints.inclusion")(
    function* (tree, sequenceNumber, treeSize) {
      const checkpoint =
        treeSize === undefined
          ? yield* reaching(tree, sequenceNumber)
          : yield* known.ofSize(tree, treeSize, "tree_size")
      const size = checkpoint.tree_size
      if (sequenceNumber > size) {
        return yield* treeSize === undefined
          ? new ProofRefused({ code: "not_found", message: `there is no such ${nounOf(tree)}` })
          : new ProofRefused({
              code: "invalid_range",
              field: "sequence_number",
              message: `is beyond the ${size} ${nounOf(tree)}s of the checkpoint`
            })
      }
      const proof = yield* proofs.inclusion(tree, checkpoint, sequenceNumber)
      return { checkpoint, sequenceNumber, ...proof }
    }
  )

  const consistency: Checkpoints["Service"]["consistency"] = Effect.fn("Checkpoints.consistency")(
    function* (tree, firstSize, secondSize) {
      if (secondSize !== undefined && firstSize > secondSize) {
        return yield* new ProofRefused({
          code: "invalid_range",
          field: "first",
          message: "is larger than second"
        })
      }
      const first = yield* known.ofSize(tree, firstSize, "first")
      const second =
        secondSize === undefined
          ? ((yield* known.newest(tree)) ?? first)
          : yield* known.ofSize(tree, secondSize, "second")
      return { first, second, proof: yield* proofs.consistency(tree, first, second) }
    }
  )

  /** A checkpoint whose tree has the tile, not necessarily the newest one. */
  const covering = Effect.fnUntraced(function* (tree: string, tile: Tile) {
    const last = known.lastGenuine(tree)
    if (last !== undefined && last.tree_size >= leavesUpTo(tile)) return last
    const newest = yield* known.newest(tree)
    if (newest !== undefined && newest.tree_size >= leavesUpTo(tile)) return newest
    const size = newest?.tree_size ?? 0
    const message = `the newest signed checkpoint is of size ${size}, which has no such tile`
    return yield* new ProofRefused({ code: "not_found", message })
  })

  const tile: Checkpoints["Service"]["tile"] = Effect.fn("Checkpoints.tile")(
    function* (tree, asked) {
      return yield* proofs.tile(tree, yield* covering(tree, asked), asked)
    }
  )

  return Checkpoints.of({
    held: known.newest,
    latest,
    list: known.list,
    inclusion,
    tile,
    consistency
  })
})

/** Checkpoints signed by the sequencers, proofs made of the store. */
export const layerCheckpoints = (
  settings: CheckpointSettings
): Layer.Layer<
  Checkpoints,
  never,
  | ChainEnds
  | CheckpointStore
  | CommandLog
  | EventLog
  | HashTree
  | Heads
  | PublishedKeys
  | Receipts
  | ProjectionProgress
> => Layer.effect(Checkpoints, make(settings))
