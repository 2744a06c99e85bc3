/** No line of a pack makes a verifier work more than its length is worth. */
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { TestChain } from "./support/Chains.ts"
import { PackEditor } from "./support/PackEditor.ts"
import { PackWorld } from "./support/PackWorld.ts"
import { alkVerify, Verifiers } from "./support/Verifiers.ts"

let verifiers: Verifiers
let original: Buffer
beforeAll(async () => {
  verifiers = await Verifiers.open()
  original = await new PackWorld(new TestChain("acme", 20)).pack()
})
afterAll(() => verifiers.close())

/** Bytes of a long line; the short ones together have as many. */
const LONG_BYTES = 1_048_000
const SHORT_PER_LONG = 16
const LONG_LINES = 3
/** Of the long lines' time by the short ones' time: 1 if time is linear, 16 if it is quadratic. */
const RATIO_MAX = 4
const TURNS_MAX = 20

const hostile: ReadonlyArray<readonly [string, (bytes: number) => string]> = [
  ["sequence numbers", (bytes) => '"sequence_number":1,'.repeat(bytes / 20)],
  ["digits", (bytes) => `{"sequence_number":${"1".repeat(bytes - 20)}}`],
  ["numbers of 299 digits", (bytes) => `[${`${"1".repeat(299)},`.repeat(bytes / 300 - 1)}1]`],
  ["objects in objects", (bytes) => '{"a":'.repeat(bytes / 5)],
  ["arrays in arrays", (bytes) => "[".repeat(bytes / 2) + "]".repeat(bytes / 2)],
  ["backslashes", (bytes) => `{"a":"${"\\".repeat(bytes - 10)}"}`],
  ["escaped quotes", (bytes) => `{"a":"${'\\"'.repeat(bytes / 2 - 10)}"}`],
  ["escaped keys", (bytes) => `{${'"\\u0061":1,'.repeat(bytes / 11 - 1)}"b":1}`],
  ["spaces", (bytes) => `{"a"${" ".repeat(bytes - 10)}:1}`]
]

describe("a long line costs as much as short ones of the same bytes", () => {
  const packOf = (file: string, lines: ReadonlyArray<string>): string =>
    verifiers.file(
      `${file.length}-${lines.length}.zip`,
      new PackEditor(original).setLines(file, lines).zip()
    )

  const took = async (run: () => Promise<unknown>): Promise<number> => {
    const start = performance.now()
    await run()
    return performance.now() - start
  }

  /**
   * The shortest of the one by the shortest of the other, in turn until that is small enough: what
   * else the machine does adds to single turns, and quadratic time to all of them.
   */
  const leastRatio = async (
    one: () => Promise<unknown>,
    other: () => Promise<unknown>
  ): Promise<number> => {
    let [least, otherLeast] = [Infinity, Infinity]
    for (let turn = 0; turn < TURNS_MAX; turn++) {
      least = Math.min(least, await took(one))
      otherLeast = Math.min(otherLeast, await took(other))
      if (turn > 0 && least / otherLeast < RATIO_MAX) break
    }
    return least / otherLeast
  }

  for (const [name, make] of hostile) {
    it(`for every verifier: ${name}`, async () => {
      const lines = (bytes: number, count: number) =>
        Array.from({ length: count }, () => make(bytes))
      const long = packOf("events.ndjson", lines(LONG_BYTES, LONG_LINES))
      const short = packOf(
        "events.ndjson",
        lines(LONG_BYTES / SHORT_PER_LONG, LONG_LINES * SHORT_PER_LONG)
      )
      const programs: ReadonlyArray<readonly [string, (pack: string) => Promise<unknown>]> = [
        ["alk verify", (pack) => alkVerify([pack, "--json"])],
        ["verify.py", (pack) => verifiers.python([pack, "--json"])],
        ["verify.html", (pack) => verifiers.page.check(pack)]
      ]
      for (const [program, run] of programs) {
        const ratio = await leastRatio(
          () => run(long),
          () => run(short)
        )
        assert.isBelow(ratio, RATIO_MAX, program)
      }
    })
  }
})
