import { mergeConfig } from "vitest/config"
import base from "./vitest.config.ts"

export default mergeConfig(base, {
  test: {
    include: ["test/large/**/*.large.ts"],
    exclude: [],
    testTimeout: 1_800_000,
    fileParallelism: false
  }
})
