/**
 * This version after the one before: it goes on with the data folder that the other has left, takes
 * over from it role by role under load, and the other does not start on what this one has written.
 */
import { readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { Kafka, logLevel, type Message, Partitioners } from "kafkajs"
import { afterAll, assert, describe, inject, it } from "vitest"
import { RecordMac } from "../../src/domain/records/RecordMac.ts"
import { DATA_VERSION, FIRST_DATA_VERSION } from "../../src/domain/registry/RegistryEntry.ts"
import { begin as beginCommand } from "../cli/CommandRuns.ts"
import { checkChain, event, readTopic } from "../support/BlackBox.ts"
import { Client, type Json } from "../support/Client.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import {
  ADMIN_TOKEN,
  type Checkout,
  freshFolder,
  type Started,
  start,
  TEST_SECRET
} from "../support/Program.ts"
import { signingKeyIn } from "../support/SigningKeyFile.ts"
import { expected, KEY, OTHER_KEY, TENANT, unpackData, unpackProgram } from "./Fixture.ts"

/** Milliseconds: processes start and stop meanwhile, and others take their partitions over. */
const PATIENCE_MS = 120_000
const SYNC = { headers: { "x-service-sync": "true" } }

const before = expected()
const folders = { program: freshFolder("before"), data: freshFolder("before-data") }
const old: Checkout = unpackProgram(folders.program)

const running = new Set<Started>()

const begin = async (environment: Record<string, string>, checkout?: Checkout) => {
  const started = await start(environment, checkout?.command, checkout)
  running.add(started)
  return started
}

const end = async (started: Started): Promise<void> => {
  running.delete(started)
  assert.strictEqual(await started.stop(), 0, started.output())
}

afterAll(async () => {
  await Promise.all([...running].map((one) => one.kill()))
  for (const folder of Object.values(folders)) rmSync(folder, { recursive: true, force: true })
})

/** How the program says no: its last lines. */
const refusalOf = async (environment: Record<string, string>, checkout?: Checkout) => {
  const outcome = await begin(environment, checkout).catch((error: Error) => error)
  assert.instanceOf(outcome, Error, "it has started")
  return (outcome as Error).message
}

