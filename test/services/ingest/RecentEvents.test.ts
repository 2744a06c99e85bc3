/** Events that were stored a moment ago are known by their place, and only so many of them. */
import { assert, it } from "vitest"
import { makeRecentEvents } from "../../../src/services/ingest/RecentEvents.ts"

const HASH = "ab".repeat(32)

const row = (offset: number, sequenceNumber: number, padding = "") => ({
  partition: 0,
  offset,
  body: Buffer.from(
    JSON.stringify({
      id: `e-${offset}`,
      padding,
      tenant_id: "acme",
      sequence_number: sequenceNumber,
      created_at: "2026-11-22T00:00:00.000000Z",
      prev_hash: HASH,
      content_hash: HASH,
      hash: HASH
    })
  )
})

const place = (offset: number, sequenceNumber: number, tenantId = "acme") => ({
  partition: 0,
  offset,
  tenantId,
  sequenceNumber
})

it("knows an event by its offset, its tenant and its sequence number", () => {
  const recent = makeRecentEvents()
  recent.keep([row(7, 1), row(8, 2)])
  assert.strictEqual(recent.bodyOf(place(8, 2)), row(8, 2).body.toString())
  assert.isUndefined(recent.bodyOf(place(8, 1)))
  assert.isUndefined(recent.bodyOf(place(9, 2)))
  assert.isUndefined(recent.bodyOf(place(8, 2, "globex")))
  assert.isUndefined(recent.bodyOf({ ...place(8, 2), partition: 1 }))
})

it("forgets the oldest first, by number and by bytes, and keeps no part of a large insert", () => {
  const recent = makeRecentEvents()
  const rows = Array.from({ length: 2_000 }, (_, n) => row(n, n + 1))
  for (let insert = 0; insert < 3; insert++) {
    recent.keep(rows.map((one) => ({ ...one, offset: one.offset + insert * 2_000 })))
  }
  assert.isUndefined(recent.bodyOf(place(0, 1)))
  assert.isDefined(recent.bodyOf(place(5_999, 2_000)))
  recent.keep([...rows, row(9_000, 1)].map((one) => ({ ...one, offset: one.offset + 10_000 })))
  assert.isUndefined(recent.bodyOf(place(10_000, 1)))
  assert.isDefined(recent.bodyOf(place(5_999, 2_000)))
  recent.keep([row(20_000, 1, "x".repeat(8 * 1_048_576))])
  assert.isUndefined(recent.bodyOf(place(5_999, 2_000)))
})

it("keeps no more of what was fetched than the event", () => {
  const recent = makeRecentEvents()
  const { body } = row(1, 1)
  const fetched = Buffer.concat([body, Buffer.alloc(1_000)])
  recent.keep([{ partition: 0, offset: 1, body: fetched.subarray(0, body.length) }])
  fetched.fill(0)
  assert.strictEqual(recent.bodyOf(place(1, 1)), body.toString())
})

it("counts an event that is stored again once", () => {
  const recent = makeRecentEvents()
  for (let n = 0; n < 20; n++) recent.keep([row(1, 1, "x".repeat(1_048_576))])
  recent.keep([row(2, 2)])
  assert.isDefined(recent.bodyOf(place(1, 1)))
  assert.isDefined(recent.bodyOf(place(2, 2)))
})
