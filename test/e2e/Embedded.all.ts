/** The whole program on embedded parts, with a population in it, through every way of ending. */
import { execFileSync, spawn } from "node:child_process"
import { rmSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { checkChain, event } from "../support/BlackBox.ts"
import { Client, type Json } from "../support/Client.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { otlpBlackBox } from "../support/OtlpBlackBox.ts"
import { assertPopulation, populate } from "../support/Population.ts"
import { ADMIN_TOKEN, freshFolder, type Started, start, testKey } from "../support/Program.ts"
import { recordedBlackBox } from "../support/RecordedBlackBox.ts"

const folder = freshFolder("embedded")
const keyOf = (tenant: string): string => testKey(tenant)
const environment = {
  ALK_DATA_DIR: folder,
  ALK_OTLP_GRPC_PORT: "0",
  ALK_ADMIN_TOKEN: ADMIN_TOKEN,
  ALK_BOOTSTRAP_KEYS: ["restart", "population", "otlp"]
    .map((tenant) => `${keyOf(tenant)}=${tenant}:read+write`)
    .join(",")
}

let running: Started
const client = (): Client => new Client(running.url, keyOf("restart"))

beforeAll(async () => {
  running = await start(environment)
})

afterAll(async () => {
  await running.stop()
  rmSync(folder, { recursive: true, force: true })
})

otlpBlackBox(() => ({ url: running.url, grpcUrl: running.otlpGrpc, key: keyOf("otlp") }))
recordedBlackBox(() => ({ url: running.url, key: keyOf("otlp") }))

const brokersOf = (path: string): ReadonlyArray<string> =>
  execFileSync("ps", ["-eo", "pid,comm,args"], { encoding: "utf8" })
    .split("\n")
    .filter((line) => /^\s*\d+ java .*kafka\.Kafka/.test(line) && line.includes(path))

/** Events that are acknowledged before it ends, so that it ends in the middle of the load. */
const ACKNOWLEDGED = 100

/** Many times what a start takes. */
const START_MS = 150_000

/** Keep sending small batches until stopped; every answer is kept. */
const sendUntil = (stop: { now: boolean }, from: number) => {
  const acknowledged: Array<string> = []
  const attempts = new Map<string, ReadonlyArray<Json>>()
  const loop = async (): Promise<void> => {
    for (let n = from; !stop.now; n++) {
      const key = `restart-${n}`
      const events = [0, 1, 2].map((item) => ({ ...event(n), id: `r-${n}-${item}` }))
      attempts.set(key, events)
      try {
        const { body, status } = await client().batch(events, {
          headers: n % 2 === 0 ? { "idempotency-key": key } : {}
        })
        if (status === 202) acknowledged.push(...body.ids)
      } catch {
        // The process is gone in the middle of a request: that is what the test is about.
        await sleep(50)
      }
    }
  }
  return { acknowledged, attempts, done: loop() }
}

const assertNothingLost = async (
  acknowledged: ReadonlyArray<string>,
  attempts: ReadonlyMap<string, ReadonlyArray<Json>>
): Promise<void> => {
  // Whoever was not answered tries again, with the same ids and keys.
  const receipts: Array<string> = []
  for (const [key, events] of attempts) {
    const number = Number(key.slice("restart-".length))
    const { body, status } = await client().batch(events, {
      headers: number % 2 === 0 ? { "idempotency-key": key } : {}
    })
    assert.strictEqual(status, 202)
    receipts.push(body.receipt_id)
  }
  await Promise.all(receipts.map((receipt) => client().settled(receipt)))
  const all = await client().all()
  await checkChain(all)
  const ids = all.map(({ id }) => id as string)
  assert.strictEqual(new Set(ids).size, ids.length)
  const stored = new Set(ids)
  assert.deepStrictEqual(
    acknowledged.filter((id) => !stored.has(id)),
    []
  )
  assert.strictEqual(ids.length, attempts.size * 3)
}

describe("a population", () => {
  it("of 5,000 events is listed, counted, filtered, chained and verified", async () => {
    const api = new Client(running.url, keyOf("population"))
    await populate(api, 5_000)
    await assertPopulation(api, "population", running.topics, "alk.events", 5_000)
  })
})

describe("restart in the middle", () => {
  const attempts = new Map<string, ReadonlyArray<Json>>()
  const acknowledged: Array<string> = []

  const run = "run across restarts"
  const path = `/api/v1/executions/${encodeURIComponent(run)}`
  const spans: Array<string> = []

  /** Whatever was running goes on, whatever was answered is there, and the chain holds. */
  const goOnWithTheRun = async (): Promise<void> => {
    const start = { agent_id: "agent", id: run }
    const { body, status } = await client().call("/api/v1/executions", { body: start })
    assert.strictEqual(status, spans.length === 0 ? 201 : 200)
    assert.strictEqual(body.status, "RUNNING")
    const span = { id: `span ${spans.length}`, span_type: "TOOL_CALL", name: "step" }
    const before = spans.at(-1)
    const made = await client().call(`${path}/spans`, {
      body: before === undefined ? span : { ...span, caused_by_span_ids: [before] }
    })
    assert.strictEqual(made.status, 201, made.text)
    spans.push(span.id)
    const { body: dag } = await client().call(`${path}/dag`)
    assert.sameMembers(
      dag.nodes.map(({ id }: Json) => id),
      [body.root_span_id, ...spans]
    )
    const { body: report } = await client().call(`${path}/verify`)
    assert.deepInclude(report, { valid: true, facts_checked: 2 + spans.length })
  }

  const restart = async (end: () => Promise<unknown>, from: number): Promise<void> => {
    await goOnWithTheRun()
    const stop = { now: false }
    const sending = sendUntil(stop, from)
    try {
      await eventuallyAsync(
        `${ACKNOWLEDGED} events are acknowledged`,
        () => sending.acknowledged.length,
        (count) => count >= ACKNOWLEDGED
      )
      await end()
    } finally {
      stop.now = true
      await sending.done
    }
    for (const [key, events] of sending.attempts) attempts.set(key, events)
    acknowledged.push(...sending.acknowledged)
    running = await start(environment)
    await goOnWithTheRun()
  }

  it("goes on after SIGTERM, with nothing lost and nothing doubled", async () => {
    await restart(async () => {
      assert.strictEqual(await running.stop(), 0)
      assert.deepStrictEqual(brokersOf(folder), [])
    }, 1_000)
    await assertNothingLost(acknowledged, attempts)
  })

  it("goes on after kill -9 of the whole process group, broker and all", async () => {
    await restart(async () => {
      const brokers = brokersOf(folder).map((line) => Number(line.trim().split(" ")[0]))
      await running.kill()
      for (const pid of brokers) process.kill(pid, "SIGKILL")
    }, 2_000)
    await assertNothingLost(acknowledged, attempts)
  })

  it("goes on after kill -9 of the process alone; the orphaned broker goes away", async () => {
    await restart(() => running.kill(), 3_000)
    await assertNothingLost(acknowledged, attempts)
    assert.strictEqual(brokersOf(folder).length, 1)
  })
})

describe("the start", () => {
  it("keeps what stands on standard input out of the tables", async () => {
    const data = freshFolder("stdin")
    const child = spawn(process.execPath, ["src/main.ts"], {
      env: {
        PATH: process.env["PATH"]!,
        HOME: process.env["HOME"]!,
        PORT: "0",
        ALK_LOG_FORMAT: "json",
        ALK_DATA_DIR: data,
        ALK_KAFKA_PORT: "0",
        ALK_BOOTSTRAP_KEYS: `${keyOf("stdin")}=stdin:read+write`
      },
      stdio: ["pipe", "pipe", "inherit"],
      detached: true
    })
    // The program closes its standard input: what is still on the way has nowhere to go.
    child.stdin.on("error", () => undefined)
    child.stdin.write('7\t7\t{"garbage":true}\n'.repeat(1_000))
    let output = ""
    child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()))
    const ended = new Promise((resolve) => child.once("exit", resolve))
    try {
      // Whole, with what stands after it.
      const said = await eventuallyAsync(
        "it says that it is ready",
        () => output,
        (text) => /"message":"ready"[^\n]*\n/.test(text),
        START_MS
      )
      const line = said.split("\n").find((entry) => entry.includes('"message":"ready"'))!
      const { url } = JSON.parse(line) as { readonly url: string }
      const api = new Client(url, keyOf("stdin"))
      child.stdin.write('8\t8\t{"garbage":true}\n'.repeat(1_000))
      await api.batch([event(1), event(2)], { headers: { "x-service-sync": "true" } })
      const { body } = await api.call("/v1/verify")
      assert.strictEqual(body.valid, true)
      assert.strictEqual(body.events_checked, 2)
      assert.notInclude((await api.call("/v1/events?q=garbage")).text, "garbage")
    } finally {
      child.kill("SIGTERM")
      await ended
      rmSync(data, { recursive: true, force: true })
    }
  })

  it("refuses a data folder in use with one line that says so", async () => {
    const failed = await start(environment).then(
      () => "started",
      (error: Error) => error.message
    )
    assert.match(failed, /ended with 1/)
    const lines = failed.split("\n").filter((line) => line.startsWith("alk: "))
    assert.strictEqual(lines.length, 1, failed)
    assert.include(lines[0], folder)
  })

  it("refuses a port that is taken with one line that says so", async () => {
    const data = freshFolder("port")
    const failed = await start({
      ...environment,
      ALK_DATA_DIR: data,
      PORT: new URL(running.url).port
    }).then(
      () => "started",
      (error: Error) => error.message
    )
    rmSync(data, { recursive: true, force: true })
    assert.match(failed, /ended with 1/)
    const lines = failed.split("\n").filter((line) => line.startsWith("alk: "))
    assert.strictEqual(lines.length, 1, failed)
    assert.match(lines[0]!, /[Pp]ort/)
  })
})
