/**
 * The public keys of checkpoints: each process that signs publishes its key through the registry,
 * and every process reads them from there. A key that was rotated away stays published, for what it
 * signed.
 */
import { Effect, Layer, type Redacted } from "effect"
import { RegistryView } from "../actors/Follower.ts"
import { PublishedKeys, type PublishedKey } from "../actors/PublishedKeys.ts"
import type { Signer } from "../domain/Checkpoint.ts"
import type { SigningKey } from "../domain/Registry.ts"
import { formatMicros, nowMicros } from "../domain/Timestamp.ts"
import { CommandLog } from "./CommandLog.ts"
import { systemCommand } from "./SystemActs.ts"

const toPublished = ({ added_at, key_id, public_key, vkey }: SigningKey): PublishedKey => ({
  keyId: key_id,
  vkey,
  publicKey: public_key,
  addedAt: added_at
})

/** The keys that the registry knows. */
export const layerPublishedKeys: Layer.Layer<PublishedKeys, never, RegistryView> = Layer.effect(
  PublishedKeys,
  Effect.map(RegistryView, (view) =>
    PublishedKeys.of({
      caughtUp: view.caughtUp,
      all: Effect.sync(() =>
        [...view.registry().signingKeys.values()]
          .map(toPublished)
          .sort((left, right) => (left.addedAt < right.addedAt ? -1 : 1))
      )
    })
  )
)

/** Ask for a key to be published; it changes nothing if it is already. Waits for no decision. */
export const publishSigningKey = Effect.fn("SigningKeys.publish")(function*(
  signer: Signer,
  secret: Redacted.Redacted
) {
  const commands = yield* CommandLog
  const { keyId, name, publicKey, vkey } = signer
  const command = systemCommand(secret, {
    actor: name,
    action: "signing_key.added",
    resource: { type: "signing_key", id: keyId },
    metadata: { vkey }
  })
  const signing_key: SigningKey = {
    key_id: keyId,
    vkey,
    public_key: publicKey,
    added_at: formatMicros(nowMicros())
  }
  yield* commands.submit({
    ...command,
    kind: "registry",
    operation: { op: "add_signing_key", signing_key }
  })
})
