/** The text of an object in steps. */
import fc from "fast-check"
import { assert, it } from "vitest"
import { jsonInSteps } from "../../../src/domain/json/JsonText.ts"

it("is what JSON.stringify makes of it, in steps where an array is large", () => {
  const large = Array.from({ length: 40 }, (_, n) => ({ n, text: "é\u0001".repeat(10_000) }))
  const member = fc.oneof(fc.jsonValue(), fc.constant(undefined))
  const members = fc.dictionary(fc.string(), fc.oneof(member, fc.array(member)))
  fc.assert(
    fc.property(members, fc.boolean(), (some, isLarge) => {
      const object = isLarge ? { ...some, large } : some
      const writing = jsonInSteps(object)
      let steps = 0
      let step = writing.next()
      for (; step.done !== true; step = writing.next()) steps += 1
      assert.strictEqual(step.value.toString(), JSON.stringify(object))
      if (isLarge) assert.isAtLeast(steps, 10)
    })
  )
})
