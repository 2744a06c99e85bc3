/**
 * Every refusal that can be provoked without a broker, word for word: for each documented route the
 * status, code, message, field and headers of what it refuses. The requests are made from the
 * OpenAPI document; what is expected is in `golden/errors.json`, one line per refusal with every
 * request that it answers (`vitest run -u` writes it). A change of it is a change that clients see.
 */
import type { IncomingMessage } from "node:http"
import { Stream } from "effect"
import { afterAll, assert, beforeAll, describe, expect, it } from "vitest"
import { openApiDocument } from "../../src/http/Api.ts"
import { ADMIN_TOKEN, READ_KEY, WRITE_KEY } from "./support/Doubles.ts"
import { item, items } from "./support/Events.ts"
import { type Call, TestApi } from "./support/TestApi.ts"

type Json = Record<string, any>

const document: Json = openApiDocument()

/** Bytes of a body that ingest takes in this test; the other routes take 65,536. */
const INGEST_BYTES_MAX = 1_100_000
const BODY_BYTES_MAX = INGEST_BYTES_MAX

/** One request of a route: how it is named in the file, and what differs from a right one. */
interface Case {
  readonly name: string
  readonly query?: string
  readonly call?: Call
  /** In the place of the parameters that the path has. */
  readonly params?: Readonly<Record<string, string>>
}

/** A documented operation. */
interface Route {
  readonly method: string
  readonly path: string
  readonly operation: Json
}

const routes: ReadonlyArray<Route> = Object.entries<Json>(document["paths"]).flatMap(
  ([path, methods]) =>
    Object.entries<Json>(methods).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      operation
    }))
)

const resolved = (schema: Json): Json =>
  schema["$ref"] === undefined
    ? schema
    : document["components"].schemas[schema["$ref"].replace("#/components/schemas/", "")]

/** Ids of nothing, and the tenant and the tree that there are. */
const params: Readonly<Record<string, string>> = {
  id: "nothing",
  tenant: "acme",
  key: "none",
  chain: "events",
  level: "0",
  index: "000"
}

const filled = (path: string, given: Readonly<Record<string, string>> = {}): string =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: string) => given[name] ?? params[name]!)

const READS_WITH_A_BODY = ["/v1/verify", "/v1/share/links", "/v1/exports"]

/** The credential of a route; `share` is the token of a link. */
const keyOf = ({ method, operation, path }: Route, share: string): string | undefined => {
  const [scheme] = (operation["security"] as ReadonlyArray<Json>).flatMap(Object.keys)
  if (scheme === undefined) return undefined
  if (scheme === "admin_token") return ADMIN_TOKEN
  if (scheme === "share_token") return share
  const reads = method === "GET" || READS_WITH_A_BODY.some((prefix) => path.startsWith(prefix))
  return reads ? READ_KEY : WRITE_KEY
}

const credentials = (route: Route): ReadonlyArray<Case> => {
  const key = keyOf(route, "shr_")
  if (key === undefined) return []
  const other = key === READ_KEY ? WRITE_KEY : READ_KEY
  return [
    { name: "without a key", call: { headers: { authorization: "" } } },
    { name: "with an unknown key", call: { key: `alk_live_${"x".repeat(43)}` } },
    { name: "with another scheme", call: { headers: { authorization: `Basic ${key}` } } },
    { name: "with the key of another scope", call: { key: other } },
    {
      name: "without a key, with an unknown parameter",
      query: "nonsense=1",
      call: { headers: { authorization: "" } }
    },
    {
      name: "with the key of another scope, with an unknown parameter",
      query: "nonsense=1",
      call: { key: other }
    }
  ]
}

/** Texts that a parameter refuses, or may refuse. */
const wrongTexts = ({ maximum, maxLength, minimum, type }: Json): ReadonlyArray<string> => {
  if (type === "integer") {
    const over = maximum === undefined ? [] : [String(BigInt(maximum) + 1n)]
    return ["many", "1.5", "1e1", "%201", String(minimum - 1), ...over, "99999999999999999999"]
  }
  if (type === "boolean") return ["maybe", "1"]
  const texts = ["nonsense", "x".repeat(120)]
  return maxLength === undefined ? texts : [...texts, "x".repeat(maxLength + 1)]
}

