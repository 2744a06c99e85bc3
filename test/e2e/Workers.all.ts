/** Workers that are killed, come and go with the first process, or can't start at all. */
import { rmSync } from "node:fs"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { checkChain, event } from "../support/BlackBox.ts"
import { Client } from "../support/Client.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { freshFolder, start, testKey } from "../support/Program.ts"
import {
  type Answer,
  isAlive,
  key,
  many,
  PARTITIONS,
  tenants,
  WORKERS,
  WorkerGroup
} from "./WorkerGroup.ts"

/** Of each tenant, before and after a worker is killed. */
const ACKNOWLEDGED = 20

const group = new WorkerGroup()
beforeAll(() => group.start())
afterAll(() => group.end())

const workers = Array.from({ length: WORKERS }, (_, index) => index + 1)

/** Why a program did not start. */
const refusalOf = (environment: Readonly<Record<string, string>>): Promise<string> =>
  start(environment).then(
    () => assert.fail("it started"),
    (error: Error) => error.message
  )

describe("workers", () => {
  it("lose nothing that was acknowledged when one is killed, which is started again", async () => {
    const killed = group.pidOf(1)
    const stop = { now: false }
    const acknowledged = new Map(tenants.map((tenant) => [tenant, new Set<string>()]))
    const load = many(12, async (who) => {
      const tenant = tenants[who % PARTITIONS]!
      for (let n = 0; !stop.now; n++) {
        const body = { ...event(n), id: `load-${who}-${n}` }
        // What the killed process had not answered is not acknowledged.
        const answer = await group
          .request("/v1/events", testKey(tenant), body)
          .catch(() => undefined)
        if (answer?.status === 202) acknowledged.get(tenant)!.add(body.id)
      }
    })
    const sizes = () => [...acknowledged.values()].map(({ size }) => size)
    const more = async (): Promise<void> => {
      const before = sizes()
      await eventuallyAsync(
        `${ACKNOWLEDGED} events more of each tenant are acknowledged than ${before}`,
        sizes,
        (now) => now.every((size, at) => size >= before[at]! + ACKNOWLEDGED)
      )
    }
    try {
      await more()
      process.kill(killed, "SIGKILL")
      await eventuallyAsync(
        "the worker is started again",
        () => group.pidOf(1),
        (pid) => pid !== killed
      )
      await more()
    } finally {
      stop.now = true
      await load
    }
    for (const [tenant, ids] of acknowledged) {
      const client = new Client(group.running.url, testKey(tenant))
      const last = await client.batch([{ ...event(1), id: "load-last" }])
      await client.settled(last.body.receipt_id, 60_000)
      await eventuallyAsync(
        "all that were acknowledged are listed",
        async () => {
          const listed = new Set((await client.all()).map(({ id }) => id))
          return [...ids].filter((id) => !listed.has(id))
        },
        (missing) => missing.length === 0
      )
      const all = await client.all()
      await checkChain(all)
      assert.strictEqual(new Set(all.map(({ id }) => id)).size, all.length)
    }
    const { text } = await group.request("/metrics", key)
    assert.match(text, /^alk_worker_restarts_total\{worker="0"\} 1$/m)
    assert.include(
      group.running.output(),
      "worker 1 ended (SIGKILL). It is started again in 250 ms"
    )
  })

  it("leave the port to their own first process: another installation is refused", async () => {
    const other = freshFolder("workers-other")
    const refused = await refusalOf({
      ALK_WORKERS: "1",
      ALK_DATA_DIR: other,
      PORT: new URL(group.running.url).port
    })
    assert.match(refused, /port \d+ of 127\.0\.0\.1 is taken: set PORT to another one/)
    rmSync(other, { recursive: true, force: true })
  })

  it("end with the first process, stopped or killed", async () => {
    const stopped = workers.map(group.pidOf)
    assert.deepStrictEqual(stopped.map(isAlive), [true, true])
    const answers: Array<Answer> = []
    const load = many(2 * PARTITIONS, async (who) => {
      const bearer = testKey(tenants[who % PARTITIONS]!)
      for (let n = 0; ; n++) {
        const body = { ...event(n), id: `stop-${who}-${n}` }
        const answer = await group
          .request("/v1/events?sync=true", bearer, body)
          .catch(() => undefined)
        if (answer === undefined) return
        answers.push(answer)
      }
    })
    await eventuallyAsync(
      "all get answers",
      () => answers.length,
      (count) => count > 8 * PARTITIONS
    )
    assert.strictEqual(await group.running.stop(), 0)
    await load
    // What was accepted before the stop still had its sequencer, in whatever process.
    for (const { status, text } of answers) assert.strictEqual(status, 201, text)
    assert.deepStrictEqual(stopped.map(isAlive), [false, false])
    await group.start()
    assert.strictEqual((await group.request("/v1/events", key)).status, 200)
    const orphans = workers.map(group.pidOf)
    process.kill(group.running.pid, "SIGKILL")
    await eventuallyAsync(
      "the workers are gone",
      () => orphans.filter(isAlive),
      (left) => left.length === 0
    )
  })

  it("that can't start stop the start, with a reason", async () => {
    const broken = freshFolder("workers-broken")
    // Preloaded by every process: it fails in workers only.
    const preload = "data:text/javascript,if(process.argv[2]==='worker')process.exit(3)"
    const refused = await refusalOf({
      NODE_OPTIONS: `--import=${preload}`,
      ALK_WORKERS: "1",
      ALK_DATA_DIR: broken
    })
    assert.match(refused, /alk: worker 1 ended \(exit code 3\) before it listened/)
    rmSync(broken, { recursive: true, force: true })
  })
})
