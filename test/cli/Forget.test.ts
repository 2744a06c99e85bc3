/** The arguments of `alk forget`, and what it says to a person. */
import { assert, describe, it } from "vitest"
import { forgetArguments, forgetLines } from "../../src/cli/Forget.ts"

describe("alk forget", () => {
  it("takes plan, apply with folders, and record with a file", () => {
    assert.deepInclude(forgetArguments(["plan", "--json"]), { action: "plan", json: true })
    assert.deepInclude(forgetArguments(["apply", "--log-dir", "a", "--log-dir", "b"]), {
      action: "apply",
      logDirs: ["a", "b"]
    })
    assert.deepInclude(forgetArguments(["record", "file"]), { action: "record", journal: "file" })
  })

  it.each([[[]], [["everything"]], [["plan", "file"]], [["record"]], [["apply", "--force"]]])(
    "refuses %j",
    (args) => {
      assert.throws(() => forgetArguments(args), /^forget: /)
    }
  )

  it("says what it did, and what there is nothing of", () => {
    const report = { log_dirs: ["a"], erasures: 3, partitions_left: [], partitions: [] }
    assert.strictEqual(
      forgetLines({ ...report, applied: true }),
      "the topics hold nothing more of 3 erasures\n"
    )
    const partition = {
      topic: "alk.events",
      partition: 2,
      segments: 1,
      bytes: 2_048,
      records_replaced: 1_234,
      records_removed: 0
    }
    assert.strictEqual(
      forgetLines({ ...report, applied: false, partitions: [partition] }),
      "to be rewritten, because of 3 erasures:\n"
        + "  alk.events-2             1,234 records without details, 0 removed, in 1 segments (2.0 KiB)\n"
    )
  })
})
