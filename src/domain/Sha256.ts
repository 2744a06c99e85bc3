/**
 * SHA-256 of this runtime, as `#sha256`: in a bundle for browsers Sha256ByHand is in its place
 * (`imports` in package.json), since a page from the disk may have no WebCrypto.
 */
import crypto from "node:crypto"
import type { Hasher } from "./Sha256ByHand.ts"

// Node before 20.12 can't hash at once, which takes half the time.
const atOnce: typeof crypto.hash | undefined = crypto.hash

/** 64 hex digits over bytes, or over a text in UTF-8. */
export const sha256: (data: string | Uint8Array) => string =
  atOnce === undefined
    ? (data) => crypto.createHash("sha256").update(data).digest("hex")
    : (data) => atOnce("sha256", data, "hex")

/** The 32 bytes of it. */
export const sha256Bytes: (data: string | Uint8Array) => Uint8Array =
  atOnce === undefined
    ? (data) => crypto.createHash("sha256").update(data).digest()
    : (data) => atOnce("sha256", data, "buffer")

export const sha256Hasher = (): Hasher => {
  const hash = crypto.createHash("sha256")
  return { update: (bytes) => hash.update(bytes), hex: () => hash.digest("hex") }
}
