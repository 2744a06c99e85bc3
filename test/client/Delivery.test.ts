/** The queue in front of a service that fails in every way: nothing is lost, doubled or reordered. */
import fc from "fast-check"
import { assert, describe, it, vi } from "vitest"
import { toLoggable } from "../../src/client/events/EventInput.ts"
import { eventSender } from "../../src/client/events/SendEvents.ts"
import { Delivery, type DeliveryOptions } from "../../src/client/queue/Delivery.ts"
import {
  type NotAcknowledged,
  QueueFull,
  type Rejection
} from "../../src/client/queue/Rejection.ts"
import { Reports } from "../../src/client/queue/Reports.ts"
import { makeTransport } from "../../src/client/Transport.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { runs } from "../support/Runs.ts"
import { FakeService, type Fate, fates, JumpingClock } from "./FakeService.ts"

const defaults: DeliveryOptions = {
  batchItems: 500,
  batchBytes: 1_000_000,
  lingerMs: 100,
  itemsMax: 100_000,
  bytesMax: 100_000_000,
  overflow: "drop-newest"
}

const eventOf = (isBad = false) =>
  ({
    actor: { id: "ada", type: "human" },
    action: "document.read",
    resource: { id: "doc-1", type: "document" },
    metadata: { bad: isBad }
  }) as const

interface World {
  readonly service: FakeService
  readonly clock: JumpingClock
  readonly delivery: Delivery
  readonly rejections: Array<Rejection>
  readonly delays: Array<string>
  /** Log one event; its id. */
  readonly log: (isBad?: boolean) => string
  /** What flush rejects with; undefined if it resolves. */
  readonly flushed: () => Promise<NotAcknowledged | undefined>
}

const makeWorld = (
  given: ReadonlyArray<Fate> = [],
  options: Partial<DeliveryOptions> = {},
  itemsMax = 1_000
): World => {
  const clock = new JumpingClock()
  const service = new FakeService(given, itemsMax)
  const rejections: Array<Rejection> = []
  const delays: Array<string> = []
  const reports = new Reports(
    {
      onReject: (rejection) => rejections.push(rejection),
      onWarning: (warning) => {
        if (warning.kind === "delayed") delays.push(warning.failure.code)
      }
    },
    clock
  )
  const transport = makeTransport({
    url: "http://service.test",
    key: "k",
    headers: {},
    timeoutMs: 2,
    fetch: service.fetch
  })
  const send = eventSender({ transport, clock, reports })
  const delivery = new Delivery(send, clock, { ...defaults, ...options }, reports)
  return {
    service,
    clock,
    delivery,
    rejections,
    delays,
    log: (isBad = false) => {
      const loggable = toLoggable(eventOf(isBad), clock.now())
      delivery.log(loggable)
      return loggable.id
    },
    flushed: () =>
      delivery.flush(new AbortController().signal).then(
        () => undefined,
        (error: NotAcknowledged) => error
      )
  }
}

const fateSequence = fc.array(fc.constantFrom(...fates), { maxLength: 12 })
/** Chunks that are logged one after the other; true is an event that the service refuses. */
const chunks = fc.array(fc.array(fc.boolean(), { maxLength: 8 }), { maxLength: 6 })

