/**
 * The program with workers: several processes on one port, seen from outside as one service, also
 * while one of them is killed, and gone when the first process is.
 */
import { rmSync } from "node:fs"
import { request } from "node:http"
import { createRequire } from "node:module"
import { setTimeout as sleep } from "node:timers/promises"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { checkChain, event } from "../support/BlackBox.ts"
import { Client, type Json } from "../support/Client.ts"
import { freePort } from "../support/FreePort.ts"
import { ADMIN_TOKEN, freshFolder, type Started, start, testKey } from "../support/Program.ts"

const WORKERS = 2
const PARTITIONS = 4
/** Of wrong keys in a minute: few, so that a test reaches it. */
const FAILED_KEYS = 20
const folder = freshFolder("workers")
const key = testKey("workers")

const murmur2 = createRequire(import.meta.url)(
  "kafkajs/src/producer/partitioners/default/murmur2"
) as (text: string) => number

/** A tenant of each partition, by partition. */
const tenants = Array.from({ length: PARTITIONS }, (_, partition) => {
  for (let n = 0; ; n++) {
    const name = `tenant-${n}`
    if ((murmur2(name) & 0x7fff_ffff) % PARTITIONS === partition) return name
  }
})
const keys = [...tenants, "workers"].map((name) => `${testKey(name)}=${name}:read+write`).join(",")
let running: Started

beforeAll(async () => {
  running = await start({
    ALK_WORKERS: String(WORKERS),
    ALK_DATA_DIR: folder,
    ALK_KAFKA_PORT: String(await freePort()),
    ALK_ADMIN_TOKEN: ADMIN_TOKEN,
    ALK_QUOTA_FAILED_KEYS: String(FAILED_KEYS),
    ALK_PARTITIONS: String(PARTITIONS),
    ALK_BOOTSTRAP_KEYS: keys
  })
})

afterAll(async () => {
  await running.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** The log lines with a message, in the order in which they were written. */
const lines = (message: string): ReadonlyArray<Json> =>
  running
    .output()
    .split("\n")
    .filter((line) => line.includes(`"${message}"`))
    .map((line) => JSON.parse(line) as Json)

const pidOf = (worker: number): number =>
  lines("a worker listens").findLast((line) => line["worker"] === worker)!["pid"]

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

const until = async (what: string, holds: () => boolean | Promise<boolean>): Promise<void> => {
  for (let left = 600; left > 0; left--) {
    if (await holds()) return
    await sleep(50)
  }
  assert.fail(`not in time: ${what}`)
}

interface Answer {
  readonly status: number
  readonly text: string
}

/** A request on a connection of its own: any process may get it. */
const onNewConnection = (path: string, bearer: string, body?: Json): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const sent = request(
      `${running.url}${path}`,
      {
        agent: false,
        method: body === undefined ? "GET" : "POST",
        headers: { authorization: `Bearer ${bearer}`, "content-type": "application/json" }
      },
      (response) => {
        let text = ""
        response.on("data", (chunk: Buffer) => (text += chunk.toString()))
        response.on("error", reject)
        response.on("end", () => resolve({ status: response.statusCode!, text }))
      }
    )
    sent.on("error", reject)
    sent.end(body === undefined ? undefined : JSON.stringify(body))
  })

const many = <A>(count: number, one: (n: number) => Promise<A>): Promise<ReadonlyArray<A>> =>
  Promise.all(Array.from({ length: count }, (_, n) => one(n)))

