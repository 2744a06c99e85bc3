/** The committed module is what the compiler makes of its source. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { acceptModule, moduleText } from "../../../../src/tools/WasmModules.ts"

describe("the module of the fast path", () => {
  it("is what its source compiles to: else run npm run generate", () => {
    assert.strictEqual(readFileSync(acceptModule.file, "utf8"), moduleText(acceptModule))
  })
})
