/**
 * What a reader verifies an evidence pack by: its signature, the public keys, and the signed
 * checkpoints with the parts of the tree that tie the pack to them. Checks none of them: a
 * checkpoint in the store that this service did not sign goes into the pack, and the verifiers
 * report it.
 */
import { Context, Effect, Layer, Schema } from "effect"
import { type PublishedKey, PublishedKeys } from "../actors/follower/PublishedKeys.ts"
import { TreeSigners } from "../actors/follower/TreeSigners.ts"
import type { CheckpointRecord, Signer } from "../domain/chain/Checkpoint.ts"
import { isTrusted } from "../domain/chain/KeyStandings.ts"
import type { TreeNode } from "../domain/chain/MerkleTree.ts"
import { CheckpointStore } from "../ports/CheckpointStore.ts"
import type { LogUnavailable } from "../ports/EventLog.ts"
import type { StoreUnavailable } from "../ports/EventStore.ts"
import type { StoredTree, TreeUnbuildable } from "../ports/HashTree.ts"
import { HashTree } from "../ports/HashTree.ts"
import { Checkpoints } from "../services/checkpoints/Checkpoints.ts"

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
    /** The signature lines of a note's text, as C2SP defines them. */
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
    /** Genuine checkpoints below this size, largest first. */
    earlier(
      tree: string,
      beforeSize: number,
      limit: number
    ): Effect.Effect<ReadonlyArray<CheckpointRecord>, LogUnavailable | StoreUnavailable>
    /** Hashes of complete subtrees. */
    nodes(
      tree: string,
      nodes: ReadonlyArray<TreeNode>
    ): Effect.Effect<StoredTree, StoreUnavailable | TreeUnbuildable>
  }
>()("alk/exports/EvidenceSeal") {}

const noKey = () =>
  new SealUnavailable({
    message: "this process has no signing key: set ALK_SIGNING_KEY_FILE to the key of the service"
  })

const without = (message: string) => Effect.fail(new SealUnavailable({ message }))

/** An endorsement goes into packs only where it holds. */
const sealKeyOf = ({ endorsedBy, endorsement, vkey }: PublishedKey): SealKey =>
  endorsedBy === undefined || endorsement === undefined ? { vkey } : { vkey, endorsement }

/** Signs with the key of this process; without one no pack is made. */
export const layerEvidenceSeal = (
  signer: Signer | undefined
): Layer.Layer<
  EvidenceSeal,
  never,
  Checkpoints | CheckpointStore | HashTree | PublishedKeys | TreeSigners
> =>
  Layer.effect(
    EvidenceSeal,
    Effect.gen(function* () {
      const checkpoints = yield* Checkpoints
      const store = yield* CheckpointStore
      const hashTree = yield* HashTree
      const keys = yield* PublishedKeys
      const signers = yield* TreeSigners
      return EvidenceSeal.of({
        ready: signer === undefined ? Effect.fail(noKey()) : Effect.void,
        sign: (text) =>
          signer === undefined ? Effect.fail(noKey()) : Effect.sync(() => signer.sign(text)),
        keys: Effect.map(keys.all, (all) => {
          const published = all.filter(isTrusted).map(sealKeyOf)
          // The registry may not know yet what this process has just begun to sign with.
          return signer === undefined || published.some(({ vkey }) => vkey === signer.vkey)
            ? published
            : [...published, { vkey: signer.vkey }]
        }),
        signers: Effect.fnUntraced(function* (tree) {
          const all = (yield* keys.all).filter(isTrusted)
          const handOvers: Array<{ readonly vkey: string; readonly note: string }> = []
          for (const { keyId, vkey } of all.filter(({ next }) => next !== undefined)) {
            const known = yield* signers.of(tree, [keyId])
            for (const note of known.handOvers) handOvers.push({ vkey, note })
          }
          // Before a sequencer has said who signs, none of the keys has handed anything over.
          const current = (yield* signers.of(tree, [])).signer ?? all[0]?.vkey
          return { handOvers, ...(current === undefined ? {} : { signer: current }) }
        }),
        latest: (tree) =>
          checkpoints.latest(tree).pipe(
            Effect.catchTag("CheckpointMismatch", () => store.latest(tree)),
            Effect.catchTag("ProofRefused", () => Effect.succeed(undefined)),
            Effect.catchTag("CheckpointTimedOut", ({ message }) => without(message))
          ),
        earlier: (tree, beforeSize, limit) =>
          Effect.map(checkpoints.list(tree, { beforeSize, limit }), (page) => page.checkpoints),
        nodes: hashTree.nodes
      })
    })
  )
