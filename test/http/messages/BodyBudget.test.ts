/**
 * Memory for request bodies: many large ones at once stay within the budget, slow ones give way,
 * small ones go through, and every byte is given back however a request ends.
 */
import { gzipSync } from "node:zlib"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { BodyBudget, SMALL_BODY_BYTES } from "../../../src/http/messages/BodyBudget.ts"
import { eventuallyAsync } from "../../support/Eventually.ts"
import { OTHER_KEY, READ_KEY, settings, WRITE_KEY } from "../support/Doubles.ts"
import { item, items } from "../support/Events.ts"
import { RawConnection } from "../support/RawHttp.ts"
import { TestApi } from "../support/TestApi.ts"

const MIB = 1_048_576
const BODY_BYTES = MIB
const BUDGET_BYTES = 4 * MIB
const LARGE_BYTES = (BUDGET_BYTES / 8) * 7
const SLOW_BODIES = 40
/** Bodies that there may be room for. */
const FITTING_BODIES = BUDGET_BYTES / BODY_BYTES
const BATCH = "/v1/events/batch"

const head = (length: string, key = WRITE_KEY, more = ""): string =>
  `POST ${BATCH}?sync=true HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n`
  + `Content-Type: application/json\r\n${more}${length}\r\n\r\n`
const sized = (bytes: number): string => `Content-Length: ${bytes}`
const CHUNKED = "Transfer-Encoding: chunked"
const chunk = (bytes: Buffer | string): Buffer =>
  Buffer.concat([
    Buffer.from(`${bytes.length.toString(16)}\r\n`),
    Buffer.from(bytes),
    Buffer.from("\r\n")
  ])

describe("bodies in flight", () => {
  let api: TestApi
  beforeEach(async () => {
    const limits = { ...settings.limits, bodyBytesMax: BODY_BYTES, bodyBudgetBytes: BUDGET_BYTES }
    api = await TestApi.start({ limits })
  })
  afterEach(() => api.stop())

  const used = async (): Promise<number> => {
    const { text } = await api.call("/metrics")
    return Number(/^alk_http_body_bytes (\d+)/m.exec(text)?.[1])
  }
  const usedUntil = (what: string, holds: (bytes: number) => boolean): Promise<number> =>
    eventuallyAsync(`the bodies in flight take ${what}`, used, holds)
  const small = () => api.call(`${BATCH}?sync=true`, { key: WRITE_KEY, json: { events: items(3) } })

  it.each([
    ["with a length", sized(BODY_BYTES), (bytes: number) => Buffer.alloc(bytes, 0x20)],
    ["in chunks", CHUNKED, (bytes: number) => chunk(Buffer.alloc(bytes, 0x20))]
  ])("never take more than the budget, and leave room for small: %s", async (_, length, part) => {
    const slow: Array<RawConnection> = []
    for (let n = 0; n < SLOW_BODIES; n++) {
      // All of it but the end.
      const connection = await RawConnection.open(api.port)
      connection.socket.on("error", () => {})
      slow.push(connection.write(head(length)).write(part(BODY_BYTES - 10)))
      assert.isAtMost(await used(), LARGE_BYTES)
    }
    await usedUntil("most of what large ones may", (bytes) => bytes > LARGE_BYTES / 2)
    assert.isAtMost(await used(), LARGE_BYTES)
    const answered = () => slow.filter(({ bytes }) => bytes !== "")
    await eventuallyAsync(
      "the bodies without room are refused",
      () => answered().map(({ bytes }) => bytes),
      ({ length }) => length >= SLOW_BODIES - FITTING_BODIES
    )
    for (const one of answered()) {
      const [answer] = await one.answers(1)
      assert.strictEqual(answer!.status, 503, one.bytes)
      assert.strictEqual(answer!.body.code, "unavailable")
      assert.strictEqual(answer!.headers["retry-after"], "1")
    }
    const answer = await small()
    assert.strictEqual(answer.status, 200, answer.text)
    for (const { socket } of slow) socket.destroy()
    await usedUntil("nothing", (bytes) => bytes === 0)
    const again = await api.call(`${BATCH}?sync=true`, {
      key: WRITE_KEY,
      raw: JSON.stringify({ events: items(1) }).padEnd(BODY_BYTES),
      headers: { "content-type": "application/json" }
    })
    assert.strictEqual(again.status, 200, again.text)
  })

  it("are given back on every way out", async () => {
    const json = JSON.stringify({ events: items(2) })
    const headers = { "content-type": "application/json" }
    const big = json.padEnd(BODY_BYTES / 2)
    const gzip = { ...headers, "content-encoding": "gzip" }
    const ends = [
      ["written", { key: WRITE_KEY, raw: big, headers }, 200],
      ["inflated", { key: WRITE_KEY, raw: gzipSync(big), headers: gzip }, 200],
      ["not JSON", { key: WRITE_KEY, raw: "{".padEnd(BODY_BYTES), headers }, 400],
      ["not gzip", { key: WRITE_KEY, raw: big, headers: gzip }, 400],
      [
        "a bomb",
        { key: WRITE_KEY, raw: gzipSync(Buffer.alloc(16 * BODY_BYTES)), headers: gzip },
        413
      ],
      ["too large", { key: WRITE_KEY, raw: Buffer.alloc(2 * BODY_BYTES), headers }, 413],
      ["the wrong scope", { key: READ_KEY, raw: big, headers }, 403]
    ] as const
    for (const [why, call, status] of ends) {
      assert.strictEqual((await api.call(`${BATCH}?sync=true`, call)).status, status, why)
      await usedUntil(`nothing: ${why}`, (bytes) => bytes === 0)
    }
    api.world.defect = new Error("nobody expected this")
    assert.strictEqual((await api.call(BATCH, ends[0][1])).status, 503)
    api.world.defect = undefined
    await usedUntil("nothing: a defect", (bytes) => bytes === 0)
    const gone = await RawConnection.open(api.port)
    gone.write(head(sized(BODY_BYTES))).write(Buffer.alloc(BODY_BYTES / 2, 0x20))
    await usedUntil("what has arrived", (bytes) => bytes === BODY_BYTES / 2)
    gone.socket.destroy()
    await usedUntil("nothing", (bytes) => bytes === 0)
  })

  it("count while their request goes on", async () => {
    api.world.undecided = true
    const raw = JSON.stringify(item(1)).padEnd(BODY_BYTES)
    const reply = api.call("/v1/events?sync=true", {
      key: WRITE_KEY,
      raw,
      headers: { "content-type": "application/json" }
    })
    const command = await api.world.firstCommand()
    assert.strictEqual(await used(), BODY_BYTES)
    api.world.decide(command)
    assert.strictEqual((await reply).status, 201)
    await usedUntil("nothing", (bytes) => bytes === 0)
  })

  it("are counted as what they are, however small the pieces are that they come in", async () => {
    const connection = await RawConnection.open(api.port)
    connection.write(head(CHUNKED, OTHER_KEY))
    const pieces = 65_536
    connection.write("1\r\n \r\n".repeat(pieces))
    await usedUntil("all pieces", (bytes) => bytes === pieces)
    const body = JSON.stringify({ events: items(1) })
    connection.write(chunk(body)).write("0\r\n\r\n")
    const [answer] = await connection.answers(1)
    assert.strictEqual(answer!.status, 200, answer!.text)
    await usedUntil("nothing", (bytes) => bytes === 0)
    connection.socket.destroy()
  })
})

