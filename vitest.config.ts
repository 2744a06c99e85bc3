import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/faults/**", "test/large/**", "test/soak/**"],
    globalSetup: ["test/support/Machine.ts"],
    pool: "forks",
    maxWorkers: 2,
    // A test that hangs ends; one that is slow on a busy machine does not.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    reporters: ["default", ["json", { outputFile: "coverage/results.json" }]]
  }
})