/** Requests answered so far, by process. */
const answeredBy = async (): Promise<ReadonlyMap<string, number>> => {
  const { text } = await onNewConnection("/metrics", key)
  const counts = new Map<string, number>()
  for (const [, worker = "", count] of text.matchAll(
    /^alk_http_requests_total\{worker="(\d+)".* (\d+)$/gm
  )) {
    counts.set(worker, (counts.get(worker) ?? 0) + Number(count))
  }
  return counts
}

describe("workers", () => {
  it("answer on the port of the first process, and any of them shows the metrics of all", async () => {
    const answers = await many(60, () => onNewConnection("/v1/events", key))
    assert.deepStrictEqual([...new Set(answers.map(({ status }) => status))], [200])
    const counts = await answeredBy()
    assert.sameMembers([...counts.keys()], ["0", "1", "2"])
    assert.isAtLeast(
      [...counts.values()].reduce((sum, count) => sum + count, 0),
      60
    )
  })

  it("show what any of them has acknowledged, and find duplicates of each other", async () => {
    for (let n = 0; n < 12; n++) {
      const sent = { ...event(n), id: `sync-${n}` }
      const first = await onNewConnection("/v1/events?sync=true", key, sent)
      assert.strictEqual(first.status, 201, first.text)
      const again = await onNewConnection("/v1/events?sync=true", key, sent)
      assert.include(again.text, `"id":"sync-${n}"`)
      const list = JSON.parse((await onNewConnection("/v1/events", key)).text) as Json
      assert.strictEqual(list["total"], n + 1)
    }
  })

  it("count wrong keys together", async () => {
    const wrong = testKey("wrong")
    const answers = await many(3 * FAILED_KEYS, () => onNewConnection("/v1/events", wrong))
    const refused = answers.filter(({ status }) => status === 401).length
    assert.isAtLeast(refused, FAILED_KEYS)
    // The bucket refills while the requests are answered.
    assert.isAtMost(refused, FAILED_KEYS + 5)
    assert.strictEqual(answers.filter(({ status }) => status === 429).length, 60 - refused)
  })

  it("all know a new key, and all refuse a revoked one", async () => {
    const admin = new Client(running.url, ADMIN_TOKEN)
    const { body } = await admin.call("/v1/admin/tenants/workers/keys", {
      body: { scopes: ["read"], label: "short-lived" }
    })
    const statuses = async () =>
      new Set((await many(16, () => onNewConnection("/v1/events", body.key))).map((a) => a.status))
    await until("known to all", async () => {
      const seen = await statuses()
      return seen.size === 1 && seen.has(200)
    })
    await admin.call(`/v1/admin/tenants/workers/keys/${body.id}`, { method: "DELETE" })
    await sleep(1_000)
    assert.isFalse((await statuses()).has(200))
  })

  it("have a share of the partitions each, all of them together", () => {
    const sequenced = lines("sequencing").map(({ partition, worker = 0 }) => [partition, worker])
    assert.sameDeepMembers(sequenced, [
      [0, 0],
      [1, 1],
      [2, 2],
      [3, 0]
    ])
    const projected = lines("projecting").flatMap(({ partitions, worker = 0 }) =>
      partitions.map((partition: number) => [partition, worker])
    )
    assert.sameDeepMembers(projected, sequenced)
  })

  it("lose nothing that was acknowledged when one is killed, which is started again", async () => {
    const killed = pidOf(1)
    const stop = { now: false }
    const acknowledged = new Map(tenants.map((tenant) => [tenant, new Set<string>()]))
    const load = many(12, async (who) => {
      const tenant = tenants[who % PARTITIONS]!
      for (let n = 0; !stop.now; n++) {
        const body = { ...event(n), id: `load-${who}-${n}` }
        // What the killed process had not answered is not acknowledged.
        const answer = await onNewConnection("/v1/events", testKey(tenant), body).catch(
          () => undefined
        )
        if (answer?.status === 202) acknowledged.get(tenant)!.add(body.id)
      }
    })
    await sleep(1_000)
    process.kill(killed, "SIGKILL")
    await until("started again", () => pidOf(1) !== killed)
    await sleep(500)
    stop.now = true
    await load
    for (const [tenant, ids] of acknowledged) {
      const client = new Client(running.url, testKey(tenant))
      const last = await client.batch([{ ...event(1), id: "load-last" }])
      await client.settled(last.body.receipt_id, 60_000)
      await until("all are listed", async () => {
        const listed = new Set((await client.all()).map(({ id }) => id))
        return [...ids].every((id) => listed.has(id))
      })
      const all = await client.all()
      await checkChain(all)
      assert.strictEqual(new Set(all.map(({ id }) => id)).size, all.length)
      assert.isAbove(ids.size, 10)
    }
    const { text } = await onNewConnection("/metrics", key)
    assert.match(text, /^alk_worker_restarts_total\{worker="0"\} 1$/m)
    assert.include(running.output(), "worker 1 ended (SIGKILL). It is started again in 250 ms")
  })

  it("leave the port to their own first process: another installation is refused", async () => {
    const other = freshFolder("workers-other")
    const refused = await start({
      ALK_WORKERS: "1",
      ALK_DATA_DIR: other,
      ALK_KAFKA_PORT: String(await freePort()),
      PORT: new URL(running.url).port
    }).then(
      () => assert.fail("it started"),
      (error: Error) => error.message
    )
    assert.match(refused, /port \d+ of 127\.0\.0\.1 is taken: set PORT to another one/)
    rmSync(other, { recursive: true, force: true })
  })

  it("end with the first process, stopped or killed", async () => {
    const stopped = [1, 2].map(pidOf)
    assert.deepStrictEqual(stopped.map(isAlive), [true, true])
    const answers: Array<Answer> = []
    const load = many(2 * PARTITIONS, async (who) => {
      const bearer = testKey(tenants[who % PARTITIONS]!)
      for (let n = 0; ; n++) {
        const body = { ...event(n), id: `stop-${who}-${n}` }
        const answer = await onNewConnection("/v1/events?sync=true", bearer, body).catch(
          () => undefined
        )
        if (answer === undefined) return
        answers.push(answer)
      }
    })
    await until("all get answers", () => answers.length > 8 * PARTITIONS)
    assert.strictEqual(await running.stop(), 0)
    await load
    // What was accepted before the stop still had its sequencer, in whatever process.
    for (const { status, text } of answers) assert.strictEqual(status, 201, text)
    assert.deepStrictEqual(stopped.map(isAlive), [false, false])
    running = await start({
      ALK_WORKERS: String(WORKERS),
      ALK_DATA_DIR: folder,
      ALK_KAFKA_PORT: String(await freePort()),
      ALK_BOOTSTRAP_KEYS: keys
    })
    assert.strictEqual((await onNewConnection("/v1/events", key)).status, 200)
    const orphans = [1, 2].map(pidOf)
    process.kill(running.pid, "SIGKILL")
    await until("gone", () => !orphans.some(isAlive))
  })

  it("that can't start stop the start, with a reason", async () => {
    const broken = freshFolder("workers-broken")
    // Preloaded by every process: it fails in workers only.
    const preload = "data:text/javascript,if(process.argv[2]==='worker')process.exit(3)"
    const refused = await start({
      NODE_OPTIONS: `--import=${preload}`,
      ALK_WORKERS: "1",
      ALK_DATA_DIR: broken,
      ALK_KAFKA_PORT: String(await freePort())
    }).then(
      () => assert.fail("it started"),
      (error: Error) => error.message
    )
    assert.match(refused, /alk: worker 1 ended \(exit code 3\) before it listened/)
    rmSync(broken, { recursive: true, force: true })
  })
})
