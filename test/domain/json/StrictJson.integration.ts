/** Strict JSON against the Python implementation. */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { canonicalize } from "../../../src/domain/json/CanonicalJson.ts"
import { parseStrict } from "../../../src/domain/json/StrictJson.ts"
import { askIndependent } from "../../support/Independent.ts"
import { jsonText } from "../../support/JsonTexts.ts"

describe("parseStrict", () => {
  it("accepts, refuses and canonicalises as the Python implementation does", () => {
    const texts = fc.sample(jsonText, 3_000)
    const answers = askIndependent(
      "canonical",
      texts.map((text) => Buffer.from(text))
    )
    texts.forEach((text, index) => {
      const result = parseStrict(Buffer.from(text))
      const canonical = "value" in result ? canonicalize(result.value) : undefined
      assert.strictEqual(canonical, answers[index], text)
    })
  })
})
