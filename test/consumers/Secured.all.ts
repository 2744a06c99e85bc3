/**
 * The examples of consumers on a broker with TLS, SASL and rights: they sign in with what the
 * environment says, and need no right but to read the topic and the group that some of them join.
 */
import { spawnSync } from "node:child_process"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { type Example, runExample } from "./Examples.ts"
import { franzGo, kafkaClients, kafkajs, kcat, platformatic, python } from "./Languages.ts"
import { type SecuredBroker, startSecuredBroker } from "./SecuredBroker.ts"
import { makeWorld, read, type World, writeCopy } from "./World.ts"

const TOPIC = "secured.events"
/** librdkafka before 2.6.1, which kcat mostly comes with, fails with SCRAM on Kafka 4. */
const PLAIN = { KAFKA_SASL_MECHANISM: "plain" }

const reason =
  spawnSync("openssl", ["version"]).status === 0 ? undefined : "openssl is not installed"
if (reason !== undefined) console.warn(`SKIPPED: consumers on a secured broker: ${reason}`)

const examples: ReadonlyArray<Example> = [
  kafkajs,
  platformatic,
  kcat,
  await python(),
  kafkaClients,
  franzGo
]

describe.skipIf(reason !== undefined)("on a broker with TLS, SASL and rights", () => {
  let world: World
  let broker: SecuredBroker

  beforeAll(async () => {
    world = await makeWorld("secured")
    broker = await startSecuredBroker("secured.")
    await writeCopy(broker.open, TOPIC, await read(world.topic))
    await writeCopy(broker.open, "other.events", [])
  })
  afterAll(async () => {
    await broker.stop()
    await world.stop()
  })

  for (const example of examples) {
    const { missing, name } = example
    it.skipIf(missing !== undefined)(`the consumer with ${name} reads its topic`, async () => {
      const connection = { ...broker.environment, ...(example === kcat ? PLAIN : {}) }
      const { code, errors, lines } = await runExample(example, connection, TOPIC)
      const wanted = `intact: ${world.events} events of ${world.tenants} tenants`
      assert.strictEqual(lines.at(-1), wanted, errors)
      assert.strictEqual(code, 0, errors)
    })
  }

  it.each([
    ["another password", { KAFKA_SASL_PASSWORD: "wrong" }, TOPIC],
    ["another topic", {}, "other.events"]
  ])("a consumer with %s fails without a verdict", async (_, changed, topic) => {
    const connection = { ...broker.environment, ...changed }
    const { code, lines } = await runExample(kafkaClients, connection, topic)
    assert.notStrictEqual(code, 0)
    assert.isEmpty(lines.filter((line) => /^(?:intact|broken)/.test(line)))
  })
})
