import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/faults/**/*.fault.ts"],
    globalSetup: ["test/support/Machine.ts"],
    pool: "forks",
    // One fault at a time: what is measured here is correctness, not patience.
    maxWorkers: 1,
    testTimeout: 300_000,
    hookTimeout: 120_000
  }
})
