/**
 * The routes without a key, and what every answer has: request ids, logs, metrics, CORS.
 */
import { readFileSync } from "node:fs"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { consolePages } from "../../src/http/console/ConsolePaths.ts"
import { GUIDE_PATH } from "../../src/http/docs/GuidePaths.ts"
import { opsPaths } from "../../src/http/operations/OpsContract.ts"
import { READ_KEY, WRITE_KEY } from "./support/Doubles.ts"
import { items } from "./support/Events.ts"
import { TestApi } from "./support/TestApi.ts"

describe("without a key", () => {
  let api: TestApi
  beforeAll(async () => {
    api = await TestApi.start()
  })
  afterAll(() => api.stop())

  it("says that it is alive, and whether it is ready", async () => {
    assert.strictEqual((await api.call("/healthz")).status, 200)
    assert.strictEqual((await api.call("/healthz?t=1&t=2&x=")).status, 200)
    assert.strictEqual((await api.call("/readyz?_=1")).status, 200)
    const ready = await api.call("/readyz")
    assert.strictEqual(ready.status, 200)
    assert.strictEqual(ready.body.kafka.bootstrap, "127.0.0.1:9092")
    api.world.ready = false
    const waiting = await api.call("/readyz")
    api.world.ready = true
    assert.deepStrictEqual([waiting.status, waiting.body.status], [503, "not ready"])
    assert.strictEqual(waiting.headers["retry-after"], "1")
    assert.strictEqual((await api.call("/healthz")).status, 200)
  })

  it("answers on every path that needs no key, and leads to them", async () => {
    for (const path of opsPaths) {
      assert.strictEqual((await api.call(path)).status, 200, path)
    }
    const { body } = await api.call("/")
    for (const path of [...opsPaths.slice(1), GUIDE_PATH]) {
      assert.include(Object.values(body), path)
    }
  })

  it("has a reference page that may ask nobody else for anything", async () => {
    const { headers, text } = await api.call("/docs")
    assert.match(String(headers["content-type"]), /^text\/html/)
    const policy = String(headers["content-security-policy"])
    assert.include(policy, "default-src 'none'")
    assert.include(policy, "connect-src 'self'")
    assert.notMatch(policy, /https?:/)
    assert.notMatch(text.slice(0, 2_000), /<(?:script|link|img)[^>]*(?:src|href)=/)
    assert.include(text, "/v1/events/batch")
  })

  it("has a page for browsers at an address that nothing has, and JSON for everybody else", async () => {
    const browser = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" }
    const bare = await TestApi.start({ hasConsole: false })
    for (const path of ["/nonsense", "/v1/nonsense", "/api/v1/nonsense", "/docs/guide/%zz"]) {
      const page = await api.call(path, { headers: browser })
      assert.strictEqual(page.status, 404, path)
      assert.match(String(page.headers["content-type"]), /^text\/html/)
      assert.include(page.headers["content-security-policy"], "default-src 'none'")
      assert.include(page.text, '<div id="app">')
      for (const [target, call] of [
        [api, {}],
        [api, { headers: { accept: "*/*" } }],
        [api, { headers: { accept: "application/json, text/html" } }],
        [api, { headers: browser, method: "POST", json: {} }],
        [bare, { headers: browser }]
      ] as const) {
        const { body, headers, status } = await target.call(path, call)
        assert.include([404, 405], status, path)
        assert.strictEqual(headers["content-type"], "application/json")
        assert.isDefined(body.error)
      }
    }
    const wrongMethod = await api.call("/healthz", { method: "DELETE", headers: browser })
    assert.deepStrictEqual([wrongMethod.status, wrongMethod.headers.allow], [405, "GET, HEAD"])
    await bare.stop()
  })

  it("has the pages of the console for browsers alone", async () => {
    for (const page of consolePages) {
      const path = page.replace(":id", "id_1")
      const shown = await api.call(path, { headers: { accept: "text/html, */*;q=0.8" } })
      assert.strictEqual(shown.status, 200, path)
      assert.match(String(shown.headers["content-type"]), /^text\/html/)
      assert.include(String(shown.headers["vary"]), "Accept")
      for (const accept of [undefined, "*/*", "application/json, text/html"]) {
        const headers = accept === undefined ? {} : { accept }
        const { body, status } = await api.call(path, { headers })
        assert.deepStrictEqual([status, body.error.code], [404, "not_found"], path)
      }
    }
    for (const [path, meant] of [
      ["/health", "/healthz"],
      ["/events", "/v1/events"],
      ["/receipts/id_1", "/v1/receipts/{id}"]
    ] as const) {
      const { body } = await api.call(path)
      assert.include(body.error.message, `did you mean ${meant}?`)
    }
  })

  it("counts requests and items by route, never by tenant", async () => {
    // The counters belong to the process, which has run other tests before.
    const before = (await api.call("/metrics")).text
    await api.call("/v1/events/batch", { key: WRITE_KEY, json: { events: [...items(3), {}] } })
    await api.call("/v1/events/some-id", { key: READ_KEY })
    await api.call("/no/such/route")
    const { headers, text } = await api.call("/metrics")
    assert.match(String(headers["content-type"]), /^text\/plain; version=0\.0\.4/)
    const valueIn = (metrics: string, series: RegExp) =>
      [...metrics.matchAll(new RegExp(`^${series.source} (.*)$`, "gm"))].reduce(
        (sum, [, value]) => sum + Number(value),
        0
      )
    for (const [series, grown] of [
      [/alk_ingest_accepted_items_total/, 3],
      [/alk_ingest_prepared_items_total\{path="fast"\}/, 3],
      [/alk_ingest_prepared_items_total\{path="slow"\}/, 1],
      [/alk_ingest_rejected_items_total\{code="missing_field"\}/, 1],
      [/alk_http_requests_total\{method="GET",route="\/v1\/events\/:id",status="404"\}/, 1],
      [/alk_http_requests_total\{[^}]*route="unknown",status="404"\}/, 1]
    ] as const) {
      assert.strictEqual(valueIn(text, series) - valueIn(before, series), grown, series.source)
    }
    assert.include(text, "alk_live_subscribers 0")
    assert.include(text, "# TYPE alk_ingest_duration_seconds histogram")
    assert.notInclude(text, "acme")
    assert.notInclude(text, "some-id")
  })
})

