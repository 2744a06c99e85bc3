/**
 * The ingest routes: what is accepted, what is refused and how, and what the answers promise.
 */
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { READ_KEY, WRITE_KEY } from "./support/Doubles.ts"
import { item, items } from "./support/Events.ts"
import { TestApi } from "./support/TestApi.ts"

const sync = { "x-service-sync": "true" }

describe("ingest", () => {
  let api: TestApi
  beforeAll(async () => {
    api = await TestApi.start()
  })
  afterAll(() => api.stop())

  it("answers 202 with a receipt, polled to committed", async () => {
    const answer = await api.call("/v1/events/batch", { key: WRITE_KEY, json: { events: items(3) } })
    assert.strictEqual(answer.status, 202, answer.text)
    const { accepted, errors, ids, receipt_id, rejected, status } = answer.body
    assert.deepStrictEqual({ accepted, errors, rejected, status }, {
      accepted: 3,
      errors: [],
      rejected: 0,
      status: "pending"
    })
    assert.strictEqual(answer.headers.location, `/v1/receipts/${receipt_id}`)
    assert.strictEqual(answer.headers["retry-after"], "1")
    const receipt = await api.call(answer.headers.location!, { key: READ_KEY })
    assert.strictEqual(receipt.status, 200)
    assert.strictEqual(receipt.body.status, "committed")
    assert.deepStrictEqual(receipt.body.ids, ids)
    assert.strictEqual(receipt.body.last_sequence_number - receipt.body.first_sequence_number, 2)
  })
  it("single sync", async () => {
    const answer = await api.call("/v1/events", { key: WRITE_KEY, json: item(1), headers: sync })
    assert.strictEqual(answer.status, 201, answer.text)
    console.log(answer.headers, api.logs)
  })
})
