/** The middleware in the frameworks themselves: each request is recorded once, with who sent it. */
import type { AddressInfo } from "node:net"
import express, { type Request, type Response } from "express"
import fastify, { type FastifyRequest } from "fastify"
import { type Context, Hono } from "hono"
import { assert, describe, it } from "vitest"
import type { EventInput } from "../../src/client/index.ts"
import * as forExpress from "../../src/client/middleware/Express.ts"
import * as forFastify from "../../src/client/middleware/Fastify.ts"
import * as forHono from "../../src/client/middleware/Hono.ts"
import { eventuallyAsync } from "../support/Eventually.ts"

const makeLog = () => {
  const events: Array<EventInput> = []
  const log = (event: EventInput) => {
    events.push(event)
    return "id"
  }
  return { client: { log }, events }
}

const human = (id: string | null | undefined) => ({ id: id ?? "nobody", type: "human" }) as const

/** Path, outcome, status and actor of each event. */
const shapeOf = (events: ReadonlyArray<EventInput>) =>
  events.map(({ actor, metadata, outcome, resource }) => {
    const { status } = (metadata?.["http"] ?? {}) as { readonly status?: number }
    return [resource.id, outcome, status, actor.id]
  })

const expected = [
  ["/documents/1", "success", 200, "ada"],
  ["/none", "failure", 404, "ada"],
  ["/broken", "error", 500, "ada"]
]
const paths = ["/documents/1?token=secret", "/none", "/broken"]
const headers = { "x-user": "ada" }

describe("the middleware", () => {
  it("records requests of Express", async () => {
    const { client, events } = makeLog()
    const app = express()
    const actor = (request: Request) => human(request.get("x-user"))
    app.use(forExpress.audit(client, { actor }))
    app.get("/documents/:id", (_, response) => void response.send("one"))
    app.get("/broken", () => {
      throw new Error("broken")
    })
    app.use((_: unknown, __: unknown, response: Response, ___: unknown) => {
      response.status(500).send("broken")
    })
    const server = app.listen(0, "127.0.0.1")
    await new Promise((resolve) => server.once("listening", resolve))
    const { port } = server.address() as AddressInfo
    for (const path of paths)
      await (await fetch(`http://127.0.0.1:${port}${path}`, { headers })).text()
    await eventuallyAsync(
      "every request is recorded",
      () => events,
      ({ length }) => length >= paths.length
    )
    server.closeAllConnections()
    server.close()
    assert.deepStrictEqual(shapeOf(events), expected)
  })

  it("records requests of Fastify, those of its plugins too", async () => {
    const { client, events } = makeLog()
    const app = fastify()
    const actor = (request: FastifyRequest) => human(request.headers["x-user"]?.toString())
    await app.register(forFastify.audit(client, { actor }))
    await app.register(async (inner) => {
      inner.get("/documents/:id", async () => "one")
    })
    app.get("/broken", async () => {
      throw new Error("broken")
    })
    for (const url of paths) await app.inject({ url, headers })
    await app.close()
    assert.deepStrictEqual(shapeOf(events), expected)
  })

  it("records requests of Hono", async () => {
    const { client, events } = makeLog()
    const app = new Hono()
    const actor = (context: Context) => human(context.req.header("x-user"))
    app.use(forHono.audit(client, { actor }))
    app.get("/documents/:id", (context) => context.text("one"))
    app.get("/broken", () => {
      throw new Error("broken")
    })
    app.onError((_, context) => context.text("broken", 500))
    for (const path of paths) await app.request(path, { headers })
    assert.deepStrictEqual(shapeOf(events), expected)
  })
})