const inverted: Readonly<Record<string, string>> = {
  "from to": "from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z",
  "from_sequence to_sequence": "from_sequence=5&to_sequence=4",
  "after_sequence before_sequence": "after_sequence=9&before_sequence=3",
  "page page_size": "page=10000000&page_size=2",
  "page after_sequence": "page=3&after_sequence=5",
  "first second": "first=5&second=2",
  "sequence_number tree_size": "sequence_number=5&tree_size=2"
}

const conditions = [
  "action=a.*.b",
  "action=a,,b",
  "outcome!=nonsense",
  "outcome!=",
  "outcome>5",
  "outcome=success&outcome!=success",
  "sequence_number=1*",
  "sequence_number>9&sequence_number<5",
  "metadata.=1",
  "metadata.>5",
  "metadata.a=",
  "metadata.a>much",
  "metadata.a>1&metadata.a>2",
  "q!=a",
  "from=-24x",
  "to=2026-01-01T00:00:00+01:00",
  "from=-1h&to=-2h"
]
const manyConditions = Array.from({ length: 17 }, (_, at) => `metadata.k${at}=1`).join("&")

const queries = ({ operation }: Route): ReadonlyArray<Case> => {
  const known: ReadonlyArray<Json> = operation["parameters"].filter(
    (parameter: Json) => parameter["in"] === "query" && parameter["name"] !== "metadata"
  )
  const names = known.map(({ name }) => name as string)
  const [first = "nonsense"] = names
  const has = (name: string) =>
    operation["parameters"].some((parameter: Json) => parameter["name"] === name)
  const texts = [
    "nonsense=1",
    "nonsense=1&nonsense=2",
    "",
    "%ff=1",
    "limt=1",
    "user=1",
    "constructor=1",
    "metadata.a=1&metadata.a=2",
    ...(known.length === 0 ? [] : [`${first}&${first}=1`, `${first}=`, `${first}=1&${first}=1`]),
    ...(known.length === 0 ? [] : [`${first}=%ff`, `${first}=a%00b`, `${first.slice(0, -1)}=1`]),
    ...known.flatMap(({ name, schema }) => wrongTexts(schema).map((text) => `${name}=${text}`)),
    ...(has("metadata") ? [...conditions, manyConditions, "metadata.a.b.c.d.e.f.g=1"] : []),
    ...Object.entries(inverted).flatMap(([pair, query]) =>
      pair.split(" ").every((name) => names.includes(name)) ? [query] : []
    )
  ]
  return texts.filter((query) => query !== "").map((query) => ({ name: `?${query}`, query }))
}

const json = (raw: string | Buffer, headers: Readonly<Record<string, string>> = {}): Call => ({
  raw,
  headers: { "content-type": "application/json", ...headers }
})

const WRONG_VALUES: ReadonlyArray<unknown> = [
  null,
  true,
  0,
  1.5,
  -1,
  "",
  "nonsense",
  "x".repeat(1_025),
  [],
  ["nonsense"],
  [1],
  {},
  { nonsense: 1 },
  { from: "x" },
  { "metadata.a": 1 },
  { "metadata.": "x" }
]

/** Members that make a right body of a schema, but for what is changed in it. */
const rightBody = ({ examples, oneOf }: Json): Json =>
  examples?.[0] ?? (oneOf === undefined ? {} : rightBody(resolved(oneOf[0])))

const membersOf = (schema: Json): ReadonlyArray<string> => [
  ...new Set<string>([
    ...Object.keys(schema["properties"] ?? {}),
    ...(schema["oneOf"] ?? []).flatMap((one: Json) => membersOf(resolved(one)))
  ])
]

