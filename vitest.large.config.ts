import { defineConfig } from "vitest/config"
import base from "./vitest.config.ts"

// Not merged: lists of the two would be joined, and the base excludes what stands here.
export default defineConfig({
  test: {
    ...base.test,
    include: ["test/large/**/*.large.ts"],
    exclude: [],
    testTimeout: 1_800_000,
    fileParallelism: false
  }
})
