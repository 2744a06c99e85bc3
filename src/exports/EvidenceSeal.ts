/**
 * What makes an evidence pack more than the service's word: its signature, its public keys, and the
 * signed checkpoints with the parts of the tree that tie the pack to them. Where keys, checkpoints
 * and subtrees are kept is not said here.
 */
import { Context, type Effect, Schema } from "effect"
import type { CheckpointRecord } from "../domain/chain/Checkpoint.ts"
import type { TreeNode } from "../domain/chain/MerkleTree.ts"
import type { LogUnavailable } from "../ports/EventLog.ts"
import type { StoreUnavailable } from "../ports/EventStore.ts"
import type { StoredTree, TreeUnbuildable } from "../ports/HashTree.ts"

/** This process can't sign: it holds no key. */
export class SealUnavailable extends Schema.TaggedError<SealUnavailable>()("SealUnavailable", {
  message: Schema.String
}) {}

/** A key that signed for this service, and the statement of the key before it, if there is one. */
export interface SealKey {
  /** As C2SP writes it. */
  readonly vkey: string
  readonly endorsement?: string
}

/** Who signs a tree, and how it came to that. */
export interface SealedTree {
  /** Notes of the checkpoints with which these keys have handed the tree over. */
  readonly handOvers: ReadonlyArray<{ readonly vkey: string; readonly note: string }>
  /** vkey of the key that signs the tree now. */
  readonly signer?: string
}

/** `tree` is the name of a tree, see domain/Chains. */
export class EvidenceSeal extends Context.Service<
  EvidenceSeal,
  {
    /** Fails if nothing can be signed here. */
    readonly ready: Effect.Effect<void, SealUnavailable>
    /** The signature lines of a note's text, as C2SP wants them. */
    sign(noteText: string): Effect.Effect<string, SealUnavailable>
    /** The public keys that ever signed for this service, in the order in which they were added. */
    readonly keys: Effect.Effect<ReadonlyArray<SealKey>>
    /** The keys of a tree. */
    signers(tree: string): Effect.Effect<SealedTree>
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
