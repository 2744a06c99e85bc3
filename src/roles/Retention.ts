/** What removes records for good beside the API: of tenants with a retention, and deleted ones. */
import { Effect, Layer, type Redacted } from "effect"
import { layerIngest } from "../services/ingest/Ingest.ts"
import { runRetention } from "../services/retention/RetentionRounds.ts"
import { Verifier } from "../verify/Verifier.ts"

/** Goes over the chains with a retention; the registry decides between several processes. */
export const layerRetention = (secret: Redacted.Redacted, serviceName: string) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const verifier = yield* Verifier
      yield* runRetention({ secret, serviceName }, ({ checkpoint, key, ...stretch }) => {
        const { note, root_hash: rootHash, tree_size: treeSize } = checkpoint
        return verifier.verify({
          ...key,
          ...stretch,
          requireHead: false,
          onlyRange: true,
          checkpoints: [{ treeSize, rootHash, note }]
        })
      })
    })
  ).pipe(Layer.provide(layerIngest(secret)))
