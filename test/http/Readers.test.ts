/**
 * Clients that ask and do not read: their connections are cut, what waits for all of them is bounded,
 * and requests behind one that is answered wait for their turn.
 */
import { Effect, Layer } from "effect"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { oneInTurn, tenantTurns } from "../../src/domain/TenantTurns.ts"
import { AnswerLimits } from "../../src/http/server/AnswerBudget.ts"
import { CurrentServerTimes, SERVER_TIMES } from "../../src/http/server/ServerTimes.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { OTHER_KEY, READ_KEY, World } from "./support/Doubles.ts"
import { item } from "./support/Events.ts"
import { answersIn, RawConnection } from "./support/RawHttp.ts"
import { type LogLine, TestApi } from "./support/TestApi.ts"

const MIB = 1_048_576
/** More than both ends of a connection take without a reader. */
const EVENTS = 400
const EVENT_BYTES = 50_000
const PAGE = "/v1/events?page_size=1000"
const LINES = "/v1/events?format=ndjson"

const get = (path: string, key: string): string =>
  `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`

/** A world of tenants with more events than a connection holds. */
const largeWorld = (...more: ReadonlyArray<string>): World => {
  const world = new World()
  for (const tenant_id of ["acme", "globex", ...more]) {
    for (let n = 0; n < EVENTS; n++) {
      const metadata = { text: "x".repeat(EVENT_BYTES) }
      world.bodies.push(JSON.stringify({ ...item(n), tenant_id, sequence_number: n, metadata }))
    }
  }
  return world
}

const startWith = (world: World, stalledMs: number, slowAfterMs: number, bytesMax: number) =>
  TestApi.start(
    { requestLog: "all" },
    world,
    Layer.mergeAll(
      Layer.succeed(CurrentServerTimes, { ...SERVER_TIMES, stalledMs }),
      Layer.succeed(AnswerLimits, { bytesMax, slowAfterMs })
    )
  )

const MINUTE_MS = 60_000

