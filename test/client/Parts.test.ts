/** The small parts of the client: ids, waits, texts, options, failures, requests, what is said aloud. */
import fc from "fast-check"
import { assert, describe, it, vi } from "vitest"
import { newId } from "../../src/client/Ids.ts"
import { ApiFailure, catalogue, createClient } from "../../src/client/index.ts"
import { utf8Length } from "../../src/client/JsonText.ts"
import { Reports } from "../../src/client/queue/Reports.ts"
import { queryText } from "../../src/client/Request.ts"
import { retryAfterMs, waitMs } from "../../src/client/RetryAfter.ts"
import { runs } from "../support/Runs.ts"
import { JumpingClock } from "./FakeService.ts"

const connection = { url: "http://service.test/base/", key: "k" }

const clientOf = (answers: ReadonlyArray<Response | Error>) => {
  const asked: Array<{ readonly address: string; readonly init: RequestInit }> = []
  let rest = answers
  const client = createClient({
    ...connection,
    fetch: async (address, init) => {
      asked.push({ address: String(address), init: init! })
      const [answer, ...others] = rest
      rest = others
      if (answer instanceof Error) throw answer
      return answer!
    }
  })
  return { asked, client }
}

const json = (status: number, body: unknown, headers: Record<string, string> = {}): Response =>
  new Response(JSON.stringify(body), {
    status,
    headers: { "content-type": "application/json", ...headers }
  })

const failureOf = async (promise: Promise<unknown>): Promise<ApiFailure> => {
  const error = await promise.then(
    () => undefined,
    (caught: unknown) => caught
  )
  assert.instanceOf(error, ApiFailure)
  return error as ApiFailure
}

describe("ids", () => {
  it("are UUIDv7, different, and in the order in which they were made", () => {
    const now = Date.now()
    const ids = Array.from({ length: 10_000 }, (_, index) => newId(now + Math.floor(index / 6_000)))
    assert.deepStrictEqual(ids, ids.toSorted())
    assert.strictEqual(new Set(ids).size, ids.length)
    for (const id of ids) {
      assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    }
  })

  it("go on in order when the clock is set back", () => {
    const later = newId(Date.now() + 60_000)
    assert.isAbove(newId().localeCompare(later), 0)
  })
})

describe("waits", () => {
  it("grow with the attempts, up to ten seconds, and never undercut what was asked for", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1_000 }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        fc.integer({ min: 0, max: 100_000 }),
        (attempts, random, asked) => {
          const own = waitMs(attempts, () => random)
          assert.isAtLeast(own, 100)
          assert.isAtMost(own, 10_000)
          assert.closeTo(
            waitMs(attempts, () => random, asked),
            asked + own,
            0.001
          )
        }
      ),
      { numRuns: runs(200) }
    )
  })

  it("are read from Retry-After as seconds or as a date, ten minutes at most", () => {
    const now = Date.parse("2026-11-24T12:00:00Z")
    const cases: ReadonlyArray<readonly [string | null, number | undefined]> = [
      [null, undefined],
      ["", undefined],
      ["soon", undefined],
      ["0", 0],
      ["7", 7_000],
      ["Tue, 24 Nov 2026 12:00:05 GMT", 5_000],
      ["Tue, 24 Nov 2026 11:00:00 GMT", 0],
      ["99999999", 600_000]
    ]
    for (const [header, ms] of cases) assert.strictEqual(retryAfterMs(header, now), ms)
  })
})

describe("texts", () => {
  it("are as long as the encoder makes them", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        assert.strictEqual(utf8Length(text), new TextEncoder().encode(text).length)
      }),
      { numRuns: runs(500) }
    )
  })

  it("of a query repeat the name of several values, and leave out what is undefined", () => {
    assert.strictEqual(queryText({}), "")
    assert.strictEqual(
      queryText({ action: ["a.b", "c d"], page: 2, "outcome!": "failure", q: undefined }),
      "?action=a.b&action=c+d&page=2&outcome%21=failure"
    )
  })
})

