/** Which name a mistyped one was meant to be. */
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { editDistance, nearestName } from "../../src/domain/NearestName.ts"

const FILTERS = ["id", "actor_id", "actor_type", "action", "resource_id", "outcome", "from", "to"]

/** The definition, by recursion, as slow as it is. */
const recursive = (left: string, right: string): number => {
  if (left === "" || right === "") return left.length + right.length
  const same = left.at(-1) === right.at(-1) ? 0 : 1
  const swapped =
    left.length > 1
    && right.length > 1
    && left.at(-1) === right.at(-2)
    && left.at(-2) === right.at(-1)
      ? recursive(left.slice(0, -2), right.slice(0, -2)) + 1
      : Infinity
  return Math.min(
    recursive(left.slice(0, -1), right) + 1,
    recursive(left, right.slice(0, -1)) + 1,
    recursive(left.slice(0, -1), right.slice(0, -1)) + same,
    swapped
  )
}

describe("the nearest name", () => {
  it("counts insertions, removals, replacements and swapped neighbours", () => {
    const cases: ReadonlyArray<readonly [string, string, number]> = [
      ["", "", 0],
      ["", "abc", 3],
      ["actor_id", "actor_id", 0],
      ["actr_id", "actor_id", 1],
      ["atcor_id", "actor_id", 1],
      ["kitten", "sitting", 3]
    ]
    for (const [left, right, edits] of cases) assert.strictEqual(editDistance(left, right), edits)
  })

  it("counts as its definition does, whatever the names", () => {
    const name = fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 5 })
    fc.assert(
      fc.property(name, name, (left, right) =>
        assert.strictEqual(editDistance(left, right), recursive(left, right))
      ),
      { numRuns: 300, seed: 8 }
    )
  })

  it("is found through slips, other spellings and operators", () => {
    const meant: ReadonlyArray<readonly [string, string | undefined]> = [
      ["actr_id", "actor_id"],
      ["actorId", "actor_id"],
      ["ACTOR-ID", "actor_id"],
      ["actor_id[]", "actor_id"],
      ["outcome!", "outcome"],
      ["outcom", "outcome"],
      ["form", "from"],
      ["actions", "action"],
      ["colour", undefined],
      ["x", undefined],
      ["", undefined],
      ["a".repeat(100_000), undefined]
    ]
    for (const [given, name] of meant) assert.strictEqual(nearestName(given, FILTERS), name, given)
  })
})
