import { defineConfig } from "vitest/config"
import base from "./vitest.config.ts"

// What a change may break beyond `npm test`: more cases of the same laws, other people's clients,
// repeated starts. Not merged with the base: lists of the two would be joined.
export default defineConfig({
  test: {
    ...base.test,
    include: ["test/**/*.all.ts"],
    exclude: [],
    testTimeout: 600_000,
    reporters: ["default", ["json", { outputFile: "coverage/all.json" }]]
  }
})
