/**
 * Who gets in at the embedded broker of a program that was started as it comes: nobody without a
 * password, a subscriber to the public topics only. As other users of the machine would try it, with
 * plain kafkajs and no code of alk.
 */
import { existsSync, readFileSync, rmSync, statSync } from "node:fs"
import { type AddressInfo, connect, createServer } from "node:net"
import { join } from "node:path"
import { Kafka, logLevel, Partitioners, type SASLOptions } from "kafkajs"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { event, readTopic } from "../support/BlackBox.ts"
import { Client } from "../support/Client.ts"
import { freshFolder, type Started, start, testKey } from "../support/Program.ts"

const PUBLIC = ["alk.events", "alk.traces", "alk.checkpoints"]
const INTERNAL = [
  "alk.commands",
  "alk.progress",
  "alk.quarantine",
  "alk.receipts",
  "alk.registry",
  "alk.state"
]
/** Milliseconds for an answer: many times what a busy machine needs. */
const ANSWER_MS = 60_000
/** Milliseconds after which whoever says nothing is taken to let nobody in. */
const SILENCE_MS = 5_000

const folder = freshFolder("doors")
const key = testKey("doors")
let running: Started

const inFolder = (name: string): string => readFileSync(join(folder, name), "utf8")

const found = (pattern: RegExp, text: string): string => pattern.exec(text)?.[1] ?? ""

const subscriber = (mechanism: "plain" | "scram-sha-256" = "scram-sha-256"): SASLOptions => {
  const text = inFolder("subscriber.properties")
  return {
    mechanism,
    username: found(/ username="([^"]*)"/, text),
    password: found(/ password="([^"]*)"/, text)
  }
}

const program = (mechanism: "plain" | "scram-sha-256" = "scram-sha-256"): SASLOptions => ({
  mechanism,
  username: "alk",
  password: inFolder("kafka.password").trim()
})

const clientOf = (
  sasl?: SASLOptions,
  { answerMs = ANSWER_MS, broker = running.kafka, retries = 0 } = {}
): Kafka =>
  new Kafka({
    brokers: [broker],
    clientId: "somebody",
    logLevel: logLevel.NOTHING,
    connectionTimeout: answerMs,
    requestTimeout: answerMs,
    retry: { retries },
    ...(sasl === undefined ? {} : { sasl })
  })

/** Somebody who is let in: what is not there yet is asked for again. */
const guestOf = (sasl?: SASLOptions): Kafka => clientOf(sasl, { retries: 10 })

/** The error of an act that has to fail. */
const refusal = async (act: Promise<unknown>): Promise<string> =>
  act.then(
    (done) => assert.fail(`it was let in: ${JSON.stringify(done)}`),
    (error: Error) => error.message
  )

const produce = async (kafka: Kafka, topic: string): Promise<void> => {
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
  try {
    await producer.connect()
    await producer.send({ topic, messages: [{ key: "doors", value: "{}", partition: 0 }] })
  } finally {
    await producer.disconnect()
  }
}

const listTopics = async (kafka: Kafka): Promise<ReadonlyArray<string>> => {
  const admin = kafka.admin()
  try {
    await admin.connect()
    return await admin.listTopics()
  } finally {
    await admin.disconnect()
  }
}

/** Becomes a member of a consumer group. */
const joinGroup = async (kafka: Kafka, groupId: string): Promise<void> => {
  const consumer = kafka.consumer({ groupId })
  try {
    await consumer.connect()
    const joined = new Promise<void>((resolve, reject) => {
      consumer.on(consumer.events.GROUP_JOIN, () => resolve())
      consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error))
    })
    await consumer.subscribe({ topic: "alk.events" })
    await consumer.run({ eachMessage: () => Promise.resolve() })
    await joined
  } finally {
    await consumer.disconnect()
  }
}

