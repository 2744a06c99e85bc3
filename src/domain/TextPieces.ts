/** Long texts in pieces, so that what is done with all of one can be done in steps. */
import { createHash } from "node:crypto"
import { sha256Hex } from "./Identifiers.ts"
import type { Sliced } from "./Slices.ts"

/** Characters of a piece: hashing one takes a millisecond or two. */
export const PIECE_LENGTH = 262_144

const isHigh = (unit: number): boolean => (unit & 0xfc00) === 0xd800
const isLow = (unit: number): boolean => (unit & 0xfc00) === 0xdc00

/** The pieces of a text, none of which ends within a surrogate pair. */
export function* piecesOf(text: string): Generator<string, void, void> {
  for (let start = 0; start < text.length; ) {
    let end = Math.min(text.length, start + PIECE_LENGTH)
    if (isHigh(text.charCodeAt(end - 1)) && isLow(text.charCodeAt(end))) end += 1
    yield text.slice(start, end)
    start = end
  }
}

/** SHA-256 of the pieces of a text, one a step, as `bytesOf` encodes each; 64 hex digits. */
export function* sha256InSteps(
  text: string,
  bytesOf: (piece: string) => string | Buffer = (piece) => piece
): Sliced<string> {
  if (text.length <= PIECE_LENGTH) return sha256Hex(bytesOf(text))
  const hash = createHash("sha256")
  for (const piece of piecesOf(text)) {
    yield
    hash.update(bytesOf(piece))
  }
  return hash.digest("hex")
}
