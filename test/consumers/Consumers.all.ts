/**
 * The examples of consumers that have to be built or need packages: Python with confluent-kafka, Java
 * with Kafka's own client and with Kafka Streams, and Go with franz-go where Go is installed. Each
 * finds every chain that is forged. The topic is compressed for readers without zstd.
 */
import { Kafka, logLevel } from "kafkajs"
import { afterAll, assert, beforeAll, describe, inject, it } from "vitest"
import { describeExamples, runExample } from "./Examples.ts"
import { franzGo, kafkaClients, kafkaStreams, python } from "./Languages.ts"
import { makeWorld, type World } from "./World.ts"

const confluent = await python()
let world: World
beforeAll(async () => {
  world = await makeWorld("consumersall", { ALK_PUBLIC_COMPRESSION: "gzip" })
})
afterAll(() => world.stop())

describeExamples([confluent, kafkaClients, kafkaStreams, franzGo], () => world)

describe("the application with Kafka Streams", () => {
  it("counts by action, and goes on where it stopped", async () => {
    const { code, errors, lines } = await runExample(kafkaStreams, world.connection, world.topic)
    assert.strictEqual(code, 0, errors)
    const counts = [...world.actions].map(([action, count]) => `${count} ${action}`)
    assert.sameMembers(lines.slice(0, -1), counts)
    assert.strictEqual(lines.at(-1), "intact: 0 events of 0 tenants")
  })
})

describe("kafkajs as it comes", () => {
  it("reads what is compressed with gzip", async () => {
    const kafka = new Kafka({ brokers: [inject("bootstrap")], logLevel: logLevel.NOTHING })
    const consumer = kafka.consumer({ groupId: `plain-${process.pid}` })
    await consumer.connect()
    await consumer.subscribe({ topic: world.topic, fromBeginning: true })
    let count = 0
    await new Promise<void>((resolve, reject) => {
      consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error))
      void consumer.run({
        eachMessage: async () => {
          count += 1
          if (count === world.events) resolve()
        }
      })
    })
    await consumer.disconnect()
  })
})
