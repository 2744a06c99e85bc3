/** What reading JSON costs, however a text is made. */
import { assert, it } from "vitest"
import { parseJson } from "../../../src/domain/json/Json.ts"

/** Seconds of the processor for reading a text, which may be no JSON. */
const seconds = (text: string): number => {
  const start = process.cpuUsage()
  try {
    parseJson(text)
  } catch (error) {
    assert.instanceOf(error, SyntaxError)
  }
  return process.cpuUsage(start).user / 1e6
}

it.each([
  ["backslashes", (n: number) => `["${"\\\\".repeat(n)}"]`],
  ["quotes", (n: number) => `["${'\\"'.repeat(n)}"]`],
  ["both in turn", (n: number) => `["${'\\\\\\"'.repeat(n)}"]`],
  ["short strings", (n: number) => `[${'"\\n",'.repeat(n)}{"\\u0061":1}]`],
  ["escaped keys", (n: number) => `{${'"\\u0061":1,'.repeat(n)}"b":1}`],
  ["digits", (n: number) => `{"\\u0061":${"1".repeat(n)}}`],
  ["spaces after a string", (n: number) => `["\\n"${" ".repeat(n)}]`],
  ["backslashes that are no JSON", (n: number) => "\\".repeat(n)],
  ["a string without an end", (n: number) => `["${'\\"'.repeat(n)}`]
])("reading JSON takes time in proportion to the length of %s", (_name, make) => {
  const [short, long] = [make(30_000), make(480_000)]
  for (let time = 0; time < 5; time++) seconds(short)
  // Sixteen times the text: quadratic time would be 256 times as long.
  assert.isBelow(seconds(long), 100 * Math.max(seconds(short), 0.002))
})
