/**
 * The first moments of a server and its last: whoever connects is answered, before the routes are
 * there and when they have gone.
 */
import type { Server, ServerResponse } from "node:http"
import { setTimeout as sleep } from "node:timers/promises"
import { Context, Effect, Exit, Layer, Scope } from "effect"
import { HttpServer } from "effect/http"
import { afterEach, assert, describe, it } from "vitest"
import { layerWorkerServer } from "../../src/http/operations/WorkerServer.ts"
import { makeNodeServer } from "../../src/http/server/NodeServer.ts"
import { freePort } from "../support/FreePort.ts"
import { StartProbe } from "../support/StartProbe.ts"
import { WRITE_KEY } from "./support/Doubles.ts"
import { item } from "./support/Events.ts"
import { answersIn, RawConnection } from "./support/RawHttp.ts"
import { TestApi } from "./support/TestApi.ts"

const STARTS = 20
/** Milliseconds that the answers in flight of these servers have. */
const GRACE_MS = 2_000
const GET = "GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n"

const workerOn = async (port: number) => {
  const scope = await Effect.runPromise(Scope.make())
  const layer = layerWorkerServer({ host: "127.0.0.1", port, working: Effect.succeed({ api: [] }) })
  const built = await Effect.runPromise(Layer.buildWithScope(layer, scope))
  const { address } = Context.get(built, HttpServer.HttpServer)
  return { address, stop: () => Effect.runPromise(Scope.close(scope, Exit.void)) }
}

describe("a server that starts", () => {
  it("answers every request of a probe that connects all the time", async () => {
    const port = await freePort()
    const probe = StartProbe.begin(port)
    for (let n = 0; n < STARTS; n++) {
      const api = await TestApi.start({ port })
      await probe.until((count) => count >= 3)
      await api.stop()
      probe.begin()
    }
    await probe.end()
    probe.assertAllAnswered()
  })

  it("answers every such request without the API too", async () => {
    const port = await freePort()
    const probe = StartProbe.begin(port)
    for (let n = 0; n < STARTS; n++) {
      const worker = await workerOn(port)
      await probe.until((count) => count >= 3)
      await worker.stop()
      probe.begin()
    }
    await probe.end()
    probe.assertAllAnswered()
  })
})

describe("a server without routes", () => {
  const servers: Array<Server> = []
  afterEach(async () => {
    for (const server of servers.splice(0)) {
      await new Promise<void>((resolve) => void server.close(() => resolve()))
    }
  })
  const listening = async () => {
    const server = makeNodeServer(["https://a.example"], GRACE_MS)
    servers.push(server)
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
    servers.splice(0)
    const routes = (_: unknown, response: ServerResponse) => void response.end("routes")
    server.on("request", routes)
    const pooled = await RawConnection.open(port)
    await pooled.write(GET).answers(1)
    const unused = await RawConnection.open(port)
    const idle = await RawConnection.open(port)
    await idle.write(GET).answers(1)
    const closed = new Promise<void>((resolve) => void server.close(() => resolve()))
    server.off("request", routes)
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
    const api = await TestApi.start()
    const { world } = api
    world.stuck = true
    const reply = api.call("/readyz")
    while (world.asked === 0) await sleep(5)
    const half = await RawConnection.open(api.port)
    half.write("GET /v1/events HTTP/1.1\r\nHost:")
    const startedAt = performance.now()
    const stopped = api.stop()
    const answer = await reply
    assert.strictEqual(answer.status, 503)
    assert.strictEqual(answer.body.error.code, "unavailable")
    assert.strictEqual(answer.headers["retry-after"], "1")
    assert.strictEqual(answer.headers["connection"], "close")
    assert.strictEqual(answer.headers["x-request-id"], answer.body.error.request_id)
    await stopped
    assert.isBelow(performance.now() - startedAt, 30_000)
    await half.ended
  })

  it("answers on connections of a pool for a moment, each time with the end of it", async () => {
    const api = await TestApi.start()
    const { world } = api
    const pooled = await Promise.all(Array.from({ length: 8 }, () => RawConnection.open(api.port)))
    await Promise.all(pooled.map((one) => one.write(GET).answers(1)))
    world.undecided = true
    const reply = api.call("/v1/events?sync=true", { key: WRITE_KEY, json: item(1) })
    while (world.commands.length === 0) await sleep(5)
    const stopped = api.stop()
    // As soon as it stops, and before idle connections are closed.
    const answers = await Promise.all(pooled.map((one) => one.write(GET).answers(2)))
    for (const [, second] of answers) {
      assert.isDefined(second)
      if (second!.headers["connection"] !== "close") continue
      assert.deepStrictEqual([second!.status, second!.body.status], [503, "stopping"])
      assert.strictEqual(second!.headers["retry-after"], "1")
    }
    world.decide(world.commands[0]!)
    assert.strictEqual((await reply).status, 201)
    for (const one of pooled) assert.strictEqual(await one.ended, "end")
    assert.isTrue(pooled.every(({ bytes }) => answersIn(bytes).length === 2))
    await stopped
  })
})

describe("a process without the API", () => {
  it("has an error body for what it does not serve, and names every answer", async () => {
    const port = await freePort()
    const worker = await workerOn(port)
    const connection = await RawConnection.open(port)
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