describe("/metrics", () => {
  let api: TestApi
  beforeAll(async () => {
    api = await TestApi.start()
  })
  afterAll(() => api.stop())

  it("says what the process is, since when it runs, and what memory it takes", async () => {
    const { text } = await api.call("/metrics")
    const { version } = JSON.parse(readFileSync("package.json", "utf8"))
    const { node } = process.versions
    const shown = (series: string): number => {
      const line = text.split("\n").find((one) => one.startsWith(`${series} `))
      return Number(line?.slice(series.length + 1))
    }
    assert.strictEqual(shown(`alk_build_info{version="${version}",node="${node}"}`), 1, text)
    assert.isAbove(shown("process_resident_memory_bytes"), 10_000_000)
    const age = Date.now() / 1_000 - shown("process_start_time_seconds")
    assert.closeTo(age, process.uptime(), 5)
  })
})

describe("every answer", () => {
  let api: TestApi
  let open: TestApi
  beforeAll(async () => {
    api = await TestApi.start()
    open = await TestApi.start({ corsOrigins: ["https://a.example", "https://b.example"] })
  })
  afterAll(async () => {
    await api.stop()
    await open.stop()
  })

  it("echoes a harmless request id and replaces any other", async () => {
    const echoed = await api.call("/healthz", { headers: { "x-request-id": "req:1/2@host=a" } })
    assert.strictEqual(echoed.headers["x-request-id"], "req:1/2@host=a")
    for (const id of ["a b", "x".repeat(129), '"quoted"', "<script>"]) {
      const replaced = await api.call("/v1/events", { headers: { "x-request-id": id } })
      const made = String(replaced.headers["x-request-id"])
      assert.match(made, /^[0-9a-f-]{36}$/)
      assert.strictEqual(replaced.body.error.request_id, made)
    }
  })

  it("is logged once, with route, status, tenant and trace, without keys and values", async () => {
    const traceId = "4bf92f3577b34da6a3ce929d0e0e4736"
    await api.call("/v1/events?q=needle", {
      key: READ_KEY,
      headers: { "x-request-id": "log-me", traceparent: `00-${traceId}-00f067aa0ba902b7-01` }
    })
    const lines = api.logs.filter(({ annotations }) => annotations["request_id"] === "log-me")
    assert.strictEqual(lines.length, 1)
    const { annotations, level } = lines[0]!
    assert.strictEqual(level, "Info")
    assert.isNumber(annotations["ms"])
    assert.deepInclude(annotations, {
      method: "GET",
      route: "/v1/events",
      status: 200,
      tenant: "acme",
      trace_id: traceId
    })
    assert.notInclude(JSON.stringify(lines), "needle")
    assert.notInclude(JSON.stringify(lines), READ_KEY)
  })

  it("is logged with its key, its bytes and the code of its error", async () => {
    const id = "log-bytes"
    const body = { events: [...items(3), {}], secret_of_the_body: "needle-2" }
    const answer = await api.call("/v1/events?limit=needle", {
      key: READ_KEY,
      headers: { "x-request-id": id }
    })
    await api.call("/v1/events/batch", {
      key: WRITE_KEY,
      json: body,
      headers: { "x-request-id": `${id}-2` }
    })
    const lineOf = (name: string) =>
      api.logs.find(
        ({ annotations, message }) => message === "request" && annotations["request_id"] === name
      )!.annotations
    const [refused, sent] = [lineOf(id), lineOf(`${id}-2`)]
    assert.strictEqual(answer.status, 400)
    assert.deepInclude(refused, { status: 400, code: "invalid_request", tenant: "acme" })
    assert.isString(refused["key"])
    assert.notInclude([READ_KEY, WRITE_KEY], refused["key"])
    assert.isAtLeast(Number(refused["bytes_out"]), answer.bytes.length)
    assert.isAbove(Number(sent["bytes_in"]), JSON.stringify(body).length)
    assert.isBelow(Number(sent["bytes_in"]), JSON.stringify(body).length + 2_000)
    assert.notInclude(JSON.stringify([refused, sent]), "needle")
  })

  it("is logged only where it failed, or not at all, if that is asked for", async () => {
    const linesOf = async (requestLog: "failed" | "off") => {
      const quiet = await TestApi.start({ requestLog })
      await quiet.call("/v1/events", { key: READ_KEY })
      await quiet.call("/v1/events")
      await quiet.stop()
      return quiet.logs
        .filter(({ message }) => message === "request")
        .map(({ annotations }) => annotations["status"])
    }
    assert.deepStrictEqual(await linesOf("failed"), [401])
    assert.deepStrictEqual(await linesOf("off"), [])
  })

  it("says what it varies by, refusals too", async () => {
    const headers = { origin: "https://a.example", "accept-encoding": "gzip" }
    const vary = async (path: string, accept: string) => {
      const answer = await open.call(path, { key: READ_KEY, headers: { ...headers, accept } })
      return [answer.status, String(answer.headers["vary"]).split(", ").sort().join()]
    }
    const all = "Accept,Accept-Encoding,Origin"
    assert.deepStrictEqual(await vary("/v1/events", "*/*"), [200, all])
    assert.deepStrictEqual(await vary("/v1/events", "text/csv"), [200, all])
    assert.deepStrictEqual(await vary("/v1/events", "image/png"), [406, all])
    assert.deepStrictEqual(await vary("/v1/verify", "*/*"), [200, all])
    assert.deepStrictEqual(await vary("/v1/events/stats", "*/*"), [200, "Accept-Encoding,Origin"])
  })

  it("allows other origins only where they are configured", async () => {
    const closed = await api.call("/healthz", { headers: { origin: "https://a.example" } })
    assert.isUndefined(closed.headers["access-control-allow-origin"])
    const allowed = await open.call("/v1/events", { headers: { origin: "https://b.example" } })
    assert.strictEqual(allowed.status, 401)
    assert.strictEqual(allowed.headers["access-control-allow-origin"], "https://b.example")
    assert.include(String(allowed.headers["access-control-expose-headers"]), "X-Request-Id")
    const stranger = await open.call("/v1/events", { headers: { origin: "https://c.example" } })
    assert.isUndefined(stranger.headers["access-control-allow-origin"])
    const preflight = await open.call("/v1/events", {
      method: "OPTIONS",
      headers: { origin: "https://a.example", "access-control-request-method": "POST" }
    })
    assert.strictEqual(preflight.status, 204)
    const sendable = String(preflight.headers["access-control-allow-headers"])
    for (const name of ["Idempotency-Key", "If-None-Match", "traceparent"]) {
      assert.include(sendable, name)
    }
    const readable = String(allowed.headers["access-control-expose-headers"])
    for (const name of ["ETag", "Content-Disposition", "Retry-After"]) {
      assert.include(readable, name)
    }
  })
})
