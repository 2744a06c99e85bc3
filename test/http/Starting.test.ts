/**
 * The first moments of a server and its last: whoever connects is answered, before the routes are
 * there and when they have gone.
 */
import type { Server, ServerResponse } from "node:http"
import { Layer } from "effect"
import { afterEach, assert, describe, it } from "vitest"
import { makeNodeServer } from "../../src/http/server/NodeServer.ts"
import { CurrentServerTimes, SERVER_TIMES } from "../../src/http/server/ServerTimes.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { World, WRITE_KEY } from "./support/Doubles.ts"
import { item } from "./support/Events.ts"
import { probedStarts, servers, startWorker } from "./support/ProbedStarts.ts"
import { answersIn, RawConnection } from "./support/RawHttp.ts"
import { TestApi } from "./support/TestApi.ts"

/** Milliseconds that the answers in flight of these servers have. */
const GRACE_MS = 60_000
/** Milliseconds that their idle connections stay open, so that a slow client is in time. */
const IDLE_GRACE_MS = 2_000
const GET = "GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n"

describe("a server that starts", () => {
  it.each(servers)(
    "answers every request of a probe that connects all the time: %s",
    async (_, start) => {
      const probe = await probedStarts(start)
      probe.assertAllAnswered()
    }
  )
})

describe("a server without routes", () => {
  const open: Array<Server> = []
  afterEach(async () => {
    for (const server of open.splice(0)) {
      await new Promise<void>((resolve) => void server.close(() => resolve()))
    }
  })
  const listening = async () => {
    const server = makeNodeServer(["https://a.example"], GRACE_MS, {
      ...SERVER_TIMES,
      idleGraceMs: IDLE_GRACE_MS
    })
    open.push(server)
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve))
    return { server, port: (server.address() as { port: number }).port }
  }

  it("says that it starts, and goes on with the same connections once they are there", async () => {
    const { port, server } = await listening()
    const connection = await RawConnection.open(port)
    const post =
      "POST /v1/events/batch HTTP/1.1\r\nHost: a\r\nOrigin: https://a.example\r\n"
      + "X-Request-Id: early\r\nContent-Length: 10\r\n\r\n0123456789"
    const health = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
    const early = await connection.write(GET + post + health).answers(3)
    assert.deepStrictEqual(
      early.map(({ status }) => status),
      [503, 503, 200]
    )
    const [readyz, batch, healthz] = early
    assert.strictEqual(readyz!.body.error.code, "unavailable")
    assert.strictEqual(readyz!.headers["retry-after"], "1")
    assert.strictEqual(batch!.body.code, "unavailable")
    assert.strictEqual(batch!.body.request_id, "early")
    assert.strictEqual(batch!.headers["access-control-allow-origin"], "https://a.example")
    assert.deepStrictEqual(healthz!.body, { status: "starting" })
    server.on("request", (_, response) => response.end("routes"))
    const later = await connection.write(GET).answers(4)
    assert.strictEqual(later.at(-1)?.text, "routes")
    connection.socket.destroy()
  })

  it("does not ask for a body that it will not read", async () => {
    const { port } = await listening()
    const connection = await RawConnection.open(port)
    connection.write(
      "POST /v1/events HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"
    )
    const [answer] = await connection.answers(1)
    assert.deepStrictEqual([answer!.status, answer!.headers["connection"]], [503, "close"])
    await connection.ended
  })

  it("answers what comes on open connections while it stops, and says that they end", async () => {
    const { port, server } = await listening()
    open.splice(0)
    const routes = (_: unknown, response: ServerResponse) => void response.end("routes")
    server.on("request", routes)
    const pooled = await RawConnection.open(port)
    await pooled.write(GET).answers(1)
    const unused = await RawConnection.open(port)
    const idle = await RawConnection.open(port)
    await idle.write(GET).answers(1)
    const closed = new Promise<void>((resolve) => void server.close(() => resolve()))
    server.off("request", routes)
    await eventuallyAsync(
      "the port is closed",
      () => server.listening,
      (isListening) => !isListening
    )
    const answers = await pooled
      .write("POST /v1/events HTTP/1.1\r\nHost: a\r\n" + "Content-Length: 4\r\n\r\nbody")
      .answers(2)
    assert.strictEqual(answers[1]!.status, 503)
    assert.include(answers[1]!.body.error.message, "stopping")
    assert.strictEqual(answers[1]!.headers["connection"], "close")
    for (const one of [pooled, idle, unused]) assert.strictEqual(await one.ended, "end")
    await closed
  })
})