describe("options", () => {
  it("that are missing or wrong are named, with what to do", () => {
    const wrong: ReadonlyArray<readonly [object, RegExp]> = [
      [{ key: "k" }, /^url: required; give the address of the service, or set ALK_URL/],
      [{ url: "localhost:8080", key: "k" }, /^url: must begin with http/],
      [{ url: "http://a" }, /^key: required; give an API key, or set ALK_API_KEY/],
      [{ ...connection, key: "k " }, /^key: must be visible ASCII/],
      [{ ...connection, batchItems: 1_001 }, /^batchItems: must be an integer from 1 to 1000/],
      [{ ...connection, overflow: "block" }, /^overflow: must be "drop-newest" or "throw"/]
    ]
    for (const [options, message] of wrong) {
      assert.throws(() => createClient(options), TypeError, message)
    }
  })

  it("come from the environment where they are not given", async () => {
    vi.stubEnv("ALK_URL", "http://elsewhere.test")
    vi.stubEnv("ALK_API_KEY", "of-the-environment")
    try {
      let asked: string | undefined
      const client = createClient({
        fetch: async (address, init) => {
          asked = `${address} ${(init!.headers as Record<string, string>)["authorization"]}`
          return json(200, {})
        }
      })
      await client.request("GET /v1/me")
      assert.strictEqual(asked, "http://elsewhere.test/v1/me Bearer of-the-environment")
    } finally {
      vi.unstubAllEnvs()
    }
  })

  it("of a catalogue have names that the service takes", () => {
    for (const name of ["login", "alk.event.erased", "a..b", "ä.b", `a.${"b".repeat(127)}`]) {
      assert.throws(() => catalogue({ [name]: {} }), TypeError, /is no name of an action/)
    }
    assert.deepStrictEqual(catalogue({ "user.login": {} }), { "user.login": {} })
  })
})

describe("requests", () => {
  it("carry key, path and query, and give the parsed answer", async () => {
    const { asked, client } = clientOf([
      json(200, { id: "a/b" }),
      new Response(null, { status: 204 })
    ])
    const event = await client.request("GET /v1/events/{id}", {
      path: { id: "a/b" },
      query: { sequence_number: 3 }
    })
    assert.strictEqual(event.id, "a/b")
    assert.strictEqual(
      asked[0]?.address,
      "http://service.test/base/v1/events/a%2Fb?sequence_number=3"
    )
    assert.deepInclude(asked[0]?.init.headers, { authorization: "Bearer k" })
    assert.strictEqual(asked[0]?.init.redirect, "error")
    assert.isUndefined(await client.request("DELETE /v1/exports/{id}", { path: { id: "x" } }))
  })

  it("say what was refused in both forms of the service, and in the words of a proxy", async () => {
    const { client } = clientOf([
      json(400, {
        error: {
          code: "invalid_request",
          message: "page: must be",
          field: "page",
          request_id: "r1"
        }
      }),
      json(409, { error: "id: taken", code: "id_conflict", field: "id", request_id: "r2" }),
      new Response("<h1>no</h1>", { status: 404, headers: { "x-request-id": "r3" } })
    ])
    const facts = []
    for (let count = 0; count < 3; count++) {
      const { code, field, requestId, status } = await failureOf(client.request("GET /v1/events"))
      facts.push([status, code, field, requestId])
    }
    assert.deepStrictEqual(facts, [
      [400, "invalid_request", "page", "r1"],
      [409, "id_conflict", "id", "r2"],
      [404, "unexpected", undefined, "r3"]
    ])
  })

  it("are repeated where that is safe, and nowhere else", async () => {
    const busy = () => json(503, { error: { code: "unavailable", message: "later" } })
    const reading = clientOf([busy(), new TypeError("fetch failed"), json(200, { tenant_id: "t" })])
    assert.strictEqual((await reading.client.request("GET /v1/me")).tenant_id, "t")
    assert.strictEqual(reading.asked.length, 3)
    const writing = clientOf([busy()])
    const failure = await failureOf(
      writing.client.request("POST /v1/share/links", { body: {} as never })
    )
    assert.isTrue(failure.isTransient)
    const keyed = clientOf([busy(), json(200, {})])
    await keyed.client.request("POST /v1/events/{id}/erase", {
      path: { id: "a" },
      body: { reason: "r" },
      headers: { "Idempotency-Key": "once" }
    })
    assert.strictEqual(keyed.asked.length, 2)
  })

  it("end with their signal, by its reason", async () => {
    const reason = new Error("enough")
    const client = createClient({
      ...connection,
      fetch: (_, init) =>
        new Promise((__, reject) => {
          init!.signal!.addEventListener("abort", () => reject(init!.signal!.reason))
        })
    })
    const controller = new AbortController()
    const answer = client.request("GET /v1/me", { signal: controller.signal })
    setTimeout(() => controller.abort(reason), 1)
    assert.strictEqual(await answer.catch((error) => error), reason)
    const late = await failureOf(client.request("GET /v1/me", { timeoutMs: 1, attempts: 1 }))
    assert.strictEqual(late.code, "timed_out")
  })
})

