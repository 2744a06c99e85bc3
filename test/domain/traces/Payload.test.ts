/** Pieces of large values: together the value, none too long for a record of the public topics. */
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { canonicalize } from "../../../src/domain/json/CanonicalJson.ts"
import {
  CHUNK_BYTES,
  CHUNK_JSON_BYTES,
  chunksOf,
  PAYLOAD_VALUE_BYTES_MAX
} from "../../../src/domain/traces/Payload.ts"
import { runs } from "../../support/Runs.ts"

/** Bytes of a record that brokers and clients take by default. */
const RECORD_BYTES_MAX = 1_048_588
/** What a fact has besides its piece: names, hashes, times, headers. */
const REST_BYTES = 32_768

const longest = (text: string) =>
  Math.max(...chunksOf(text).map((payload) => Buffer.byteLength(canonicalize({ payload }))))

describe("the pieces of a value", () => {
  it("are the value, and have room in a record, whatever characters there are", () => {
    const unit = fc.constantFrom("a", '"', "\\", "\n", "\u0001", "\u001b", "é", "日", "😀")
    const stretch = fc.tuple(fc.array(unit, { minLength: 1, maxLength: 5 }), fc.nat(300_000))
    const value = fc
      .array(stretch, { minLength: 1, maxLength: 3 })
      .map((all) => all.map(([units, count]) => units.join("").repeat(count)).join(""))
      .filter((text) => text !== "" && Buffer.byteLength(text) <= PAYLOAD_VALUE_BYTES_MAX)
    fc.assert(
      fc.property(value, (text) => {
        const pieces = chunksOf(text)
        assert.isTrue(pieces.map((piece) => piece.text).join("") === text)
        for (const piece of pieces) assert.isAtMost(Buffer.byteLength(piece.text), CHUNK_BYTES)
        assert.isBelow(longest(text) + REST_BYTES, RECORD_BYTES_MAX)
      }),
      { numRuns: runs(200) }
    )
  })

  it("are cut as before where nothing has to be escaped, and smaller where all has to be", () => {
    assert.lengthOf(chunksOf("x".repeat(4 * CHUNK_BYTES)), 4)
    assert.lengthOf(chunksOf('"'.repeat(CHUNK_BYTES)), 1)
    const escapes = "\u001b".repeat(CHUNK_BYTES)
    assert.lengthOf(chunksOf(escapes), 2)
    assert.isAtMost(longest(escapes), CHUNK_JSON_BYTES + 200)
  })
})
