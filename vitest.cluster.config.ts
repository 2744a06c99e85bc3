import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.cluster.ts"],
    pool: "forks",
    // Each has three brokers and seven processes to itself.
    maxWorkers: 1,
    fileParallelism: false,
    testTimeout: 900_000,
    hookTimeout: 120_000
  }
})
