/** Points in time against the Python implementation. */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { parseTimestamp } from "../../src/domain/Timestamp.ts"
import { askIndependent } from "../support/Independent.ts"
import { almost } from "../support/TimestampTexts.ts"

describe("parseTimestamp", () => {
  it("reads and refuses what the Python implementation reads and refuses", () => {
    const texts = [...fc.sample(almost, 5_000)]
    const answers = askIndependent(
      "timestamps",
      texts.map((text) => Buffer.from(text))
    )
    texts.forEach((text, index) => assert.strictEqual(parseTimestamp(text), answers[index], text))
  })
})
