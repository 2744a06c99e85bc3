/**
 * Three brokers whose files are rewritten one after the other while the service runs: the rewritten
 * copies are taken back, each of them leads, and nobody diverges.
 */
import { execFileSync } from "node:child_process"
import { assert, describe, it } from "vitest"
import { begin } from "../cli/CommandRuns.ts"
import { clientOf } from "../faults/Parts.ts"
import { checkChain, readTopic } from "../support/BlackBox.ts"
import { TEST_SECRET } from "../support/Program.ts"
import type { Broker } from "./Brokers.ts"
import { type Cluster, PARTITIONS, withCluster } from "./Cluster.ts"

const TENANT = "ada"
const WORD = "wort-der-aerztin"
/** Requests are repeated while a broker hands its partitions over. */
const ATTEMPTS = 60

const eventOf = (id: string, note: string) => ({
  id,
  actor: { id: "anna", type: "human" },
  action: "record.read",
  resource: { id, type: "record" },
  outcome: "success",
  metadata: { note }
})

const send = async (cluster: Cluster, ids: ReadonlyArray<string>, note: string): Promise<void> => {
  const events = ids.map((id) => eventOf(id, note))
  for (let attempt = 1; ; attempt++) {
    const api = clientOf(cluster, TENANT, attempt)
    const { body } = await api.call("/v1/events/batch?sync=true", { body: { events } })
    if (body.status === "committed") return
    assert.isBelow(attempt, ATTEMPTS, JSON.stringify(body))
  }
}

const wordsIn = (folder: string): ReadonlyArray<string> =>
  execFileSync(process.execPath, ["test/independent/segment_words.mjs", folder, WORD], {
    encoding: "utf8"
  })
    .split("\n")
    .slice(0, -2)

const forget = async ({ brokers, topicPrefix }: Cluster, broker: Broker) => {
  const { HOME } = process.env
  const folder = brokers.folderOf(broker)
  const { end, errors, output } = await begin(["forget", "apply", "--log-dir", folder], {
    ...(HOME && { HOME }),
    ALK_SECRET: TEST_SECRET,
    ALK_TOPIC_PREFIX: topicPrefix,
    ALK_PARTITIONS: String(PARTITIONS)
  }).ended
  assert.strictEqual(end, 0, errors)
  return JSON.parse(output)
}

describe("three brokers", () => {
  it(
    "forget one after the other, and stay one log",
    withCluster(async (cluster) => {
      const { brokers } = cluster
      const api = clientOf(cluster, TENANT)
      const secrets = Array.from({ length: 20 }, (_, index) => `secret-${index}`)
      await send(cluster, secrets, WORD)
      await send(cluster, ["other"], "offen")
      for (const id of secrets) {
        const { body, status } = await api.call(`/v1/events/${id}/erase`, {
          body: { reason: "asked for" }
        })
        assert.strictEqual(status, 200, JSON.stringify(body))
      }
      for (const broker of brokers.all) {
        await brokers.stop(broker)
        assert.isNotEmpty(wordsIn(brokers.folderOf(broker)))
        const { partitions } = await forget(cluster, broker)
        const found = partitions.map((one: any) => [one.topic, one.records_replaced])
        assert.deepInclude(found, ["alk.events", secrets.length])
        assert.deepStrictEqual(wordsIn(brokers.folderOf(broker)), [])
        brokers.begin(broker)
        await brokers.whole()
        await send(cluster, [`after-${broker.id}-has-forgotten`], "offen")
      }
      // Whatever each of them leads: all read the same.
      for (const { id } of brokers.all) {
        const order = [id, ...brokers.all.map((one) => one.id).filter((one) => one !== id)]
        await brokers.reassign("alk.events", PARTITIONS, order)
        await brokers.whole()
        const events = await readTopic(cluster.bootstrap(), "alk.events", TENANT)
        const values = events.map(({ value }) => value)
        assert.strictEqual(
          values.filter((value) => value.includes('"erased_at":')).length,
          secrets.length
        )
        assert.notInclude(values.join("\n"), WORD)
        await checkChain(values)
        await send(cluster, [`while-${id}-leads`], "offen")
      }
      const { body } = await api.call("/v1/verify")
      assert.strictEqual(body.valid, true, JSON.stringify(body))
      for (const broker of brokers.all) {
        // The last ones could not hand over what they lead, and would wait for a quorum.
        await brokers.kill(broker)
        assert.deepStrictEqual(wordsIn(brokers.folderOf(broker)), [])
      }
    }),
    900_000
  )
})
