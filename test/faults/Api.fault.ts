/** APIs that die between writing and answering, that are asked to stop, and whose readers sleep. */
import { connect, type Socket } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { assert, describe, it } from "vitest"
import { Load } from "./Load.ts"
import { judge } from "./Oracle.ts"
import { keyOf, pause, residentKib, resume, TENANTS, until, withParts } from "./Parts.ts"
import { assertWritable, REPEATS } from "./Scenarios.ts"
import { Subscriber } from "./Subscriber.ts"

const REPEAT_MS = 30_000

describe("an API", () => {
  it(
    `killed ${REPEATS} times before it could answer gives the retry the same receipt elsewhere`,
    withParts(1, async (parts) => {
      const load = new Load(parts, { tenants: TENANTS })
      const subscribers = TENANTS.map((tenant) => new Subscriber(parts, tenant))
      load.begin()
      for (let n = 0; n < REPEATS; n++) {
        await load.more(5)
        // Written, but not decided yet: whoever is killed now has produced and not replied.
        pause(parts.sequencers[0]!)
        const asked = load.unanswered
        await sleep(300)
        await parts.apis[n % 2]!.kill()
        resume(parts.sequencers[0]!)
        await until("requests without an answer", () => load.unanswered > asked)
        parts.apis[n % 2] = await parts.startRole("api")
      }
      await load.end()
      await load.repeatUnanswered()
      await load.assertSameAnswers()
      await judge(parts, load, subscribers)
    }),
    REPEATS * REPEAT_MS + 120_000
  )

  it(
    "asked to stop under load finishes its replies, ends with 0 and loses nothing",
    withParts(1, async (parts) => {
      const load = new Load(parts, { tenants: TENANTS })
      const subscribers = TENANTS.map((tenant) => new Subscriber(parts, tenant))
      load.begin()
      await load.more(10)
      pause(parts.sequencers[0]!)
      const [stopping] = parts.apis
      // These wait for the sequencer's word and are in flight when the signal comes.
      const inFlight = TENANTS.map((tenant) => load.one(tenant, true, 0))
      await sleep(500)
      const asked = Date.now()
      const ended = stopping!.stop()
      await sleep(500)
      resume(parts.sequencers[0]!)
      for (const request of await Promise.all(inFlight)) assert.isDefined(request.ids)
      assert.strictEqual(await ended, 0)
      assert.isBelow(Date.now() - asked, 15_000)
      parts.apis[0] = await parts.startRole("api")
      await load.more(10)
      await load.end()
      await judge(parts, load, subscribers)
    })
  )
})

/** Opens a stream and never reads what it is sent. */
const sleepingReader = async (url: string, tenant: string): Promise<Socket> => {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port) })
  socket.on("error", () => undefined)
  await new Promise((resolve) => socket.once("connect", resolve))
  socket.pause()
  socket.write(
    `GET /v1/events/stream HTTP/1.1\r\nHost: ${hostname}\r\n`
      + `Authorization: Bearer ${keyOf(tenant)}\r\n\r\n`
  )
  return socket
}

const subscribersOf = async (url: string): Promise<number> => {
  const text = await (await fetch(`${url}/metrics`)).text()
  return Number(/^alk_live_subscribers(?:\{.*\})? (\d+)/m.exec(text)?.[1] ?? Number.NaN)
}

const SLEEPERS = 8
/** Milliseconds: nothing has moved for 60 s, at the first look or at the second. */
const CLOSED_MS = 150_000
const LARGE_BATCHES = 40
/** KiB that the process may grow by: the queues, the requests, and what node has not given back. */
const GROWN_KIB_MAX = 256 * 1_024

describe("a reader that does not read", () => {
  it(
    "is closed; the other streams go on and memory stays bounded",
    withParts(1, async (parts) => {
      const [tenant] = TENANTS
      const { url } = parts.apis[0]!
      const load = new Load(parts, { tenants: [tenant], eventsPerRequest: 50 })
      await assertWritable(parts, load, [tenant])
      const reader = new Subscriber(parts, tenant)
      const sleepers: Array<Socket> = []
      const open = await subscribersOf(url)
      for (let n = 0; n < SLEEPERS; n++) sleepers.push(await sleepingReader(url, tenant))
      await until(
        "the sleepers are subscribed",
        async () => (await subscribersOf(url)) >= open + SLEEPERS
      )
      const before = residentKib(parts.apis[0]!.pid)
      for (let n = 0; n < LARGE_BATCHES; n++) await load.large(tenant)
      await until(
        "the sleepers are closed",
        async () => (await subscribersOf(url)) <= open + 1,
        CLOSED_MS
      )
      const counted = await (await fetch(`${url}/metrics`)).text()
      const closed = [...counted.matchAll(/^alk_live_readers_closed_total\{.*\} (\d+)/gm)]
      assert.strictEqual(
        closed.reduce((sum, [, count]) => sum + Number(count), 0),
        SLEEPERS
      )
      const lines = parts.apis[0]!.output().match(/a live stream was closed/g)
      assert.strictEqual(lines?.length, SLEEPERS)
      const grown = residentKib(parts.apis[0]!.pid) - before
      assert.isBelow(grown, GROWN_KIB_MAX, "KiB more than before")
      await judge(parts, load, [reader])
      assert.strictEqual(reader.connections, 1)
      for (const socket of sleepers) socket.destroy()
    })
  )
})
