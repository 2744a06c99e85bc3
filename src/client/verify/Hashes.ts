/** SHA-256 as texts of hex digits: by the runtime's own function where it has one, else WebCrypto. */
import { builtinModule } from "../Environment.ts"

interface NodeCrypto {
  /** From Node 20.12 on. */
  readonly hash?: (algorithm: string, data: string, encoding: "hex") => string
}

const node = builtinModule("node:crypto") as NodeCrypto | undefined
const encoder = new TextEncoder()
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"))

const byWebCrypto = async (text: string): Promise<string> => {
  const digest = await crypto.subtle.digest("SHA-256", encoder.encode(text))
  return Array.from(new Uint8Array(digest), (byte) => HEX[byte]).join("")
}

/**
 * 64 hex digits. Rejects where the runtime has no SHA-256: browsers have it on pages that come by
 * https or from localhost.
 */
export const sha256 = async (text: string): Promise<string> =>
  node?.hash?.("sha256", text, "hex") ?? byWebCrypto(text)

/** What the first record of a chain has as `prev_hash`. */
export const GENESIS_HASH = "0".repeat(64)
