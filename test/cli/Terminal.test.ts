/** What is shown at a terminal: tables, waterfalls, sizes. */
import { assert, describe, it } from "vitest"
import { noticeLines } from "../../src/cli/commands/Verify.ts"
import { bytes, count } from "../../src/cli/terminal/Progress.ts"
import { cut, table, tablePages, widthOf } from "../../src/cli/terminal/Table.ts"
import { type WaterfallSpan, waterfall } from "../../src/cli/terminal/Waterfall.ts"
import type { VerifyReport } from "../../src/client/gen/Api.d.ts"

const columns = [
  { title: "N", text: (row: { n: number; name: string }) => String(row.n), isNumber: true },
  { title: "NAME", text: (row: { n: number; name: string }) => row.name }
]

describe("a table", () => {
  it("has columns as wide as what is in them, numbers on the right", () => {
    const rows = [
      { n: 7, name: "ada" },
      { n: 1234, name: "日本" }
    ]
    assert.strictEqual(table(columns, rows, 80), "   N  NAME\n   7  ada\n1234  日本\n")
  })

  it("fits the terminal: the widest column is cut", () => {
    const text = table(columns, [{ n: 1, name: "x".repeat(200) }], 40)
    assert.isTrue(text.split("\n").every((line) => widthOf(line) <= 40))
    assert.include(text, "…")
  })

  it("that comes in pages has widths that only grow, and its head again where they do", () => {
    const print = tablePages(columns, 80)
    assert.strictEqual(print([{ n: 999, name: "ada" }]), "  N  NAME\n999  ada\n")
    assert.strictEqual(print([{ n: 1, name: "al" }]), "  1  al\n")
    assert.strictEqual(print([{ n: 1000, name: "al" }]), "   N  NAME\n1000  al\n")
    assert.strictEqual(print([{ n: 1, name: "al" }]), "   1  al\n")
  })

  it("cuts what means nothing in part only where the others are at their narrowest", () => {
    const time = "2026-11-24 18:10:00"
    const texts = {
      time,
      actor: "agent:invoice-triage",
      id: "01a20e88-7797-7f70-8c03-018dfffe83c8"
    }
    const wide = [
      { title: "TIME", text: (row: typeof texts) => row.time, isWhole: true },
      { title: "ACTOR", text: (row: typeof texts) => row.actor },
      { title: "ID", text: (row: typeof texts) => row.id }
    ]
    assert.include(table(wide, [texts], 40), time)
    assert.notInclude(table(wide, [texts], 30), time)
    for (const line of table(wide, [texts], 30).split("\n")) assert.isAtMost(line.length, 30)
  })

  it("lets nothing of the log control the terminal", () => {
    const text = table(columns, [{ n: 1, name: "\u001b[2Ja\nb\u202e" }], 80)
    assert.notMatch(text, /\u001b|\u202e/)
    assert.strictEqual(text.split("\n").length, 3)
  })

  it("measures wide characters, and cuts between them", () => {
    assert.deepStrictEqual(["e\u0301", "日本", "🙂"].map(widthOf), [1, 4, 2])
    assert.strictEqual(cut("日本語", 5), "日本…")
    assert.strictEqual(cut("日本語", 4), "日…")
  })
})

/** Times in milliseconds. */
const span = (id: string, parentId: string | undefined, start: number, end?: number) =>
  ({
    id,
    parentId,
    type: "T",
    name: id,
    status: "COMPLETED",
    start: start * 1_000,
    end: end === undefined ? undefined : end * 1_000
  }) as WaterfallSpan

describe("a waterfall", () => {
  it("draws each span below its parent, with a bar at its time", () => {
    const spans = [
      span("root", undefined, 0, 1_000),
      span("late", "root", 500, 1_000),
      span("early", "root", 0, 500),
      span("inner", "early", 0, 250)
    ]
    assert.strictEqual(
      waterfall(spans, 34, 0),
      [
        "root          1.00 s  ████████████",
        "├ early       500 ms  ██████",
        "│ └ inner     250 ms  ███",
        "└ late        500 ms        ██████",
        ""
      ].join("\n")
    )
  })

  it("draws spans that still run, that are alone, and none", () => {
    const failed = { ...span("b", "missing", 10, 20), status: "FAILED" }
    const text = waterfall([{ ...span("a", undefined, 0), status: "RUNNING" }, failed], 60, 40_000)
    assert.match(text, /^a … +40 ms +█+\nb ✗ +10 ms +█+\n$/)
    assert.strictEqual(waterfall([], 60, 0), "no spans\n")
  })

  it("says durations as the console and reports do", () => {
    const text = waterfall([span("a", undefined, 0, 59.9996), span("b", undefined, 0, 4.2)], 60, 0)
    assert.match(text, /^a +60 ms .*\nb +4\.2 ms /)
  })
})

describe("progress", () => {
  it("says numbers and sizes", () => {
    assert.deepStrictEqual(
      [count(1_234_567), bytes(100), bytes(1_572_864)],
      ["1,234,567", "100 B", "1.5 MiB"]
    )
  })
})

describe("what the service says beside its verdict", () => {
  it("is written line by line, without what would move the cursor", () => {
    const report = {
      notices: ["alk.state was lost", "\u001b[2Jcleared"]
    } as unknown as VerifyReport
    assert.deepStrictEqual(noticeLines(report), [
      "  not established: alk.state was lost",
      "  not established: \ufffd[2Jcleared"
    ])
    assert.deepStrictEqual(noticeLines({} as VerifyReport), [])
  })
})
