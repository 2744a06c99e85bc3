/** Workers that share the port: what any process answers is what all of them know. */
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { event } from "../support/BlackBox.ts"
import { Client, type Json } from "../support/Client.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { ADMIN_TOKEN, testKey } from "../support/Program.ts"
import { FAILED_KEYS, key, many, WorkerGroup } from "./WorkerGroup.ts"

const group = new WorkerGroup()
beforeAll(() => group.start())
afterAll(() => group.end())

/** Requests answered so far, by process. */
const answeredBy = async (): Promise<ReadonlyMap<string, number>> => {
  const { text } = await group.request("/metrics", key)
  const counts = new Map<string, number>()
  for (const [, worker = "", count] of text.matchAll(
    /^alk_http_requests_total\{worker="(\d+)".* (\d+)$/gm
  )) {
    counts.set(worker, (counts.get(worker) ?? 0) + Number(count))
  }
  return counts
}

/** What any of the processes answer, each asked several times. */
const statusesWith = async (bearer: string): Promise<ReadonlyArray<number>> => {
  const answers = await many(16, () => group.request("/v1/events", bearer))
  return [...new Set(answers.map(({ status }) => status))]
}

describe("workers", () => {
  it("answer on the port of the first process, and any of them shows the metrics of all", async () => {
    let asked = 0
    const counts = await eventuallyAsync(
      "each process has answered some of the requests",
      async () => {
        const answers = await many(60, () => group.request("/v1/events", key))
        assert.deepStrictEqual([...new Set(answers.map(({ status }) => status))], [200])
        asked += answers.length
        return answeredBy()
      },
      (found) => found.size >= 3
    )
    assert.sameMembers([...counts.keys()], ["0", "1", "2"])
    assert.isAtLeast(
      [...counts.values()].reduce((sum, count) => sum + count, 0),
      asked
    )
  })

  it("show what any of them has acknowledged, and find duplicates of each other", async () => {
    for (let n = 0; n < 12; n++) {
      const sent = { ...event(n), id: `sync-${n}` }
      const first = await group.request("/v1/events?sync=true", key, sent)
      assert.strictEqual(first.status, 201, first.text)
      const again = await group.request("/v1/events?sync=true", key, sent)
      assert.include(again.text, `"id":"sync-${n}"`)
      const list = JSON.parse((await group.request("/v1/events", key)).text) as Json
      assert.strictEqual(list["total"], n + 1)
    }
  })

  it("count wrong keys together", async () => {
    const wrong = testKey("wrong")
    const asked = 3 * FAILED_KEYS
    const startedAt = performance.now()
    const answers = await many(asked, () => group.request("/v1/events", wrong))
    const minutes = (performance.now() - startedAt) / 60_000
    const refused = answers.filter(({ status }) => status === 401).length
    assert.isAtLeast(refused, FAILED_KEYS)
    // The bucket refills while the requests are answered, however long that takes.
    assert.isAtMost(refused, Math.ceil(FAILED_KEYS * (1 + minutes)))
    assert.strictEqual(answers.filter(({ status }) => status === 429).length, asked - refused)
  })

  it("all know a new key, and all refuse a revoked one", async () => {
    const admin = new Client(group.running.url, ADMIN_TOKEN)
    const { body } = await admin.call("/v1/admin/tenants/workers/keys", {
      body: { scopes: ["read"], label: "short-lived" }
    })
    await eventuallyAsync(
      "the key is known to all",
      () => statusesWith(body.key),
      (seen) => seen.every((status) => status === 200)
    )
    await admin.call(`/v1/admin/tenants/workers/keys/${body.id}`, { method: "DELETE" })
    await eventuallyAsync(
      "the key is refused by all",
      () => statusesWith(body.key),
      (seen) => !seen.includes(200)
    )
  })

  it("have a share of the partitions each, all of them together", () => {
    const sequenced = group
      .lines("sequencing")
      .map(({ partition, worker = 0 }) => [partition, worker])
    assert.sameDeepMembers(sequenced, [
      [0, 0],
      [1, 1],
      [2, 2],
      [3, 0]
    ])
    const projected = group
      .lines("projecting")
      .flatMap(({ partitions, worker = 0 }) =>
        partitions.map((partition: number) => [partition, worker])
      )
    assert.sameDeepMembers(projected, sequenced)
  })
})