const bodies = ({ operation, path }: Route): ReadonlyArray<Case> => {
  const content = operation["requestBody"]?.content
  if (content === undefined) return []
  const schema = resolved(content["application/json"].schema)
  const right = rightBody(schema)
  const members = membersOf(schema)
  const text = JSON.stringify(right)
  const oversized = Buffer.alloc(BODY_BYTES_MAX + 1, " ")
  const raws: ReadonlyArray<readonly [name: string, call: Call]> = [
    [
      "no body",
      { ...json(""), method: operation["operationId"].startsWith("end") ? "PUT" : "POST" }
    ],
    ["plain text", json(text, { "content-type": "text/plain" })],
    ["another charset", json(text, { "content-type": "application/json; charset=latin1" })],
    ["lines", json(text, { "content-type": "application/x-ndjson" })],
    ["an unknown coding", json(text, { "content-encoding": "compress" })],
    ["two codings", json(text, { "content-encoding": "gzip, br" })],
    ["no gzip", json(text, { "content-encoding": "gzip" })],
    ["too large a body", json(oversized)],
    ["no UTF-8", json(Buffer.from([0x22, 0xff, 0x22]))],
    ...[
      "{",
      "nonsense",
      "[]",
      '"x"',
      "1",
      "null",
      "{}",
      `${text}{`,
      '{"a":1,"a":2}',
      '{"nonsense":1}'
    ].map((raw) => [`body ${raw}`, json(raw)] as const),
    ["body with a lone surrogate", json('{"\\ud800":1}')],
    ["body that nests deep", json(`${"[".repeat(300)}${"]".repeat(300)}`)],
    ["no gzip and an unknown parameter", json(text, { "content-encoding": "gzip" })]
  ]
  const changed = members.flatMap((member) => [
    ...WRONG_VALUES.map((value) => ({ [member]: value })),
    { [member]: undefined },
    { [`${member}x`]: 1 },
    { [`${member}x`]: 1, [member]: -1 }
  ])
  const isVerification = path === "/v1/verify"
  return [
    ...raws.map(([name, call]) => ({
      name,
      call,
      ...(name.endsWith("parameter") ? { query: "nonsense=1" } : {})
    })),
    ...changed.map((change) => ({
      name: `body with ${JSON.stringify(change)}`,
      call: json(JSON.stringify({ ...right, ...change }))
    })),
    ...(isVerification ? keptBodies : []),
    { name: "Idempotency-Key with a space", call: json(text, { "idempotency-key": "a b" }) },
    {
      name: "Idempotency-Key with a space, and no JSON",
      call: json("{", { "idempotency-key": "a b" })
    },
    { name: "another X-Service-Sync", call: json(text, { "x-service-sync": "false" }) }
  ]
}

/** Receipts and checkpoints that can't be compared with anything. */
const keptBodies: ReadonlyArray<Case> = [
  { receipt: { status: "pending" } },
  { receipt: { status: "committed" } },
  { receipt: { status: "committed", ids: ["a"] } },
  { receipt: { status: "committed", ids: ["a"], last_sequence_number: 1 } },
  {
    receipt: { status: "committed", ids: ["a"], first_sequence_number: 1, last_sequence_number: 2 }
  },
  { receipt: { status: "committed", ids: [], errors: [{ index: -1 }] } },
  { receipt: { status: "committed", ids: [], duplicates: {} } },
  { checkpoint: "x", receipt: { status: "committed" } },
  { checkpoint: "alk/acme\n1\nx\n\n— alk y\n" },
  { checkpoint: "x".repeat(65_537) },
  { events: [{}] },
  { events: [{ sequence_number: 1, id: 5 }] },
  { events: Array.from({ length: 1_001 }, () => ({})) }
].map((body) => {
  const raw = JSON.stringify(body)
  return { name: `body ${raw}`, call: json(raw) }
})

