/**
 * Two topics for the examples of consumers: the one that a running alk has written, with an erased
 * event and aborted transactions in between and at the end, and a copy of it in which chains are
 * forged.
 */
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { CompressionTypes, Kafka, logLevel, Partitioners, type Producer } from "kafkajs"
import { assert, inject } from "vitest"
import { Client, type Json } from "../support/Client.ts"
import { start, testKey } from "../support/Program.ts"
import { sharedParts } from "../support/SharedParts.ts"
import { AT, forgeries } from "./Forgeries.ts"

const PARTITIONS = 2
/** Of each tenant. */
const EVENTS = 12
const ERASED = 3
const INTACT = "f-intact"
const tenants = [INTACT, ...forgeries.map(({ tenant }) => tenant)]

const run = promisify(execFile)
const OUTPUT_BYTES_MAX = 64 * 1_048_576

export interface World {
  /** What an example has to be told. */
  readonly connection: Readonly<Record<string, string>>
  readonly topic: string
  readonly forgedTopic: string
  /** Records of the topic, and of the copy. */
  readonly events: number
  readonly forgedEvents: number
  readonly tenants: number
  /** What the program says of the erased event. */
  readonly erased: string
  /** Events of the topic by action. */
  readonly actions: ReadonlyMap<string, number>
  readonly stop: () => Promise<void>
}

/** With everything that takes care to hash: escapes, other scripts, numbers, missing details. */
const eventOf = (number: number): Json => ({
  id: `event-${number}`,
  timestamp: `2026-11-21T10:00:00.${String(number).padStart(6, "0")}Z`,
  actor: { id: `user "${number}" \\ ü`, type: "human", email: `u${number}@example.com` },
  action: number % 3 === 0 ? "document.share" : "document.read",
  resource: { id: `doc/${number}`, type: "document", name: "a\tb\n“ü”\u2028\u007f\u0001" },
  outcome: "success",
  metadata: { amount: 1e21, "€\\": [null, 0.1, { "": '"},"tenant_id":"x"' }], ö: "\u2029😀" }
})

/** Each other event has fewer details, one none at all. */
const sent = Array.from({ length: EVENTS }, (_, index): Json => {
  const { actor, metadata, resource, ...rest } = eventOf(index)
  if (index + 1 === AT || index % 2 === 0) return { ...rest, actor, resource, metadata }
  const { email: _email, ...plainActor } = actor
  const { name: _name, ...plainResource } = resource
  return { ...rest, actor: plainActor, resource: index % 4 === 1 ? plainResource : resource }
})

const writeEvents = async (url: string): Promise<void> => {
  const sync = { headers: { "x-service-sync": "true" } }
  const half = EVENTS / 2
  for (const part of [sent.slice(0, half), sent.slice(half)]) {
    await Promise.all(
      tenants.map(async (tenant) => {
        const { status, text } = await new Client(url, testKey(tenant)).batch(part, sync)
        assert.strictEqual(status, 200, text)
      })
    )
  }
  const erase = { body: { reason: "asked for" } }
  const client = new Client(url, testKey(INTACT))
  const { status, text } = await client.call(`/v1/events/event-${ERASED - 1}/erase`, erase)
  assert.strictEqual(status, 200, text)
}

export interface Line {
  readonly partition: number
  readonly key: string
  readonly value: string
}

/** Every record of a topic. */
export const read = async (topic: string): Promise<ReadonlyArray<Line>> => {
  const { stdout } = await run(
    process.execPath,
    ["test/independent/kafka_reader.mjs", inject("bootstrap"), topic],
    { maxBuffer: OUTPUT_BYTES_MAX }
  )
  const lines = stdout.split("\n").filter((line) => line !== "")
  return lines.map((line) => JSON.parse(line) as Line)
}

const kafkaAt = (bootstrap: string) =>
  new Kafka({ brokers: [bootstrap], clientId: "intruder", logLevel: logLevel.NOTHING })

const withProducer = async (
  bootstrap: string,
  options: Parameters<Kafka["producer"]>[0],
  act: (producer: Producer) => Promise<void>
): Promise<void> => {
  const producer = kafkaAt(bootstrap).producer({
    createPartitioner: Partitioners.DefaultPartitioner,
    ...options
  })
  await producer.connect()
  await act(producer)
  await producer.disconnect()
}

/** Several transactions of one writer that come to nothing: readers must not see their records. */
const abort = (topic: string): Promise<void> =>
  withProducer(
    inject("bootstrap"),
    {
      transactionalId: `${topic}-aborted`,
      transactionTimeout: 15_000,
      maxInFlightRequests: 1,
      idempotent: true
    },
    async (producer) => {
      for (const value of ["never", "appended", "at all"]) {
        const transaction = await producer.transaction()
        for (let partition = 0; partition < PARTITIONS; partition++) {
          await transaction.send({ topic, messages: [{ key: INTACT, value, partition }] })
        }
        await transaction.abort()
      }
    }
  )

const forgeryOf = new Map(forgeries.map((forgery) => [forgery.tenant, forgery]))

const forged = (line: Line): ReadonlyArray<Line> => {
  const forgery = forgeryOf.get(line.key)
  if (forgery === undefined || !line.value.includes(`"sequence_number":${AT},`)) return [line]
  const values = forgery.forge(line.value)
  assert.notDeepEqual(values, [line.value], forgery.tenant)
  return values.map((value) => ({ ...line, value }))
}

/** A topic of these records, on the broker at an address. */
export const writeCopy = async (
  bootstrap: string,
  topic: string,
  lines: ReadonlyArray<Line>
): Promise<void> => {
  const admin = kafkaAt(bootstrap).admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic, numPartitions: PARTITIONS }], waitForLeaders: true })
  await admin.disconnect()
  await withProducer(bootstrap, {}, async (producer) => {
    const messages = lines.map(({ key, partition, value }) => ({ key, partition, value }))
    await producer.send({ topic, acks: -1, messages, compression: CompressionTypes.GZIP })
  })
}

/** `variables`: what alk is started with besides. */
export const makeWorld = async (
  name: string,
  variables: Readonly<Record<string, string>> = {}
): Promise<World> => {
  const prefix = `${name}${process.pid}`
  const program = await start({
    ...sharedParts(name),
    ALK_PARTITIONS: String(PARTITIONS),
    LOG_LEVEL: "warn",
    ALK_BOOTSTRAP_KEYS: tenants
      .map((tenant) => `${testKey(tenant)}=${tenant}:read+write`)
      .join(","),
    ...variables
  })
  const [topic, forgedTopic] = [`${prefix}.events`, `${prefix}.forged`]
  await abort(topic)
  await writeEvents(program.url)
  await abort(topic)
  const lines = await read(topic)
  const copied = lines.flatMap(forged)
  await writeCopy(inject("bootstrap"), forgedTopic, copied)
  const actions = lines.map(({ value }) => JSON.parse(value).action as string)
  const counts = [...Map.groupBy(actions, (action) => action)]
  return {
    connection: { KAFKA_BROKERS: inject("bootstrap") },
    topic,
    forgedTopic,
    events: lines.length,
    forgedEvents: copied.length,
    tenants: new Set(lines.map(({ key }) => key)).size,
    erased: `erased: tenant ${INTACT} sequence ${ERASED}: delete its details from your copies`,
    actions: new Map(counts.map(([action, { length }]) => [action, length])),
    stop: async () => void (await program.stop())
  }
}
