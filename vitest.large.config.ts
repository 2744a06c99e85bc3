import { defineConfig } from "vitest/config"

/** Sizes that take minutes to hours, one file after the other. */
export default defineConfig({
  test: {
    include: ["test/large/**/*.large.ts"],
    globalSetup: ["test/support/Machine.ts"],
    pool: "forks",
    maxWorkers: 2,
    fileParallelism: false,
    testTimeout: 1_800_000,
    hookTimeout: 180_000,
    reporters: ["default", ["json", { outputFile: "coverage/results.json" }]]
  }
})
