/** A writer that knows where its records will be notices when they are not. */
import { assert, it } from "vitest"
import { checkOffsets, OffsetConflict } from "../../../src/adapters/kafka/ExpectedOffsets.ts"

const part = (topic: string, count: number) => ({
  topic,
  partition: 0,
  records: Array.from({ length: count }, () => ({
    topic: "events" as const,
    partition: 0,
    key: "k",
    value: null
  }))
})

it("follows the records of a partition over several requests, and leaves the others alone", () => {
  const next = new Map([["events/0", 7]])
  checkOffsets([part("events", 3), part("state", 1)], [7, 99], next)
  checkOffsets([part("events", 2)], [10], next)
  assert.deepStrictEqual([...next], [["events/0", 12]])
})

it("tells a place that is taken from records that are lost", () => {
  const check = (base: number) => () =>
    checkOffsets([part("events", 1)], [base], new Map([["events/0", 7]]))
  assert.throws(check(8), OffsetConflict)
  for (const base of [6, 0, -1]) {
    try {
      check(base)()
      assert.fail("not noticed")
    } catch (error) {
      assert.notInstanceOf(error, OffsetConflict)
      assert.match((error as Error).message, /has lost records/)
    }
  }
})
