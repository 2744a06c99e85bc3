/**
 * Records that another producer writes to the internal topics of a running program, on its own broker:
 * it goes on, says so and answers as before, at this start and the next. Topics that another secret
 * has authenticated are refused.
 */
import { rmSync } from "node:fs"
import { type IHeaders, Kafka, type KafkaMessage, logLevel, Partitioners } from "kafkajs"
import { afterAll, assert, beforeAll, it } from "vitest"
import {
  ATTRIBUTES_AT,
  CHECKSUM_AT,
  RECORDS_AT
} from "../../src/adapters/kafka/protocol/BatchLayout.ts"
import { crc32c } from "../../src/adapters/kafka/protocol/Crc32c.ts"
import { makeCluster } from "../../src/adapters/kafka/protocol/KafkaClient.ts"
import { produceRequest } from "../../src/adapters/kafka/protocol/ProduceRequest.ts"
import { encodeRecordBatch } from "../../src/adapters/kafka/protocol/RecordBatch.ts"
import { event } from "../support/BlackBox.ts"
import { Client, readStream } from "../support/Client.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { freshFolder, type Started, start, testKey } from "../support/Program.ts"
import { Chain } from "../verify/support/Chains.ts"

const ADMIN = "admin-token-of-the-forged-records"
const data = freshFolder("take-over")
const environment = {
  ALK_DATA_DIR: data,
  ALK_EMBEDDED_OPEN: "true",
  ALK_PARTITIONS: "1",
  ALK_ADMIN_TOKEN: ADMIN,
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

/** Everything that a partition has, read by a consumer of its own. */
const recordsOf = (topic: string): Promise<ReadonlyArray<KafkaMessage>> =>
  intruder(async (kafka) => {
    const admin = kafka.admin()
    await admin.connect()
    const [offsets] = await admin.fetchTopicOffsets(topic)
    await admin.disconnect()
    const last = Number(offsets!.high) - 1
    const consumer = kafka.consumer({ groupId: `reader-of-${topic}` })
    await consumer.connect()
    await consumer.subscribe({ topic, fromBeginning: true })
    const found: Array<KafkaMessage> = []
    await new Promise<void>((resolve, reject) => {
      const run = consumer.run({
        eachMessage: async ({ message }) => {
          found.push(message)
          // The last offset may be that of a transaction's end.
          if (Number(message.offset) >= last - 1) resolve()
        }
      })
      run.catch(reject)
    })
    await consumer.disconnect()
    return found
  })

const textsOf = (headers: IHeaders = {}): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))

/** Bytes of a record before how far its offset is from that of its batch: length, and two of a byte. */
const deltaAt = (batch: Buffer): number =>
  RECORDS_AT + batch.subarray(RECORDS_AT).findIndex((byte) => byte < 128) + 3

/** Appends a record once more, in a batch that says that it is where it was. */
const appendAgain = async (topic: string, { headers, key, offset, value }: KafkaMessage) => {
  const cluster = makeCluster({ brokers: [running.kafka], clientId: "intruder", log: () => {} })
  await cluster.connect()
  await cluster.addMultipleTargetTopics([topic])
  const partition = 0
  const asked = [{ topic, partitions: [{ partition }], fromBeginning: false }]
  const [found] = await cluster.fetchTopicsOffset(asked)
  const distance = Number(found!.partitions[0]!.offset) - Number(offset)
  assert.isBelow(distance, 64, "one byte has it")
  const batch = await encodeRecordBatch([{ key, value, headers: textsOf(headers) }], {
    producerId: -1n,
    producerEpoch: -1,
    sequence: -1,
    transactional: false,
    timestamp: Date.now(),
    compression: "none"
  })
  batch[deltaAt(batch)] = 2 * distance - 1
  batch.writeUInt32BE(crc32c(batch, ATTRIBUTES_AT), CHECKSUM_AT)
  const [nodeId] = Object.keys(cluster.findLeaderForPartitions(topic, [partition]))
  const broker = await cluster.findBroker({ nodeId: nodeId! })
  const sent = await broker.connectionPool.send(
    produceRequest(null, [{ topic, partition, bytes: batch }])
  )
  await cluster.disconnect()
  return sent
}

it("takes no record for one of an earlier offset, whatever its batch says", async () => {
  const admin = new Client(running.url, ADMIN)
  const keys = "/v1/admin/tenants/acme/keys"
  const made = await admin.call(keys, { body: { scopes: ["read"] } })
  assert.strictEqual(made.status, 201, made.text)
  const answerOfKey = async () =>
    (await new Client(running.url, made.body.key).call("/v1/events")).status
  assert.strictEqual(await answerOfKey(), 200)
  await admin.call(`${keys}/${made.body.id}`, { method: "DELETE" })
  assert.strictEqual(await answerOfKey(), 401)
  const whole = (await recordsOf("alk.registry")).filter(
    ({ key, value }) => String(key) === `key/${made.body.id}` && value !== null
  )
  assert.strictEqual(whole.length, 2)
  const [produced] = await appendAgain("alk.registry", whole[0]!)
  // The broker takes it: it is the reader who has to see that.
  assert.strictEqual(produced?.errorCode, 0)
  await running.stop()
  running = await start(environment)
  assert.strictEqual(await answerOfKey(), 401)
  assert.include(running.output(), "where others are")
})
