/**
 * Where the key that signs checkpoints comes from: a file of the configuration, or one that is made
 * once in the data folder. Hands out a signer, never the key; what is signed is not its business.
 *
 * Rotation: replace the file, or call `rotateSigningKey` for the one in the data folder, and start
 * the sequencers again. The old public key stays in the registry, so old checkpoints still verify;
 * the old private key is not kept anywhere.
 */
import { Effect, Schema } from "effect"
import { generateKeyPairSync } from "node:crypto"
import * as fs from "node:fs"
import { dirname, join } from "node:path"
import { signerOf, SigningKeyInvalid, type Signer } from "../../domain/Checkpoint.ts"

/** The key can't be read, made or used. */
export class SigningKeyUnusable extends Schema.TaggedError<SigningKeyUnusable>()(
  "SigningKeyUnusable",
  { message: Schema.String, cause: Schema.Defect() }
) {}

/** Name of the key in the data folder. */
export const SIGNING_KEY_FILE = "signing-key.pem"

const OWNER_ONLY = 0o600
/** Permission bits of everybody but the file's owner and group. */
const OTHERS = 0o007
/** Bytes of a key file at most; a PEM with an Ed25519 key has 119. */
const KEY_FILE_BYTES_MAX = 16_384

const HOW_TO_MAKE = "make one with: openssl genpkey -algorithm ed25519 -out <file>"

const reasonOf = (cause: unknown): string => {
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
export const signerOfFile = Effect.fnUntraced(function*(serviceName: string, path: string) {
  const signer = yield* attempt(path, () => readSigner(serviceName, path))
  const mode = yield* attempt(path, () => fs.statSync(path).mode)
  if ((mode & OTHERS) !== 0) {
    yield* Effect.logWarning(
      `every user of this machine may read the signing key ${path}:`
        + " chmod o= it, unless nobody else is here"
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

/** Whole or not at all, also after a power failure: a lost key would end the log's identity. */
const writeKey = (path: string): void => {
  const aside = `${path}.${process.pid}.partial`
  const descriptor = fs.openSync(aside, "w", OWNER_ONLY)
  try {
    fs.writeSync(descriptor, newKey())
    fs.fsyncSync(descriptor)
  } finally {
    fs.closeSync(descriptor)
  }
  fs.renameSync(aside, path)
  syncFolder(path)
}

/** The signer of the key in the data folder, made at the first use, never replacing a damaged one. */
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

export interface RotatedKey {
  /** Key ids, 8 hex digits; undefined: there was no key. */
  readonly before: string | undefined
  readonly after: string
}

/**
 * Puts a new key in the place of the one in the data folder, which must be this process's own. The
 * key that was there is gone afterwards: it can sign nothing any more.
 */
export const rotateSigningKey = (
  serviceName: string,
  folder: string
): Effect.Effect<RotatedKey, SigningKeyUnusable> => {
  const path = join(folder, SIGNING_KEY_FILE)
  return attempt(path, () => {
    const before = fs.existsSync(path) ? readSigner(serviceName, path).keyId : undefined
    writeKey(path)
    return { before, after: readSigner(serviceName, path).keyId }
  })
}
