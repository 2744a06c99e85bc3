/** The key that signs in this process, and the one before it while it is being changed. */
import { Effect, Schema } from "effect"
import type { DataFolder } from "../adapters/embedded/DataFolder.ts"
import {
  deletePrevious,
  keptPrevious,
  keptSigner,
  signerOfFile
} from "../adapters/keys/SigningKey.ts"
import type { Config } from "../config/Config.ts"
import type { Signer } from "../domain/chain/Checkpoint.ts"
import { keyChanged } from "../services/checkpoints/SigningKeys.ts"

/** Who signs here: the key of the configuration, or the one in the data folder. */
export const signerOf = Effect.fnUntraced(function* (
  { serviceName, signingKeyFile }: Config,
  folder: DataFolder["Service"] | undefined
) {
  if (signingKeyFile !== undefined) return yield* signerOfFile(serviceName, signingKeyFile)
  return folder === undefined ? undefined : yield* keptSigner(serviceName, folder.path)
})

/** Who signed here until now, while the change to another key is under way. */
export const previousOf = Effect.fnUntraced(function* (
  { previousKeyFile, serviceName, signingKeyFile }: Config,
  folder: DataFolder["Service"] | undefined
) {
  if (previousKeyFile !== undefined) return yield* signerOfFile(serviceName, previousKeyFile)
  if (signingKeyFile !== undefined || folder === undefined) return undefined
  return yield* keptPrevious(serviceName, folder.path)
})

/** The key before is kept in the data folder until every partition has changed to the new one. */
export const finishRotation = (
  { previousKeyFile }: Config,
  folder: DataFolder["Service"] | undefined,
  signer: Signer,
  previous: Signer
) =>
  keyChanged(signer, previous).pipe(
    Effect.andThen(
      previousKeyFile === undefined && folder !== undefined
        ? deletePrevious(folder.path)
        : Effect.void
    ),
    Effect.andThen(
      Effect.logInfo(
        "the signing key is changed everywhere; the one before is not needed any more",
        {
          from: previous.keyId,
          to: signer.keyId
        }
      )
    ),
    Effect.catchCause((cause) =>
      Effect.logWarning("the change of the signing key could not be finished", { cause })
    )
  )

/** A sequencer signs checkpoints, and all of them with one key. */
export class SigningKeyMissing extends Schema.TaggedError<SigningKeyMissing>()(
  "SigningKeyMissing",
  {
    message: Schema.String
  }
) {}
