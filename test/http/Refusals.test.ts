/**
 * Everything that the API refuses, as a table: each status and code of the contract, in the error
 * form of its route, with the headers that belong to it.
 */
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { type ErrorCode, errorCodes, errorStatuses } from "../../src/http/messages/ApiError.ts"
import { routeTable } from "../../src/http/server/RouteTable.ts"
import { LogUnavailable } from "../../src/ports/EventLog.ts"
import { CommandTooLarge } from "../../src/services/commands/CommandLog.ts"
import { prunedPoint } from "../support/PrunedPoints.ts"
import { quarantined } from "../support/Quarantined.ts"
import { ADMIN_TOKEN, OTHER_KEY, READ_KEY, type World, WRITE_KEY } from "./support/Doubles.ts"
import { item, items } from "./support/Events.ts"
import { type Answer, type Call, TestApi } from "./support/TestApi.ts"

const BATCH = "/v1/events/batch"
const TENANTS = "/v1/admin/tenants"

interface Refusal {
  readonly why: string
  readonly path: string
  readonly call?: Call
  readonly code: ErrorCode
  readonly field?: string
  readonly form?: "text"
  readonly headers?: Readonly<Record<string, string>>
  /** Switches of the doubles for this case alone. */
  readonly given?: (world: World) => void
}

const read = { key: READ_KEY }
const write = { key: WRITE_KEY }
const admin = { key: ADMIN_TOKEN }
const one = { ...write, json: item(1) }
const several = { ...write, json: { events: items(2) } }

/** A query parameter of the list that is refused, and the field that is named. */
const list = (query: string, field: string, code: ErrorCode = "invalid_request"): Refusal => ({
  why: `GET /v1/events?${query}`,
  path: `/v1/events?${query}`,
  call: read,
  code,
  field
})

