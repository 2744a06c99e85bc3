/**
 * The quota of events per second: off unless configured, per tenant, and said in the answer.
 */
import { afterEach, assert, describe, it } from "vitest"
import { bucketsOf, TENANTS_MAX } from "../../../src/http/server/Quota.ts"
import { OTHER_KEY, WRITE_KEY } from "../support/Doubles.ts"
import { items } from "../support/Events.ts"
import { TestApi } from "../support/TestApi.ts"

const BATCH = "/v1/events/batch"

describe("the quota", () => {
  let api: TestApi
  afterEach(() => api.stop())
  const send = (count: number, key = WRITE_KEY) =>
    api.call(BATCH, { key, json: { events: items(count) } })

  it("admits a batch while something is left, then answers 429 with the time to wait", async () => {
    api = await TestApi.start({ eventsPerSecondMax: 1 })
    assert.strictEqual((await send(900)).status, 202)
    const refused = await send(1)
    assert.strictEqual(refused.status, 429)
    assert.strictEqual(refused.body.code, "rate_limited")
    const wait = Number(refused.headers["retry-after"])
    assert.isAtLeast(wait, 800)
    assert.strictEqual(refused.headers["ratelimit-limit"], "1")
    assert.strictEqual(refused.headers["ratelimit-remaining"], "0")
    assert.strictEqual(refused.headers["ratelimit-reset"], String(wait))
    assert.strictEqual((await send(1, OTHER_KEY)).status, 202)
    assert.strictEqual(api.world.commands.length, 2)
  })

  it("is off unless configured", async () => {
    api = await TestApi.start()
    for (let n = 0; n < 5; n++) assert.strictEqual((await send(1_000)).status, 202)
  })
})

describe("the buckets of the quota", () => {
  it("are no more than a fixed number, however many tenants send", () => {
    const buckets = bucketsOf(1)
    for (let n = 0; n < TENANTS_MAX + 10_000; n++) buckets.take(`tenant-${n}`, 2, 0)
    assert.strictEqual(buckets.size, TENANTS_MAX)
    // The one that sent last still owes an event.
    assert.isFalse(buckets.take(`tenant-${TENANTS_MAX + 9_999}`, 1, 0).admitted)
  })
})
