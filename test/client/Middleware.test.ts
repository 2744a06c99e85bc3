/**
 * Middleware on doubles of the frameworks' shapes, over node:http where there is one. The frameworks
 * themselves are in Middleware.integration.ts.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { assert, describe, it, vi } from "vitest"
import type { EventInput } from "../../src/client/index.ts"
import * as express from "../../src/client/middleware/Express.ts"
import { audited } from "../../src/client/middleware/Next.ts"
import { logRequest } from "../../src/client/RequestEvent.ts"
import { eventuallyAsync } from "../support/Eventually.ts"

const makeLog = () => {
  const events: Array<EventInput> = []
  let flushes = 0
  return {
    events,
    flushes: () => flushes,
    client: {
      log: (event: EventInput) => {
        events.push(event)
        return "id"
      },
      flush: async () => {
        flushes += 1
      }
    }
  }
}

const actor = { id: "ada", type: "human" } as const
const handled = { method: "POST", path: "/docs/1", status: 201, durationMs: 3.4 }

describe("the event of a request", () => {
  it("says who did what to what, how it ended, and nothing of the query", () => {
    const { client, events } = makeLog()
    logRequest(client, { actor: () => actor }, {}, handled)
    assert.deepStrictEqual(events, [
      {
        actor,
        action: "http.post",
        resource: { id: "/docs/1", type: "path" },
        outcome: "success",
        metadata: { http: { method: "POST", status: 201, duration_ms: 3 } }
      }
    ])
  })

  it("is a failure where it was refused, an error where it went wrong", () => {
    const { client, events } = makeLog()
    for (const status of [200, 302, 401, 499, 500]) {
      logRequest(client, { actor: () => actor }, {}, { ...handled, status })
    }
    assert.deepStrictEqual(
      events.map(({ outcome }) => outcome),
      ["success", "success", "failure", "failure", "error"]
    )
  })

  it("is what the caller says, or none", () => {
    const { client, events } = makeLog()
    const options = {
      actor: ({ user }: { readonly user: string }) =>
        user === "" ? undefined : ({ id: user, type: "human" } as const),
      action: () => "document.created",
      resource: () => ({ id: "1", type: "document" }),
      metadata: () => ({ ip: "192.0.2.7" })
    }
    logRequest(client, options, { user: "" }, handled)
    logRequest(client, options, { user: "bob" }, handled)
    assert.strictEqual(events.length, 1)
    assert.deepInclude(events[0], { action: "document.created" })
    assert.strictEqual(events[0]?.metadata?.["ip"], "192.0.2.7")
  })

  it("that can't be made says so, and breaks nothing", () => {
    const { client, events } = makeLog()
    const spy = vi.spyOn(console, "error").mockImplementation(() => {})
    try {
      const actorOf = () => {
        throw new Error("no session")
      }
      logRequest(client, { actor: actorOf }, {}, handled)
      assert.strictEqual(spy.mock.calls[0]?.[0], "alk: POST /docs/1 is not recorded")
      assert.deepStrictEqual(events, [])
    } finally {
      spy.mockRestore()
    }
  })
})

describe("the middleware of Express", () => {
  it("logs each request once, also one whose client went away", async () => {
    const { client, events } = makeLog()
    const use = express.audit(client, { actor: () => actor })
    const server = createServer((request: IncomingMessage, response: ServerResponse) => {
      const { method = "", url: originalUrl = "" } = request
      use({ method, originalUrl }, response, () => {
        if (originalUrl === "/stuck") response.write("a")
        else response.writeHead(404).end("none")
      })
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    try {
      const { port } = server.address() as AddressInfo
      await fetch(`http://127.0.0.1:${port}/a/b?secret=1`).then((answer) => answer.text())
      const controller = new AbortController()
      const stuck = await fetch(`http://127.0.0.1:${port}/stuck`, { signal: controller.signal })
      assert.strictEqual(stuck.status, 200)
      controller.abort()
      await eventuallyAsync(
        "both requests are logged",
        () => events,
        ({ length }) => length === 2
      )
      assert.deepStrictEqual(
        events.map(({ outcome, resource }) => [resource.id, outcome]),
        [
          ["/a/b", "failure"],
          ["/stuck", "failure"]
        ]
      )
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })
})

describe("the wrapper of Next's route handlers", () => {
  it("logs answers and throws, and sends the queue after the answer", async () => {
    const { client, events, flushes } = makeLog()
    const tasks: Array<Promise<void>> = []
    const options = {
      actor: () => actor,
      after: (task: () => Promise<void>) => {
        tasks.push(task())
      }
    }
    const handler = audited(client, options, async (request: Request, id: string) => {
      if (id === "bad") throw new Error("broken")
      return new Response(`${request.method} ${id}`, { status: 201 })
    })
    const request = new Request("http://app.test/api/docs?x=1", { method: "POST" })
    assert.strictEqual(await (await handler(request, "1")).text(), "POST 1")
    const thrown = await handler(request, "bad").catch((error: Error) => error.message)
    assert.strictEqual(thrown, "broken")
    await Promise.all(tasks)
    assert.strictEqual(flushes(), 2)
    assert.deepStrictEqual(
      events.map(({ outcome, resource }) => [resource.id, outcome]),
      [
        ["/api/docs", "success"],
        ["/api/docs", "error"]
      ]
    )
  })
})
