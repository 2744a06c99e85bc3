/**
 * Bodies on their way in: codings, and limits that hold while the bytes arrive and are inflated.
 */
import { connect } from "node:net"
import {
  brotliCompressSync,
  constants,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync
} from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { HttpServerRequest } from "effect/http"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { afterAll, beforeAll } from "vitest"
import { BODY_TIMEOUT_MS, readBody } from "../../../src/http/messages/RequestBody.ts"
import { runs } from "../../support/Runs.ts"
import { READ_KEY, settings, WRITE_KEY } from "../support/Doubles.ts"
import { items } from "../support/Events.ts"
import { TestApi } from "../support/TestApi.ts"

const BATCH = "/v1/events/batch?sync=true"
const LIMIT = 1_048_576
/** What a bomb inflates to: far over the limit. */
const BOMB_BYTES = 128 * 1_048_576
const FAST_BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }

const codings = {
  gzip: (bytes: Buffer) => gzipSync(bytes),
  "x-gzip": (bytes: Buffer) => gzipSync(bytes),
  br: (bytes: Buffer) => brotliCompressSync(bytes, FAST_BROTLI),
  zstd: (bytes: Buffer) => zstdCompressSync(bytes),
  zlib: (bytes: Buffer) => deflateSync(bytes),
  deflate: (bytes: Buffer) => deflateSync(bytes),
  "raw deflate": (bytes: Buffer) => deflateRawSync(bytes),
  identity: (bytes: Buffer) => bytes
}

/** The header of what one of the above makes. */
const headerOf = (encoding: string): string => encoding.split(" ").at(-1)!

const { identity: _, ...streams } = codings
const streamed = Object.keys(streams) as ReadonlyArray<keyof typeof streams>

