/** The type check as a test, so that it runs beside the others and not before them. */
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { assert, describe, it } from "vitest"

const tsc = ["node_modules/typescript/bin/tsc", "--noEmit", "-p", "."]

describe("the types", () => {
  it("of the program and its tests are right", async () => {
    const { stdout } = await promisify(execFile)(process.execPath, tsc).catch(
      (error: { readonly stdout?: string }) => ({ stdout: error.stdout || String(error) })
    )
    assert.strictEqual(stdout, "")
  })
})