beforeAll(async () => {
  running = await start({
    ALK_ROLES: "api,sequencer,projection,store",
    ALK_DATA_DIR: folder,
    ALK_BOOTSTRAP_KEYS: `${key}=doors:read+write`
  })
  const api = new Client(running.url, key)
  const sync = { headers: { "x-service-sync": "true" } }
  assert.strictEqual((await api.batch([event(1), event(2)], sync)).status, 200)
})

afterAll(async () => {
  await running.stop()
  rmSync(folder, { recursive: true, force: true })
})

describe("somebody without a password", () => {
  it("is not let in at the broker", async () => {
    await refusal(listTopics(clientOf()))
    for (const topic of ["alk.registry", "alk.events"]) await refusal(produce(clientOf(), topic))
  })

  it("is not let in at the controller", async () => {
    const listeners = found(/^listeners=(.*)$/m, inFolder("kafka/server.properties"))
    const controller = found(/CONTROLLER:\/\/([^,]+)/, listeners)
    assert.match(controller, /^127\.0\.0\.1:\d+$/)
    const silent = { broker: controller, answerMs: SILENCE_MS }
    await refusal(listTopics(clientOf(undefined, silent)))
    await refusal(listTopics(clientOf(subscriber(), silent)))
  })

  it("is not let in with a password that it guesses", async () => {
    for (const mechanism of ["plain", "scram-sha-256"] as const) {
      const guess: SASLOptions = { mechanism, username: "alk", password: "alk" }
      assert.match(await refusal(listTopics(clientOf(guess))), /authentication failed|credentials/i)
    }
  })

  it("is not let in at the store", async () => {
    const answer = await fetch(running.store, { method: "POST", body: "SELECT 1" })
    assert.strictEqual(answer.status, 401)
  })

  it("finds no file that it may read", () => {
    const secrets = [
      "kafka/users.json",
      "kafka/server.properties",
      "subscriber.env",
      "processes.env",
      "kafka.password",
      "store.password",
      "subscriber.properties",
      "subscriber.librdkafka.properties"
    ]
    for (const name of secrets) {
      assert.strictEqual(statSync(join(folder, name)).mode & 0o077, 0, name)
    }
  })
})

describe("a program that listens in the place of the broker", () => {
  /** What a client sends to whoever listens, which answers as a broker would, if it can. */
  const sentTo = async (sasl: SASLOptions): Promise<string> => {
    const sent: Array<Buffer> = []
    const impostor = createServer((socket) => {
      const broker = connect(Number(running.kafka.split(":")[1]), "127.0.0.1")
      socket.on("data", (bytes) => {
        sent.push(bytes)
        broker.write(bytes)
      })
      broker.on("data", (bytes) => socket.write(bytes))
      socket.on("error", () => broker.destroy()).on("close", () => broker.destroy())
      broker.on("error", () => socket.destroy()).on("close", () => socket.destroy())
    })
    await new Promise<void>((resolve) => impostor.listen(0, "127.0.0.1", resolve))
    try {
      const { port } = impostor.address() as AddressInfo
      const admin = clientOf(sasl, { broker: `127.0.0.1:${port}` }).admin()
      await admin.connect()
      await admin.disconnect()
    } finally {
      impostor.close()
    }
    return Buffer.concat(sent).toString("latin1")
  }

  it("sees no password of the program, nor of a subscriber that can do without", async () => {
    for (const sasl of [program(), subscriber()]) {
      const sent = await sentTo(sasl)
      assert.include(sent, "n,,n=")
      assert.notInclude(sent, (sasl as { readonly password: string }).password)
    }
  })

  it("is let in at the broker as the program by no password, even the right one", async () => {
    assert.include(await listTopics(guestOf(program())), "alk.registry")
    assert.match(await refusal(listTopics(clientOf(program("plain")))), /authentication failed/i)
  })
})