describe(`a data folder of ${before.commit}`, () => {
  const environment = { ...before.environment, ALK_DATA_DIR: folders.data }

  it("is gone on with: events, traces, keys, links, ids and the chain are what they were", async () => {
    unpackData(folders.data)
    const started = await begin(environment)
    const client = new Client(started.url, KEY)
    assert.deepStrictEqual(await client.all(), before.events)
    assert.deepStrictEqual(await new Client(started.url, OTHER_KEY).all(), before.others)
    const execution = await client.call(`/api/v1/executions/${before.executionId}`)
    assert.deepInclude(execution.body, before.execution)

    // What the checkpoint that was kept says, whatever this program says of itself.
    const verified = await client.call("/v1/verify")
    const count = before.events.length
    assert.deepInclude(verified.body, { valid: true, events_checked: count })
    const kept = { checkpoint: before.checkpoint }
    const compared = await client.call("/v1/verify", { body: kept })
    assert.strictEqual(compared.body.valid, true, compared.text)
    await checkChain(before.events)

    const named = { "idempotency-key": "of-the-fixture", ...SYNC.headers }
    const repeated = await client.call("/v1/events", { body: before.request, headers: named })
    assert.deepStrictEqual(repeated.body, before.receipt)
    const known = await client.call("/v1/events", { body: { ...event(5), id: "own-5" }, ...SYNC })
    assert.strictEqual(known.body.id, "own-5", known.text)
    const other = await client.call("/v1/events", { body: { ...event(6), id: "own-5" }, ...SYNC })
    assert.strictEqual(other.status, 409, other.text)
    const next = await client.call("/v1/events", { body: { ...event(900), id: "new" }, ...SYNC })
    assert.strictEqual(
      next.body.sequence_number,
      before.events.at(-1)!["sequence_number"] + 1,
      next.text
    )

    const made = await new Client(started.url, before.madeKey).call("/v1/events?page_size=1")
    assert.strictEqual(made.status, 200, made.text)
    const shared = new Client(started.url, before.shareToken, false)
    assert.strictEqual((await shared.call("/v1/share/export/pdf")).status, 200)
    const all = await client.all()
    assert.strictEqual(all.length, count + 1)
    await checkChain(all)
    await end(started)
  })

  it("is not opened by the version before any more, which says why", async () => {
    const said = await refusalOf(environment, old)
    assert.match(said, /version \d+ \(\S+\), which this program doesn't know: start the newer/)
  })
})

describe("data of a version to come", () => {
  it("is refused at the start, with what to start instead", async () => {
    const data = freshFolder("to-come")
    const environment = {
      ALK_DATA_DIR: data,
      ALK_PARTITIONS: "1",
      ALK_EMBEDDED_OPEN: "true",
      ALK_BOOTSTRAP_KEYS: `${KEY}=${TENANT}:read+write`
    }
    const started = await begin(environment)
    const sent = await new Client(started.url, KEY).call("/v1/events", { body: event(1), ...SYNC })
    assert.strictEqual(sent.status, 201, sent.text)
    const noted = async () => {
      const records = await readTopic(started.kafka, "alk.registry", "data_version/topics")
      return records.map(({ value }) => JSON.parse(value).version)
    }
    const versions = await eventuallyAsync(
      "the version of its data is noted",
      noted,
      ({ length }) => length > 0
    )
    assert.deepStrictEqual(versions, [FIRST_DATA_VERSION])

    const version = DATA_VERSION + 1
    const noted_at = "2027-01-01T00:00:00.000000Z"
    const key = "data_version/topics"
    const value = JSON.stringify({ id: "topics", version, program: "9.8.7", noted_at })
    const topic = "alk.registry"
    const secret = readFileSync(join(data, "secret"), "utf8").trim()
    const mac = new RecordMac(secret).of({ topic, partition: 0, key, value, headers: {} })
    // Each start has a broker of another address.
    const send = async ({ kafka }: Started, message: Message): Promise<void> => {
      const producer = new Kafka({ brokers: [kafka], logLevel: logLevel.NOTHING }).producer({
        createPartitioner: Partitioners.DefaultPartitioner
      })
      await producer.connect()
      await producer.send({ topic, acks: -1, messages: [message] })
      await producer.disconnect()
    }
    const [forged, genuine] = [
      { partition: 0, key, value, headers: { "alk-mac": "forged" } },
      { partition: 0, key, value, headers: { "alk-mac": mac } }
    ] as const
    await send(started, forged)
    await end(started)
    // What somebody else has written refuses nothing.
    const again = await begin(environment)
    await send(again, genuine)
    // Nor does a command beside the service that goes on.
    const { HOME, JAVA_HOME } = process.env
    const backup = await beginCommand(["backup", "-o", `${data}-backup`], {
      ...(HOME && { HOME }),
      ...(JAVA_HOME && { JAVA_HOME }),
      ...environment,
      LOG_LEVEL: "error"
    }).ended
    assert.strictEqual(backup.end, 1)
    assert.include(backup.errors, `hold data of version ${version}`)
    await end(again)
    const said = await refusalOf(environment)
    assert.include(said, `hold data of version ${version}, written since ${noted_at} by alk 9.8.7`)
    assert.include(said, "start alk 9.8.7 or later")
    rmSync(data, { recursive: true, force: true })
  })
})

describe(`processes of ${before.commit}`, () => {
  const prefix = `upgrade${process.pid}`
  const common = {
    ALK_SECRET: TEST_SECRET,
    ALK_TOPIC_PREFIX: prefix,
    CLICKHOUSE_DATABASE: prefix,
    ALK_REPLICATION: "1",
    ALK_PARTITIONS: "2",
    ALK_WORKER_PORT: "0",
    ALK_ADMIN_TOKEN: ADMIN_TOKEN,
    ALK_SIGNING_KEY_FILE: signingKeyIn(freshFolder("upgrade-key")),
    ALK_BOOTSTRAP_KEYS: `${KEY}=${TENANT}:read+write,${OTHER_KEY}=globex:read+write`
  }
  const roleOf = (role: string, checkout?: Checkout) =>
    begin(
      {
        ...common,
        KAFKA_BROKERS: inject("bootstrap"),
        CLICKHOUSE_URL: inject("storeUrl"),
        ALK_ROLES: role
      },
      checkout
    )

  /** Sends until it is told to stop; every id that was acknowledged. */
  const load = (urls: () => ReadonlyArray<string>, key: string, name: string) => {
    const acknowledged = new Set<string>()
    let isOn = true
    const send = async () => {
      for (let batch = 0; isOn; batch++) {
        const events = Array.from({ length: 20 }, (_, index) => ({
          ...event(batch * 20 + index),
          id: `${name}-${batch}-${index}`
        }))
        // As a client does: the same bytes again, to whatever process answers.
        let attempt = 0
        await eventuallyAsync(
          "a batch is taken",
          async () => {
            const all = urls()
            const url = all[(batch + attempt++) % all.length]!
            const answer = await new Client(url, key, false)
              .call("/v1/events/batch", { body: { events }, ...(batch % 4 === 0 ? SYNC : {}) })
              .catch(String)
            return typeof answer === "string"
              ? answer
              : { status: answer.status, text: answer.text }
          },
          (answer) => typeof answer !== "string" && answer.status < 300,
          PATIENCE_MS
        )
        for (const { id } of events) acknowledged.add(id)
        await sleep(20)
      }
    }
    const sending = send()
    return {
      acknowledged,
      stop: async () => {
        isOn = false
        await sending
      }
    }
  }

  const idsIn = (events: ReadonlyArray<Json>) => events.map(({ id }) => String(id)).toSorted()

  it("are replaced role by role under load: nothing is lost, doubled or out of order", async () => {
    let projection = await roleOf("projection", old)
    let sequencers = [await roleOf("sequencer", old), await roleOf("sequencer", old)]
    let apis = [await roleOf("api", old), await roleOf("api", old)]
    const urls = () => apis.map(({ url }) => url)
    const senders = [load(urls, KEY, "a"), load(urls, OTHER_KEY, "g")]
    const more = async (count = 200) => {
      const goals = senders.map(({ acknowledged }) => acknowledged.size + count)
      await eventuallyAsync(
        `${goals} events are acknowledged`,
        () => senders.map(({ acknowledged }) => acknowledged.size),
        (sizes) => sizes.every((size, at) => size >= goals[at]!),
        PATIENCE_MS
      )
    }
    const roll = async (role: string, one: Started) => {
      const next = await roleOf(role)
      await end(one)
      await more()
      return next
    }
    await more()
    projection = await roll("projection", projection)
    sequencers = [await roll("sequencer", sequencers[0]!), sequencers[1]!]
    sequencers = [sequencers[0]!, await roll("sequencer", sequencers[1]!)]
    apis = [await roll("api", apis[0]!), apis[1]!]
    apis = [apis[0]!, await roll("api", apis[1]!)]
    await Promise.all(senders.map(({ stop }) => stop()))

    for (const [at, [tenant, key]] of [
      [TENANT, KEY] as const,
      ["globex", OTHER_KEY] as const
    ].entries()) {
      const sent = [...senders[at]!.acknowledged].toSorted()
      const client = new Client(apis[0]!.url, key)
      await eventuallyAsync(
        `all ${sent.length} events are listed`,
        async () => (await client.call("/v1/events?page_size=1")).body,
        (body) => body?.total >= sent.length,
        PATIENCE_MS
      )
      const records = await readTopic(inject("bootstrap"), `${prefix}.events`, tenant)
      const values = records.map(({ value }) => JSON.parse(value) as Json)
      assert.deepStrictEqual(idsIn(values), sent)
      await checkChain(records.map(({ value }) => value))
      assert.deepStrictEqual(idsIn(await client.all()), sent)
      const { body } = await client.call("/v1/verify")
      assert.deepInclude(body, { valid: true, events_checked: sent.length })
    }

    // A rollback of a process by itself: said, not half done.
    const said = await roleOf("api", old).then(
      () => "",
      (error: Error) => error.message
    )
    assert.match(said, /which this program doesn't know: start the newer version/)
    await Promise.all([...apis, ...sequencers, projection].map(end))
  })
})
