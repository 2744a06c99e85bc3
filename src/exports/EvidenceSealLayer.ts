/**
 * The seal of evidence packs in a running service: this process's signing key, the published keys,
 * the checkpoints and the stored tree. Judges none of them: a checkpoint in the store that was not
 * signed by this service goes into the pack as it is, and the verifiers name it.
 */
import { Effect, Layer } from "effect"
import { type PublishedKey, PublishedKeys } from "../actors/follower/PublishedKeys.ts"
import { TreeSigners } from "../actors/follower/TreeSigners.ts"
import type { Signer } from "../domain/chain/Checkpoint.ts"
import { isTrusted } from "../domain/chain/KeyLine.ts"
import { CheckpointStore } from "../ports/CheckpointStore.ts"
import { HashTree } from "../ports/HashTree.ts"
import { Checkpoints } from "../services/checkpoints/Checkpoints.ts"
import { EvidenceSeal, type SealKey, SealUnavailable } from "./EvidenceSeal.ts"

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
        earlier: (tree, beforeSize, limit) => store.list(tree, { beforeSize, limit }),
        nodes: hashTree.nodes
      })
    })
  )
