/** The type check as a test, so that it runs beside the others and not before them. */
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { assert, describe, it } from "vitest"

const tsc = ["node_modules/typescript/bin/tsc", "--noEmit", "-p"]

describe("the types", () => {
  it.each([
    ["the program and its tests", "."],
    ["the client", "src/client"],
    ["the console", "src/console"]
  ])("of %s are right", async (_, project) => {
    const { stdout } = await promisify(execFile)(process.execPath, [...tsc, project]).catch(
      (error: { readonly stdout?: string }) => ({ stdout: error.stdout || String(error) })
    )
    assert.strictEqual(stdout, "")
  })
})
