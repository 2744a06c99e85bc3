/**
 * Several processes of each role on one machine, over the shared broker and a store of their own:
 * the same main job, and what happens when one of them is away.
 */
import { readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, inject, it } from "vitest"
import { allTenants, blackBox, checkChain, event } from "../support/BlackBox.ts"
import { Client, type Json, readStream } from "../support/Client.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { freePort } from "../support/FreePort.ts"
import { otlpBlackBox } from "../support/OtlpBlackBox.ts"
import {
  ADMIN_TOKEN,
  freshFolder,
  type Started,
  start,
  TEST_SECRET,
  testKey
} from "../support/Program.ts"
import { recordedBlackBox } from "../support/RecordedBlackBox.ts"
import { signingKeyIn } from "../support/SigningKeyFile.ts"
import { allTraceTenants, traceBlackBox } from "../support/TraceBlackBox.ts"

const prefix = `roles${process.pid}`
const folder = freshFolder("roles")
const keyOf = (tenant: string): string => testKey(tenant)
const signingKey = signingKeyIn(freshFolder("roles-key"))
/** Where the other processes find the store again after it was away. */
const storePort = await freePort()

const common = (): Record<string, string> => ({
  ALK_SECRET: TEST_SECRET,
  ALK_TOPIC_PREFIX: prefix,
  ALK_PARTITIONS: "2",
  ALK_REPLICATION: "1",
  ALK_ADMIN_TOKEN: ADMIN_TOKEN,
  ALK_SIGNING_KEY_FILE: signingKey,
  KAFKA_BROKERS: inject("bootstrap"),
  ALK_BOOTSTRAP_KEYS: [...allTenants, ...allTraceTenants, "otlp", "away", "wave"]
    .map((tenant) => `${keyOf(tenant)}=${tenant}:read+write`)
    .join(",")
})

const startStore = (): Promise<Started> =>
  start({
    ...common(),
    ALK_ROLES: "store",
    ALK_DATA_DIR: folder,
    ALK_STORE_PORT: String(storePort)
  })

/** What the store has written down for other processes. */
const storeEnvironment = (): Record<string, string> => {
  const text = readFileSync(join(folder, "processes.env"), "utf8")
  return Object.fromEntries(
    text
      .trim()
      .split("\n")
      .map((line) => line.split("="))
  )
}

const storePassword = (): string => readFileSync(join(folder, "store.password"), "utf8").trim()

const startRole = (role: string, more: Record<string, string> = {}): Promise<Started> =>
  start({
    ...common(),
    ...more,
    ALK_ROLES: role,
    ALK_WORKER_PORT: "0",
    ...storeEnvironment()
  })

it("lets nobody into the store without its password", async () => {
  const password = storePassword()
  const { CLICKHOUSE_URL: url = "" } = storeEnvironment()
  assert.strictEqual(url, `http://127.0.0.1:${storePort}`)
  const ask = async (given: string): Promise<number> => {
    const authorization = `Basic ${btoa(`alk:${given}`)}`
    return (await fetch(url, { method: "POST", body: "SELECT 1", headers: { authorization } }))
      .status
  }
  assert.deepStrictEqual([await ask(password), await ask(""), await ask("alk")], [200, 401, 401])
})

let store: Started
let projection: Started
let apis: Array<Started>
let sequencers: Array<Started>

beforeAll(async () => {
  store = await startStore()
  projection = await startRole("projection")
  sequencers = [await startRole("sequencer"), await startRole("sequencer")]
  apis = [await startRole("api", { ALK_OTLP_GRPC_PORT: "0" }), await startRole("api")]
})

afterAll(async () => {
  await Promise.all([...apis, ...sequencers, projection].map((one) => one.stop()))
  await store.stop()
  rmSync(folder, { recursive: true, force: true })
})

const client = (tenant: string, which = 0): Client => new Client(apis[which]!.url, keyOf(tenant))

blackBox(() => ({
  urls: apis.map(({ url }) => url),
  bootstrap: inject("bootstrap"),
  topicPrefix: prefix,
  keyOf
}))

traceBlackBox(() => ({ urls: apis.map(({ url }) => url), keyOf }))
otlpBlackBox(() => ({
  url: apis[0]!.url,
  grpcUrl: apis[0]!.otlpGrpc,
  key: keyOf("otlp")
}))
recordedBlackBox(() => ({ url: apis[0]!.url, key: keyOf("otlp") }))

/** Those that a sequencer works on. */
const partitionsOf = async ({ url }: Started): Promise<ReadonlyArray<number>> => {
  const { body, status, text } = await new Client(url, "", false).call("/healthz")
  assert.strictEqual(status, 200, text)
  return body.partitions.sequencer
}