describe("the budget", () => {
  it("keeps an eighth for small bodies", () => {
    const budget = new BodyBudget(8 * MIB)
    const large = budget.open()
    assert.isUndefined(large.reserve(7 * MIB))
    assert.strictEqual(large.reserve(1)?.code, "unavailable")
    const others = Array.from({ length: 16 }, () => budget.open())
    for (const one of others) assert.isUndefined(one.reserve(SMALL_BODY_BYTES))
    assert.strictEqual(budget.bytes, 8 * MIB)
    assert.strictEqual(budget.open().reserve(1)?.code, "unavailable")
    for (const one of [large, ...others]) one.close()
    assert.strictEqual(budget.bytes, 0)
  })

  it("has slow bodies give way when others need their room, the slowest first", () => {
    let now = 0
    const budget = new BodyBudget(8 * MIB, () => now)
    const given: Array<string> = []
    const slow = ["slow", "slowest"].map((name, at) => {
      const account = budget.open()
      account.arriving((refusal) => given.push(`${name} ${refusal.code}`))
      assert.isUndefined(account.reserve(at === 0 ? 100_000 : 70_000))
      return account
    })
    const read = budget.open()
    assert.isUndefined(read.reserve(7 * MIB - 170_000))
    const newcomer = budget.open()
    assert.isDefined(newcomer.reserve(69_000), "nobody is slow yet")
    now = 1_999
    assert.isDefined(newcomer.reserve(69_000), "nobody is slow yet")
    now = 2_000
    assert.isUndefined(newcomer.reserve(69_000))
    assert.deepStrictEqual(given, ["slowest unavailable"])
    assert.isUndefined(newcomer.reserve(70_000))
    assert.deepStrictEqual(given, ["slowest unavailable", "slow unavailable"])
    assert.isDefined(newcomer.reserve(MIB), "who has arrived does not give way")
    for (const one of [...slow, read, newcomer]) one.close()
    assert.strictEqual(budget.bytes, 0)
  })
})
