/**
 * The main job seen from outside, over HTTP and Kafka alone: the same tests run against the embedded
 * parts, against separate roles, and against the real images where a container engine answers.
 */
import { execFile, spawnSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { assert, describe, it } from "vitest"
import { Client, type Json, readStream } from "./Client.ts"
import { freshFolder } from "./Program.ts"

export interface Target {
  /** Base URLs of API processes; at least one. */
  readonly urls: ReadonlyArray<string>
  /** Address, or the file of settings of a subscriber. */
  readonly bootstrap: string
  readonly topicPrefix: string
  /** A key with read and write scope for a tenant of this name that nobody else uses. */
  readonly keyOf: (tenant: string) => string
}

export const tenants = {
  batch: "bb-batch",
  shared: "bb-shared",
  stream: "bb-stream",
  ids: "bb-ids",
  sql: "bb-sql",
  analyst: "bb-analyst",
  other: "bb-other",
  many: (index: number): string => `bb-many-${index}`
} as const

export const allTenants: ReadonlyArray<string> = [
  tenants.batch,
  tenants.shared,
  tenants.stream,
  tenants.ids,
  tenants.sql,
  tenants.analyst,
  tenants.other,
  ...Array.from({ length: 20 }, (_, index) => tenants.many(index))
]

const run = promisify(execFile)
const OUTPUT_MAX = 512 * 1_048_576

export const event = (n: number): Json => ({
  timestamp: `2026-11-21T10:00:00.${String(n % 1_000_000).padStart(6, "0")}Z`,
  actor: { id: `user-${n % 7}`, type: "human", email: `user-${n % 7}@example.com` },
  action: n % 3 === 0 ? "document.read" : "document.share",
  resource: { id: `doc-${n % 11}`, type: "document", name: `Dökument “${n}” 📄` },
  outcome: n % 5 === 0 ? "failure" : "success",
  metadata: { n, nested: { list: [n, 1.5, "ü", null, true] }, "with.dot": `v${n % 4}` }
})

/** The judgement of the independent implementation on a list of events. */
export const checkChain = async (events: ReadonlyArray<Json | string>): Promise<void> => {
  const file = join(freshFolder("chain"), "events.ndjson")
  const lines = events.map((entry) => (typeof entry === "string" ? entry : JSON.stringify(entry)))
  writeFileSync(file, `${lines.join("\n")}\n`)
  const { status, stderr, stdout } = spawnSync(
    "python3",
    ["test/independent/alk_chain.py", "check", file],
    { encoding: "utf8" }
  )
  assert.strictEqual(status, 0, `${stdout}${stderr}`)
}

interface TopicRecord {
  readonly partition: number
  readonly offset: string | number
  readonly key: string
  readonly headers: Record<string, string>
  readonly value: string
}

/** The topic as a client sees it that shares no code with alk. */
export const readTopic = async (
  bootstrap: string,
  topic: string,
  tenant: string
): Promise<Array<TopicRecord>> => {
  const { stdout } = await run(
    process.execPath,
    ["test/independent/kafka_reader.mjs", bootstrap, topic, "--tenant", tenant],
    { maxBuffer: OUTPUT_MAX }
  )
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as TopicRecord)
}

const hasKcat = spawnSync("kcat", ["-V"]).status === 0

const readWithKcat = async (
  bootstrap: string,
  topic: string,
  tenant: string
): Promise<Array<string>> => {
  const settings = bootstrap.replace(/\.properties$/, ".librdkafka.properties")
  const connection = settings === bootstrap ? ["-b", bootstrap] : ["-F", settings]
  const { stdout } = await run(
    "kcat",
    [...connection, "-C", "-e", "-q", "-t", topic, "-X", "isolation.level=read_committed"].concat(
      "-f",
      "%k\t%s\n"
    ),
    { maxBuffer: OUTPUT_MAX }
  )
  return stdout
    .split("\n")
    .filter((line) => line.startsWith(`${tenant}\t`))
    .map((line) => line.slice(tenant.length + 1))
}

const assertContiguous = (events: ReadonlyArray<Json>, length: number): void => {
  assert.strictEqual(events.length, length)
  events.forEach((entry, index) => {
    assert.strictEqual(entry["sequence_number"], index + 1)
    assert.strictEqual(entry["prev_hash"], events[index - 1]?.["hash"] ?? "0".repeat(64))
  })
}

