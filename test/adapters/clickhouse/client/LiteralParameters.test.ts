import { assert, describe, it } from "@effect/vitest"
import {
  bindLiterals,
  UnsupportedParameter
} from "../../../../src/adapters/clickhouse/client/LiteralParameters.ts"

const bind = (sql: string, values: Record<string, string>) =>
  bindLiterals(sql, new Map(Object.entries(values)))

describe("literal parameters", () => {
  it("turns each value into hex digits", () => {
    assert.strictEqual(
      bind("SELECT {a:String}, {n:UInt64}, {t:DateTime64(6, 'UTC')}", { a: "'é", n: "7", t: "x" }),
      "SELECT unhex('27c3a9'), CAST(unhex('37') AS UInt64),"
        + " CAST(unhex('78') AS DateTime64(6, 'UTC'))"
    )
  })

  it("reads no placeholder out of a value", () => {
    assert.strictEqual(
      bind("{a:String} {b:String}", { a: "{b:String}", b: "" }),
      `unhex('${Buffer.from("{b:String}").toString("hex")}') unhex('')`
    )
  })

  it("leaves a placeholder without a value for the engine to refuse", () => {
    const sql = "{a:String} {toString:String}"
    assert.strictEqual(bind(sql, { b: "1" }), sql)
  })

  it("refuses lists and records, whose values have a syntax of their own", () => {
    assert.throws(() => bind("{a:Array(String)}", { a: "['x']" }), UnsupportedParameter)
  })
})
