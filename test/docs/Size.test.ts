/** The lines of each room, against the budget in docs/size.json. */
import { assert, describe, it } from "vitest"
import { overruns, readBudgets, sizes } from "../../src/tools/Size.ts"

describe("the size of the repository", () => {
  it("is within its budget", () => {
    assert.deepStrictEqual(overruns(sizes(), readBudgets()), [])
  })

  it("is told by room: what is above its budget, has none, or is gone", () => {
    const counts = new Map([
      ["src/a", 11],
      ["src/b", 5],
      ["src/c", 1]
    ])
    const budgets = { "src/a": { lines: 10 }, "src/b": { lines: 5 }, "src/d": { lines: 1 } }
    assert.deepStrictEqual(overruns(counts, budgets), [
      "src/a: 11 lines, 1 above its budget",
      "src/c: 1 lines, and no budget in docs/size.json",
      "src/d: it has a budget in docs/size.json, and no files"
    ])
  })
})
