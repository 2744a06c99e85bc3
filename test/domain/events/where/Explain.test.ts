/** What a person is told of a query is what it asks. */
import { assert, describe, it } from "vitest"
import { explainWhere } from "../../../../src/domain/events/where/Explain.ts"
import { parseWhere } from "../../../../src/domain/events/where/Parse.ts"

const NOW = "2026-11-22T12:00:00.000000Z"

const cases: ReadonlyArray<readonly [where: string, says: string]> = [
  ["outcome:failure", "outcome is “failure”"],
  ["outcome:failure,error", "outcome is “failure” or “error”"],
  ["actor:u_1* resource_name:*", "actor_id starts with “u_1” and resource_name is there"],
  ["-action:a", "not (action is “a”)"],
  ["action!=a,b", "not (action is “a” or “b”)"],
  ["invoice", "any text contains “invoice”"],
  ['"two words" OR id:x', "any text contains “two words” or id is “x”"],
  ["metadata.amount>1e4", "metadata.amount is more than 10000"],
  ["sequence>=5 sequence<=9", "sequence_number is at least 5 and sequence_number is at most 9"],
  [
    "timestamp>-24h created_at<2026-11-22",
    "timestamp is after 2026-11-21T12:00:00Z and created_at is before 2026-11-22T00:00:00Z"
  ],
  [
    "(action:a OR action:b*) outcome:error",
    "(action is “a” or action starts with “b”) and outcome is “error”"
  ],
  [
    "action:a OR (action:b outcome:error)",
    "action is “a” or (action is “b” and outcome is “error”)"
  ]
]

describe("a query in words", () => {
  for (const [where, says] of cases) {
    it(`of ${where}`, () => {
      assert.strictEqual(explainWhere(parseWhere(where, NOW)), says)
    })
  }
})
