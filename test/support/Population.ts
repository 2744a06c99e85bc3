/** Many events through the real API, and what must hold of them: the same at any size. */
import { assert } from "vitest"
import { checkChain, event, readTopic } from "./BlackBox.ts"
import type { Client, Json } from "./Client.ts"

const BATCH = 1_000
const CLIENTS = 4

/** Send so many events in batches and wait until all of them are listed. */
export const populate = async (api: Client, count: number): Promise<void> => {
  const receipts: Array<string> = []
  let next = 0
  await Promise.all(
    Array.from({ length: CLIENTS }, async () => {
      while (next < count) {
        const first = next
        next += BATCH
        const size = Math.min(BATCH, count - first)
        const events = Array.from({ length: size }, (_, n) => event(first + n))
        const { body, status, text } = await api.batch(events)
        assert.strictEqual(status, 202, text)
        receipts.push(body.receipt_id)
      }
    })
  )
  for (const receipt of receipts) await api.settled(receipt, 600_000)
}

/** Totals, pages from both ends, statistics, the chain in list and topic, verification. */
export const assertPopulation = async (
  api: Client,
  tenant: string,
  bootstrap: string,
  topic: string,
  count: number
): Promise<void> => {
  const { body: first } = await api.call("/v1/events?order=asc&page_size=1")
  const { body: last } = await api.call("/v1/events?page_size=1")
  assert.strictEqual(first.total, count)
  assert.strictEqual(first.events[0].sequence_number, 1)
  assert.strictEqual(last.events[0].sequence_number, count)
  const wanted = (n: number) => n % 3 === 0 && n % 5 === 0
  const { body: filtered } = await api.call("/v1/events?action=document.read&outcome=failure")
  const numbers = Array.from({ length: count }, (_, n) => n)
  assert.strictEqual(filtered.total, numbers.filter(wanted).length)
  const { body: stats } = await api.call("/v1/events/stats?group_by=actor_id&limit=3")
  assert.strictEqual(stats.total, count)
  const shown = stats.groups.reduce((sum: number, group: Json) => sum + group["count"], 0)
  assert.strictEqual(shown + stats.other, count)
  const { text } = await api.call("/v1/events?order=asc", {
    headers: { accept: "application/x-ndjson" }
  })
  const lines = text.trimEnd().split("\n")
  assert.strictEqual(lines.length, count)
  await checkChain(lines)
  const records = await readTopic(bootstrap, topic, tenant)
  assert.strictEqual(records.length, count)
  assert.isTrue(records.every(({ value }, index) => value === lines[index]))
  const { body: report } = await api.call("/v1/verify")
  assert.isTrue(report.valid, JSON.stringify(report.breaks))
  assert.strictEqual(report.events_checked, count)
}
