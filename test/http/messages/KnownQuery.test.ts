/**
 * Query parameters that a route doesn't know: refused on every route of the contract, in the error
 * form of the route, with the name that was probably meant.
 */
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { openApiDocument } from "../../../src/http/Api.ts"
import { conditionParameters } from "../../../src/http/events/EventParameters.ts"
import { opsPaths } from "../../../src/http/operations/OpsContract.ts"
import { ADMIN_TOKEN, OTHER_KEY } from "../support/Doubles.ts"
import { items } from "../support/Events.ts"
import { type Answer, type Call, TestApi } from "../support/TestApi.ts"

interface Operation {
  readonly method: string
  readonly path: string
  readonly operation: any
}

/** Conditions of a filter may have several values. */
const isCondition = ({ parameters }: any, name: string): boolean =>
  parameters.some((one: any) => one.name === "metadata") && Object.hasOwn(conditionParameters, name)

/** Texts of a list of executions may have several values too. */
const repeatable = ["status", "agent_id", "name", "model", "session_id", "user_id"]
const isRepeatable = ({ path }: Operation, name: string): boolean =>
  path === "/api/v1/executions" && repeatable.includes(name)

/** People open them, with whatever parameters an address has gathered. */
const pages = ["/", "/docs"]

const operations: ReadonlyArray<Operation> = Object.entries<any>(openApiDocument().paths)
  .flatMap(([path, methods]) =>
    Object.entries<any>(methods).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path: path.replaceAll(/\{\w+\}/g, "some-id"),
      operation
    }))
  )
  .filter(({ path }) => !pages.includes(path))

const errorOf = ({ body }: Answer) =>
  typeof body.error === "string" ? { ...body, message: body.error } : body.error

const probes = ["/healthz", "/readyz"]

