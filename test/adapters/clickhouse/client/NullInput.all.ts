/**
 * Descriptor 0 is put on the null device, also where another file takes its place for a moment.
 * Runs in a process of its own, whose standard input is a pipe.
 */
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"

const nullInput = fileURLToPath(
  new URL("../../../../src/adapters/clickhouse/client/NullInput.ts", import.meta.url)
)

/** Runs the lines behind an import of the module; `isNull()` tells what 0 is. */
const run = (lines: string) =>
  spawnSync(
    process.execPath,
    [
      "--input-type=module",
      "-e",
      `
    import * as fs from "node:fs"
    import { closeStandardInput } from ${JSON.stringify(nullInput)}
    const isNull = () => fs.readlinkSync("/proc/self/fd/0") === "/dev/null"
    ${lines}
  `
    ],
    { input: "GARBAGE\n", encoding: "utf8" }
  )

describe("standard input", () => {
  it("is the null device afterwards, however often that is asked for", () => {
    const { stderr, stdout } = run(`
      const before = isNull()
      await closeStandardInput()
      await closeStandardInput()
      console.log(before, isNull(), fs.readFileSync(0).length)
    `)
    assert.strictEqual(stdout, "false true 0\n", stderr)
  })

  it("waits for a file that got its place", () => {
    const { stderr, stdout } = run(`
      const { closeSync: close, openSync: open } = fs
      const thief = []
      let looks = 0
      fs.default.closeSync = (descriptor) => {
        close(descriptor)
        if (descriptor === 0) thief.push(open("/proc/self/status", "r"))
      }
      fs.default.openSync = (...given) => {
        looks += 1
        if (looks === 3) close(thief[0])
        return open(...given)
      }
      const { syncBuiltinESMExports } = await import("node:module")
      syncBuiltinESMExports()
      await closeStandardInput()
      console.log(thief, looks, isNull())
    `)
    assert.strictEqual(stdout, "[ 0 ] 3 true\n", stderr)
  })

  it("is refused where that file stays", () => {
    const { stderr, stdout } = run(`
      const close = fs.closeSync
      fs.default.closeSync = (descriptor) => {
        close(descriptor)
        if (descriptor === 0) fs.openSync("/proc/self/status", "r")
      }
      const { syncBuiltinESMExports } = await import("node:module")
      syncBuiltinESMExports()
      console.log(await closeStandardInput().catch((error) => error._tag + ": " + error.message))
    `)
    assert.match(stdout, /^StandardInputOpen: The embedded store would read .*\n$/, stderr)
  })
})
