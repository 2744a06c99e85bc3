/**
 * The seal of evidence packs in a running service: this process's signing key, the published keys,
 * the checkpoints and the stored tree. Judges none of them: a checkpoint in the store that was not
 * signed by this service goes into the pack as it is, and the verifiers name it.
 */
import { Effect, Layer } from "effect"
import { PublishedKeys } from "../actors/PublishedKeys.ts"
import type { Signer } from "../domain/Checkpoint.ts"
import { isTrusted } from "../domain/KeyLine.ts"
import { Checkpoints } from "../pipeline/Checkpoints.ts"
import { CheckpointStore } from "../ports/CheckpointStore.ts"
import { HashTree } from "../ports/HashTree.ts"
import { EvidenceSeal, SealUnavailable } from "./EvidenceSeal.ts"

const noKey = () =>
  new SealUnavailable({
    message: "this process has no signing key: set ALK_SIGNING_KEY_FILE to the key of the service"
  })

const without = (message: string) => Effect.fail(new SealUnavailable({ message }))

/** Signs with the key of this process; without one no pack is made. */
export const layerEvidenceSeal = (
  signer: Signer | undefined
): Layer.Layer<EvidenceSeal, never, Checkpoints | CheckpointStore | HashTree | PublishedKeys> =>
  Layer.effect(
    EvidenceSeal,
    Effect.gen(function*() {
      const checkpoints = yield* Checkpoints
      const store = yield* CheckpointStore
      const hashTree = yield* HashTree
      const keys = yield* PublishedKeys
      return EvidenceSeal.of({
        ready: signer === undefined ? Effect.fail(noKey()) : Effect.void,
        sign: (text) =>
          signer === undefined ? Effect.fail(noKey()) : Effect.sync(() => signer.sign(text)),
        vkeys: Effect.map(keys.all, (all) => {
          const published = all.filter(isTrusted).map(({ vkey }) => vkey)
          // The registry may not know yet what this process has just begun to sign with.
          return signer === undefined || published.includes(signer.vkey)
            ? published
            : [...published, signer.vkey]
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