describe("a server that stops", () => {
  it("answers what it can't finish with an error body, and cuts what never comes", async () => {
    assert.strictEqual(SERVER_TIMES.shutdownMs, 10_000)
    const times = Layer.succeed(CurrentServerTimes, { ...SERVER_TIMES, shutdownMs: 200 })
    const api = await TestApi.start({}, new World(), times)
    const { world } = api
    world.stuck = true
    const reply = api.call("/readyz")
    await eventuallyAsync("the request is with its route", () => world.asked)
    const half = await RawConnection.open(api.port)
    half.write("GET /v1/events HTTP/1.1\r\nHost:")
    const stopped = api.stop()
    const answer = await reply
    assert.strictEqual(answer.status, 503)
    assert.strictEqual(answer.body.error.code, "unavailable")
    assert.strictEqual(answer.headers["retry-after"], "1")
    assert.strictEqual(answer.headers["connection"], "close")
    assert.strictEqual(answer.headers["x-request-id"], answer.body.error.request_id)
    await stopped
    await half.ended
    // Its head, late in arriving, would have been refused with an answer.
    assert.strictEqual(half.bytes, "")
  })

  it("answers on connections of a pool for a moment, each time with the end of it", async () => {
    assert.strictEqual(SERVER_TIMES.idleGraceMs, 500)
    const times = Layer.succeed(CurrentServerTimes, { ...SERVER_TIMES, idleGraceMs: IDLE_GRACE_MS })
    const api = await TestApi.start({}, new World(), times)
    const { world } = api
    const pooled = await Promise.all(Array.from({ length: 8 }, () => RawConnection.open(api.port)))
    await Promise.all(pooled.map((one) => one.write(GET).answers(1)))
    world.undecided = true
    const reply = api.call("/v1/events?sync=true", { key: WRITE_KEY, json: item(1) })
    const command = await world.firstCommand()
    const stopped = api.stop()
    // As soon as it stops, and before idle connections are closed.
    const answers = await Promise.all(pooled.map((one) => one.write(GET).answers(2)))
    for (const [, second] of answers) {
      assert.isDefined(second)
      if (second!.headers["connection"] !== "close") continue
      assert.deepStrictEqual([second!.status, second!.body.status], [503, "stopping"])
      assert.strictEqual(second!.headers["retry-after"], "1")
    }
    world.decide(command)
    assert.strictEqual((await reply).status, 201)
    for (const one of pooled) assert.strictEqual(await one.ended, "end")
    assert.isTrue(pooled.every(({ bytes }) => answersIn(bytes).length === 2))
    await stopped
  })
})

describe("a process without the API", () => {
  it("has an error body for what it does not serve, and names every answer", async () => {
    const worker = await startWorker(0)
    const connection = await RawConnection.open(worker.port)
    const head = "HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine\r\n\r\n"
    const answers = await connection
      .write(`GET /v1/events ${head}POST /healthz ${head}GET /healthz ${head}`)
      .answers(3)
    assert.deepStrictEqual(
      answers.map(({ status }) => status),
      [404, 404, 200]
    )
    assert.deepStrictEqual(
      answers.map(({ headers }) => headers["x-request-id"]),
      ["mine", "mine", "mine"]
    )
    assert.strictEqual(answers[0]!.body.error.code, "not_found")
    assert.strictEqual(answers[0]!.body.error.request_id, "mine")
    connection.socket.destroy()
    await worker.stop()
  })
})