describe("a process without the API", () => {
  it("tells its health, its partitions and its metrics on a port of its own", async () => {
    const own = await eventuallyAsync(
      "each partition has a sequencer",
      async () => (await Promise.all(sequencers.map(partitionsOf))).flat().toSorted(),
      (partitions) => partitions.length >= 2
    )
    assert.deepStrictEqual(own, [0, 1])
    const counted = await Promise.all(
      sequencers.map(({ url }) => new Client(url, "", false).call("/metrics"))
    )
    assert.isTrue(counted.some(({ text }) => /^alk_events_committed_total \d/m.test(text)))
    const flushed = await new Client(projection.url, "", false).call("/metrics")
    assert.include(flushed.text, "alk_projection_flush_rows_count")
    assert.strictEqual((await new Client(projection.url, "", false).call("/v1/events")).status, 404)
  })
})

/** What somebody with access to the database does behind the service's back. */
const inDatabase = async (statement: string): Promise<string> => {
  const answer = await fetch(`http://127.0.0.1:${storePort}/?mutations_sync=1`, {
    method: "POST",
    headers: { authorization: `Basic ${btoa(`alk:${storePassword()}`)}` },
    body: statement
  })
  const text = await answer.text()
  assert.strictEqual(answer.status, 200, text)
  return text
}

describe("an execution in the database", () => {
  const where = "WHERE tenant_id = 'away' AND execution_id = 'kept' AND fact_number"
  const verify = async () => (await client("away", 1).call("/api/v1/executions/kept/verify")).body

  it("is not changed without being found, nor left there when it is erased", async () => {
    const api = client("away")
    const { body } = await api.call("/api/v1/traces/batch?sync=true", {
      body: {
        operations: [
          { op: "execution.start", id: "kept", agent_id: "agent", metadata: { prompt: "whisper" } },
          {
            op: "span.start",
            execution_id: "kept",
            id: "kept-1",
            span_type: "TOOL_CALL",
            name: "whisper more"
          },
          { op: "execution.end", execution_id: "kept" }
        ]
      }
    })
    assert.strictEqual(body.accepted, 3)
    assert.deepInclude(await verify(), { valid: true, facts_checked: 4 })
    const change = (from: string, to: string) =>
      inDatabase(
        `ALTER TABLE alk.facts UPDATE body = replaceOne(body, '${from}', '${to}') ${where} = 3`
      )
    await change("whisper more", "shouting on")
    const broken = await verify()
    assert.deepInclude(broken, { valid: false, status: "broken" })
    assert.deepInclude(broken.breaks[0], { fact_number: 3, reason: "content_mismatch" })
    await change("shouting on", "whisper more")
    assert.isTrue((await verify()).valid)
    const erased = await api.call("/api/v1/executions/kept/erase", { body: { reason: "asked" } })
    assert.strictEqual(erased.status, 200, erased.text)
    assert.notInclude(await inDatabase(`SELECT body FROM alk.facts ${where} > 0`), "whisper")
    assert.deepInclude(await verify(), { valid: true, facts_checked: 5, erased_events: 3 })
    await inDatabase(`ALTER TABLE alk.facts DELETE ${where} = 5`)
    const lost = await verify()
    assert.isFalse(lost.valid)
    assert.isTrue(
      lost.breaks.some(
        ({ fact_number, reason }: Json) => fact_number === 5 && reason === "tail_missing"
      ),
      JSON.stringify(lost.breaks)
    )
  })
})