/** Where several things are wrong: which one is said. */
const orders: Readonly<Record<string, ReadonlyArray<Case>>> = {
  "POST /v1/verify": [
    { name: "a wrong parameter and no JSON", query: "time_limit=0", call: json("{") },
    {
      name: "no type that there is, and no JSON",
      call: json("{", { accept: "image/png" })
    },
    {
      name: "a wrong parameter and no type that there is",
      query: "time_limit=0",
      call: json("{", { accept: "image/png" })
    }
  ],
  "GET /v1/verify": [
    {
      name: "a wrong parameter and no type that there is",
      query: "time_limit=0",
      call: { headers: { accept: "image/png" } }
    }
  ],
  "GET /v1/chain/checkpoints/latest": [
    {
      name: "a wrong parameter and no type that there is",
      query: "chain=x",
      call: { headers: { accept: "image/png" } }
    }
  ],
  "POST /v1/admin/tenants": [
    { name: "a tenant that there is", call: json('{"id":"acme"}') },
    { name: "two wrong members", call: json('{"id":1,"name":1}') },
    { name: "two wrong members, the other one first", call: json('{"name":1,"id":1}') },
    { name: "a name of 257 characters", call: json(`{"id":"a","name":"${"x".repeat(257)}"}`) },
    { name: "a key with an escape", call: json('{"\\u0069d":"acme"}') }
  ],
  "POST /v1/admin/tenants/{tenant}/keys": [
    { name: "no such tenant and no JSON", params: { tenant: "nobody" }, call: json("{") },
    { name: "no such tenant", params: { tenant: "nobody" }, call: json('{"scopes":["read"]}') },
    { name: "all members wrong", call: json('{"label":1,"prefix":1,"scopes":1}') },
    { name: "two scopes, one unknown", call: json('{"scopes":["read","admin"]}') },
    { name: "a wrong prefix", call: json('{"scopes":["read"],"prefix":"key_"}') }
  ],
  "GET /v1/admin/tenants/{tenant}/keys": [
    { name: "no such tenant and a wrong page", params: { tenant: "nobody" }, query: "page=0" },
    { name: "no such tenant", params: { tenant: "nobody" } }
  ],
  "GET /v1/admin/tenants/{tenant}": [{ name: "no such tenant", params: { tenant: "nobody" } }],
  "POST /v1/share/links": [
    { name: "all members wrong", call: json('{"from":1,"filters":1,"max_uses":0,"label":1}') },
    { name: "filters and uses wrong", call: json('{"filters":1,"max_uses":0}') },
    { name: "uses and seconds wrong", call: json('{"expires_in":0,"max_uses":0}') },
    { name: "filters and seconds wrong", call: json('{"expires_in":0,"filters":{"q":1}}') },
    ...[
      { actor: "a" },
      { from: "2026-01-01T00:00:00Z" },
      { actor_type: "robot" },
      { from_sequence: 1.5 },
      { from_sequence: "x" },
      { from_sequence: 5, to_sequence: 4 },
      { q: "" },
      { q: 1 },
      { action: "doc*x" },
      { "metadata.a>": 1 },
      { "outcome!": ["nonsense"] },
      { "outcome!": [] },
      { "metadata.a": 1 },
      { "metadata.": "x" },
      { "metadata.a.b.c.d.e.f.g": "x" },
      Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`metadata.k${at}`, "x"]))
    ].map((filters) => {
      const raw = JSON.stringify({ filters })
      return { name: `body ${raw}`, call: json(raw) }
    }),
    {
      name: "inverted bounds",
      call: json('{"from":"2026-01-02T00:00:00Z","to":"2026-01-01T00:00:00Z"}')
    },
    { name: "more seconds than allowed", call: json('{"expires_in":2592001}') }
  ],
  "POST /v1/exports": [
    { name: "all members wrong", call: json('{"kind":1,"from":1,"filters":1,"pdf":1,"label":1}') },
    { name: "filters and label wrong", call: json('{"kind":"csv","filters":1,"label":""}') },
    { name: "a PDF in a table", call: json('{"kind":"csv","pdf":false,"filters":1}') },
    { name: "filters wrong", call: json('{"kind":"csv","filters":{"actor":"a"}}') }
  ],
  "POST /v1/events": [
    {
      name: "metadata above 1 MiB",
      call: json(JSON.stringify(item(1, { metadata: { big: "x".repeat(1_048_576) } })))
    }
  ],
  "POST /v1/events/{id}/erase": [
    { name: "an id of none, and no JSON", params: { id: "%00" }, call: json("{") },
    { name: "an id of none", params: { id: "%00" }, call: json('{"reason":"x"}') },
    { name: "a wrong parameter and no JSON", query: "sequence_number=0", call: json("{") },
    {
      name: "a wrong key of idempotency and a wrong parameter",
      query: "sequence_number=0",
      call: json("{", { "idempotency-key": "a b" })
    },
    {
      name: "no such event with that number",
      query: "sequence_number=7",
      call: json('{"reason":"x"}')
    }
  ],
  "GET /v1/verify/events/{id}": [
    {
      name: "an id of none and a wrong parameter",
      params: { id: "%00" },
      query: "sequence_number=0"
    }
  ],
  "GET /v1/events/{id}": [
    {
      name: "an id of none and a wrong parameter",
      params: { id: "%00" },
      query: "sequence_number=0"
    },
    { name: "broken encoding", params: { id: "%zz" } },
    { name: "an id that is too long for one", params: { id: "x".repeat(4_000) } }
  ],
  "GET /v1/tlog/{chain}/checkpoint": [{ name: "no such log", params: { chain: "none" } }],
  "GET /v1/tlog/{chain}/tile/{level}/{index}": [
    { name: "no such log and no such tile", params: { chain: "none", level: "x" } },
    { name: "no such level", params: { level: "64" } },
    { name: "no index", params: { index: "1" } },
    { name: "a tile that is not covered", params: { index: "999" } }
  ],
  "GET /v1/tlog/{chain}/tile/entries/{index}": [
    { name: "no index", params: { index: "1" } },
    { name: "a tile that is not covered", params: { index: "999" } }
  ],
  "GET /v1/chain/proofs/inclusion": [
    { name: "nothing asked for", query: "chain=events" },
    { name: "an event that is not there", query: "sequence_number=99" },
    { name: "a size that is no checkpoint", query: "sequence_number=1&tree_size=77" }
  ],
  "GET /v1/chain/proofs/consistency": [
    { name: "nothing asked for", query: "chain=events" },
    { name: "a size that is no checkpoint", query: "first=77" }
  ],
  "GET /v1/events/stream": [
    { name: "a wrong Last-Event-ID", call: { headers: { "last-event-id": "x" } } },
    { name: "beyond the head", query: "after_sequence=999" }
  ],
  "GET /api/v1/executions/{id}/stream": [
    { name: "a wrong Last-Event-ID", call: { headers: { "last-event-id": "x" } } },
    {
      name: "an id of none and a wrong parameter",
      params: { id: "%00" },
      query: "after_sequence=x"
    }
  ],
  "GET /api/v1/executions/{id}/spans": [
    { name: "an id of none and a wrong parameter", params: { id: "%00" }, query: "page_size=x" }
  ],
  "GET /api/v1/spans/{id}/events": [
    { name: "an id of none and a wrong parameter", params: { id: "%00" }, query: "page_size=x" }
  ]
}

