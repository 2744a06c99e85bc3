/** How tests may wait, enforced on their sources: by `eventually`, or on the clock of the test. */
import { readFileSync } from "node:fs"
import { glob } from "node:fs/promises"
import { assert, describe, it } from "vitest"

/** Run by hand and measured by people: they pace load, and judge nothing by the clock. */
const OUTSIDE = /^test\/(?:bench|soak)\/|^test\/support\/Eventually\.ts$|^test\/Waiting\.test\.ts$/

const pauses = String.raw`(?:yield\* Effect\.sleep\(|await (?:sleep|setTimeout)\(|await new Promise\([^\n]*setTimeout)`

const rules: ReadonlyArray<{
  readonly rule: string
  readonly broken: RegExp
  readonly examples: ReadonlyArray<string>
  readonly allowed: ReadonlyArray<string>
}> = [
  {
    rule: "looks again without a pause: use eventually",
    broken: /Effect\.repeat\(\{\s*until(?![^]*?schedule:[^]*?\}\))/,
    examples: [
      "look.pipe(Effect.repeat({ until: (found) => found }))",
      "look.pipe(\n  Effect.repeat({\n    until: (found) => found\n  })\n)"
    ],
    allowed: ["look.pipe(Effect.repeat({ until: isThere, schedule: everySecond }))"]
  },
  {
    rule: "waits without an end: use eventually",
    broken: new RegExp(
      String.raw`while \([^\n]*\) ${pauses}|while \([^\n]*\) \{\n\s*${pauses}[^\n]*\n\s*\}`
    ),
    examples: [
      "while (seen === 0) await sleep(5)\n",
      "while (seen === 0) yield* Effect.sleep(5)\n",
      "while (await isOpen()) {\n  await sleep(5)\n}\n",
      "while (seen === 0) await new Promise((resolve) => setTimeout(resolve, 5))\n"
    ],
    allowed: ["while (!ended) {\n  await sleep(5)\n  await send()\n}\n"]
  },
  {
    rule: "hopes that a pause is long enough for what it asserts: use eventually",
    broken: new RegExp(String.raw`${pauses}[^\n]*\n\s*(?:assert|expect)\b`),
    examples: [
      "await sleep(200)\nassert.strictEqual(seen, 1)",
      'yield* Effect.sleep("1 second")\n    assert.isTrue(done)',
      "await new Promise((resolve) => setTimeout(resolve, 200))\nexpect(seen).toBe(1)"
    ],
    allowed: ['yield* TestClock.adjust("1 second")\nassert.isTrue(done)']
  }
]

const lineOf = (text: string, index: number): number => text.slice(0, index).split("\n").length

describe("a test waits", () => {
  it("by eventually, or on its own clock", async () => {
    const broken: Array<string> = []
    for await (const file of glob("test/**/*.ts")) {
      if (OUTSIDE.test(file)) continue
      const text = readFileSync(file, "utf8")
      for (const { broken: pattern, rule } of rules) {
        for (const { index } of text.matchAll(new RegExp(pattern, "g"))) {
          broken.push(`${file}:${lineOf(text, index)} ${rule}`)
        }
      }
    }
    assert.deepStrictEqual(broken, [])
  })

  for (const { allowed, broken, examples, rule } of rules) {
    it(`is told where it ${rule}`, () => {
      for (const example of examples) assert.match(example, broken)
      for (const example of allowed) assert.notMatch(example, broken)
    })
  }
})
