/**
 * What verification knows of signed checkpoints: those that the store keeps and those that a caller
 * has kept, each believed only as far as a published key has signed it and was to sign it. Says
 * what a note says, never whether the chain agrees.
 */
import { Context, Effect, Layer, Option } from "effect"
import { ChainEnds } from "../actors/chainEnds/ChainEnds.ts"
import { newestGenuine } from "../actors/chainEnds/GenuineCheckpoints.ts"
import { PublishedKeys } from "../actors/follower/PublishedKeys.ts"
import { openNote } from "../domain/chain/Checkpoint.ts"
import { hashesOf, inclusionParts } from "../domain/chain/MerkleTree.ts"
import { CheckpointStore } from "../ports/CheckpointStore.ts"
import type { LogUnavailable } from "../ports/EventLog.ts"
import type { StoreUnavailable } from "../ports/EventStore.ts"
import { HashTree } from "../ports/HashTree.ts"

/** A checkpoint whose note was opened with a published key and names this tree. */
export interface SignedCheckpoint {
  readonly treeSize: number
  /** 64 hex digits. */
  readonly rootHash: string
  readonly note: string
}

/** A checkpoint that is not what it should be: not signed, or about something else. */
export interface ForgedCheckpoint {
  /** As its row, or its text, says; 0 if that can't be read. */
  readonly treeSize: number
  readonly problem: string
}

export type CheckpointFound = SignedCheckpoint | ForgedCheckpoint

export const isForged = (found: CheckpointFound): found is ForgedCheckpoint => "problem" in found

/** A text that is not a checkpoint at all, signed or not. */
export interface NotACheckpoint {
  readonly unreadable: string
}

/** `tree` is the name of a tree, see domain/Chains. */
export class SignedCheckpoints extends Context.Service<
  SignedCheckpoints,
  {
    /** The one with the largest tree of at most this size, as the store has it. */
    newestAtOrBelow(
      tree: string,
      treeSize: number
    ): Effect.Effect<CheckpointFound | undefined, LogUnavailable | StoreUnavailable>
    /** The newest one on `alk.checkpoints` that a published key has signed for this tree. */
    published(tree: string): Effect.Effect<SignedCheckpoint | undefined, LogUnavailable>
    /** What a kept note says. */
    open(
      tree: string,
      note: string
    ): Effect.Effect<CheckpointFound | NotACheckpoint, LogUnavailable>
    /**
     * RFC 9162 proof that a leaf is part of the tree of this size, made of what is stored and not
     * checked; undefined if the store can't make one. `anew`: of the leaves, not of the subtrees
     * that are kept.
     */
    inclusion(
      tree: string,
      sequenceNumber: number,
      treeSize: number,
      anew: boolean
    ): Effect.Effect<ReadonlyArray<Buffer> | undefined, StoreUnavailable>
  }
>()("alk/SignedCheckpoints") {
  /** Of a service that signs none. */
  static readonly none = SignedCheckpoints.of({
    newestAtOrBelow: () => Effect.succeed(undefined),
    published: () => Effect.succeed(undefined),
    open: () => Effect.succeed({ unreadable: "this service signs no checkpoints" }),
    inclusion: () => Effect.succeed(undefined)
  })
}

/** Those of the service where they are provided, else none. */
export const signedCheckpoints: Effect.Effect<SignedCheckpoints["Service"]> = Effect.map(
  Effect.serviceOption(SignedCheckpoints),
  Option.getOrElse(() => SignedCheckpoints.none)
)

/** After so many forged checkpoints the search for an older genuine one ends. */
const FORGED_MAX = 10

/**
 * The checkpoints to compare with: those of the caller, and the newest that a chain reaches. What is
 * forged counts only beyond the newest genuine one on the topic, which leads back to all before it.
 */
