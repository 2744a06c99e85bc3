/** The committed module is what the compiler makes of its source. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { moduleText, splitModule } from "../../../../../src/tools/WasmModules.ts"

describe("the module that cuts events into columns", () => {
  it("is what its source compiles to: else run npm run generate", () => {
    assert.strictEqual(readFileSync(splitModule.file, "utf8"), moduleText(splitModule))
  })
})
