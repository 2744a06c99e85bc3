/**
 * Requests that are small for what is made of them, many at once: they are read in turns, wait or are
 * refused, and all the memory is given back, however a request ends.
 */
import { gzipSync } from "node:zlib"
import { Effect } from "effect"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { sha256Hex } from "../../src/domain/Identifiers.ts"
import { BodyBudget } from "../../src/http/messages/BodyBudget.ts"
import { decodedMemory } from "../../src/http/messages/DecodedMemory.ts"
import { eventually } from "../support/Eventually.ts"
import { OTHER_KEY, settings, World, WRITE_KEY } from "./support/Doubles.ts"
import { item } from "./support/Events.ts"
import { field } from "./support/HostileBodies.ts"
import { type Answer, type Call, TestApi } from "./support/TestApi.ts"

const MIB = 1_048_576
/** What requests of one tenant may take at once, and what all may. */
const TENANT_MAX = 128 * MIB
const ALL_MAX = 256 * MIB
const JSON_TYPE = "application/json"
const PROTOBUF = "application/x-protobuf"

const gzipped = (contentType: string, raw: Buffer | string): Call => ({
  key: WRITE_KEY,
  raw: gzipSync(raw),
  headers: { "content-type": contentType, "content-encoding": "gzip" }
})

/** A span of so many events without a member, of two bytes each. */
const spanOfEvents = (events: number): Buffer => {
  const ids = [field(1, Buffer.alloc(16, 1)), field(2, Buffer.alloc(8, 2))]
  return field(2, Buffer.concat([...ids, Buffer.alloc(2 * events, Buffer.from([0x5a, 0]))]))
}

/** Texts that are not repeated, so that the rest does not inflate to too much. */
const varied = (bytes: number): string => {
  let text = ""
  for (let n = 0; text.length < bytes; n++) text += sha256Hex(String(n))
  return text
}

const spans = Array.from({ length: 12 }, () => spanOfEvents(36_000))
const padding = field(2, field(5, Buffer.from(varied(8_000))))
const manyMessages = gzipped(PROTOBUF, field(1, field(2, Buffer.concat([...spans, padding]))))
const list = `[${"{},".repeat(20_000)}{}]`
const large = (at: number) =>
  `{"action":"a.b","actor":{"id":"u"},"metadata":{"p":"${varied(800)}${at}","k":${list}}}`
const manyValues = gzipped(
  JSON_TYPE,
  `{"events":[${Array.from({ length: 40 }, (_, at) => large(at)).join(",")}]}`
)
const brokenMessage = gzipped(PROTOBUF, field(1, Buffer.alloc(MIB - 8, 0xff)))
const brokenJson = gzipped(
  JSON_TYPE,
  `{"events":[{"p":"${varied(8_000)}","k":[${"[],".repeat(600_000)}`
)

describe("requests that take much memory once they are read", () => {
  let world: World
  let api: TestApi

  beforeEach(async () => {
    world = new World()
    const limits = { ...settings.limits, bodyBytesMax: 16 * MIB, bodyBudgetBytes: 128 * MIB }
    api = await TestApi.start({ limits }, world)
  })
  afterEach(() => api.stop())

  const givenBack = () =>
    Effect.runPromise(
      eventually(
        "nothing is taken",
        Effect.sync(() => decodedMemory.bytes),
        (bytes) => bytes === 0
      )
    )

  /** What all of them are answered, and how much was taken at most. */
  const atOnce = async (path: string, call: Call, count: number) => {
    let most = 0
    const { turn } = decodedMemory
    decodedMemory.turn = (...of) =>
      Effect.tap(turn.apply(decodedMemory, of), () =>
        Effect.sync(() => {
          most = Math.max(most, decodedMemory.bytes)
        })
      )
    const calls = Array.from({ length: count }, () => api.call(path, call))
    const answers = await Promise.all(calls).finally(() => {
      decodedMemory.turn = turn
    })
    return { most, answers }
  }

  const isAnswered = ({ headers, status }: Answer): boolean =>
    status === 503 ? headers["retry-after"] !== undefined : status >= 200 && status < 500

  const cases: ReadonlyArray<readonly [name: string, path: string, call: Call]> = [
    ["exports of many messages", "/v1/traces", manyMessages],
    ["batches of many values", "/v1/events/batch", manyValues],
    ["exports that are broken", "/v1/traces", brokenMessage],
    ["batches that are broken", "/v1/events/batch", brokenJson]
  ]
  for (const [name, path, call] of cases) {
    it(`are read in turns and give it back: ${name}`, async () => {
      const { answers, most } = await atOnce(path, call, 9)
      for (const answer of answers) assert.isTrue(isAnswered(answer), answer.text)
      assert.isAbove(most, 4 * MIB)
      assert.isAtMost(most, TENANT_MAX)
      await givenBack()
    })
  }

  it("give it back where their connections are gone", async () => {
    const requests = [manyMessages, manyValues].flatMap((call) =>
      Array.from({ length: 6 }, () =>
        api.sending(call === manyMessages ? "/v1/traces" : "/v1/events/batch", call)
      )
    )
    const taken = Effect.sync(() => decodedMemory.bytes)
    await Effect.runPromise(eventually("some of them are read", taken))
    for (const request of requests) request.destroy()
    await givenBack()
  })

  it("are refused where they have waited for too long, and nothing of them is stored", async () => {
    const [bodies, body] = [
      new BodyBudget(ALL_MAX),
      { mediaType: PROTOBUF, bytes: Buffer.alloc(ALL_MAX / 20) }
    ]
    const account = bodies.open()
    await Effect.runPromise(decodedMemory.turn("acme", body, account))
    const waiting = api.call("/v1/events", { key: WRITE_KEY, json: item(1) })
    const other = await api.call("/v1/events", { key: OTHER_KEY, json: item(1) })
    assert.strictEqual(other.status, 202)
    const accepted = world.commands.length
    world.clock.forward(11_000)
    const refused = await waiting
    assert.strictEqual(refused.status, 503)
    assert.isDefined(refused.headers["retry-after"])
    assert.strictEqual(world.commands.length, accepted)
    account.close()
    assert.strictEqual(
      (await api.call("/v1/events", { key: WRITE_KEY, json: item(1) })).status,
      202
    )
    await givenBack()
  })
})
