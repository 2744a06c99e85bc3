/** The list of repairs, and the table of it for people. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { repairRules } from "../../../src/domain/traces/Repairs.ts"

describe("the codes of repairs", () => {
  it("are documented, each with its rule", () => {
    const rows = readFileSync("docs/traces.md", "utf8").matchAll(/^\| `(\w+)` \| (.*) \|$/gm)
    assert.deepStrictEqual(
      Object.fromEntries([...rows].map(([, code, rule]) => [code, rule])),
      repairRules as Record<string, string>
    )
  })
})
