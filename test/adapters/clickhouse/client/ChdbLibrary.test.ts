/** What a machine says for which there is no ClickHouse inside the process. */
import { assert, describe, it } from "vitest"
import {
  checkNativePart,
  StoreEngineMissing
} from "../../../../src/adapters/clickhouse/client/ChdbLibrary.ts"

const refusalOn = (platform: string, arch: string): StoreEngineMissing => {
  try {
    checkNativePart({ platform, arch })
  } catch (refusal) {
    assert.instanceOf(refusal, StoreEngineMissing)
    return refusal as StoreEngineMissing
  }
  return assert.fail(`${platform}-${arch} has a native part`)
}

describe("the native part of the embedded ClickHouse", () => {
  for (const [platform, arch] of [
    ["darwin", "arm64"],
    ["darwin", "x64"],
    ["linux", "arm64"],
    ["win32", "x64"]
  ] as const) {
    it(`is missing on ${platform}-${arch}, in one line that names the way out`, () => {
      const { message } = refusalOn(platform, arch)
      assert.include(message, `on ${platform}-${arch}`)
      assert.include(message, "CLICKHOUSE_URL")
      assert.notInclude(message, "\n")
    })
  }
})