describe("with a role away", () => {
  it("projection: ingest and stream go on, receipts pend, lists show what is projected", async () => {
    const api = client("away")
    const sync = { headers: { "x-service-sync": "true" } }
    await api.batch([event(1), event(2)], sync)
    await projection.stop()
    let receipt = ""
    const messages = await readStream(`${api.url}/v1/events/stream`, api.key, {
      opened: async () => {
        const { body, status } = await api.batch([event(3), event(4), event(5)])
        assert.strictEqual(status, 202)
        receipt = body.receipt_id
      },
      done: (seen) => seen.length >= 3
    })
    assert.deepStrictEqual(
      messages.map(({ id }) => id),
      ["3", "4", "5"]
    )
    for (const which of [0, 1]) {
      const { body, status } = await client("away", which).call(`/v1/receipts/${receipt}`)
      assert.strictEqual(status, 200)
      assert.strictEqual(body.status, "pending")
      assert.strictEqual((await client("away", which).call("/v1/events")).body.total, 2)
    }
    const { body: ready, status } = await api.call("/readyz")
    assert.strictEqual(status, 503)
    assert.notStrictEqual(ready.projection.state, "ready")
    projection = await startRole("projection")
    const settled = await client("away", 1).settled(receipt)
    assert.strictEqual(settled["last_sequence_number"], 5)
    assert.strictEqual((await api.call("/v1/events")).body.total, 5)
    await eventuallyAsync(
      "it is ready again",
      () => api.call("/readyz"),
      ({ status }) => status === 200
    )
  })

  it("store: lists answer 503, ingest and stream go on, all is caught up afterwards", async () => {
    const api = client("away")
    await store.kill()
    const list = await api.call("/v1/events")
    assert.strictEqual(list.status, 503)
    assert.strictEqual(list.body.error.code, "unavailable")
    assert.isAbove(Number(list.headers.get("retry-after")), 0)
    // What sequences the audit log needs no store, not even to start.
    await sequencers[1]!.stop()
    sequencers[1] = await startRole("sequencer")
    let receipt = ""
    const messages = await readStream(`${api.url}/v1/events/stream`, api.key, {
      opened: async () => {
        const { body, status } = await api.batch([event(6), event(7)])
        assert.strictEqual(status, 202)
        receipt = body.receipt_id
      },
      done: (seen) => seen.length >= 2
    })
    assert.deepStrictEqual(
      messages.map(({ id }) => id),
      ["6", "7"]
    )
    store = await startStore()
    const settled = await client("away", 1).settled(receipt)
    assert.strictEqual(settled["status"], "committed")
    await checkChain(await client("away", 1).all())
    assert.strictEqual((await api.call("/v1/events")).body.total, 7)
    const { body: report } = await api.call("/v1/verify")
    assert.strictEqual(report.valid, true, JSON.stringify(report))
  })

  it("sequencer: kill -9 of one under load moves its partitions, with one chain throughout", async () => {
    const stop = { now: false }
    const acknowledged: Array<string> = []
    const load = Promise.all(
      Array.from({ length: 4 }, async (_, who) => {
        for (let n = 0; !stop.now; n++) {
          const id = `w-${who}-${n}`
          const api = client("wave", n % 2)
          const { body, status } = await api.batch([{ ...event(n), id }])
          if (status === 202) acknowledged.push(...(body.ids as Array<string>))
        }
      })
    )
    const more = async (): Promise<void> => {
      const wanted = acknowledged.length + 20
      await eventuallyAsync(
        `${wanted} events are acknowledged`,
        () => acknowledged.length,
        (count) => count >= wanted
      )
    }
    try {
      await more()
      await sequencers[0]!.kill()
      await eventuallyAsync(
        "the other one has its partitions, too",
        async () => (await partitionsOf(sequencers[1]!)).length,
        (count) => count === 2
      )
      await more()
      sequencers[0] = await startRole("sequencer")
      await more()
    } finally {
      stop.now = true
      await load
    }
    const last = await client("wave").batch([{ ...event(1), id: "w-last" }])
    await client("wave", 1).settled(last.body.receipt_id, 60_000)
    const all = (await client("wave").all()) as Array<Json>
    await checkChain(all)
    const ids = all.map(({ id }) => id as string)
    assert.strictEqual(new Set(ids).size, ids.length)
    const stored = new Set(ids)
    assert.deepStrictEqual(
      acknowledged.filter((id) => !stored.has(id)),
      []
    )
  })

  it("a receipt polled at the other process is never 404, from the moment of the 202", async () => {
    for (let n = 0; n < 50; n++) {
      const { body } = await client("away", n % 2).batch([event(n)])
      const { status } = await client("away", (n + 1) % 2).call(`/v1/receipts/${body.receipt_id}`)
      assert.strictEqual(status, 200)
    }
  })

  it("revokes a key everywhere, open streams too", async () => {
    const admin = new Client(apis[0]!.url, ADMIN_TOKEN)
    const made = await admin.call("/v1/admin/tenants/away/keys", {
      body: { scopes: ["read"], label: "short-lived" }
    })
    assert.strictEqual(made.status, 201, made.text)
    const { id, key } = made.body
    const other = new Client(apis[1]!.url, key)
    await eventuallyAsync(
      "it is known at the other process",
      () => other.call("/v1/events?page_size=1"),
      ({ status }) => status === 200
    )
    const stream = await fetch(`${other.url}/v1/events/stream`, {
      headers: { authorization: `Bearer ${key}` }
    })
    assert.strictEqual(stream.status, 200)
    let isOpen = true
    const over = () => {
      isOpen = false
    }
    // To its end, or until it is cut.
    void stream.text().then(over, over)
    const gone = await admin.call(`/v1/admin/tenants/away/keys/${id}`, { method: "DELETE" })
    assert.strictEqual(gone.status, 204)
    await eventuallyAsync("the open stream is over", () => !isOpen)
    await eventuallyAsync(
      "it is refused at the other process",
      () => other.call("/v1/events"),
      ({ status }) => status === 401
    )
    const log = await eventuallyAsync(
      "both acts are in the chain of the system tenant",
      async () => (await admin.call("/v1/events?order=asc&page_size=1000")).text,
      (text) => text.includes('"api_key.created"') && text.includes('"api_key.revoked"')
    )
    assert.notInclude(log, key)
  })
})