describe("a subscriber", () => {
  it("reads the public topics with the file that the start names", async () => {
    assert.strictEqual(running.topics, join(folder, "subscriber.properties"))
    const records = await readTopic(running.topics, "alk.events", "doors")
    assert.deepStrictEqual(
      records.map(({ value }) => JSON.parse(value).sequence_number),
      [1, 2]
    )
    assert.includeMembers([...(await listTopics(guestOf(subscriber())))], PUBLIC)
  })

  it("may send its password, for kcat on librdkafka before 2.6.1", async () => {
    assert.includeMembers([...(await listTopics(guestOf(subscriber("plain"))))], PUBLIC)
    const ofKcat = inFolder("subscriber.librdkafka.properties")
    assert.include(ofKcat, "sasl.mechanism=PLAIN\n")
    assert.include(
      ofKcat,
      `sasl.password=${(subscriber() as { readonly password: string }).password}`
    )
  })

  it("sees no other topic", async () => {
    const seen = await listTopics(guestOf(subscriber()))
    assert.deepStrictEqual(
      INTERNAL.filter((topic) => seen.includes(topic)),
      []
    )
    for (const topic of INTERNAL) {
      await refusal(clientOf(subscriber()).admin().fetchTopicOffsets(topic))
    }
  })

  it("writes nowhere", async () => {
    for (const topic of [...PUBLIC, ...INTERNAL]) {
      assert.match(await refusal(produce(clientOf(subscriber()), topic)), /authoriz|not host/i)
    }
  })

  it("joins groups of its own, and none of the program's", async () => {
    await joinGroup(guestOf(subscriber()), "a-reader")
    for (const role of ["sequencer", "projection"]) {
      assert.match(await refusal(joinGroup(clientOf(subscriber()), `alk-${role}`)), /authoriz/i)
    }
  })
})

describe("other processes of the same user", () => {
  it("find what they need to work on the same log: addresses, and files of passwords and keys", () => {
    const text = inFolder("processes.env")
    const found = new Map(
      text
        .trim()
        .split("\n")
        .map((line) => line.split("=") as [string, string])
    )
    assert.strictEqual(found.get("KAFKA_BROKERS"), running.kafka)
    assert.strictEqual(found.get("KAFKA_SASL_USERNAME"), "alk")
    assert.strictEqual(found.get("CLICKHOUSE_URL"), running.store)
    const files = ["KAFKA_SASL_PASSWORD", "CLICKHOUSE_PASSWORD", "ALK_SECRET"].map((name) =>
      found.get(`${name}_FILE`)
    )
    assert.deepStrictEqual(
      files,
      ["kafka.password", "store.password", "secret"].map((name) => join(folder, name))
    )
    // A process shows its environment: no secret stands in it.
    for (const name of ["kafka.password", "store.password", "secret"]) {
      assert.notInclude(text, inFolder(name).trim())
    }
    // Another one would not be endorsed, and what it signs be refused.
    assert.strictEqual(found.get("ALK_SIGNING_KEY_FILE"), join(folder, "signing-key.pem"))
    assert.include(inFolder("signing-key.pem"), "PRIVATE KEY")
  })
})

describe("the program", () => {
  it("keeps its passwords over a restart, and takes a folder of an open broker", async () => {
    const before = inFolder("kafka/users.json")
    await running.stop()
    running = await start({ ALK_DATA_DIR: folder, ALK_EMBEDDED_OPEN: "true" })
    assert.include(await listTopics(guestOf()), "alk.registry")
    await running.stop()
    running = await start({
      ALK_DATA_DIR: folder,
      ALK_BOOTSTRAP_KEYS: `${key}=doors:read+write`
    })
    await refusal(listTopics(clientOf()))
    assert.strictEqual(inFolder("kafka/users.json"), before)
    assert.isTrue(existsSync(running.topics))
    const { body } = await new Client(running.url, key).call("/v1/verify")
    assert.deepInclude(body, { valid: true, events_checked: 2 })
  })

  it("takes a folder whose log was made before SCRAM, and one whose users were made anew", async () => {
    await running.stop()
    // Its users are unknown to the log that it has.
    rmSync(join(folder, "kafka/users.json"))
    running = await start({ ALK_DATA_DIR: folder })
    assert.include(await listTopics(guestOf(program())), "alk.registry")
    await refusal(listTopics(clientOf(program("plain"))))
  })
})
