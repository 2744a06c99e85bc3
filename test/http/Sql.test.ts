/** The routes of read-only SQL over HTTP, before a store that says what it was asked. */
import { Deferred, Effect } from "effect"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { SQL_LENGTH_MAX, sqlFormats } from "../../src/ports/SqlStore.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { READ_KEY, WRITE_KEY } from "./support/Doubles.ts"
import { type Answer, TestApi } from "./support/TestApi.ts"

let api: TestApi
beforeEach(async () => {
  api = await TestApi.start()
})
afterEach(() => api.stop())

const ask = (json: unknown, headers: Record<string, string> = {}, key = READ_KEY) =>
  api.call("/v1/sql", { key, json, headers })

const refusal = ({ body, status }: Answer) => [status, body.error.code, body.error.field]

const types = {
  json: "application/json",
  ndjson: "application/x-ndjson",
  csv: "text/csv; charset=utf-8; header=present",
  parquet: "application/vnd.apache.parquet"
}

describe("POST /v1/sql", () => {
  it("asks for the key's own tenant, statements of several lines too", async () => {
    const sql = "SELECT 1,\n\t2 -- and 3"
    const { body, status } = await ask({ query: sql })
    assert.strictEqual(status, 200)
    assert.deepStrictEqual(body.data, [{ tenantId: "acme", sql, format: "json" }])
  })

  it("takes the format from the body, else from Accept", async () => {
    for (const format of sqlFormats) {
      const given = await ask({ query: "SELECT 1", format }, { accept: "text/html" })
      assert.strictEqual(given.headers["content-type"], types[format])
      assert.strictEqual(given.body?.data?.[0]?.format ?? format, format)
      const [accept = ""] = types[format].split(";")
      const negotiated = await ask({ query: "SELECT 1", format: null }, { accept })
      assert.strictEqual(negotiated.headers["content-type"], types[format])
    }
    assert.deepStrictEqual(refusal(await ask({ query: "SELECT 1" }, { accept: "text/html" })), [
      406,
      "not_acceptable",
      "Accept"
    ])
  })

  it("names the field that is wrong", async () => {
    const wrong: ReadonlyArray<readonly [body: unknown, field: string]> = [
      [{}, "query"],
      [{ query: "" }, "query"],
      [{ query: 1 }, "query"],
      [{ query: "x".repeat(SQL_LENGTH_MAX + 1) }, "query"],
      [{ query: "DROP TABLE events" }, "query"],
      [{ query: "SELECT 1", format: "xml" }, "format"],
      [{ query: "SELECT 1", bom: true }, "bom"],
      [{ query: "SELECT 1", format: "csv", bom: 1 }, "bom"],
      [{ query: "SELECT 1", sql: "SELECT 1" }, "sql"]
    ]
    for (const [body, field] of wrong) {
      assert.deepStrictEqual(refusal(await ask(body)), [400, "invalid_request", field])
    }
  })

  it("needs a key that reads, and says when the store is away", async () => {
    assert.deepStrictEqual(refusal(await ask({ query: "SELECT 1" }, {}, WRITE_KEY)).slice(0, 2), [
      403,
      "insufficient_scope"
    ])
    const without = await api.call("/v1/sql", { json: { query: "SELECT 1" } })
    assert.strictEqual(without.status, 401)
    api.world.storeDown = true
    const { headers, status } = await ask({ query: "SELECT 1" })
    assert.deepStrictEqual([status, headers["retry-after"] !== undefined], [503, true])
  })
})

describe("statements at once", () => {
  it("are two of a tenant; a third is refused until one has its answer", async () => {
    const gate = Deferred.makeUnsafe<void>()
    api.world.storeGate = Deferred.await(gate)
    const statuses: Array<number> = []
    const asked = [1, 2, 3].map(async (n) => {
      const answer = await ask({ query: `SELECT ${n}` })
      statuses.push(answer.status)
      return answer
    })
    await eventuallyAsync(
      "one is answered",
      () => statuses,
      ({ length }) => length > 0
    )
    Deferred.doneUnsafe(gate, Effect.void)
    const answers = await Promise.all(asked)
    assert.strictEqual(statuses[0], 429)
    assert.sameMembers(
      answers.map(({ status }) => status),
      [200, 200, 429]
    )
    const refused = answers.find(({ status }) => status === 429)!
    assert.strictEqual(refused.body.error.code, "rate_limited")
    assert.isDefined(refused.headers["retry-after"])
    assert.strictEqual((await ask({ query: "SELECT 4" })).status, 200)
  })
})

describe("GET /v1/sql/tables", () => {
  it("names tables, columns, functions and limits", async () => {
    const { body, status } = await api.call("/v1/sql/tables", { key: READ_KEY })
    assert.strictEqual(status, 200)
    assert.deepStrictEqual(
      body.tables.map(({ name }: { name: string }) => name),
      ["events", "executions", "spans", "trace_events"]
    )
    assert.include(body.functions, "countSubstrings")
    assert.notInclude(body.functions, "file")
    assert.strictEqual(body.limits.rows_max, 100_000)
  })
})