const casesOf = (route: Route): ReadonlyArray<Case> => [
  { name: "as it is" },
  { name: "no type that there is", call: { headers: { accept: "image/png" } } },
  { name: "every type refused", call: { headers: { accept: "*/*;q=0" } } },
  ...(route.path.includes("{id}") ? [{ name: "an id of none", params: { id: "%00" } }] : []),
  ...credentials(route),
  ...queries(route),
  ...bodies(route),
  ...(orders[`${route.method} ${route.path}`] ?? [])
]

/** Headers that every answer has, and those whose value is the same for every refusal. */
const COMMON: Readonly<Record<string, string | undefined>> = {
  "content-type": "application/json",
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  vary: "Accept-Encoding"
}
const PASSED_OVER = ["date", "content-length", "x-request-id", "connection", "keep-alive"]

const uncommonHeaders = ({ headers }: IncomingMessage): Json =>
  Object.fromEntries(
    Object.entries(headers).filter(
      ([name, value]) => !PASSED_OVER.includes(name) && COMMON[name] !== value
    )
  )

/** Characters of a request's name in the file at most. */
const NAME_LENGTH_MAX = 100
const named = (name: string): string =>
  name.length > NAME_LENGTH_MAX ? `${name.slice(0, NAME_LENGTH_MAX)}… (${name.length})` : name

const textOf = async (answer: IncomingMessage): Promise<string> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of answer) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