const parameters: ReadonlyArray<Refusal> = [
  list("page=0", "page"),
  list("page=1.0", "page"),
  list("page=1e1", "page"),
  list("page=", "page"),
  list("page", "page"),
  list("page=1&page=2", "page"),
  list("page_size=0", "page_size"),
  list("page_size=1001", "page_size"),
  list("page=10001&page_size=1000", "page", "invalid_range"),
  list("page=3&after_sequence=5", "page"),
  list("actor=alice", "actor"),
  list("unknown=1&unknown=2", "unknown"),
  list("page=2&before_sequence=5", "page"),
  list("after_sequence=-1", "after_sequence"),
  list("after_sequence=9&before_sequence=3", "after_sequence", "invalid_range"),
  list("actor_type=robot", "actor_type"),
  list("outcome=Success", "outcome"),
  list("order=up", "order"),
  list("from=yesterday", "from"),
  list("to=2026-02-30T00:00:00Z", "to"),
  list("from=1969-12-31T23:59:59Z", "from"),
  list("from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "from", "invalid_range"),
  list("from_sequence=5&to_sequence=4", "from_sequence", "invalid_range"),
  list("from_sequence=99999999999999999999", "from_sequence"),
  list("action=a.*.b", "action"),
  list("action=a,", "action"),
  list("outcome!=nonsense", "outcome!"),
  list("outcome=success&outcome!=success", "outcome!", "invalid_range"),
  list("outcome>1", "outcome>"),
  list("metadata.>5", "metadata.>"),
  list("metadata.a>x", "metadata.a>"),
  list("metadata.a%3E=x", "metadata.a>="),
  list("sequence_number>5&sequence_number<3", "sequence_number>", "invalid_range"),
  list("from=-24x", "from"),
  list("page!=2", "page!"),
  list(`q=${"x".repeat(257)}`, "q"),
  list("q=", "q"),
  list("metadata.=1", "metadata."),
  list("metadata.a.b.c.d.e.f.g=1", "metadata.a.b.c.d.e.f.g"),
  list("metadata.a>1&metadata.a>2", "metadata.a>"),
  list("metadata.a=", "metadata.a"),
  list(Array.from({ length: 17 }, (_, n) => `metadata.k${n}=1`).join("&"), "metadata"),
  list("actor_id=%ff", "actor_id"),
  list("actor_id=%00", "actor_id"),
  list("%ff=1", "query")
]

const refusals: ReadonlyArray<Refusal> = [
  ...parameters,
  { why: "no key", path: "/v1/events", code: "unauthenticated" },
  {
    why: "an unknown key",
    path: "/v1/events",
    call: { key: `alk_live_${"x".repeat(43)}` },
    code: "unauthenticated"
  },
  {
    why: "another scheme",
    path: "/v1/events",
    call: { headers: { authorization: `Basic ${WRITE_KEY}` } },
    code: "unauthenticated"
  },
  {
    why: "no key on the batch",
    path: BATCH,
    call: { json: {} },
    code: "unauthenticated",
    form: "text"
  },
  { why: "no key comes before bad parameters", path: "/v1/events?page=0", code: "unauthenticated" },
  { why: "no admin token", path: TENANTS, code: "unauthenticated" },
  { why: "a key is no admin token", path: TENANTS, call: read, code: "unauthenticated" },
  { why: "a write key reads", path: "/v1/events", call: write, code: "insufficient_scope" },
  {
    why: "a wrong scope comes before what is not there",
    path: "/v1/events/nothing",
    call: write,
    code: "insufficient_scope"
  },
  {
    why: "a read key writes",
    path: "/v1/events",
    call: { ...one, ...read },
    code: "insufficient_scope"
  },
  {
    why: "a read key writes a batch",
    path: BATCH,
    call: { ...several, ...read },
    code: "insufficient_scope",
    form: "text"
  },
  { why: "a write key verifies", path: "/v1/verify", call: write, code: "insufficient_scope" },
  { why: "a write key sees the chain", path: "/v1/chain", call: write, code: "insufficient_scope" },
  {
    why: "a write key streams",
    path: "/v1/events/stream",
    call: write,
    code: "insufficient_scope"
  },
  { why: "no such route", path: "/v1/nothing", code: "not_found" },
  { why: "no such trace route", path: "/api/v1/nothing", code: "not_found", form: "text" },
  { why: "a trailing slash", path: "/v1/events/", call: read, code: "not_found" },
  {
    why: "an id that is too long for one",
    path: `/v1/events/${"x".repeat(4_000)}`,
    call: read,
    code: "not_found"
  },
  { why: "an id in broken encoding", path: "/v1/events/%zz", call: read, code: "not_found" },
  { why: "an id with U+0000", path: "/v1/events/%00", call: read, code: "not_found" },
  { why: "verifying U+0000", path: "/v1/verify/events/%00", call: read, code: "not_found" },
  { why: "no such event", path: "/v1/events/nothing", call: read, code: "not_found" },
  {
    why: "reading the batch, which is no event",
    path: BATCH,
    call: read,
    code: "method_not_allowed",
    form: "text",
    headers: { allow: "POST" }
  },
  {
    why: "writing to the statistics",
    path: "/v1/events/stats",
    call: { ...write, method: "DELETE" },
    code: "method_not_allowed",
    headers: { allow: "GET, HEAD" }
  },
  {
    why: "the event with another sequence",
    path: "/v1/events/mine?sequence_number=7",
    call: read,
    code: "not_found"
  },
  {
    why: "a broken sequence",
    path: "/v1/events/mine?sequence_number=0",
    call: read,
    code: "invalid_request",
    field: "sequence_number"
  },
  {
    why: "another tenant's event",
    path: "/v1/events/mine",
    call: { key: OTHER_KEY },
    code: "not_found"
  },
  {
    why: "verifying another tenant's event",
    path: "/v1/verify/events/mine",
    call: { key: OTHER_KEY },
    code: "not_found"
  },
  { why: "no receipt id at all", path: "/v1/receipts/rcp_1", call: read, code: "not_found" },
  { why: "keys of no tenant", path: `${TENANTS}/nobody/keys`, call: admin, code: "not_found" },
  {
    why: "a key for no tenant",
    path: `${TENANTS}/nobody/keys`,
    call: { ...admin, json: { scopes: ["read"] } },
    code: "not_found"
  },
  {
    why: "revoking no key",
    path: `${TENANTS}/acme/keys/none`,
    call: { ...admin, method: "DELETE" },
    code: "not_found"
  },
  {
    why: "DELETE on the list",
    path: "/v1/events",
    call: { ...read, method: "DELETE" },
    code: "method_not_allowed",
    headers: { allow: "GET, HEAD, POST" }
  },
  {
    why: "PUT on the batch",
    path: BATCH,
    call: { ...write, method: "PUT" },
    code: "method_not_allowed",
    form: "text",
    headers: { allow: "POST" }
  },
  {
    why: "POST on a health check",
    path: "/healthz",
    call: { method: "POST" },
    code: "method_not_allowed",
    headers: { allow: "GET, HEAD" }
  },
  {
    why: "OPTIONS while CORS is off",
    path: "/v1/chain",
    call: { method: "OPTIONS", headers: { origin: "https://a.example" } },
    code: "method_not_allowed"
  },
  {
    why: "XML wanted",
    path: "/v1/events",
    call: { ...read, headers: { accept: "application/xml, text/html;q=0.9" } },
    code: "not_acceptable",
    field: "Accept"
  },
  {
    why: "JSON refused by weight",
    path: "/v1/events",
    call: { ...read, headers: { accept: "application/json;q=0" } },
    code: "not_acceptable",
    field: "Accept"
  },
  {
    why: "the id of an event with other content",
    path: "/v1/events?sync=true",
    call: { ...write, json: item(5, { id: "mine" }) },
    code: "id_conflict",
    field: "id"
  },
  ...(
    [
      [TENANTS, admin, { id: "initech", nmae: "x" }, "nmae"],
      [`${TENANTS}/acme/keys`, admin, { scopes: ["read"], lable: "x" }, "lable"],
      ["/v1/share/links", read, { expires: 5 }, "expires"],
      ["/v1/exports", read, { kind: "csv", format: "csv" }, "format"],
      ["/v1/share/links", read, { filters: { actor: "a" } }, "filters.actor"],
      ["/v1/events/mine/erase", write, { reason: "r", reasons: "r" }, "reasons"],
      ["/v1/verify", read, { checkpoints: "x" }, "checkpoints"]
    ] as const
  ).map(
    ([path, key, json, field]): Refusal => ({
      why: `an unknown field: ${field} on ${path}`,
      path,
      call: { ...key, json },
      code: "invalid_request",
      field
    })
  ),
  {
    why: "a tenant twice",
    path: TENANTS,
    call: { ...admin, json: { id: "acme" } },
    code: "id_conflict"
  },
  {
    why: "a replay of a command that this service did not write",
    path: "/v1/admin/quarantine/0-7/replay",
    call: { ...admin, json: {} },
    given: (world) => world.quarantined.push(quarantined(0, 7, { kind: "foreign" })),
    code: "not_replayable"
  },
  {
    why: "a hold under a hold",
    path: `${TENANTS}/held/deletion`,
    call: { ...admin, json: {} },
    given: (world) => {
      const since = "2026-11-21T12:00:00.000000Z"
      world.state.registry.take([
        { kind: "tenant", tenant: { id: "held", created_at: since } },
        {
          kind: "retention",
          retention: {
            tenant_id: "held",
            hold: { reason: "case 7", by: "admin", since },
            changed_at: since
          }
        }
      ])
    },
    code: "legal_hold"
  },
  {
    why: "a tenant that was deleted",
    path: TENANTS,
    call: { ...admin, json: { id: "gone" } },
    given: (world) => {
      const deleted_at = "2026-11-21T12:00:00.000000Z"
      const tombstone = { tenant_id: "gone", deleted_at, deleted_by: "admin" }
      world.state.registry.take([{ kind: "tombstone", tombstone }])
    },
    code: "tenant_deleted"
  },
  {
    why: "a body over the limit",
    path: "/v1/events",
    call: { ...write, raw: "x".repeat(1_048_577) },
    code: "payload_too_large"
  },
  {
    why: "a batch over the limit",
    path: BATCH,
    call: { ...write, raw: "x".repeat(1_048_577) },
    code: "payload_too_large",
    form: "text"
  },
  {
    why: "a command over the log's limit",
    path: BATCH,
    call: several,
    given: (world) => (world.refuse = new CommandTooLarge({ bytes: 2, limit: 1 })),
    code: "payload_too_large",
    form: "text"
  },
  {
    why: "plain text",
    path: "/v1/events",
    call: { ...write, raw: "{}", headers: { "content-type": "text/plain" } },
    code: "unsupported_media_type",
    field: "Content-Type"
  },
  {
    why: "NDJSON for a single event",
    path: "/v1/events",
    call: { ...write, raw: "{}", headers: { "content-type": "application/x-ndjson" } },
    code: "unsupported_media_type",
    field: "Content-Type"
  },
  {
    why: "a batch in another charset",
    path: BATCH,
    call: { ...write, raw: "{}", headers: { "content-type": "application/json; charset=latin1" } },
    code: "unsupported_media_type",
    field: "Content-Type",
    form: "text"
  },
  {
    why: "a coding that nobody knows",
    path: BATCH,
    call: { ...write, raw: "{}", headers: { "content-encoding": "compress" } },
    code: "unsupported_media_type",
    field: "Content-Encoding",
    form: "text",
    headers: { "accept-encoding": "gzip, zstd, br, deflate, zlib" }
  },
  {
    why: "two codings",
    path: BATCH,
    call: { ...write, raw: "{}", headers: { "content-encoding": "gzip, br" } },
    code: "unsupported_media_type",
    field: "Content-Encoding",
    form: "text"
  },
  {
    why: "no gzip under that name",
    path: BATCH,
    call: { ...write, raw: "{}", headers: { "content-encoding": "gzip" } },
    code: "invalid_request",
    field: "Content-Encoding",
    form: "text"
  },
  { why: "no JSON", path: "/v1/events", call: { ...write, raw: "{" }, code: "invalid_json" },
  { why: "no body", path: "/v1/events", call: { ...write, method: "POST" }, code: "invalid_json" },
  {
    why: "no JSON batch",
    path: BATCH,
    call: { ...write, raw: "{" },
    code: "invalid_json",
    form: "text"
  },
  {
    why: "no UTF-8",
    path: BATCH,
    call: { ...write, raw: Buffer.from([0x22, 0xff, 0x22]) },
    code: "invalid_json",
    form: "text"
  },
  {
    why: "no events",
    path: BATCH,
    call: { ...write, json: { items: [] } },
    code: "invalid_request",
    form: "text"
  },
  {
    why: "an empty batch",
    path: BATCH,
    call: { ...write, json: { events: [] } },
    code: "invalid_request",
    form: "text"
  },
  {
    why: "1001 items",
    path: BATCH,
    call: { ...write, json: { events: Array.from({ length: 1_001 }, () => 0) } },
    code: "invalid_request",
    form: "text"
  },
  {
    why: "1001 lines",
    path: BATCH,
    call: {
      ...write,
      raw: "0\n".repeat(1_001),
      headers: { "content-type": "application/x-ndjson" }
    },
    code: "invalid_request",
    form: "text"
  },
  {
    why: "sync by header with another value",
    path: BATCH,
    call: { ...several, headers: { "x-service-sync": "false" } },
    code: "invalid_request",
    field: "X-Service-Sync",
    form: "text"
  },
  {
    why: "sync by query with another value",
    path: "/v1/events?sync=1",
    call: one,
    code: "invalid_request",
    field: "sync"
  },
  {
    why: "an empty sync parameter",
    path: "/v1/events?sync",
    call: one,
    code: "invalid_request",
    field: "sync"
  },
  {
    why: "an Idempotency-Key with a space",
    path: "/v1/events",
    call: { ...one, headers: { "idempotency-key": "a b" } },
    code: "invalid_request",
    field: "Idempotency-Key"
  },
  {
    why: "an Idempotency-Key that is too long",
    path: BATCH,
    call: { ...several, headers: { "idempotency-key": "k".repeat(256) } },
    code: "invalid_request",
    field: "Idempotency-Key",
    form: "text"
  },
  {
    why: "an empty Idempotency-Key",
    path: BATCH,
    call: { ...several, headers: { "idempotency-key": "" } },
    code: "invalid_request",
    field: "Idempotency-Key",
    form: "text"
  },
  {
    why: "a key with another body",
    path: BATCH,
    call: { ...several, headers: { "idempotency-key": "used" } },
    code: "idempotency_mismatch",
    field: "Idempotency-Key",
    form: "text"
  },
  {
    why: "statistics by a parameter that is none",
    path: "/v1/events/stats?page=1",
    call: read,
    code: "invalid_request",
    field: "page"
  },
  {
    why: "statistics by nothing known",
    path: "/v1/events/stats?group_by=tenant_id",
    call: read,
    code: "invalid_request",
    field: "group_by"
  },
  {
    why: "statistics with too many groups",
    path: "/v1/events/stats?limit=1001",
    call: read,
    code: "invalid_request",
    field: "limit"
  },
  {
    why: "statistics with too many buckets",
    path: "/v1/events/stats?interval=minute",
    call: read,
    given: (world) => (world.statsTooLarge = true),
    code: "invalid_range",
    field: "interval"
  },
  {
    why: "links from nowhere",
    path: "/v1/chain/links?from_sequence=0",
    call: read,
    code: "invalid_request",
    field: "from_sequence"
  },
  {
    why: "no links",
    path: "/v1/chain/links?limit=0",
    call: read,
    code: "invalid_request",
    field: "limit"
  },
  {
    why: "verifying backwards",
    path: "/v1/verify?from_sequence=3&to_sequence=2",
    call: read,
    code: "invalid_range",
    field: "from_sequence"
  },
  {
    why: "verifying half a head",
    path: "/v1/verify?require_head=maybe",
    call: read,
    code: "invalid_request",
    field: "require_head"
  },
  {
    why: "a stream from a word",
    path: "/v1/events/stream",
    call: { ...read, headers: { "last-event-id": "latest" } },
    code: "invalid_request",
    field: "Last-Event-ID"
  },
  {
    why: "a stream from a negative number",
    path: "/v1/events/stream?after_sequence=-1",
    call: read,
    code: "invalid_request",
    field: "after_sequence"
  },
  {
    why: "a stream from beyond the head",
    path: "/v1/events/stream?after_sequence=1000",
    call: read,
    code: "invalid_request"
  },
  {
    why: "one stream too many",
    path: "/v1/events/stream",
    call: read,
    given: (world) => (world.streamsMax = 0),
    code: "rate_limited",
    headers: { "retry-after": "1", "ratelimit-limit": "0", "ratelimit-remaining": "0" }
  },
  {
    why: "a tenant with a capital letter",
    path: TENANTS,
    call: { ...admin, json: { id: "Acme" } },
    code: "invalid_request",
    field: "id"
  },
  {
    why: "the reserved tenant",
    path: TENANTS,
    call: { ...admin, json: { id: "_system" } },
    code: "invalid_request",
    field: "id"
  },
  {
    why: "a name that is none",
    path: TENANTS,
    call: { ...admin, json: { id: "b", name: 1 } },
    code: "invalid_request",
    field: "name"
  },
  {
    why: "a list for a tenant",
    path: TENANTS,
    call: { ...admin, json: [] },
    code: "invalid_request",
    field: "body"
  },
  { why: "no JSON tenant", path: TENANTS, call: { ...admin, raw: "{" }, code: "invalid_json" },
  {
    why: "a tenant in plain text",
    path: TENANTS,
    call: { ...admin, raw: "{}", headers: { "content-type": "text/plain" } },
    code: "unsupported_media_type",
    field: "Content-Type"
  },
  {
    why: "a tenant of 64 KiB",
    path: TENANTS,
    call: { ...admin, raw: "x".repeat(65_537) },
    code: "payload_too_large"
  },
  ...[{}, { scopes: [] }, { scopes: ["admin"] }, { scopes: "read" }].map((json) => ({
    why: `a key with ${JSON.stringify(json)}`,
    path: `${TENANTS}/acme/keys`,
    call: { ...admin, json },
    code: "invalid_request" as const,
    field: "scopes"
  })),
  {
    why: "a key with another prefix",
    path: `${TENANTS}/acme/keys`,
    call: { ...admin, json: { scopes: ["read"], prefix: "sk_" } },
    code: "invalid_request",
    field: "prefix"
  },
  {
    why: "the list while the store is down",
    path: "/v1/events",
    call: read,
    given: (world) => (world.storeDown = true),
    code: "unavailable"
  },
  {
    why: "the list while its view is rebuilt",
    path: "/v1/events",
    call: read,
    given: (world) => (world.rebuilding = true),
    code: "unavailable"
  },
  {
    why: "verifying an event while its view is rebuilt",
    path: "/v1/verify/events/mine",
    call: read,
    given: (world) => (world.rebuilding = true),
    code: "unavailable"
  },
  {
    why: "the links while their view is rebuilt",
    path: "/v1/chain/links",
    call: read,
    given: (world) => (world.rebuilding = true),
    code: "unavailable"
  },
  {
    why: "a batch while the log is away",
    path: BATCH,
    call: several,
    given: (world) =>
      (world.refuse = new LogUnavailable({ operation: "append", cause: new Error("away") })),
    code: "unavailable",
    form: "text"
  },
  {
    why: "a defect",
    path: BATCH,
    call: several,
    given: (world) => (world.defect = new Error("a secret of the program")),
    code: "unavailable",
    form: "text"
  },
  {
    why: "a proof of an event that was pruned",
    path: "/v1/chain/proofs/inclusion?sequence_number=1",
    call: read,
    given: (world) => {
      const frontier = `1:${Buffer.alloc(32).toString("base64")}`
      world.state.registry.take([{ kind: "pruned", pruned: prunedPoint("acme", 1, { frontier }) }])
    },
    code: "pruned"
  }
]

/** Codes of routes that come with later features. */
const later: ReadonlyArray<ErrorCode> = [
  "idempotency_conflict",
  "already_ended",
  "cycle_detected",
  "not_ready",
  "pdf_unavailable"
]

const errorOf = (answer: Answer, form: "text" | undefined) => {
  const { body } = answer
  return form === "text"
    ? { message: body.error, code: body.code, field: body.field, requestId: body.request_id }
    : {
        message: body.error.message,
        code: body.error.code,
        field: body.error.field,
        requestId: body.error.request_id
      }
}

describe("refusals", () => {
  let api: TestApi
  beforeAll(async () => {
    api = await TestApi.start()
    await api.call("/v1/events?sync=true", { key: WRITE_KEY, json: item(1, { id: "mine" }) })
    await api.call(BATCH, {
      key: WRITE_KEY,
      json: { events: items(1) },
      headers: { "idempotency-key": "used" }
    })
  })
  afterAll(() => api.stop())

  it.each(refusals.map((refusal) => [refusal.why, refusal] as const))("%s", async (_, refusal) => {
    const { call = {}, code, field, form, given, headers = {}, path } = refusal
    const normal = { ...api.world }
    given?.(api.world)
    const answer = await api.call(path, call)
    Object.assign(api.world, normal)
    assert.strictEqual(answer.status, errorStatuses[code], answer.text)
    assert.strictEqual(answer.headers["content-type"], "application/json")
    const error = errorOf(answer, form)
    assert.strictEqual(error.code, code)
    assert.isString(error.message)
    assert.strictEqual(error.field, field)
    assert.strictEqual(error.requestId, answer.headers["x-request-id"])
    assert.notMatch(answer.text, /\bat .*\.ts|secret of the program|Error:/)
    if (field !== undefined) assert.isTrue(error.message.startsWith(`${field}: `), error.message)
    if (answer.status === 401) assert.strictEqual(answer.headers["www-authenticate"], "Bearer")
    if (answer.status === 503) assert.strictEqual(answer.headers["retry-after"], "1")
    if (answer.status === 405) assert.isString(answer.headers.allow)
    for (const [name, value] of Object.entries(headers)) {
      assert.strictEqual(answer.headers[name], value)
    }
  })

  it("are of every route the addresses without one of its ids, whatever key is sent", async () => {
    const withIds = routeTable.filter(({ template }) => template.includes("/:"))
    assert.isAtLeast(withIds.length, 20)
    for (const { methods, segments } of withIds) {
      for (const [at, segment] of segments.entries()) {
        if (!segment.startsWith(":")) continue
        const path = segments.map((one, place) => (place === at ? "" : one.replace(":", "")))
        for (const method of methods) {
          for (const key of [undefined, READ_KEY, WRITE_KEY, ADMIN_TOKEN]) {
            const call = { method, ...(key === undefined ? {} : { key }) }
            const { body, status } = await api.call(path.join("/"), call)
            const said = `${method} ${path.join("/")}`
            if (method !== "HEAD")
              assert.include(body.error.message ?? body.error, "no such route", said)
            assert.strictEqual(status, 404, said)
          }
        }
      }
    }
  })

  it("reaches every code of the closed list that a route of today can answer", () => {
    const reached = new Set(refusals.map(({ code }) => code))
    assert.sameMembers(
      [...reached],
      errorCodes.filter((code) => !later.includes(code))
    )
  })

  it("has logged the defect with its request, and nothing of a request's contents", async () => {
    const failed = api.logs.find(({ message }) => message.includes("failed unexpectedly"))
    assert.isDefined(failed)
    assert.strictEqual(failed!.level, "Error")
    assert.isString(failed!.annotations["request_id"])
    const all = JSON.stringify(api.logs.map(({ annotations }) => annotations))
    for (const secret of [READ_KEY, WRITE_KEY, ADMIN_TOKEN, "robot", "nothing", "user_1"]) {
      assert.notInclude(all, secret)
    }
  })
})
