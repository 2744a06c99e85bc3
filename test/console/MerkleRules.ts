/**
 * The tree of RFC 9162 as its text says it, word by word, and the keys that signed it: what proofs of
 * the console are compared with. Shares no code with the program.
 */
import { createHash } from "node:crypto"
import { checkpointSigner } from "../support/Signer.ts"

export const hash = (...parts: ReadonlyArray<Buffer>): Buffer =>
  createHash("sha256").update(Buffer.concat(parts)).digest()

/** RFC 9162, 2.1.1 and 2.1.3.1. */
export const rootOf = (leaves: ReadonlyArray<Buffer>): Buffer => {
  if (leaves.length === 1) return leaves[0]!
  const half = 2 ** Math.ceil(Math.log2(leaves.length) - 1)
  return hash(Buffer.of(1), rootOf(leaves.slice(0, half)), rootOf(leaves.slice(half)))
}
export const pathOf = (index: number, leaves: ReadonlyArray<Buffer>): ReadonlyArray<Buffer> => {
  if (leaves.length === 1) return []
  const half = 2 ** Math.ceil(Math.log2(leaves.length) - 1)
  const [left, right] = [leaves.slice(0, half), leaves.slice(half)]
  return index < half
    ? [...pathOf(index, left), rootOf(right)]
    : [...pathOf(index - half, right), rootOf(left)]
}

/** RFC 9162, 2.1.4.1: that these leaves only add to the first `size` of them. */
export const consistencyOf = (
  size: number,
  leaves: ReadonlyArray<Buffer>,
  isWhole = true
): ReadonlyArray<Buffer> => {
  if (size === leaves.length) return isWhole ? [] : [rootOf(leaves)]
  const half = 2 ** Math.ceil(Math.log2(leaves.length) - 1)
  const [left, right] = [leaves.slice(0, half), leaves.slice(half)]
  return size <= half
    ? [...consistencyOf(size, left, isWhole), rootOf(right)]
    : [...consistencyOf(size - half, right, false), rootOf(left)]
}

/** The document of public keys with the key of the tests. */
export const keysOf = (trusted: "root" | "unendorsed") => {
  const { signer } = checkpointSigner
  const key = {
    kty: "OKP" as const,
    crv: "Ed25519" as const,
    x: Buffer.from(signer.publicKey, "base64").toString("base64url"),
    kid: signer.keyId,
    use: "sig" as const,
    alg: "EdDSA" as const,
    trusted
  }
  return { keys: [key], vkeys: trusted === "root" ? [signer.vkey] : [] }
}