/** What is said of a request; undefined if it is not refused, or a double has no answer to it. */
const refusalOf = async (api: TestApi, target: string, call: Call): Promise<string | undefined> => {
  const answer = await api.open(target, call).catch((error: Error) => {
    throw new Error(`${call.method} ${target}: ${error.message}`)
  })
  const { statusCode: status = 0 } = answer
  if (status < 400) {
    answer.destroy()
    return undefined
  }
  const text = await textOf(answer)
  if (text.includes("failed unexpectedly")) return undefined
  const id = `"request_id":${JSON.stringify(answer.headers["x-request-id"])}`
  assert.include(text, id, target)
  const body = JSON.parse(text.replaceAll(`,${id}`, "").replaceAll(id, ""))
  const headers = uncommonHeaders(answer)
  return JSON.stringify({
    status,
    ...body,
    ...(Object.keys(headers).length === 0 ? {} : { headers })
  })
}

/** One line for each refusal, with every request that has it. */
const lines = (refusals: ReadonlyMap<string, string>): string => {
  const requests = Map.groupBy(refusals.keys(), (name) => refusals.get(name)!)
  return [...requests]
    .map(([refusal, names]) => `    {"refusal":${refusal},"of":${JSON.stringify(names)}}`)
    .join(",\n")
}

/** Methods that few routes have, and none all of. */
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]

describe("the texts of refusals", () => {
  let api: TestApi
  let share: string
  beforeAll(async () => {
    const limits = {
      bodyBytesMax: INGEST_BYTES_MAX,
      bodyBudgetBytes: 16 * 1_048_576,
      eventBytesMax: 65_536,
      metadataBytesMax: 32_768,
      payloadBytesMax: 65_536,
      actionLengthMax: 128
    }
    api = await TestApi.start({ limits })
    api.world.sse = Stream.empty
    const write = { key: WRITE_KEY }
    await api.call("/v1/events?sync=true", { ...write, json: item(1, { id: "mine" }) })
    await api.call("/v1/events/batch?sync=true", { ...write, json: { events: items(2) } })
    const link = await api.call("/v1/share/links", { key: READ_KEY, json: {} })
    share = link.body.token
  })
  afterAll(() => api.stop())

  const refusalsOf = async (route: Route): Promise<ReadonlyMap<string, string>> => {
    const key = keyOf(route, share)
    const refusals = new Map<string, string>()
    for (const { call = {}, name, params: given, query } of casesOf(route)) {
      const path = filled(route.path, given)
      const target = query === undefined ? path : `${path}?${query}`
      const method = call.method ?? route.method
      const asked = { ...(key === undefined ? {} : { key }), ...call, method }
      const refusal = await refusalOf(api, target, asked)
      if (refusal !== undefined) refusals.set(named(name), refusal)
    }
    return refusals
  }

  const refusalsElsewhere = async (): Promise<ReadonlyMap<string, string>> => {
    const refusals = new Map<string, string>()
    const ask = async (method: string, path: string) => {
      const refusal = await refusalOf(api, filled(path), { method, key: READ_KEY })
      if (refusal !== undefined) refusals.set(`${method} ${path}`, refusal)
    }
    for (const path of new Set(routes.map((route) => route.path))) {
      for (const method of METHODS) {
        if (!routes.some((route) => route.path === path && route.method === method)) {
          await ask(method, path)
        }
      }
    }
    for (const path of ["/nothing", "/v1/nothing", "/api/v1/nothing", "/v1/events/"]) {
      await ask("GET", path)
    }
    return refusals
  }

  it("are those of the file", async () => {
    const parts: Array<string> = []
    for (const route of routes) {
      const refusals = await refusalsOf(route)
      const where = JSON.stringify(`${route.method} ${route.path}`)
      if (refusals.size > 0) parts.push(`  ${where}: [\n${lines(refusals)}\n  ]`)
    }
    parts.push(`  "elsewhere": [\n${lines(await refusalsElsewhere())}\n  ]`)
    await expect(`{\n${parts.join(",\n")}\n}\n`).toMatchFileSnapshot("golden/errors.json")
  })
})