describe("a client that does not read", () => {
  let api: TestApi
  let connections: Array<RawConnection> = []
  beforeEach(() => {
    connections = []
  })
  afterEach(async () => {
    for (const { socket } of connections) socket.destroy()
    await api.stop()
  })

  /** Asks and reads nothing. */
  const asking = async (...sent: ReadonlyArray<string>): Promise<RawConnection> => {
    const connection = await RawConnection.open(api.port)
    connection.socket.on("error", () => {})
    connection.socket.pause()
    connections.push(connection.write(sent.join("")))
    return connection
  }
  const ended = (): ReadonlyArray<LogLine> =>
    api.logs.filter(({ message }) => message === "request")
  const endedUntil = (count: number) =>
    eventuallyAsync(`${count} requests have ended`, ended, ({ length }) => length >= count)
  /** An answer is on its way as soon as its head has been received. */
  const begun = (connection: RawConnection) =>
    eventuallyAsync("an answer has begun", () => {
      connection.socket.read()
      return connection.bytes.length > 0
    })

  /** Status of an answer that is read. */
  const statusOf = async (path: string): Promise<number | undefined> =>
    (await api.open(path, { key: READ_KEY })).resume().statusCode

  it.each([
    ["a page", PAGE, 8],
    ["lines", LINES, 19]
  ])("is cut off: %s", async (_, path, mib) => {
    api = await startWith(largeWorld(), 200, MINUTE_MS, 256 * MIB)
    const connection = await asking(get(path, READ_KEY))
    await endedUntil(1)
    connection.socket.resume()
    await connection.ended
    const { length } = connection.bytes
    assert.isAbove(length, 0)
    assert.isBelow(length, (mib - 1) * MIB)
  })

  it("is not one whose answer takes its time", async () => {
    const world = largeWorld()
    world.storeGate = Effect.sleep(800)
    api = await startWith(world, 200, MINUTE_MS, 256 * MIB)
    const json = { query: "SELECT 1" }
    assert.strictEqual((await api.call("/v1/sql", { key: READ_KEY, json })).status, 200)
  })

  it("has one request answered at a time", async () => {
    api = await startWith(largeWorld(), MINUTE_MS, MINUTE_MS, 256 * MIB)
    const small = get("/v1/chain", READ_KEY)
    const connection = await asking(get(PAGE, READ_KEY), small, small)
    // Another connection's, later and answered.
    await api.call("/v1/chain", { key: READ_KEY })
    assert.strictEqual(ended().length, 1)
    connection.socket.resume()
    const answers = await connection.answers(3)
    assert.deepStrictEqual(
      answers.map(({ status }) => status),
      [200, 200, 200]
    )
    const flood = await asking(get(PAGE, READ_KEY), small.repeat(200))
    flood.socket.resume()
    await flood.ended
    assert.isBelow(answersIn(flood.bytes).length, 2)
  })

  it("has no more than so many bytes wait, of its tenant and in all", async () => {
    api = await startWith(largeWorld(), MINUTE_MS, MINUTE_MS, 16 * MIB)
    for (let n = 0; n < 2; n++) await begun(await asking(get(LINES, READ_KEY)))
    const refused = await api.call(PAGE, { key: READ_KEY })
    assert.strictEqual(refused.status, 429)
    assert.strictEqual(refused.headers["retry-after"], "1")
    assert.include(refused.body.error.message, "answers of this tenant that are not read yet")
    assert.strictEqual((await api.call("/v1/chain", { key: READ_KEY })).status, 200)
    for (let n = 0; n < 2; n++) await begun(await asking(get(LINES, OTHER_KEY)))
    // What every answer shares counts for none.
    assert.strictEqual((await api.call("/openapi.json")).status, 200)
    for (const { socket } of connections) socket.destroy()
    await eventuallyAsync("there is room again", async () => (await statusOf(PAGE)) === 200)
  })

  it("gives way at once to who holds less", async () => {
    const keys = ["t", "f"].map((letter) => `alk_live_${letter.repeat(43)}`)
    const world = largeWorld(...keys)
    for (const key of keys) {
      world.principals.set(key, { tenantId: key, keyId: key, scopes: ["read"] })
    }
    api = await startWith(world, MINUTE_MS, MINUTE_MS, 16 * MIB)
    // All is held: half of it by each of two tenants.
    for (const key of [READ_KEY, READ_KEY, OTHER_KEY, OTHER_KEY]) {
      await begun(await asking(get(LINES, key)))
    }
    for (const key of keys) await begun(await asking(get(LINES, key)))
    const broken = api.logs.filter(({ message }) => message === "an answer was broken off")
    assert.deepStrictEqual(broken.map(({ annotations }) => annotations["tenantId"]).sort(), [
      "acme",
      "globex"
    ])
    // One that holds as much as the others gets no more.
    assert.strictEqual((await api.call(LINES, { key: READ_KEY })).status, 503)
  })

  it("gives way as often as one that needs more room asks for", async () => {
    const [third, fourth] = ["t", "f"].map((letter) => `alk_live_${letter.repeat(43)}`) as [
      string,
      string
    ]
    const world = largeWorld(third, fourth)
    for (const key of [third, fourth]) {
      world.principals.set(key, { tenantId: key, keyId: key, scopes: ["read"] })
    }
    api = await startWith(world, MINUTE_MS, MINUTE_MS, 32 * MIB)
    // All is held: 16, 8 and 8 MiB.
    const four = Array.from({ length: 4 }, () => READ_KEY)
    for (const key of [...four, OTHER_KEY, OTHER_KEY, third, third]) {
      await begun(await asking(get(LINES, key)))
    }
    // 5 MB: two of the largest have to go.
    const page = await api.open("/v1/events?page_size=100", { key: fourth })
    assert.strictEqual(page.resume().statusCode, 200)
    const broken = api.logs.filter(({ message }) => message === "an answer was broken off")
    assert.deepStrictEqual(
      broken.map(({ annotations }) => annotations["tenantId"]),
      ["acme", "acme"]
    )
  })

  it("gives way to others when it is slow", async () => {
    api = await startWith(largeWorld(), MINUTE_MS, 300, 16 * MIB)
    for (let n = 0; n < 2; n++) await begun(await asking(get(LINES, READ_KEY)))
    await eventuallyAsync("one gives way", async () => (await statusOf(PAGE)) === 200)
    const broken = api.logs.find(({ message }) => message === "an answer was broken off")
    assert.include(broken?.annotations, { tenantId: "acme", reason: "the client stopped reading" })
  })
})

it("lets no tenant's reads take the place of another's", async () => {
  const running = new Map<string, number>()
  const most = new Map<string, number>()
  const inTurn = tenantTurns(2)
  const read = (tenantId: string) =>
    inTurn(
      tenantId,
      Effect.gen(function* () {
        const now = (running.get(tenantId) ?? 0) + 1
        running.set(tenantId, now)
        most.set(tenantId, Math.max(now, most.get(tenantId) ?? 0))
        yield* Effect.sleep(5)
        running.set(tenantId, (running.get(tenantId) ?? 0) - 1)
        return tenantId
      })
    )
  const order: Array<string> = []
  const noted = (tenantId: string) => Effect.map(read(tenantId), (id) => order.push(id))
  const all = [...Array.from({ length: 20 }, () => "acme"), "globex"]
  await Effect.runPromise(Effect.forEach(all, noted, { concurrency: "unbounded", discard: true }))
  assert.deepStrictEqual(
    [...most],
    [
      ["acme", 2],
      ["globex", 1]
    ]
  )
  assert.isBelow(order.indexOf("globex"), 6)
})

it("lets no tenant's graphs fill the queue of all", async () => {
  const inTurn = oneInTurn()
  const order: Array<string> = []
  let running = 0
  let most = 0
  const make = (tenantId: string) =>
    inTurn(
      tenantId,
      Effect.gen(function* () {
        most = Math.max(most, ++running)
        yield* Effect.sleep(2)
        running -= 1
        order.push(tenantId)
      })
    )
  const all = [...Array.from({ length: 20 }, () => "acme"), "globex"]
  await Effect.runPromise(Effect.forEach(all, make, { concurrency: "unbounded", discard: true }))
  assert.strictEqual(most, 1)
  assert.isBelow(order.indexOf("globex"), 3)
})