describe("the queue", () => {
  it("stores every good event exactly once and in order, and names every bad one", async () => {
    await fc.assert(
      fc.asyncProperty(
        fateSequence,
        chunks,
        fc.integer({ min: 1, max: 10 }),
        fc.integer({ min: 1, max: 6 }),
        async (given, logged, batchItems, itemsMax) => {
          const world = makeWorld(given, { batchItems }, itemsMax)
          const good: Array<string> = []
          const bad: Array<string> = []
          for (const chunk of logged) {
            for (const isBad of chunk) (isBad ? bad : good).push(world.log(isBad))
            await new Promise((resolve) => setImmediate(resolve))
          }
          const failure = await world.flushed()
          assert.deepStrictEqual(world.service.stored, good)
          assert.deepStrictEqual(failure?.rejected.some.map(({ id }) => id) ?? [], bad)
          assert.deepStrictEqual(
            world.rejections.map(({ id }) => id),
            bad
          )
          assert.strictEqual(failure?.waiting.total ?? 0, 0)
          const { acknowledged, refused, waiting, waitingBytes } = world.delivery.counters
          assert.deepStrictEqual(
            { acknowledged, refused, waiting, waitingBytes },
            { acknowledged: good.length, refused: bad.length, waiting: 0, waitingBytes: 0 }
          )
        }
      ),
      { numRuns: runs(200) }
    )
  })

  it("drops the newest beyond its limits, and says which", async () => {
    await fc.assert(
      fc.asyncProperty(fateSequence, fc.integer({ min: 1, max: 20 }), async (given, itemsMax) => {
        const world = makeWorld(given, { itemsMax })
        const ids = Array.from({ length: 15 }, () => world.log())
        const failure = await world.flushed()
        assert.deepStrictEqual(world.service.stored, ids.slice(0, itemsMax))
        const dropped = failure?.rejected.some ?? []
        assert.deepStrictEqual(
          dropped.map(({ id }) => id),
          ids.slice(itemsMax)
        )
        assert.isTrue(dropped.every(({ code }) => code === "queue_full"))
        assert.strictEqual(world.delivery.counters.dropped, dropped.length)
      }),
      { numRuns: runs(50) }
    )
  })

  it("throws beyond its limit of bytes if it is told to", async () => {
    const world = makeWorld([], { bytesMax: 500, overflow: "throw" })
    world.log()
    world.log()
    assert.throws(() => world.log(), QueueFull, /the queue is full \(100000 items or 500 bytes\)/)
    assert.isUndefined(await world.flushed())
    assert.strictEqual(world.service.stored.length, 2)
  })

  it("waits as long as Retry-After says, in seconds or until a date", async () => {
    // The date stands still while the answer is read.
    vi.useFakeTimers({ toFake: ["Date"], now: Date.UTC(2026, 0, 1) })
    try {
      const world = makeWorld(["too many requests", "too many requests until a date"])
      world.log()
      await world.flushed()
      assert.deepStrictEqual(
        world.clock.waits.filter((ms) => ms > 1_000),
        [3_000, 5_000]
      )
    } finally {
      vi.useRealTimers()
    }
  })

  it("tries again at once when somebody flushes, if nothing else was asked for", async () => {
    const world = makeWorld(["no connection"])
    const ends: Array<() => void> = []
    world.clock.wait = (_, signal) =>
      new Promise((resolve) => {
        signal?.addEventListener("abort", () => resolve())
        ends.push(resolve)
      })
    world.log()
    // The event has waited for others, and its first request fails.
    ends.shift()?.()
    world.clock.pass(1_000)
    await eventuallyAsync(
      "it tries again",
      () => world.delivery.counters,
      ({ retries }) => retries === 1
    )
    assert.isUndefined(await world.flushed())
    assert.strictEqual(world.service.stored.length, 1)
  })

  it("gives nothing up for a wrong key or a proxy, and says what it waits for", async () => {
    const world = makeWorld(["wrong key", "page of a proxy"])
    const id = world.log()
    assert.isUndefined(await world.flushed())
    assert.deepStrictEqual(world.service.stored, [id])
    assert.deepStrictEqual(world.delays, ["unauthenticated", "unexpected"])
  })

  it("sends what is too large in halves, and refuses what is too large alone", async () => {
    const world = makeWorld([], {}, 3)
    const ids = Array.from({ length: 10 }, () => world.log())
    assert.isUndefined(await world.flushed())
    assert.deepStrictEqual(world.service.stored, ids)
    assert.isTrue(world.service.requests.every((items) => items <= 3))
    const tooSmall = makeWorld([], {}, 0)
    const refused = tooSmall.log()
    const failure = await tooSmall.flushed()
    assert.deepStrictEqual(
      failure?.rejected.some.map(({ code, id }) => ({ code, id })),
      [{ code: "payload_too_large", id: refused }]
    )
  })

  it("sends at once what is hurried, and leaves what was refused for the next flush", async () => {
    const world = makeWorld()
    world.clock.wait = (_, signal) =>
      new Promise((resolve) => {
        signal?.addEventListener("abort", () => resolve())
      })
    const bad = world.log(true)
    await Promise.resolve()
    world.delivery.hurry()
    await eventuallyAsync(
      "nothing waits",
      () => world.delivery.counters,
      ({ waiting }) => waiting === 0
    )
    const failure = await world.flushed()
    assert.deepStrictEqual(
      failure?.rejected.some.map(({ id }) => id),
      [bad]
    )
  })

  it("sends at once what fills a request, and the rest after a moment", async () => {
    const world = makeWorld([], { batchItems: 4 })
    for (let count = 0; count < 10; count++) world.log()
    await world.flushed()
    assert.deepStrictEqual(world.service.requests, [4, 4, 2])
  })

  it("keeps what was logged, whatever the caller changes later", async () => {
    const world = makeWorld()
    const event = { ...eventOf(), metadata: { bad: false } }
    world.delivery.log(toLoggable(event, 0))
    event.metadata.bad = true
    assert.isUndefined(await world.flushed())
  })

  it("refuses what JSON would change, with the path", async () => {
    const world = makeWorld()
    const circle: Record<string, unknown> = {}
    circle["circle"] = circle
    const values: ReadonlyArray<readonly [unknown, RegExp]> = [
      [Number.NaN, /^metadata\.value: NaN is no JSON number/],
      [1n, /^metadata\.value: a bigint/],
      [[1, undefined], /^metadata\.value\[1\]: undefined/],
      [new Map(), /^metadata\.value: a Map or Set/],
      [() => 1, /^metadata\.value: a function/],
      [circle, /nests deeper than 100 levels, or in a circle/]
    ]
    for (const [value] of values) {
      world.delivery.log(toLoggable({ ...eventOf(), metadata: { value } }, 0))
    }
    const failure = await world.flushed()
    values.forEach(([, message], index) => {
      const rejection = failure?.rejected.some[index]
      assert.strictEqual(rejection?.code, "unstorable_value")
      assert.match(rejection?.message ?? "", message)
    })
    assert.deepStrictEqual(world.service.stored, [])
  })

  it("names what still waits when the time of a flush is up, and sends it on", async () => {
    const world = makeWorld()
    world.service.otherwise = "late answer"
    const ids = [world.log(), world.log()]
    const limit = new AbortController()
    const flush = world.delivery.flush(limit.signal)
    await eventuallyAsync(
      "a request is given up",
      () => world.delivery.counters,
      ({ retries }) => retries > 0
    )
    limit.abort()
    const failure = await flush.then(
      () => undefined,
      (error: NotAcknowledged) => error
    )
    assert.deepStrictEqual(failure?.waiting.some, ids)
    assert.match(failure?.message ?? "", /2 still waiting .*has not answered for 2 ms/)
    world.service.otherwise = "answer"
    assert.isUndefined(await world.flushed())
    assert.deepStrictEqual(world.service.stored, ids)
  })

  it("reports what is logged after it was closed, and what is given up", async () => {
    const world = makeWorld(["never arrives"])
    const given = world.log()
    world.delivery.abandon()
    const late = world.log()
    assert.deepStrictEqual(
      world.rejections.map(({ code, id }) => ({ code, id })),
      [
        { code: "not_delivered", id: given },
        { code: "closed", id: late }
      ]
    )
    assert.strictEqual(world.delivery.counters.waiting, 0)
  })
})
