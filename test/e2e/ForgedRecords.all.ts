/**
 * Records that another producer writes to the internal topics of a running program, on its own broker:
 * it goes on, says so and answers as before, at this start and the next. Topics that another secret
 * has authenticated are refused.
 */
import { rmSync } from "node:fs"
import { Kafka, logLevel, Partitioners } from "kafkajs"
import { afterAll, assert, beforeAll, it } from "vitest"
import { event } from "../support/BlackBox.ts"
import { Client, readStream } from "../support/Client.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { freshFolder, type Started, start, testKey } from "../support/Program.ts"
import { Chain } from "../verify/support/Chains.ts"

const data = freshFolder("take-over")
const environment = {
  ALK_DATA_DIR: data,
  ALK_EMBEDDED_OPEN: "true",
  ALK_PARTITIONS: "1",
  ALK_BOOTSTRAP_KEYS: `${testKey("acme")}=acme:read+write`
}
let running: Started

const client = (): Client => new Client(running.url, testKey("acme"))
const send = async (name: string): Promise<void> => {
  const { status, text } = await client().batch([{ ...event(1), id: name }], {
    headers: { "x-service-sync": "true" }
  })
  assert.strictEqual(status, 200, text)
}
const ids = async (): Promise<ReadonlyArray<string>> =>
  (await client().all()).map(({ id }) => id).toSorted()

/** Somebody who may write to the broker. */
const intruder = async <A>(act: (kafka: Kafka) => Promise<A>): Promise<A> =>
  act(new Kafka({ brokers: [running.kafka], clientId: "intruder", logLevel: logLevel.NOTHING }))

const produce = (topic: string, key: string, value: string | null): Promise<void> =>
  intruder(async (kafka) => {
    const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
    await producer.connect()
    await producer.send({ topic, acks: -1, messages: [{ key, value, partition: 0 }] })
    await producer.disconnect()
  })

beforeAll(async () => {
  running = await start(environment)
})

afterAll(async () => {
  await running.stop()
  rmSync(data, { recursive: true, force: true })
})

const REFUSED = "it has no MAC of this service"

const forgedKey = JSON.stringify({
  id: "key_forged",
  tenant_id: "acme",
  scopes: ["read", "write"],
  hint: "alk_live_forg…",
  // Of alk_live_forgedxxx…, as an attacker would compute it.
  hash: "0".repeat(64),
  created_at: "2026-11-22T00:00:00.000000Z"
})

it("takes nothing over on a new folder, and goes on when records are forged", async () => {
  await send("one")
  assert.notInclude(running.output(), "are taken over")
  await produce("alk.registry", "key/key_forged", forgedKey)
  await produce(
    "alk.state",
    "head/acme",
    JSON.stringify({
      sequence_number: 1,
      hash: "ab".repeat(32),
      created_at: "2026-11-22T00:00:00.000000Z",
      tree: null
    })
  )
  await produce("alk.progress", "0", JSON.stringify({ partition: 0, events_next: 1e9 }))
  await produce("alk.commands", "acme", "anything")
  await send("two")
  assert.deepStrictEqual(await ids(), ["one", "two"])
  const verified = await client().call("/v1/verify")
  assert.deepInclude(verified.body, { valid: true, events_checked: 2 })
  await eventuallyAsync(
    "each of the four is refused",
    () =>
      running
        .output()
        .split("\n")
        .filter((line) => line.includes(REFUSED)),
    ({ length }) => length >= 4
  )
})

it("starts again on it, the same for everybody", async () => {
  await running.stop()
  running = await start(environment)
  await send("three")
  assert.deepStrictEqual(await ids(), ["one", "three", "two"])
  const verified = await client().call("/v1/verify")
  assert.deepInclude(verified.body, { valid: true, events_checked: 3 })
})

it("refuses to start with another secret, and says why", async () => {
  await running.stop()
  const other = { ...environment, ALK_SECRET: "another-secret-that-is-long-enough-for-a-start" }
  const refused = await start(other).then(
    async (started) => `started: ${await started.stop()}`,
    (error: Error) => error.message
  )
  assert.include(refused, "another ALK_SECRET authenticates these topics")
  running = await start(environment)
  assert.deepStrictEqual(await ids(), ["one", "three", "two"])
})

it("streams what the sequencer has written, and nothing that another producer has", async () => {
  const { created_at, hash } = (await client().all()).find((one) => one.sequence_number === 3)!
  const chain = new Chain("acme")
  chain.head = { sequence_number: 3, hash, created_at }
  const forged = chain.append({ id: "forged" })
  const messages = await readStream(`${running.url}/v1/events/stream`, testKey("acme"), {
    opened: async () => {
      await produce("alk.events", "acme", forged)
      await send("four")
      await send("five")
    },
    done: ({ length }) => length >= 2
  })
  assert.deepStrictEqual(
    messages.map(({ data, id }) => [id, JSON.parse(data).id]),
    [
      ["4", "four"],
      ["5", "five"]
    ]
  )
})