describe("request bodies", () => {
  let api: TestApi
  beforeAll(async () => {
    api = await TestApi.start()
  })
  afterAll(() => api.stop())
  const send = (raw: Buffer, coding: string) =>
    api.call(BATCH, {
      key: WRITE_KEY,
      raw,
      headers: { "content-encoding": headerOf(coding), "content-type": "application/json" }
    })

  it.each(Object.entries(codings))("may be %s", async (coding, compress) => {
    const raw = compress(Buffer.from(JSON.stringify({ events: items(20) })))
    const answer = await send(raw, coding)
    assert.strictEqual(answer.status, 200, answer.text)
    assert.strictEqual(answer.body.accepted, 20)
  })

  it("name the same request in every coding under one Idempotency-Key", async () => {
    const plain = Buffer.from(JSON.stringify({ events: items(2) }))
    const headers = { "idempotency-key": "any-coding", "content-type": "application/json" }
    const first = await api.call(BATCH, { key: WRITE_KEY, raw: plain, headers })
    const again = await api.call(BATCH, {
      key: WRITE_KEY,
      raw: gzipSync(plain),
      headers: { ...headers, "content-encoding": "gzip" }
    })
    assert.strictEqual(again.text, first.text)
  })

  it.each(streamed)("stop inflating at the limit: %s", async (coding) => {
    const bomb = codings[coding](Buffer.alloc(BOMB_BYTES, 0x20))
    assert.isBelow(bomb.length, LIMIT)
    const answer = await send(bomb, coding)
    assert.strictEqual(answer.status, 413, answer.text)
    assert.strictEqual(answer.body.code, "payload_too_large")
    assert.include(answer.body.error, String(LIMIT))
  })

  it("keep every record of joined, cut and padded streams, or are refused whole", async () => {
    const tail = fc.oneof(
      fc.constant(Buffer.alloc(0)),
      fc.uint8Array({ minLength: 1, maxLength: 20 }).map((junk) => Buffer.from(junk)),
      fc.integer({ min: 1, max: 20 }).map((zeros) => Buffer.alloc(zeros))
    )
    const places = fc.array(fc.nat(), { maxLength: 3 })
    let run = 0
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...streamed),
        fc.integer({ min: 1, max: 8 }),
        places,
        fc.option(fc.nat()),
        tail,
        async (coding, count, splits, cut, added) => {
          run += 1
          const lines = Buffer.from(
            Array.from(
              { length: count },
              (_, at) => `${JSON.stringify({ ...items(1)[0], id: `${run}-${at}` })}\n`
            ).join("")
          )
          const ends = splits.map((place) => place % lines.length).sort((a, b) => a - b)
          const contents = [...ends, lines.length].map((end, at) =>
            lines.subarray(ends[at - 1] ?? 0, end)
          )
          const frames = contents.map(codings[coding])
          const kept = cut === null ? undefined : cut % frames.at(-1)!.length
          const raw = Buffer.concat([
            ...frames.slice(0, -1),
            frames.at(-1)!.subarray(0, kept),
            added
          ])
          const answer = await api.call(BATCH, {
            key: WRITE_KEY,
            raw,
            headers: {
              "content-encoding": headerOf(coding),
              "content-type": "application/x-ndjson"
            }
          })
          if (answer.status !== 200) return assert.strictEqual(answer.status, 400, answer.text)
          // Without any of the last frame, its content was not sent; what was cut is no record.
          const sent = kept === 0 ? lines.subarray(0, ends.at(-1) ?? 0) : lines
          const whole = sent.toString().split("\n").length - 1
          assert.isAtLeast(answer.body.accepted, whole, coding)
        }
      ),
      { numRuns: runs(500) }
    )
  })

  it("may begin with a byte order mark, which is not part of them", async () => {
    const event = JSON.stringify({ ...items(1)[0], actor: { id: "a", type: "human" } })
    const plain = { json: `{"events":[${event}]}`, "x-ndjson": `${event}\n${event}\n` }
    for (const [type, text] of Object.entries(plain)) {
      const headers = { "content-type": `application/${type}`, "idempotency-key": `mark-${type}` }
      const raw = Buffer.from(`\ufeff${text}`)
      const answer = await api.call(BATCH, { key: WRITE_KEY, raw, headers })
      assert.strictEqual(answer.body.rejected, 0, answer.text)
      const again = await api.call(BATCH, { key: WRITE_KEY, raw: Buffer.from(text), headers })
      assert.strictEqual(again.text, answer.text)
    }
  })

  it("may be several frames, members or streams", async () => {
    const lines = items(3).map((item) => Buffer.from(`${JSON.stringify(item)}\n`))
    for (const coding of ["gzip", "zstd", "zlib", "deflate"] as const) {
      const answer = await api.call(BATCH, {
        key: WRITE_KEY,
        raw: Buffer.concat(lines.map(codings[coding])),
        headers: { "content-encoding": coding, "content-type": "application/x-ndjson" }
      })
      assert.strictEqual(answer.body.accepted, 3, answer.text)
    }
  })

  it("inflate to so many times their size at most", async () => {
    const wide = await TestApi.start({ limits: { ...settings.limits, bodyBytesMax: 16 * LIMIT } })
    const answer = await wide.call(BATCH, {
      key: WRITE_KEY,
      raw: gzipSync(Buffer.alloc(8 * LIMIT, 0x0a)),
      headers: { "content-encoding": "gzip", "content-type": "application/x-ndjson" }
    })
    await wide.stop()
    assert.strictEqual(answer.status, 413, answer.text)
    assert.include(answer.body.error, "512 times its size")
  })

  it("are refused early by their Content-Length", async () => {
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = connect(api.port, "127.0.0.1", () => {
        socket.write(
          `POST /v1/events/batch HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${WRITE_KEY}\r\n`
            + `Content-Type: application/json\r\nContent-Length: ${10 * LIMIT}\r\n\r\n{`
        )
      })
      socket.once("data", (data) => {
        socket.destroy()
        resolve(data.toString())
      })
      socket.on("error", reject)
    })
    assert.match(answer, /^HTTP\/1\.1 413 /)
    assert.include(answer, '"code":"payload_too_large"')
  })

  it("are refused over the limit without a Content-Length too", async () => {
    const answer = await new Promise<string>((resolve, reject) => {
      const chunk = Buffer.alloc(65_536, 0x20)
      const socket = connect(api.port, "127.0.0.1", () => {
        socket.write(
          `POST /v1/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${WRITE_KEY}\r\n`
            + "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        for (let sent = 0; sent <= LIMIT; sent += chunk.length) {
          socket.write(`${chunk.length.toString(16)}\r\n`)
          socket.write(chunk)
          socket.write("\r\n")
        }
      })
      socket.once("data", (data) => {
        socket.destroy()
        resolve(data.toString())
      })
      socket.on("error", reject)
    })
    assert.match(answer, /^HTTP\/1\.1 413 /)
  })

  it("are not read before the key is known", async () => {
    const answer = await api.call(BATCH, { key: READ_KEY, raw: Buffer.alloc(2 * LIMIT) })
    assert.strictEqual(answer.status, 403)
  })

  it.effect("have a limited time to arrive", () =>
    Effect.gen(function* () {
      const endless = new ReadableStream({ start: (stream) => stream.enqueue(Buffer.from("{")) })
      const request = HttpServerRequest.fromWeb(
        new Request("http://a/", { method: "POST", body: endless, duplex: "half" })
      )
      const reading = yield* Effect.forkChild(readBody(request, ["application/json"], LIMIT))
      yield* TestClock.adjust(BODY_TIMEOUT_MS - 1)
      assert.isUndefined(reading.pollUnsafe())
      yield* TestClock.adjust(1)
      const error = yield* Effect.flip(Fiber.join(reading))
      assert.strictEqual(error.code, "invalid_request")
      assert.include(error.message, "30 s")
      assert.deepStrictEqual(error.headers, { connection: "close" })
    })
  )

  it("may be as large as the limit", async () => {
    const body = JSON.stringify({ events: items(1) })
    const answer = await send(Buffer.from(body.padEnd(LIMIT)), "identity")
    assert.strictEqual(answer.status, 200, answer.text)
  })
})
