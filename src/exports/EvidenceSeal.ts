/**
 * What makes an evidence pack more than the service's word: its signature, its public keys, and the
 * signed checkpoints with the parts of the tree that tie the pack to them. Where keys, checkpoints
 * and subtrees are kept is not said here.
 */
import { Context, Schema, type Effect } from "effect"
import type { CheckpointRecord } from "../domain/Checkpoint.ts"
import type { TreeNode } from "../domain/MerkleTree.ts"
import type { LogUnavailable } from "../ports/EventLog.ts"
import type { StoreUnavailable } from "../ports/EventStore.ts"
import type { StoredTree, TreeUnbuildable } from "../ports/HashTree.ts"

/** This process can't sign: it holds no key. */
export class SealUnavailable extends Schema.TaggedError<SealUnavailable>()("SealUnavailable", {
  message: Schema.String
}) {}

/** `tree` is the name of a tree, see domain/Chains. */
export class EvidenceSeal extends Context.Service<
  EvidenceSeal,
  {
    /** Fails if nothing can be signed here. */
    readonly ready: Effect.Effect<void, SealUnavailable>
    /** The signature lines of a note's text, as C2SP wants them. */
    sign(noteText: string): Effect.Effect<string, SealUnavailable>
    /** The public keys that ever signed for this service, as C2SP writes them. */
    readonly vkeys: Effect.Effect<ReadonlyArray<string>>
    /** The checkpoint of the whole chain of a tree, made now if the newest one is older. */
    latest(
      tree: string
    ): Effect.Effect<
      CheckpointRecord | undefined,
      LogUnavailable | SealUnavailable | StoreUnavailable
    >
    /** Checkpoints below this size, largest first. */
    earlier(
      tree: string,
      beforeSize: number,
      limit: number
    ): Effect.Effect<ReadonlyArray<CheckpointRecord>, StoreUnavailable>
    /** Hashes of complete subtrees. */
    nodes(
      tree: string,
      nodes: ReadonlyArray<TreeNode>
    ): Effect.Effect<StoredTree, StoreUnavailable | TreeUnbuildable>
  }
>()("alk/exports/EvidenceSeal") {}