describe("record", () => {
  const event = {
    actor: { id: "ada", type: "human" },
    action: "document.read",
    resource: { id: "doc-1", type: "document" }
  } as const

  it("is repeated with the same body until the event is in the chain", async () => {
    const stored = { id: "e", sequence_number: 7, hash: "h" }
    const { asked, client } = clientOf([
      new TypeError("fetch failed"),
      json(503, { error: { code: "unavailable", message: "later" } }),
      json(201, stored)
    ])
    const { event: recorded, sequence_number } = await client.record(event)
    assert.deepStrictEqual([sequence_number, recorded as unknown], [7, stored])
    const bodies = new Set(asked.map(({ init }) => init.body))
    assert.strictEqual(bodies.size, 1)
    assert.strictEqual(asked.length, 3)
  })

  it("asks the receipt where the commit takes long", async () => {
    const { client } = clientOf([
      json(202, { receipt_id: "rcp_1", status: "pending", id: "e" }),
      json(200, { receipt_id: "rcp_1", status: "pending" }),
      json(200, { receipt_id: "rcp_1", status: "committed", first_sequence_number: 9 })
    ])
    const recorded = await client.record({ ...event, id: "e" })
    assert.deepStrictEqual(recorded, { id: "e", sequence_number: 9, event: undefined })
  })

  it("rejects what the service refuses", async () => {
    const { client } = clientOf([
      json(409, { error: { code: "id_conflict", message: "id: taken", field: "id" } })
    ])
    assert.strictEqual((await failureOf(client.record({ ...event, id: "e" }))).code, "id_conflict")
  })
})

describe("reports", () => {
  it("are loud by default, but no flood", () => {
    const lines: Array<string> = []
    const spies = [
      vi.spyOn(console, "error").mockImplementation((line) => lines.push(line)),
      vi.spyOn(console, "warn").mockImplementation((line) => lines.push(line))
    ]
    try {
      const clock = new JumpingClock()
      const reports = new Reports({}, clock)
      const rejection = { code: "missing_field", message: "actor: required", item: {} }
      for (let count = 0; count < 5; count++) reports.rejected({ id: `e${count}`, ...rejection })
      void clock.wait(2_000)
      reports.rejected({ id: "e5", ...rejection })
      for (const id of ["e6", "e7"]) reports.unknownField(id, "colour")
      const failure = new ApiFailure(0, "unreachable", "no service")
      for (let count = 0; count < 3; count++) {
        reports.delayed({ kind: "delayed", failure, waiting: 4, forMs: 11_000 })
      }
      assert.deepStrictEqual(lines, [
        "alk: e0 is not stored: missing_field, actor: required",
        "alk: e5 is not stored: missing_field, actor: required (and 4 more since the last line)",
        "alk: colour: not stored, events have no such field; put it into metadata",
        "alk: 4 waiting, sent again until stored: no service"
      ])
    } finally {
      for (const spy of spies) spy.mockRestore()
    }
  })

  it("survive a hook that throws", () => {
    const spy = vi.spyOn(console, "error").mockImplementation(() => {})
    try {
      const onReject = () => {
        throw new Error("of the hook")
      }
      const reports = new Reports({ onReject }, new JumpingClock())
      reports.rejected({ id: "e", code: "c", message: "m", item: {} })
      assert.strictEqual(spy.mock.calls.length, 1)
    } finally {
      spy.mockRestore()
    }
  })
})