/** Register the tests. `target` is asked when they run. */
export const blackBox = (target: () => Target): void => {
  const client = (tenant: string, process = 0): Client => {
    const { keyOf, urls } = target()
    return new Client(urls[process % urls.length]!, keyOf(tenant))
  }

  describe("the main job", () => {
    it("carries a batch of 1000 from receipt to list, topic and stream, with one chain", async () => {
      const tenant = tenants.batch
      const api = client(tenant)
      const sent = Array.from({ length: 1_000 }, (_, n) => event(n))
      let receipt: Json = {}
      const streamed = await readStream(`${api.url}/v1/events/stream`, api.key, {
        opened: async () => {
          const { body, headers, status } = await api.batch(sent)
          assert.strictEqual(status, 202)
          assert.strictEqual(body.accepted, 1_000)
          assert.strictEqual(body.ids.length, 1_000)
          assert.strictEqual(headers.get("location"), `/v1/receipts/${body.receipt_id}`)
          receipt = await client(tenant, 1).settled(body.receipt_id)
        },
        done: (messages) => messages.length >= 1_000
      })
      assert.strictEqual(receipt["status"], "committed")
      assert.strictEqual(receipt["first_sequence_number"], 1)
      assert.strictEqual(receipt["last_sequence_number"], 1_000)

      const { body: page } = await client(tenant, 1).call("/v1/events?order=asc&page_size=1000")
      assert.strictEqual(page.total, 1_000)
      assertContiguous(page.events, 1_000)
      assert.strictEqual(receipt["head_hash"], page.events[999].hash)
      page.events.forEach((stored: Json, index: number) => {
        assert.deepStrictEqual(stored["metadata"], sent[index]!["metadata"])
        assert.strictEqual(stored["id"], receipt["ids"][index])
      })
      await checkChain(page.events)

      const { bootstrap, topicPrefix } = target()
      const records = await readTopic(bootstrap, `${topicPrefix}.events`, tenant)
      const bodies = records.map(({ value }) => value)
      await checkChain(bodies)
      const lines = (
        await client(tenant).call("/v1/events?order=asc", {
          headers: { accept: "application/x-ndjson" }
        })
      ).text
        .trim()
        .split("\n")
      assert.deepStrictEqual(lines, bodies)
      assert.deepStrictEqual(
        streamed.map(({ data }) => data),
        bodies
      )
      assert.deepStrictEqual(
        streamed.map(({ id }) => id),
        bodies.map((_, n) => String(n + 1))
      )
      assert.isTrue(streamed.every(({ event: name }) => name === "audit.event"))
      records.forEach(({ headers, value }) => {
        const stored = JSON.parse(value) as Json
        assert.strictEqual(headers["ce_specversion"], "1.0")
        assert.strictEqual(headers["ce_id"], String(stored["sequence_number"]))
        assert.strictEqual(headers["ce_time"], stored["created_at"])
        assert.match(headers["ce_source"]!, new RegExp(`/${tenant}$`))
        assert.strictEqual(headers["content-type"], "application/json")
      })
      if (hasKcat) {
        assert.deepStrictEqual(
          await readWithKcat(bootstrap, `${topicPrefix}.events`, tenant),
          bodies
        )
      }
      const { body: report } = await api.call("/v1/verify")
      assert.strictEqual(report.valid, true, JSON.stringify(report))
      assert.strictEqual(report.events_checked, 1_000)
      assert.strictEqual(report.head.hash, page.events[999].hash)
    })

    it("keeps one chain for 20 clients of one tenant, with true receipts", async () => {
      const tenant = tenants.shared
      const receipts = await Promise.all(
        Array.from({ length: 20 }, async (_, who) => {
          const own: Array<Json> = []
          for (let turn = 0; turn < 5; turn++) {
            const api = client(tenant, who + turn)
            const events = Array.from({ length: 10 }, (__, n) => event(who * 1_000 + turn * 10 + n))
            own.push(await api.written(events))
          }
          return own
        })
      )
      const all = await client(tenant).all()
      assertContiguous(all, 1_000)
      await checkChain(all)
      const byId = new Map(all.map((entry) => [entry["id"], entry["sequence_number"]]))
      for (const answer of receipts.flat()) {
        assert.strictEqual(answer["status"], "committed")
        const sequences = answer["ids"].map((id: string) => byId.get(id))
        const first = answer["first_sequence_number"]
        assert.deepStrictEqual(
          sequences,
          sequences.map((_: unknown, n: number) => first + n)
        )
        assert.strictEqual(answer["last_sequence_number"], first + sequences.length - 1)
      }
    })

    it("keeps 20 chains for 20 tenants at once", async () => {
      await Promise.all(
        Array.from({ length: 20 }, async (_, index) => {
          const tenant = tenants.many(index)
          for (let turn = 0; turn < 4; turn++) {
            const api = client(tenant, index + turn)
            const { body, status } = await api.batch(
              Array.from({ length: 25 }, (__, n) => event(turn * 25 + n))
            )
            assert.strictEqual(status, 202)
            const settled = await client(tenant, index + turn + 1).settled(body.receipt_id)
            assert.strictEqual(settled["first_sequence_number"], turn * 25 + 1)
            // Read your writes: whichever process is asked, and at once.
            const { body: page } = await client(tenant, turn).call("/v1/events?page_size=1")
            assert.strictEqual(page.total, turn * 25 + 25)
          }
          const all = await client(tenant).all()
          assertContiguous(all, 100)
          await checkChain(all)
        })
      )
    })

    it("counts a repeated id once and refuses other content under it", async () => {
      const api = client(tenants.ids)
      const first = { ...event(1), id: "order/1 ü" }
      const sync = { headers: { "x-service-sync": "true" } }
      const one = await api.call("/v1/events", { body: first, ...sync })
      assert.strictEqual(one.status, 201)
      const again = await client(tenants.ids, 1).call("/v1/events", { body: first, ...sync })
      assert.strictEqual(again.status, 200)
      assert.strictEqual(again.text, one.text)
      const other = await api.call("/v1/events", { body: { ...first, action: "a.b" }, ...sync })
      assert.strictEqual(other.status, 409)
      assert.strictEqual(other.body.error.code, "id_conflict")
      const found = await api.call(`/v1/events/${encodeURIComponent("order/1 ü")}`)
      assert.strictEqual(found.text, one.text)
    })

    it("gives the first answer again to the same Idempotency-Key, and 422 to another body", async () => {
      const api = client(tenants.ids)
      const headers = { "idempotency-key": "the-key" }
      const events = [event(5), { ...event(6), action: "nodots" }, event(7)]
      const answers = await Promise.all(
        Array.from({ length: 5 }, (_, n) => client(tenants.ids, n).batch(events, { headers }))
      )
      const [first] = answers
      assert.strictEqual(first!.status, 202)
      assert.strictEqual(first!.body.accepted, 2)
      assert.strictEqual(first!.body.errors[0].code, "invalid_action")
      for (const answer of answers) {
        assert.strictEqual(answer.body.receipt_id, first!.body.receipt_id)
        assert.deepStrictEqual(answer.body.ids, first!.body.ids)
      }
      const receipt = await api.settled(first!.body.receipt_id)
      const stored = await api.all()
      const mine = stored.filter(({ id }) => receipt["ids"].includes(id))
      assert.strictEqual(mine.length, 2)
      const mismatch = await api.batch([event(8)], { headers })
      assert.strictEqual(mismatch.status, 422)
      assert.strictEqual(mismatch.body.code, "idempotency_mismatch")
    })

    it("answers SQL over what the tenant's list shows, and nothing else", async () => {
      const [mine, stranger] = [client(tenants.sql), client(tenants.other)]
      await mine.written(Array.from({ length: 30 }, (_, n) => event(n)))
      const ask = (api: Client, query: string) => api.call("/v1/sql", { body: { query } })
      const { body: list } = await mine.call("/v1/events?page_size=100&order=asc")
      const rows = await ask(mine, "SELECT id, hash FROM events ORDER BY sequence_number")
      assert.strictEqual(rows.status, 200, rows.text)
      assert.deepStrictEqual(
        rows.body.data,
        list.events.map(({ hash, id }: Json) => ({ id, hash }))
      )
      const [{ id }] = rows.body.data
      const found = await ask(stranger, `SELECT count() AS n FROM events WHERE id = '${id}'`)
      assert.deepStrictEqual(found.body.data, [{ n: 0 }])
      for (const query of ["SELECT * FROM system.tables", "DROP TABLE events"]) {
        const { body, status } = await ask(mine, query)
        assert.deepStrictEqual([status, body.error.field], [400, "query"])
      }
    })

    it("shows analysts chosen fields, tables, and numbers by two fields", async () => {
      const api = client(tenants.analyst)
      const sample = (n: number) => ({
        ...event(n),
        timestamp: `2026-0${1 + (n % 3)}-10T00:00:0${n % 10}Z`,
        metadata: { amount: n, region: ["eu", "us"][n % 2] }
      })
      const events = Array.from({ length: 12 }, (_, n) => sample(n))
      await api.written(events)
      const shape = "group_by=metadata.region,outcome&interval=month&measure=metadata.amount"
      const { body: stats, text } = await api.call(`/v1/events/stats?${shape}`)
      const sums = stats.groups.map(({ keys, numbers }: Json) => [...keys, numbers.sum].join(" "))
      const expected = ["eu failure 10", "eu success 20", "us failure 5", "us success 31"]
      assert.deepStrictEqual(sums.toSorted(), expected, text)
      assert.deepStrictEqual([stats.numbers.max, stats.numbers.p50, stats.total], [11, 5.5, 12])
      const starts = new Set(stats.buckets.map(({ start }: Json) => start.slice(0, 10)))
      assert.deepStrictEqual([...starts], ["2026-01-01", "2026-02-01", "2026-03-01"])
      const columns = "fields=timestamp,metadata.amount"
      const { body: page } = await api.call(`/v1/events?sort=timestamp&order=asc&${columns}`)
      const times = page.rows.map(({ timestamp }: Json) => timestamp)
      assert.deepStrictEqual(times, times.toSorted())
      const { text: table } = await api.call(`/v1/events?format=csv&order=asc&${columns}`)
      const lines = table.split("\r\n")
      assert.deepStrictEqual([lines[0], lines.length], ["timestamp,metadata.amount", 14])
      assert.strictEqual(lines[5], "2026-02-10T00:00:04.000000Z,4")
      const parquet = await fetch(`${api.url}/v1/events?format=parquet`, {
        headers: { authorization: `Bearer ${api.key}` }
      })
      const bytes = Buffer.from(await parquet.arrayBuffer())
      const marks = [bytes.subarray(0, 4).toString(), bytes.subarray(-4).toString()]
      assert.deepStrictEqual([parquet.status, ...marks], [200, "PAR1", "PAR1"])
    })

    it("shows a tenant nothing of another", async () => {
      const mine = client(tenants.other)
      const { body } = await mine.call("/v1/events", {
        body: { ...event(1), id: "mine" },
        headers: { "x-service-sync": "true" }
      })
      const { body: receipt } = await mine.batch([event(2)])
      const stranger = client(tenants.ids)
      assert.strictEqual((await stranger.call("/v1/events/mine")).status, 404)
      assert.strictEqual((await stranger.call(`/v1/receipts/${receipt.receipt_id}`)).status, 404)
      assert.strictEqual((await stranger.call(`/v1/events?id=mine`)).body.total, 0)
      assert.strictEqual(body.tenant_id, tenants.other)
    })

    it("resumes a stream behind the last id, from the store into the live feed", async () => {
      const tenant = tenants.stream
      const api = client(tenant)
      const sync = { headers: { "x-service-sync": "true" } }
      await api.written(Array.from({ length: 50 }, (_, n) => event(n)))
      const url = `${client(tenant, 1).url}/v1/events/stream`
      const messages = await readStream(url, api.key, {
        lastEventId: "20",
        opened: async () => {
          for (let n = 50; n < 60; n++) await api.call("/v1/events", { body: event(n), ...sync })
        },
        done: (seen) => seen.length >= 40
      })
      assert.deepStrictEqual(
        messages.map(({ id }) => Number(id)),
        Array.from({ length: 40 }, (_, n) => n + 21)
      )
      const all = await api.call("/v1/events?order=asc&page_size=1000", {
        headers: { accept: "application/x-ndjson" }
      })
      assert.deepStrictEqual(
        messages.map(({ data }) => data),
        all.text.trim().split("\n").slice(20, 60)
      )
      const beyond = await api.call("/v1/events/stream?after_sequence=1000000")
      assert.strictEqual(beyond.status, 400)
    })

    it("streams only what matches the filter", async () => {
      const tenant = tenants.stream
      const api = client(tenant)
      const marked = { ...event(3), action: "payment.refund" }
      const messages = await readStream(`${api.url}/v1/events/stream?action=payment.*`, api.key, {
        opened: async () => {
          await api.batch([event(1), event(2), marked, event(4), marked])
        },
        done: (seen) => seen.length >= 2
      })
      assert.deepStrictEqual(
        messages.map(({ data }) => (JSON.parse(data) as Json)["action"]),
        ["payment.refund", "payment.refund"]
      )
    })
  })
}
