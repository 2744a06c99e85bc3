/** Runs the independent Python implementation of `alk-trace-v1`, which shares no code with alk. */
import { spawnSync } from "node:child_process"
import { assert } from "vitest"
import type { Verdict } from "./Independent.ts"

const PROGRAM = new URL("../independent/alk_trace.py", import.meta.url).pathname

/** Its vectors, in schemas/vectors. */
export const TRACE_VECTORS = "alk-trace-v1.json"

/** One run of `python3 alk_trace.py`, with `input` on its standard input. */
export const runIndependentTrace = (args: ReadonlyArray<string>, input = ""): Verdict => {
  const { error, status, stderr, stdout } = spawnSync("python3", [PROGRAM, ...args], {
    input,
    encoding: "utf8",
    maxBuffer: 64 * 1_048_576
  })
  if (error !== undefined) throw error
  return { status, output: stdout + stderr }
}

/** What it says of facts, one per line. */
export const judgeFacts = (
  bodies: ReadonlyArray<string>,
  ...flags: ReadonlyArray<string>
): Verdict => runIndependentTrace(["check", ...flags], bodies.map((body) => `${body}\n`).join(""))

/** Facts hold, down to the bytes. */
export const checkFacts = (bodies: ReadonlyArray<string>): void => {
  const { output, status } = judgeFacts(bodies, "--exact")
  assert.strictEqual(status, 0, output)
}
