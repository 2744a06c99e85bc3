/**
 * What the server says of a connection, whatever is sent on it: every request that it takes gets an
 * answer with an error body, a connection that ends says so first, and one that goes on really does.
 */
import { connect } from "node:net"
import { Effect, Layer, Queue, Stream } from "effect"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { CurrentServerTimes, SERVER_TIMES } from "../../src/http/server/ServerTimes.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { READ_KEY, World, WRITE_KEY } from "./support/Doubles.ts"
import { answersIn, exchanged, type RawAnswer, RawConnection } from "./support/RawHttp.ts"
import { TestApi } from "./support/TestApi.ts"

const MIB = 1_048_576
const NEXT = "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

const assertError = (answer: RawAnswer, status: number, form: "object" | "text" = "object") => {
  assert.strictEqual(answer.status, status, answer.text)
  assert.strictEqual(answer.headers["content-type"], "application/json", answer.text)
  const { code, message } =
    form === "text" ? { code: answer.body.code, message: answer.body.error } : answer.body.error
  assert.isString(code)
  assert.isString(message)
  const id = form === "text" ? answer.body.request_id : answer.body.error.request_id
  assert.isString(id)
  assert.strictEqual(answer.headers["x-request-id"], id)
  if (status === 503) assert.isAbove(Number(answer.headers["retry-after"]), 0)
}