describe("a query parameter that a route does not know", () => {
  let api: TestApi
  let shareToken: string
  beforeAll(async () => {
    api = await TestApi.start()
    await api.call("/v1/events/batch?sync=true", { key: OTHER_KEY, json: { events: items(5) } })
    const link = await api.call("/v1/share/links", { key: OTHER_KEY, json: {} })
    shareToken = link.body.token
  })
  afterAll(() => api.stop())

  const keyOf = (path: string): string =>
    path.startsWith("/v1/admin/")
      ? ADMIN_TOKEN
      : /^\/v1\/share(?:$|\/(?!links))/.test(path)
        ? shareToken
        : OTHER_KEY

  const ask = ({ method, path }: Operation, query: string, call: Call = {}) =>
    api.call(`${path}?${query}`, {
      method,
      key: keyOf(path),
      ...(method === "POST" || method === "PUT" ? { json: {} } : {}),
      ...call
    })

  it.each(
    // The query of a probe is for caches on the way.
    operations
      .filter(({ path }) => !probes.includes(path))
      .map((operation) => [`${operation.method} ${operation.path}`, operation] as const)
  )("is refused by %s, as are repeated and empty ones", async (_name, operation) => {
    for (const query of ["nonsense=1", "nonsense=1&nonsense=2", "nonsense=", "nonsense", "=1"]) {
      const answer = await ask(operation, query)
      assert.strictEqual(answer.status, 400, `${query}: ${answer.text.slice(0, 300)}`)
      const { code, field, message } = errorOf(answer)
      assert.strictEqual(code, "invalid_request")
      assert.strictEqual(field, query === "=1" ? "query" : "nonsense")
      assert.include(message, "is not a parameter of this route")
    }
    for (const { in: place, name } of operation.operation.parameters) {
      if (place !== "query" || name === "metadata") continue
      const isOnce = !isCondition(operation.operation, name) && !isRepeatable(operation, name)
      const repeated = isOnce ? [`${name}=1&${name}=1`] : []
      for (const query of [`${name}=`, ...repeated]) {
        const answer = await ask(operation, query)
        assert.strictEqual(answer.status, 400, `${query}: ${answer.text.slice(0, 300)}`)
        assert.strictEqual(errorOf(answer).field, name)
      }
    }
  })

  it("is documented as 400 by every operation", () => {
    for (const { method, operation, path } of operations) {
      assert.property(operation.responses, "400", `${method} ${path}`)
    }
  })

  it.each(["application/json", "application/x-ndjson", "text/csv"])(
    "is refused by the list as %s",
    async (accept) => {
      const answer = await api.call("/v1/events?actor=alice", {
        key: OTHER_KEY,
        headers: { accept }
      })
      assert.strictEqual(answer.status, 400)
      assert.notInclude(answer.text, "document.read")
    }
  )

  const meant: ReadonlyArray<readonly [path: string, part: string]> = [
    ["/v1/events?actor=alice", "actor: is not a parameter of this route; did you mean actor_id?"],
    ["/v1/events?actorId=alice", "did you mean actor_id?"],
    [
      "/v1/events?outcom!=failure",
      "outcom!: is not a parameter of this route; did you mean outcome?"
    ],
    ["/v1/events?seqence_number>=5", "did you mean sequence_number?"],
    ["/v1/events?page!=2", "page!: takes = only"],
    ["/v1/events?from>=2026-01-01", "from>=: takes = only"],
    ["/v1/verify?outcome!=failure", "outcome!: is not a parameter of this route; verification"],
    ["/api/v1/executions?status!=FAILED", "status!: takes = only"],
    ["/v1/events?resouce_id=x", "did you mean resource_id?"],
    ["/v1/events?limit=10", "did you mean page_size?"],
    ["/v1/events?offset=10", "did you mean page?"],
    ["/v1/events?cursor=10", "did you mean after_sequence?"],
    ["/v1/events?since=2026-01-01", "did you mean from?"],
    ["/v1/events?until=2026-01-01", "did you mean to?"],
    ["/v1/events?sort=asc", "sort: must be one of sequence_number, timestamp"],
    ["/v1/events?search=x", "did you mean q?"],
    ["/v1/events?output=csv", "output: is not a parameter of this route; format chooses"],
    ["/v1/events?meta.ip=1", "it takes sequence_number, id"],
    ["/v1/events/stats?page_size=10", "did you mean limit?"],
    ["/v1/events/stream?actor=alice", "did you mean actor_id?"],
    ["/v1/events/stream?last_event_id=4", "did you mean after_sequence?"],
    ["/v1/events/some-id?sequence=4", "it takes sequence_number"],
    [
      "/v1/verify?actor_id=alice",
      "actor_id: is not a parameter of this route; verification covers every event"
    ],
    ["/v1/verify?metadata.ip=1", "verification covers every event"],
    ["/v1/verify?form=2026-01-01T00:00:00Z", "did you mean from?"],
    ["/v1/chain?from=1", "is not a parameter of this route"],
    ["/v1/chain/checkpoints?size=1", "did you mean limit?"],
    ["/v1/export/pdf?actor=alice", "did you mean actor_id?"],
    ["/v1/export/evidence-pack?PDF=false", "did you mean pdf?"],
    ["/api/v1/executions?state=FAILED", "did you mean status?"],
    ["/api/v1/executions?agent=x", "did you mean agent_id?"]
  ]
  it.each(meant)("%s: %s", async (path, part) => {
    const answer = await api.call(path, { key: OTHER_KEY })
    assert.strictEqual(answer.status, 400)
    assert.include(errorOf(answer).message, part)
  })

  it("is refused by ingest too, where a mistyped sync would be answered before the commit", async () => {
    const answer = await api.call("/v1/events/batch?snyc=true", {
      key: OTHER_KEY,
      json: { events: items(1) }
    })
    assert.strictEqual(answer.status, 400)
    assert.include(errorOf(answer).message, "did you mean sync?")
  })

  it("is repeated in a message only as far as it is short", async () => {
    const answer = await api.call(`/v1/events?${"x".repeat(5_000)}=1`, { key: OTHER_KEY })
    assert.strictEqual(answer.status, 400)
    assert.isBelow(answer.text.length, 1_000)
  })

  it("comes after the key and its scope", async () => {
    assert.strictEqual((await api.call("/v1/events?actor=alice")).status, 401)
    assert.strictEqual((await api.call("/v1/share/export/pdf?x=1")).status, 401)
    assert.strictEqual((await api.call("/v1/admin/tenants?x=1", { key: OTHER_KEY })).status, 401)
  })

  it("is refused where no key is needed, but for the pages that people open", async () => {
    for (const path of opsPaths) {
      const { status } = await api.call(`${path}?utm_source=mail`)
      assert.strictEqual(status, ["/", "/docs", ...probes].includes(path) ? 200 : 400, path)
    }
  })
})
