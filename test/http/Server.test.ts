/**
 * The server itself: what it does with requests that are none, and how it goes down.
 */
import { connect } from "node:net"
import { afterEach, assert, describe, it } from "vitest"
import { eventuallyAsync } from "../support/Eventually.ts"
import { WRITE_KEY } from "./support/Doubles.ts"
import { item } from "./support/Events.ts"
import { portIsClosed } from "./support/RawHttp.ts"
import { TestApi } from "./support/TestApi.ts"

/** Everything that comes back for some raw bytes, until the connection ends. */
const exchange = (port: number, sent: string, answered: () => void = () => {}): Promise<string> =>
  new Promise((resolve, reject) => {
    let text = ""
    const socket = connect(port, "127.0.0.1", () => socket.write(sent))
    socket.on("data", (data) => {
      text += data.toString()
      answered()
    })
    socket.on("close", () => resolve(text))
    socket.on("error", reject)
  })

describe("the server", () => {
  let api: TestApi | undefined
  afterEach(async () => {
    await api?.stop()
    api = undefined
  })

  it("answers what is no HTTP with an error body", async () => {
    api = await TestApi.start()
    const answer = await exchange(api.port, "hello\r\n\r\n")
    assert.match(answer, /^HTTP\/1\.1 400 /)
    assert.include(answer, '"code":"invalid_request"')
  })

  it("answers headers over its limit with an error body", async () => {
    api = await TestApi.start()
    const answer = await exchange(
      api.port,
      `GET / HTTP/1.1\r\nHost: a\r\nX-Long: ${"x".repeat(40_000)}\r\n\r\n`
    )
    assert.match(answer, /^HTTP\/1\.1 431 /)
    assert.include(answer, "over 32768 bytes")
  })

  it("lets go of a request whose client has gone, and logs it as that", async () => {
    api = await TestApi.start()
    const { logs, world } = api
    world.undecided = true
    const request = api.sending("/v1/events?sync=true", { key: WRITE_KEY, json: item(1) })
    await world.firstCommand()
    request.destroy()
    await eventuallyAsync(
      "the request is in the log",
      () => logs,
      ({ length }) => length > 0
    )
    assert.deepStrictEqual(
      logs.map(({ annotations, level }) => [level, annotations["status"]]),
      [["Info", 499]]
    )
    assert.strictEqual(world.decisions.size, 0)
  })

  it("says where it listens", async () => {
    api = await TestApi.start()
    assert.strictEqual(api.url, `http://127.0.0.1:${api.port}`)
    const everywhere = await TestApi.start({ host: "0.0.0.0" })
    assert.strictEqual(everywhere.url, `http://127.0.0.1:${everywhere.port}`)
    await everywhere.stop()
  })

  it("fails to start on a port that is taken", async () => {
    api = await TestApi.start()
    const failure = await TestApi.start({ port: api.port }).then(
      () => undefined,
      (error: unknown) => error
    )
    assert.match(String(failure), /ServeError|EADDRINUSE/)
  })

  it("lets a reply in flight finish, takes no new ones, and closes idle connections", async () => {
    const running = await TestApi.start()
    const { world } = running
    world.undecided = true
    const event = item(1, { id: "a" })
    const reply = running.call("/v1/events?sync=true", { key: WRITE_KEY, json: event })
    const command = await world.firstCommand()
    let idle: Promise<string> = Promise.resolve("")
    await new Promise<void>((answered) => {
      idle = exchange(running.port, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n", answered)
    })
    const stopped = running.stop()
    await portIsClosed(running.port)
    world.decide(command)
    const answer = await reply
    assert.strictEqual(answer.status, 201, answer.text)
    assert.match(await idle, /^HTTP\/1\.1 200 /)
    await stopped
  })

  it("ends the connection of a reply that it gives on the way down", async () => {
    const running = await TestApi.start()
    const { world } = running
    world.undecided = true
    const body = JSON.stringify(item(1, { id: "a" }))
    const reply = exchange(
      running.port,
      `POST /v1/events?sync=true HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${WRITE_KEY}\r\n`
        + "Content-Type: application/json\r\n"
        + `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
    )
    const command = await world.firstCommand()
    const stopped = running.stop()
    await portIsClosed(running.port)
    world.decide(command)
    assert.match((await reply).toLowerCase(), /^http\/1\.1 201 [\s\S]*\r\nconnection: close\r\n/)
    await stopped
  })
})
