/**
 * Every alert is fired once: the program runs, its condition is made for real, /metrics is scraped
 * before and after, and the rule is evaluated over the two as a longer time. None fires on a healthy
 * program. The few conditions that can't be made here are fed as series in test/watching.
 */
import { execFileSync } from "node:child_process"
import { once } from "node:events"
import { readFileSync, rmSync } from "node:fs"
import { createServer, request as httpRequest, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { createClient } from "@clickhouse/client"
import { Kafka, logLevel, Partitioners } from "kafkajs"
import { afterAll, assert, beforeAll, describe, inject, it } from "vitest"
import { RecordMac } from "../../src/domain/records/RecordMac.ts"
import { event } from "../support/BlackBox.ts"
import { Client, type Json } from "../support/Client.ts"
import { freePort } from "../support/FreePort.ts"
import { freshFolder, START_COMMAND, type Started, start, testKey } from "../support/Program.ts"
import { firing, INTERVAL, rules, seriesOf } from "../support/promql/Alerts.ts"
import { goingOn } from "../support/promql/GoingOn.ts"

/** Fed as series, see test/watching/Rules.test.ts. */
const BY_SERIES = [
  "AlkCheckpointOld",
  "AlkMemoryHigh",
  "AlkRetentionKept",
  "AlkSelfVerificationLate"
]
/** Seconds of a simulated time that every rule but the slowest is over in. */
const WHILE = 600
const DATABASE = `alerts${process.pid}`
const fired = new Set<string>()

const folder = freshFolder("alerts")
let running: Started
let store: Server

/** The way to the store of the run, which can be closed. */
const startProxy = async (): Promise<Server> => {
  const { host, hostname, port } = new URL(inject("storeUrl"))
  const server = createServer((request, response) => {
    const { method, url: path } = request
    const headers = { ...request.headers, host }
    const passed = httpRequest({ hostname, port, method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(response)
    })
    passed.on("error", () => response.destroy())
    response.on("close", () => passed.destroy())
    request.pipe(passed)
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  return server
}

const closeProxy = (): void => {
  store.close()
  store.closeAllConnections()
}

const tenants = ["acme", "tampered"]
const client = (tenant = "acme"): Client => new Client(running.url, testKey(tenant))
const scrape = async (): Promise<string> => (await fetch(`${running.url}/metrics`)).text()

/** Waits until a scrape says so, and comes back with it. */
const scrapeUntil = async (what: string, holds: (value: ValueOf) => boolean): Promise<string> => {
  let text = ""
  for (let left = 480; left > 0; left--) {
    text = await scrape()
    if (holds(valueOfText(text))) return text
    await sleep(250)
  }
  return assert.fail(`not in time: ${what}\n${text}`)
}

type ValueOf = (name: string) => number
const valueOfText =
  (text: string): ValueOf =>
  (name) =>
    text
      .split("\n")
      .filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
      .reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0)

/** The alerts that fire if it goes on as between the two scrapes; those named have to. */
const assertFires = (before: string, after: string, ...wanted: ReadonlyArray<string>): void => {
  const found = firing(seriesOf(goingOn(before, after, WHILE)), { from: 0, to: WHILE })
  for (const alert of wanted) {
    assert.include(found, alert)
    fired.add(alert)
  }
}

/** For rules that don't wait: over the two real scrapes alone. */
const assertFiresAtOnce = (before: string, after: string, alert: string): void => {
  const scrapes = [before, after].map((text, index) => ({ at: index * INTERVAL, text }))
  assert.include(firing(seriesOf(scrapes), { from: 0, to: INTERVAL }), alert)
  fired.add(alert)
}

const produce = async (topic: string, message: Json): Promise<void> => {
  const kafka = new Kafka({ brokers: [running.kafka], logLevel: logLevel.NOTHING })
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  await producer.send({ topic, acks: -1, messages: [{ partition: 0, ...message } as any] })
  await producer.disconnect()
}

const brokerPid = (): number => {
  const line = execFileSync("ps", ["-eo", "pid,comm,args"], { encoding: "utf8" })
    .split("\n")
    .find((entry) => /^ *\d+ java .*kafka\.Kafka/.test(entry) && entry.includes(folder))
  return Number(line!.trim().split(" ")[0])
}

beforeAll(async () => {
  store = await startProxy()
  running = await start({
    ALK_DATA_DIR: folder,
    // The broker comes back there after it was killed.
    ALK_KAFKA_PORT: String(await freePort()),
    ALK_EMBEDDED_OPEN: "true",
    ALK_PARTITIONS: "1",
    ALK_WORKERS: "0",
    ALK_SELF_VERIFY_EVENTS_PER_SECOND: "10",
    CLICKHOUSE_URL: `http://127.0.0.1:${(store.address() as AddressInfo).port}`,
    CLICKHOUSE_DATABASE: DATABASE,
    CHROMIUM_PATH: "/bin/false",
    ALK_BOOTSTRAP_KEYS: tenants.map((one) => `${testKey(one)}=${one}:read+write`).join(",")
  })
})

afterAll(async () => {
  running.process.kill("SIGCONT")
  await running.stop()
  closeProxy()
  rmSync(folder, { recursive: true, force: true })
})

it("none fires on a healthy program that is used", async () => {
  const before = await scrapeUntil("started", (value) => value("alk_sequencer_partitions") === 1)
  for (let n = 0; n < 5; n++) {
    const { status } = await client().batch([event(n)], { headers: { "x-service-sync": "true" } })
    assert.strictEqual(status, 200)
    await client().call("/v1/events")
  }
  const after = await scrape()
  const series = seriesOf(goingOn(before, after, WHILE))
  assert.deepStrictEqual(firing(series, { from: 0, to: WHILE }), [])
})

describe("what clients do", () => {
  it("AlkKeyGuessing: many wrong keys", async () => {
    const before = await scrape()
    for (let n = 0; n < 55; n++) {
      await new Client(running.url, testKey(`wrong${n}`)).call("/v1/events")
    }
    assertFiresAtOnce(before, await scrape(), "AlkKeyGuessing")
  })

  it("AlkItemsRejected: items that can't be stored, in a batch that is accepted", async () => {
    const before = await scrape()
    const bad = Array.from({ length: 15 }, (_, n) => ({ ...event(n), action: "nodots" }))
    await client().batch([event(1), ...bad])
    assertFiresAtOnce(before, await scrape(), "AlkItemsRejected")
  })

  it("AlkExportsFailing: a report without a browser to print it", async () => {
    const before = await scrape()
    const { status, text } = await client().call("/v1/exports", { body: { kind: "pdf" } })
    assert.strictEqual(status, 202, text)
    const after = await scrapeUntil(
      "the export has failed",
      (value) => value('alk_exports_total{status="failed"}') > 0
    )
    assertFiresAtOnce(before, after, "AlkExportsFailing")
  })
})

describe("what others write", () => {
  it("AlkRecordsDenied: a record on a topic of the service that is none of it", async () => {
    const before = await scrape()
    await produce("alk.progress", { key: "0", value: "{" })
    const after = await scrapeUntil(
      "the record is passed over",
      (value) =>
        value("alk_records_malformed_total") > valueOfText(before)("alk_records_malformed_total")
    )
    assertFiresAtOnce(before, after, "AlkRecordsDenied")
  })

  it("AlkQuarantineOpen: a command of somebody else", async () => {
    const before = await scrape()
    await produce("alk.commands", { key: "acme", value: "no command" })
    const after = await scrapeUntil(
      "it is in quarantine",
      (value) => value("alk_quarantine_open_commands") > 0
    )
    assertFires(before, after, "AlkQuarantineOpen")
  })

  it("AlkChainBroken: a row that was changed in the store", async () => {
    const before = await scrape()
    const events = Array.from({ length: 300 }, (_, n) => event(n))
    const sent = await client("tampered").batch(events, { headers: { "x-service-sync": "true" } })
    assert.strictEqual(sent.status, 200, sent.text)
    // Self-verification takes 30 s to come to the last of them.
    const intruder = createClient({ url: inject("storeUrl") })
    await intruder.command({
      query:
        `ALTER TABLE ${DATABASE}.events UPDATE outcome = 'failure'`
        + " WHERE tenant_id = 'tampered' AND sequence_number = 300",
      clickhouse_settings: { mutations_sync: "1" }
    })
    await intruder.close()
    const after = await scrapeUntil(
      "the break is found",
      (value) => value("alk_self_verification_broken_tenants") > 0
    )
    assertFires(before, after, "AlkChainBroken")
  })
})

describe("what happens to processes", () => {
  it("AlkEventLoopBlocked: the process gets to run for moments only", async () => {
    const before = await scrape()
    for (let n = 0; n < 14; n++) {
      running.process.kill("SIGSTOP")
      await sleep(1_500)
      running.process.kill("SIGCONT")
      await sleep(200)
    }
    const after = await scrapeUntil(
      "the loop was late",
      (value) => value("nodejs_eventloop_lag_p99_seconds") > 1
    )
    assertFires(before, after, "AlkEventLoopBlocked")
  })

  it("AlkSlowAnswers: the broker stops for seconds while writes wait", async () => {
    const before = await scrape()
    const broker = brokerPid()
    process.kill(broker, "SIGSTOP")
    const waiting = client().batch([event(1)], { headers: { "x-service-sync": "true" } })
    await sleep(4_000)
    process.kill(broker, "SIGCONT")
    await waiting
    assertFires(before, await scrape(), "AlkSlowAnswers")
  })

  it("AlkBrokerUnreachable, AlkFollowerInterrupted: the broker hangs", async () => {
    const before = await scrape()
    const broker = brokerPid()
    process.kill(broker, "SIGSTOP")
    const after = await scrapeUntil(
      "nothing is read of the broker",
      (value) => value("alk_broker_reachable") === 0 && value("alk_follower_following") === 0
    ).finally(() => process.kill(broker, "SIGCONT"))
    assertFires(before, after, "AlkBrokerUnreachable", "AlkFollowerInterrupted")
    await scrapeUntil("it is back", (value) => value("alk_follower_following") === 1)
  })

  it("AlkSequencerStartsOver: the broker is killed again and again", async () => {
    const before = await scrapeUntil(
      "it sequences",
      (value) => value("alk_sequencer_partitions") === 1
    )
    const restarts = (value: ValueOf) => value("alk_sequencer_restarts_total")
    const wanted = restarts(valueOfText(before)) + 6
    let after = before
    while (restarts(valueOfText(after)) < wanted) {
      process.kill(brokerPid(), "SIGKILL")
      await scrapeUntil("it is away", (value) => value("alk_sequencer_partitions") === 0)
      after = await scrapeUntil("it is back", (value) => value("alk_sequencer_partitions") === 1)
    }
    assertFiresAtOnce(before, after, "AlkSequencerStartsOver")
  })

  it("AlkStoreUnreachable, and what the projection does meanwhile", async () => {
    const before = await scrape()
    closeProxy()
    for (let batch = 0; batch < 2; batch++) {
      const events = Array.from({ length: 600 }, (_, n) => event(n))
      assert.strictEqual((await client().batch(events)).status, 202)
    }
    for (let n = 0; n < 20; n++) await client().call("/v1/events")
    const restarts = "alk_projection_restarts_total"
    const after = await scrapeUntil(
      "the projection has noticed",
      (value) =>
        value("alk_store_reachable") === 0
        && value("alk_projection_lag_records") > 1_000
        && value("alk_projection_partitions") === 0
        && value(restarts) > valueOfText(before)(restarts) + 5
    )
    assertFiresAtOnce(before, after, "AlkProjectionStartsOver")
    assertFires(
      before,
      after,
      "AlkStoreUnreachable",
      "AlkProjectionStopped",
      "AlkProjectionLag",
      "AlkServerErrors"
    )
  })

  it("AlkSequencerMissing, AlkSequencerLag: a command that only a newer version reads", async () => {
    const before = await scrape()
    const secret = readFileSync(join(folder, "secret"), "utf8").trim()
    const record = {
      topic: "alk.commands",
      partition: 0,
      key: "acme",
      value: Buffer.from("{}"),
      headers: { "alk-format": "99", "alk-tenant": "acme" }
    }
    const mac = new RecordMac(secret).of(record)
    await produce(record.topic, {
      key: record.key,
      value: record.value,
      headers: { ...record.headers, "alk-mac": mac }
    })
    await scrapeUntil("it is refused", (value) => value("alk_sequencer_partitions") === 0)
    for (let hundred = 0; hundred < 11; hundred++) {
      const sent = Array.from({ length: 100 }, (_, n) => client().batch([event(n)]))
      for (const { status } of await Promise.all(sent)) assert.strictEqual(status, 202)
    }
    const after = await scrapeUntil(
      "commands wait",
      (value) => value("alk_sequencer_lag_commands") > 1_000
    )
    assertFires(before, after, "AlkSequencerMissing", "AlkSequencerLag")
  })

  it("AlkDown: the program has ended", async () => {
    const text = await scrape()
    await running.stop()
    const scrapes = Array.from({ length: WHILE / INTERVAL }, (_, step) => ({
      at: step * INTERVAL,
      text: step === 0 ? text : undefined
    }))
    const answer = await scrape().catch(() => undefined)
    assert.isUndefined(answer)
    assert.include(firing(seriesOf(scrapes), { from: 0, to: WHILE }), "AlkDown")
    fired.add("AlkDown")
  })
})

it("AlkDiskNearlyFull, AlkRestartLoop: a store on a small disk, started again and again", async () => {
  const data = freshFolder("alerts-disk")
  // A disk of its own, which nobody else sees and which is gone with the process.
  const script = `mount -t tmpfs -o size=800m tmpfs ${data} && head -c 735m /dev/zero > ${data}/filler && exec "$@"`
  const command = ["unshare", "-r", "-m", "sh", "-c", script, "sh", ...START_COMMAND]
  const texts: Array<string> = []
  for (let n = 0; n < 4; n++) {
    const program = await start(
      {
        ALK_ROLES: "store",
        ALK_DATA_DIR: data,
        KAFKA_BROKERS: inject("bootstrap"),
        ALK_SECRET: "a-secret-of-this-test-that-is-long-enough",
        ALK_WORKER_PORT: "0"
      },
      command
    )
    for (let left = 100; left > 0; left--) {
      texts[n] = await (await fetch(`${program.url}/metrics`)).text()
      if (texts[n]!.includes("\nalk_data_free_bytes ")) break
      await sleep(100)
    }
    await program.stop()
  }
  rmSync(data, { recursive: true, force: true })
  const scrapes = texts.map((text, index) => ({ at: index * INTERVAL, text }))
  assert.include(firing(seriesOf(scrapes), { from: 0, to: 3 * INTERVAL }), "AlkRestartLoop")
  fired.add("AlkRestartLoop")
  assertFires(texts[0]!, texts[0]!, "AlkDiskNearlyFull")
})

it("every alert has fired, here or over series", () => {
  assert.sameMembers(
    [...fired, ...BY_SERIES],
    rules.map(({ alert }) => alert)
  )
})
