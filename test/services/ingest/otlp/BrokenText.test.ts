/** Texts that can't be stored: what was sent of them, and what is stored in their place. */
import { createHash } from "node:crypto"
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { finish } from "../../../../src/domain/Slices.ts"
import { PIECE_LENGTH } from "../../../../src/domain/TextPieces.ts"
import { hashAsSent, mended, textOfBytes } from "../../../../src/services/ingest/otlp/BrokenText.ts"
import { runs } from "../../../support/Runs.ts"

const sequences = ["a", "\0", "é", "字", "🙂", "\u{10fc85}"].map((text) => Buffer.from(text))
const broken = [[0xff], [0xc3], [0xe2, 0x82], [0xed, 0xa0, 0x80], [0xe0, 0x80], [0xf4, 0x90, 0x80]]
const anyBytes = fc
  .array(
    fc.oneof(
      fc.constantFrom(...sequences),
      fc.constantFrom(...broken.map((bytes) => Buffer.from(bytes))),
      fc.uint8Array({ maxLength: 4 }).map((bytes) => Buffer.from(bytes))
    ),
    { maxLength: 12 }
  )
  .map((parts) => Buffer.concat(parts))

/** Before some bytes, so that they are where one piece of the text ends and the next begins. */
const atEdge = (bytes: Buffer, before: number): Buffer =>
  Buffer.concat([Buffer.alloc(PIECE_LENGTH - before, "x"), bytes])

describe("bytes that may be no UTF-8", () => {
  it("have the hash that they were sent with, in pieces too", () => {
    fc.assert(
      fc.property(anyBytes, fc.nat({ max: 24 }), fc.boolean(), (some, before, isLong) => {
        const bytes = isLong ? atEdge(some, before) : some
        const sent = createHash("sha256").update(bytes).digest("hex")
        assert.strictEqual(finish(hashAsSent(textOfBytes(bytes))), sent)
      }),
      { numRuns: runs(200) }
    )
  })

  it("are stored with one U+FFFD for bytes in a row, and one for each U+0000", () => {
    fc.assert(
      fc.property(anyBytes, fc.nat({ max: 24 }), fc.boolean(), (some, before, isLong) => {
        const text = textOfBytes(isLong ? atEdge(some, before) : some)
        const expected = text
          .replaceAll(/[\udc80-\udcff]+/gu, "\ufffd")
          .toWellFormed()
          .replaceAll("\0", "\ufffd")
        assert.strictEqual(mended(text), expected)
      }),
      { numRuns: runs(200) }
    )
  })
})
