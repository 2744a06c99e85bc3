/** The signing key as a file: made once, read, refused, replaced. */
import { execFileSync } from "node:child_process"
import { generateKeyPairSync } from "node:crypto"
import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import {
  deletePrevious,
  keptPrevious,
  keptSigner,
  PREVIOUS_KEY_FILE,
  rotateSigningKey,
  SIGNING_KEY_FILE,
  signerOfFile
} from "../../../src/adapters/keys/SigningKey.ts"
import { makeCheckpoint, openNote } from "../../../src/domain/chain/Checkpoint.ts"
import { Frontier } from "../../../src/domain/chain/MerkleTree.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => fs.mkdtempSync(join(tmpdir(), "alk-keys-"))),
  (path) => Effect.sync(() => fs.rmSync(path, { recursive: true, force: true }))
)

const pemOf = (type: "ed25519" | "x25519") =>
  (type === "ed25519"
    ? generateKeyPairSync("ed25519")
    : generateKeyPairSync("x25519")
  ).privateKey.export({ format: "pem", type: "pkcs8" })

const warnings: Array<string> = []
const logger = Logger.layer([
  Logger.make(({ logLevel, message }) => {
    if (logLevel === "Warn") warnings.push(String(message))
  })
])

layer(Layer.mergeAll(logger))("the signing key", (it) => {
  it.effect("is made once in the data folder, for its owner alone", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const first = yield* keptSigner("alk", path)
      const file = join(path, SIGNING_KEY_FILE)
      assert.strictEqual(fs.statSync(file).mode & 0o777, 0o600)
      assert.deepStrictEqual(fs.readdirSync(path), [SIGNING_KEY_FILE])
      assert.strictEqual((yield* keptSigner("alk", path)).vkey, first.vkey)
      const elsewhere = yield* folder
      assert.notStrictEqual((yield* keptSigner("alk", elsewhere)).vkey, first.vkey)
    })
  )

  it.effect("is never replaced because it is damaged", () =>
    Effect.gen(function* () {
      const path = yield* folder
      yield* keptSigner("alk", path)
      const file = join(path, SIGNING_KEY_FILE)
      const damaged = fs.readFileSync(file, "utf8").slice(0, 60)
      fs.writeFileSync(file, damaged)
      const refused = yield* Effect.flip(keptSigner("alk", path))
      assert.include(refused.message, file)
      assert.include(refused.message, "PKCS#8")
      assert.strictEqual(fs.readFileSync(file, "utf8"), damaged)
      const rotated = yield* Effect.flip(rotateSigningKey("alk", path))
      assert.strictEqual(rotated._tag, "SigningKeyUnusable")
      assert.strictEqual(fs.readFileSync(file, "utf8"), damaged)
    })
  )

  it.effect("is read from a file of the configuration, as other tools make it", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "key.pem")
      fs.writeFileSync(file, pemOf("ed25519"), { mode: 0o600 })
      const signer = yield* signerOfFile("alk", file)
      const openssl = execFileSync("openssl", ["pkey", "-in", file, "-pubout", "-outform", "DER"])
      assert.strictEqual(signer.publicKey, openssl.subarray(-32).toString("base64"))
      assert.deepStrictEqual(warnings, [])
      fs.chmodSync(file, 0o644)
      assert.strictEqual((yield* signerOfFile("alk", file)).vkey, signer.vkey)
      assert.lengthOf(warnings, 1)
      assert.include(warnings[0], file)
    })
  )

  it.effect("is refused with what is wrong and what helps, never with what the file holds", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const file = join(path, "key.pem")
      const refusal = Effect.map(Effect.flip(signerOfFile("alk", file)), ({ message }) => message)
      assert.include(yield* refusal, "is not there")
      for (const content of ["", "canary", pemOf("x25519"), "canary".repeat(10_000)]) {
        fs.writeFileSync(file, content, { mode: 0o600 })
        const message = yield* refusal
        assert.include(message, file)
        assert.include(message, "openssl genpkey")
        assert.notInclude(message, "canary")
      }
      fs.rmSync(file)
      fs.mkdirSync(file)
      assert.include(yield* refusal, file)
    })
  )

  it.effect("is rotated: the new one signs, the old public key still verifies", () =>
    Effect.gen(function* () {
      const path = yield* folder
      assert.deepInclude(yield* rotateSigningKey("alk", path), { before: undefined })
      const old = yield* keptSigner("alk", path)
      const note = makeCheckpoint(old, "alk", "acme", Frontier.empty(), "").note
      const { after, before } = yield* rotateSigningKey("alk", path)
      assert.strictEqual(before, old.keyId)
      const current = yield* keptSigner("alk", path)
      assert.strictEqual(current.keyId, after)
      assert.notStrictEqual(after, before)
      assert.property(openNote(note, [current.vkey, old.vkey]), "checkpoint")
      assert.deepInclude(openNote(note, [current.vkey]), { refusal: "unknown_key" })
      // The old one is kept until it has endorsed the new one, and is not lost by another rotation.
      assert.strictEqual((yield* keptPrevious("alk", path))?.keyId, old.keyId)
      const again = yield* Effect.flip(rotateSigningKey("alk", path))
      assert.include(again.message, "start the service once")
      assert.strictEqual((yield* keptSigner("alk", path)).keyId, after)
      for (const name of [SIGNING_KEY_FILE, PREVIOUS_KEY_FILE]) {
        assert.strictEqual(fs.statSync(join(path, name)).mode & 0o777, 0o600)
      }
      yield* deletePrevious(path)
      assert.isUndefined(yield* keptPrevious("alk", path))
      assert.deepStrictEqual(fs.readdirSync(path), [SIGNING_KEY_FILE])
    })
  )

  it.effect("is not changed by a rotation that was cut off, which can be made again", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const old = yield* keptSigner("alk", path)
      fs.linkSync(join(path, SIGNING_KEY_FILE), join(path, PREVIOUS_KEY_FILE))
      assert.deepInclude(yield* rotateSigningKey("alk", path), { before: old.keyId })
      assert.strictEqual((yield* keptPrevious("alk", path))?.keyId, old.keyId)
      fs.copyFileSync(join(path, SIGNING_KEY_FILE), join(path, PREVIOUS_KEY_FILE))
      assert.isUndefined(yield* keptPrevious("alk", path))
      assert.deepStrictEqual(fs.readdirSync(path), [SIGNING_KEY_FILE])
    })
  )
})