describe("what is no request of the API", () => {
  let api: TestApi
  beforeAll(async () => {
    api = await TestApi.start({ corsOrigins: ["*"] })
  })
  afterAll(() => api.stop())
  const one = async (sent: string): Promise<RawAnswer> => {
    const answers = await exchanged(api.port, sent)
    assert.strictEqual(answers.length, 1, JSON.stringify(answers))
    return answers[0]!
  }

  const refused = [
    ["no HTTP", "hello\r\n\r\n", 400],
    ["an unknown method", "BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 400],
    [
      "headers over the limit",
      `GET / HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(40_000)}\r\n\r\n`,
      431
    ],
    [
      "a broken chunk",
      "POST /v1/events HTTP/1.1\r\nHost: a\r\n"
        + `Authorization: Bearer ${WRITE_KEY}\r\nContent-Type: application/json\r\n`
        + "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
      400
    ],
    [
      "two lengths",
      "POST /v1/events HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n"
        + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      400
    ],
    ["HTTP/2 without asking", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400],
    ["CONNECT", "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n", 405]
  ] as const
  it.each(refused)("is refused with an error body and a clean end: %s", async (_, sent, status) => {
    const connection = await RawConnection.open(api.port)
    assert.strictEqual(await connection.write(sent).ended, "end")
    const answers = answersIn(connection.bytes)
    assert.strictEqual(answers.length, 1, connection.bytes)
    assertError(answers[0]!, status)
    assert.strictEqual(answers[0]!.headers["connection"], "close")
    assert.strictEqual(answers[0]!.headers["access-control-allow-origin"], "*")
  })

  it("is an answer all the same where a client sends much more than it reads", async () => {
    const connection = await RawConnection.open(api.port)
    connection.write(`GET / HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(4 * MIB)}\r\n\r\n`)
    const [answer] = await connection.answers(1)
    assertError(answer!, 431)
  })

  it("is a missing Host in HTTP/1.1, and none in HTTP/1.0", async () => {
    const missing = await one("GET /v1/events HTTP/1.1\r\nConnection: close\r\n\r\n")
    assertError(missing, 400)
    assert.strictEqual(missing.body.error.field, "Host")
    const text = await one("POST /v1/events/batch HTTP/1.1\r\nConnection: close\r\n\r\n")
    assertError(text, 400, "text")
    assert.strictEqual((await one("GET /healthz HTTP/1.0\r\n\r\n")).status, 200)
  })

  it("is an expectation that nobody knows, in the form of the route", async () => {
    const head = "POST /v1/events/batch HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine\r\n"
    const answer = await one(`${head}Expect: a-miracle\r\nContent-Length: 2\r\n\r\n`)
    assertError(answer, 417, "text")
    assert.strictEqual(answer.headers["x-request-id"], "mine")
    assert.strictEqual(answer.headers["connection"], "close")
  })

  it("is a method that no route has", async () => {
    const close = "HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    const answer = await one(`PROPFIND /v1/events ${close}`)
    assertError(answer, 405)
    assert.strictEqual(answer.headers["allow"], "GET, HEAD, POST")
    assertError(await one(`TRACE /v1/chain ${close}`), 405)
  })

  it("is a request late in arriving", async () => {
    assert.deepInclude(SERVER_TIMES, { headMs: 15_000, lookMs: 5_000 })
    const times = Layer.succeed(CurrentServerTimes, { ...SERVER_TIMES, headMs: 100, lookMs: 50 })
    const impatient = await TestApi.start({}, new World(), times)
    const connection = await RawConnection.open(impatient.port)
    connection.write("GET /healthz HTTP/1.1\r\nHost: a\r\n")
    const [answer] = await connection.answers(1)
    assertError(answer!, 408)
    assert.strictEqual(answer!.headers["connection"], "close")
    assert.strictEqual(await connection.ended, "end")
    await impatient.stop()
  })
})

describe("a request in another dress", () => {
  let api: TestApi
  beforeAll(async () => {
    api = await TestApi.start()
  })
  afterAll(() => api.stop())
  const auth = `Authorization: Bearer ${WRITE_KEY}\r\nContent-Type: application/json\r\n`
  const body = JSON.stringify({ events: [] })

  it("is served: absolute-form, HTTP/1.0, an upgrade that is not taken", async () => {
    const upgrade =
      "Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n"
    for (const sent of [
      "GET http://else.example/healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
      "GET /healthz HTTP/1.0\r\n\r\n",
      `GET /healthz HTTP/1.1\r\nHost: a\r\n${upgrade}\r\n`,
      "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: upgrade, close\r\nUpgrade: websocket\r\n\r\n"
    ]) {
      const answers = await exchanged(api.port, sent)
      assert.deepStrictEqual(
        answers.map(({ status }) => status),
        [200],
        sent
      )
    }
  })

  it("is served with its streamed body while it offers an upgrade", async () => {
    const connection = await RawConnection.open(api.port)
    connection.write(
      "POST /v1/events/batch HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\n"
        + `Upgrade: h2c\r\nHTTP2-Settings: x\r\n${auth}Transfer-Encoding: chunked\r\n\r\n`
        + `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
    )
    await connection.answers(1)
    const answers = await connection.write(NEXT).answers(2)
    assert.deepStrictEqual(
      answers.map(({ status }) => status),
      [400, 200]
    )
    assert.include(answers[0]!.text, "events")
  })

  it("is asked for its body where it waits for that, and not where it is refused", async () => {
    const head = (key: string) =>
      `POST /v1/events/batch HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n`
      + "Content-Type: application/json\r\nExpect: 100-continue\r\n"
      + `Content-Length: ${body.length}\r\n\r\n`
    const waiting = await RawConnection.open(api.port)
    assert.strictEqual((await waiting.write(head(WRITE_KEY)).answers(1))[0]!.status, 100)
    const both = await waiting.write(body + NEXT).answers(3)
    assert.deepStrictEqual(
      both.map(({ status }) => status),
      [100, 400, 200]
    )
    const refused = await exchanged(api.port, head(READ_KEY))
    assert.deepStrictEqual(
      refused.map(({ status }) => status),
      [403]
    )
    assert.strictEqual(refused[0]!.headers["connection"], "close")
  })
})

describe("an answer before the body was read", () => {
  let api: TestApi
  beforeAll(async () => {
    api = await TestApi.start()
  })
  afterAll(() => api.stop())

  const chunked = (bytes: number): string => {
    const chunk = `${(16_384).toString(16)}\r\n${" ".repeat(16_384)}\r\n`
    return `${chunk.repeat(Math.ceil(bytes / 16_384))}0\r\n\r\n`
  }
  const sized = (bytes: number): string => " ".repeat(bytes)
  const request = (path: string, headers: string, bytes: number, isChunked: boolean): string =>
    `POST ${path} HTTP/1.1\r\nHost: a\r\n${headers}`
    + (isChunked
      ? `Transfer-Encoding: chunked\r\n\r\n${chunked(bytes)}`
      : `Content-Length: ${bytes}\r\n\r\n${sized(bytes)}`)

  const json = "Content-Type: application/json\r\n"
  const key = (value: string) => `Authorization: Bearer ${value}\r\n`
  const refusals = [
    ["no key", "/v1/events", json, 401],
    ["the wrong scope", "/v1/events", key(READ_KEY) + json, 403],
    ["no such route", "/v1/nothing", key(WRITE_KEY) + json, 404],
    ["the wrong method", "/v1/verify/events/a", key(WRITE_KEY) + json, 405],
    ["another media type", "/v1/events", `${key(WRITE_KEY)}Content-Type: text/plain\r\n`, 415],
    [
      "an unknown coding",
      "/v1/events",
      `${key(WRITE_KEY)}${json}Content-Encoding: compress\r\n`,
      415
    ],
    ["no Host", "/v1/events", key(WRITE_KEY) + json, 400],
    ["a body over the limit", "/v1/events", key(WRITE_KEY) + json, 413]
  ] as const
  const cases = refusals
    .flatMap(([why, path, headers, status]) =>
      [1_000, 300_000, 3 * MIB].flatMap((bytes) =>
        [true, false].map((isChunked) => ({ why, path, headers, status, bytes, isChunked }))
      )
    )
    .filter(({ bytes, status }) => status !== 413 || bytes > MIB)

  it.each([true, false])(
    "can be read behind a body that was sent whole: chunked %s",
    {
      timeout: 20_000
    },
    async (isChunked) => {
      const headers = `${key(WRITE_KEY)}${json}`
      const socket = connect(api.port, "127.0.0.1").pause()
      const head = await new Promise<string>((resolve, reject) => {
        socket.on("error", reject)
        socket.write(request("/v1/events", headers, 24 * MIB, isChunked), (error) => {
          if (error == null) socket.on("data", (data) => resolve(String(data))).resume()
        })
      })
      socket.destroy()
      assert.match(head, /^HTTP\/1\.1 413 /)
    }
  )

  it.each(cases)(
    "tells the truth about the connection: $why, $bytes bytes, chunked $isChunked",
    async ({ bytes, headers, isChunked, path, status, why }) => {
      const whole = request(path, headers, bytes, isChunked)
      const sent = why === "no Host" ? whole.replace("Host: a\r\n", "") : whole
      const connection = await RawConnection.open(api.port)
      // As a pool would send it: the next request only when this one is answered.
      const [refusal] = await connection.write(sent).answers(1)
      assertError(refusal!, status)
      if (refusal!.headers["connection"] === "close") {
        await connection.ended
        assert.strictEqual(answersIn(connection.bytes).length, 1)
      } else {
        const [, next] = await connection.write(NEXT).answers(2)
        assert.strictEqual(next?.status, 200, "said keep-alive, and was none")
      }
    }
  )

  it.each([1_000, 3 * MIB])("never takes a body for the next request: %d", async (bytes) => {
    const smuggled = "GET /v1/chain HTTP/1.1\r\nHost: a\r\n\r\n"
    const head = `POST /v1/events HTTP/1.1\r\nHost: a\r\n${json}Content-Length: ${bytes}\r\n\r\n`
    const body = smuggled.repeat(Math.ceil(bytes / smuggled.length)).slice(0, bytes)
    const connection = await RawConnection.open(api.port)
    connection.write(head + body + NEXT)
    await connection.ended
    const statuses = answersIn(connection.bytes).map(({ status }) => status)
    assert.oneOf(JSON.stringify(statuses), ["[401]", "[401,200]"])
  })
})

describe("bytes that are no request behind one that is", () => {
  it("never overtake its answer, nor get into a stream", async () => {
    const api = await TestApi.start()
    const { world } = api
    world.undecided = true
    const event = JSON.stringify({
      actor: { id: "u", type: "human" },
      action: "a.b",
      resource: { id: "r", type: "t" },
      outcome: "success"
    })
    const connection = await RawConnection.open(api.port)
    connection.write(
      `POST /v1/events?sync=true HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${WRITE_KEY}\r\n`
        + `Content-Type: application/json\r\nContent-Length: ${event.length}\r\n\r\n`
        + `${event}garbage\r\n\r\n`
    )
    world.decide(await world.firstCommand())
    await connection.ended
    const [answer, refusal, ...more] = answersIn(connection.bytes)
    assert.strictEqual(answer?.status, 201, connection.bytes)
    assertError(refusal!, 400)
    assert.strictEqual(more.length, 0)
    const messages = await Effect.runPromise(Queue.unbounded<Uint8Array>())
    world.sse = Stream.fromQueue(messages)
    Queue.offerUnsafe(messages, Buffer.from("retry: 3000\n"))
    const stream = await RawConnection.open(api.port)
    stream.write(
      `GET /v1/events/stream HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${READ_KEY}\r\n\r\n`
    )
    const holds = (text: string) =>
      eventuallyAsync(
        `the stream holds ${text}`,
        () => stream.bytes,
        (bytes) => bytes.includes(text)
      )
    await holds("retry")
    stream.write("garbage\r\n\r\n")
    // Sent later and answered, so the garbage has been read.
    await exchanged(api.port, NEXT)
    Queue.offerUnsafe(messages, Buffer.from("id: 1\n\n"))
    await holds("id: 1")
    assert.strictEqual(stream.bytes.split("HTTP/1.1 ").length, 2, stream.bytes)
    stream.socket.destroy()
    await stream.ended
    await api.stop()
  })
})
