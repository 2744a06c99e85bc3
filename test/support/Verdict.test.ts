import { assert, describe, it } from "@effect/vitest"
import type { Results, TestEnd } from "./Results.ts"
import { FILES_RETRIED_MAX, judge } from "./Verdict.ts"

const end = (tier: string, file: string, name: string, error?: string): TestEnd => ({
  tier,
  file,
  name,
  state: error === undefined ? "passed" : "failed",
  ...(error !== undefined && { error })
})
const run = (tests: ReadonlyArray<TestEnd>, unhandled: ReadonlyArray<string> = []) => {
  const failed = tests.some(({ state }) => state === "failed")
  const results: Results = { tests, unhandled }
  return { code: failed || unhandled.length > 0 ? 1 : 0, results }
}

const unit = end("unit", "a.test.ts", "adds")
const log = (error?: string) => end("integration", "log.integration.ts", "keeps order", error)
const other = (error?: string) => end("integration", "log.integration.ts", "fences", error)

describe("the verdict of a run", () => {
  for (const [what, verdict, expected] of [
    ["is good if all passed", judge(run([unit, log()])), [true, "2 passed, 0 failed, 0 skipped"]],
    [
      "counts skipped tests apart",
      judge(run([unit, { ...log(), state: "skipped" }])),
      [true, "1 passed, 0 failed, 1 skipped"]
    ],
    ["is bad without any test", judge(run([])), [false, "0 passed, 1 failed, 0 skipped"]],
    [
      "is bad if all were skipped",
      judge(run([{ ...unit, state: "skipped" }])),
      [false, "0 passed, 0 failed, 1 skipped"]
    ],
    [
      "is bad without results",
      judge({ code: 137, results: undefined }),
      [false, "0 passed, 1 failed, 0 skipped"]
    ],
    [
      "is bad if Vitest failed and no test did",
      judge({ ...run([unit]), code: 1 }),
      [false, "1 passed, 1 failed, 0 skipped"]
    ],
    [
      "is bad with an error that belongs to no test",
      judge(run([unit], ["Error: late"])),
      [false, "1 passed, 1 failed, 0 skipped"]
    ],
    [
      "is bad if a file failed outside of its tests",
      judge(run([unit, end("unit", "b.test.ts", "", "no import")])),
      [false, "1 passed, 1 failed, 0 skipped"]
    ],
    [
      "is good if what failed passed alone",
      judge(run([unit, log("late")]), run([log(), other()])),
      [true, "3 passed, 0 failed, 0 skipped"]
    ],
    [
      "is bad if it failed again",
      judge(run([unit, log("late")]), run([log("late"), other()])),
      [false, "2 passed, 1 failed, 0 skipped"]
    ],
    [
      "is bad if another test of the file failed alone",
      judge(run([unit, log("late")]), run([log(), other("late")])),
      [false, "2 passed, 1 failed, 0 skipped"]
    ],
    [
      "is bad if the file did not run again",
      judge(run([unit, log("late")]), run([])),
      [false, "1 passed, 2 failed, 0 skipped"]
    ],
    [
      "is bad if an error without a test came beside a flaky one",
      judge(run([log("late")], ["Error: late"]), run([log()])),
      [false, "1 passed, 1 failed, 0 skipped"]
    ]
  ] as const) {
    it(what, () => {
      assert.deepStrictEqual([verdict.passed, verdict.counts], [...expected])
    })
  }

  it("gives a second run to files on real parts, and none to units and limits", () => {
    const failed = ["unit", "integration", "e2e", "all", "limits"].map((tier) =>
      end(tier, `x.${tier}.ts`, "does", "Error: no")
    )
    assert.deepStrictEqual(judge(run(failed)).retried, ["x.integration.ts", "x.e2e.ts", "x.all.ts"])
    const many = Array.from({ length: FILES_RETRIED_MAX + 1 }, (_, n) =>
      end("e2e", `${n}.e2e.ts`, "does", "no")
    )
    assert.deepStrictEqual(judge(run(many)).retried, [])
  })

  it("names what was flaky with its first error, and what failed", () => {
    const first = run([
      log("Error: too late\n  at Log.ts"),
      end("unit", "a.test.ts", "adds", "1 is not 2")
    ])
    assert.deepStrictEqual(judge(first, run([log()])).lines, [
      "FAILED a.test.ts > adds\n1 is not 2\n",
      "flaky: log.integration.ts > keeps order (first error: Error: too late)"
    ])
  })
})
