/** The unit tests of the Python client, which need Python and nothing else. */
import { assert, describe, it } from "vitest"
import { startPython } from "./PythonPrograms.ts"

describe("the Python client", () => {
  it("passes its own tests", async () => {
    const tests = ["-m", "unittest", "discover", "-s", "tests", "-t", "."]
    const { code, output } = await startPython(tests).ended
    assert.strictEqual(code, 0, output)
    // A folder that is not found has no tests, and passes them.
    assert.match(output, /Ran \d{3,} tests/)
  })
})
