/**
 * Where the key that signs checkpoints comes from: a file of the configuration, or one that is made
 * once in the data folder. Hands out a signer, never the key; it does not look at what is signed.
 *
 * Rotation: replace the file and name the old one as the one before, or call `rotateSigningKey` for
 * the one in the data folder, and start the sequencers again. The old key endorses the new one and
 * hands every tree over; then its private part is no longer needed and, in the data folder,
 * deleted. The old public key stays in the registry, so old checkpoints still verify.
 */
import { generateKeyPairSync } from "node:crypto"
import * as fs from "node:fs"
import { dirname, join } from "node:path"
import { Effect, Schema } from "effect"
import { type Signer, SigningKeyInvalid, signerOf } from "../../domain/chain/Checkpoint.ts"
import { writeWhole } from "../embedded/DataFolder.ts"

/** The key can't be read, made or used. */
export class SigningKeyUnusable extends Schema.TaggedError<SigningKeyUnusable>()(
  "SigningKeyUnusable",
  { message: Schema.String, cause: Schema.Defect() }
) {}

/** Name of the key in the data folder. */
export const SIGNING_KEY_FILE = "signing-key.pem"

/** Name of the key before it there, until the new one is endorsed. */
export const PREVIOUS_KEY_FILE = "signing-key.previous.pem"

/** Permission bits of users who are neither the file's owner nor in its group. */
const OTHERS = 0o007
/** Bytes of a key file at most; a PEM with an Ed25519 key has 119. */
const KEY_FILE_BYTES_MAX = 16_384

const HOW_TO_MAKE = "make one with: openssl genpkey -algorithm ed25519 -out <file>"

/** A second rotation before the first one is complete would lose the key that has to endorse. */
class RotationPending extends Error {}

const reasonOf = (cause: unknown): string => {
  if (cause instanceof RotationPending) return cause.message
  const { code, message } = cause as { readonly code?: string; readonly message?: string }
  if (code === "ENOENT") return `is not there: ${HOW_TO_MAKE}`
  if (code === "EACCES" || code === "EPERM") return "may not be read by this user"
  if (cause instanceof SigningKeyInvalid) return `can't be used, ${message}: ${HOW_TO_MAKE}`
  return `can't be used: ${message}`
}

const attempt = <A>(path: string, run: () => A): Effect.Effect<A, SigningKeyUnusable> =>
  Effect.try({
    try: run,
    catch: (cause) =>
      new SigningKeyUnusable({ message: `The signing key ${path} ${reasonOf(cause)}`, cause })
  })

const readSigner = (serviceName: string, path: string): Signer => {
  const { size } = fs.statSync(path)
  if (size > KEY_FILE_BYTES_MAX) throw new SigningKeyInvalid(`it has ${size} bytes`)
  return signerOf(serviceName, fs.readFileSync(path, "utf8"))
}

/**
 * The signer of a PKCS#8 PEM file. One that others may read is used all the same, because mounted
 * secrets often are like this, but not without a word.
 */
export const signerOfFile = Effect.fnUntraced(function* (serviceName: string, path: string) {
  const signer = yield* attempt(path, () => readSigner(serviceName, path))
  const mode = yield* attempt(path, () => fs.statSync(path).mode)
  if ((mode & OTHERS) !== 0) {
    yield* Effect.logWarning(
      `every user of this machine may read the signing key ${path}:`
        + " chmod o= it, unless this machine has no other users"
    )
  }
  return signer
})

const newKey = (): string =>
  generateKeyPairSync("ed25519").privateKey.export({ format: "pem", type: "pkcs8" }).toString()

const syncFolder = (path: string): void => {
  const descriptor = fs.openSync(dirname(path), "r")
  try {
    fs.fsyncSync(descriptor)
  } finally {
    fs.closeSync(descriptor)
  }
}

/** Its name, too, survives a power failure: a lost key would end the log's identity. */
const writeKey = (path: string): void => {
  writeWhole(path, newKey())
  syncFolder(path)
}

/**
 * The signer of the key in the data folder, made at the first use, never replacing a damaged one.
 */
export const keptSigner = (
  serviceName: string,
  folder: string
): Effect.Effect<Signer, SigningKeyUnusable> => {
  const path = join(folder, SIGNING_KEY_FILE)
  return attempt(path, () => {
    if (!fs.existsSync(path)) writeKey(path)
    return readSigner(serviceName, path)
  })
}

/** True if both files hold the same key: a rotation that was cut off before its second step. */
const isCopy = (serviceName: string, path: string, previous: string): boolean =>
  readSigner(serviceName, path).keyId === readSigner(serviceName, previous).keyId

/** The key before the one in the data folder, while the new one is not endorsed everywhere. */
export const keptPrevious = (
  serviceName: string,
  folder: string
): Effect.Effect<Signer | undefined, SigningKeyUnusable> => {
  const [path, previous] = [join(folder, SIGNING_KEY_FILE), join(folder, PREVIOUS_KEY_FILE)]
  return attempt(previous, () => {
    if (!fs.existsSync(previous)) return undefined
    if (!isCopy(serviceName, path, previous)) return readSigner(serviceName, previous)
    fs.rmSync(previous)
    return undefined
  })
}

/** The new key is endorsed everywhere: the old one can sign nothing any more. */
export const deletePrevious = (folder: string): Effect.Effect<void, SigningKeyUnusable> => {
  const previous = join(folder, PREVIOUS_KEY_FILE)
  return attempt(previous, () => {
    fs.rmSync(previous, { force: true })
    syncFolder(previous)
  })
}

export interface RotatedKey {
  /** Key ids, 8 hex digits; undefined: there was no key. */
  readonly before: string | undefined
  readonly after: string
}

/**
 * Puts a new key in the place of the one in the data folder, which must be this process's own. The
 * key that was there is kept beside it until the next start has let it endorse the new one.
 */
export const rotateSigningKey = (
  serviceName: string,
  folder: string
): Effect.Effect<RotatedKey, SigningKeyUnusable> => {
  const [path, previous] = [join(folder, SIGNING_KEY_FILE), join(folder, PREVIOUS_KEY_FILE)]
  return attempt(path, () => {
    const before = fs.existsSync(path) ? readSigner(serviceName, path).keyId : undefined
    if (fs.existsSync(previous)) {
      if (!isCopy(serviceName, path, previous)) {
        throw new RotationPending(
          "was rotated already: start the service once, so that the key before it endorses it"
        )
      }
    } else if (before !== undefined) {
      fs.linkSync(path, previous)
      syncFolder(path)
    }
    writeKey(path)
    return { before, after: readSigner(serviceName, path).keyId }
  })
}
