import { assert, describe, it } from "@effect/vitest"
import { isTooOld } from "../../../src/adapters/clickhouse/Migrations.ts"

describe("the version of ClickHouse", () => {
  it("has to be 26.7 or newer", () => {
    for (const version of ["26.6.9.1", "25.12.1", "3.9", "", "unknown"]) {
      assert.isTrue(isTooOld(version), version)
    }
    for (const version of ["26.7.1", "26.7.2.1", "26.10.1", "27.1.1"]) {
      assert.isFalse(isTooOld(version), version)
    }
  })
})
