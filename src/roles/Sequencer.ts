/** The role sequencer: writes the chains of its partitions and signs them. */
import { Context, Effect, type Redacted } from "effect"
import type { SequencerSettings } from "../actors/sequencer/Sequencer.ts"
import { runSequencers } from "../actors/sequencer/Sequencers.ts"
import type { DataFolder } from "../adapters/embedded/DataFolder.ts"
import type { Config } from "../config/Config.ts"
import type { Signer } from "../domain/chain/Checkpoint.ts"
import { defined } from "../domain/Defined.ts"
import { CheckpointStore } from "../ports/CheckpointStore.ts"
import { TraceStore } from "../ports/TraceStore.ts"
import { publishSigningKey } from "../services/checkpoints/SigningKeys.ts"
import { layerCommandLog } from "../services/commands/CommandLog.ts"
import { finishRotation, previousOf, SigningKeyMissing } from "./SigningKey.ts"
import type { OpenedStore } from "./Store.ts"
import { usesStore } from "./Topology.ts"

/** What the role works with, beside the log. */
export interface SequencerParts {
  readonly folder: DataFolder["Service"] | undefined
  readonly secret: Redacted.Redacted
  readonly signer: Signer | undefined
  readonly stores: OpenedStore["stores"]
}

const lookupsOf = (stores: Effect.Success<OpenedStore["stores"]>) => ({
  traceStore: Context.get(stores, TraceStore),
  checkpointStore: Context.get(stores, CheckpointStore)
})

/** Starts it; comes back with the partitions that it works on right now, and how far it is. */
export const startSequencer = Effect.fnUntraced(function* (
  config: Config,
  { folder, secret, signer, stores }: SequencerParts
) {
  if (signer === undefined) {
    return yield* new SigningKeyMissing({
      message:
        "ALK_SIGNING_KEY_FILE: a process with the role sequencer and no data folder of its own "
        + "needs the key that signs checkpoints, the same for all; make one with: openssl genpkey "
        + "-algorithm ed25519 -out <file>"
    })
  }
  const previous = yield* previousOf(config, folder)
  const settings: SequencerSettings = {
    serviceName: config.serviceName,
    signer,
    ...defined({ previous }),
    windows: { dedup: config.dedupWindowEvents, idempotency: config.idempotencyWindowEntries },
    ...(usesStore(config) ? lookupsOf(yield* stores) : {})
  }
  const status = yield* runSequencers(settings)
  yield* publishSigningKey(signer, secret, previous).pipe(
    Effect.provide(layerCommandLog),
    Effect.scoped
  )
  if (previous !== undefined) {
    yield* Effect.forkScoped(finishRotation(config, folder, signer, previous))
  }
  return status
})