export const checkpointsOf = Effect.fnUntraced(function* (
  checkpoints: SignedCheckpoints["Service"],
  given: ReadonlyArray<SignedCheckpoint>,
  tree: string,
  last: number,
  /** How many of those that the store has. */
  wanted: number
) {
  const signed: Array<SignedCheckpoint> = [...given]
  const forged: Array<ForgedCheckpoint> = []
  const published = yield* checkpoints.published(tree)
  if (published !== undefined) signed.push(published)
  let genuine = 0
  let passedOver = 0
  for (let size = last; size > 0 && genuine < wanted; ) {
    if (forged.length + passedOver >= FORGED_MAX) break
    const found = yield* checkpoints.newestAtOrBelow(tree, size)
    if (found === undefined) break
    if (isForged(found)) {
      if (found.treeSize >= (published?.treeSize ?? 0)) forged.push(found)
      else passedOver += 1
    } else {
      genuine += 1
      if (signed.every(({ rootHash }) => rootHash !== found.rootHash)) signed.push(found)
    }
    size = Math.min(size, found.treeSize) - 1
  }
  return { signed, forged }
})

const make = Effect.fnUntraced(function* (serviceName: string) {
  const store = yield* CheckpointStore
  const keys = yield* PublishedKeys
  const ends = yield* ChainEnds
  const hashTree = yield* HashTree

  const openedNow = (note: string) =>
    Effect.map(keys.all, (all) =>
      openNote(
        note,
        all.map(({ vkey }) => vkey)
      )
    )

  const open: SignedCheckpoints["Service"]["open"] = Effect.fnUntraced(function* (tree, note) {
    let opened = yield* openedNow(note)
    if ("refusal" in opened && opened.refusal === "unknown_key") {
      // This process may not have heard of a new key yet.
      yield* keys.caughtUp
      opened = yield* openedNow(note)
    }
    if ("refusal" in opened) {
      return opened.refusal === "malformed"
        ? { unreadable: opened.message }
        : { treeSize: claimedSize(note), problem: opened.message }
    }
    const { origin, rootHash, treeSize } = opened.checkpoint
    const expected = `${serviceName}/${tree}`
    if (origin !== expected) {
      return { treeSize, problem: `it is about ${origin}, not about ${expected}` }
    }
    const problem = yield* keys.refusal(tree, opened.checkpoint)
    return problem === undefined ? { treeSize, rootHash, note } : { treeSize, problem }
  })

  const published: SignedCheckpoints["Service"]["published"] = (tree) =>
    Effect.map(newestGenuine(ends, keys, serviceName, tree), (found) =>
      found === undefined
        ? undefined
        : {
            treeSize: found.opened.treeSize,
            rootHash: found.opened.rootHash,
            note: found.record.note
          }
    )

  return SignedCheckpoints.of({
    open,
    published,
    newestAtOrBelow: Effect.fnUntraced(function* (tree, treeSize) {
      const record = yield* store.atOrBelow(tree, treeSize)
      if (record === undefined) return undefined
      const claimed = record.tree_size
      const opened = yield* open(tree, String(record.note))
      if ("unreadable" in opened) return { treeSize: claimed, problem: opened.unreadable }
      if (isForged(opened)) return { treeSize: claimed, problem: opened.problem }
      return opened.treeSize === claimed
        ? opened
        : { treeSize: claimed, problem: `its note is about ${opened.treeSize} events` }
    }),
    inclusion: Effect.fnUntraced(function* (tree, sequenceNumber, treeSize, anew) {
      if (anew) yield* hashTree.forget(tree)
      const parts = inclusionParts(sequenceNumber - 1, treeSize)
      return yield* hashTree.nodes(tree, parts.flat()).pipe(
        Effect.map(({ node }) => hashesOf(parts, node)),
        Effect.catchTag("TreeUnbuildable", () => Effect.succeed(undefined))
      )
    })
  })
})

/** The size on the second line of a note that is not signed. */
const claimedSize = (note: string): number => {
  const size = Number(note.split("\n", 2)[1])
  return Number.isSafeInteger(size) && size >= 0 ? size : 0
}

/** Over the checkpoints, the tree and the keys that the service publishes. */
export const layerSignedCheckpoints = (
  serviceName: string
): Layer.Layer<SignedCheckpoints, never, ChainEnds | CheckpointStore | HashTree | PublishedKeys> =>
  Layer.effect(SignedCheckpoints, make(serviceName))
