/**
 * The resources of the API as a client finds them: where a new one is, how long lists are paged, and
 * that a path with an impossible id is one that leads nowhere.
 */
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { openApiDocument } from "../../src/http/Api.ts"
import { ADMIN_TOKEN, OTHER_KEY, READ_KEY, WRITE_KEY } from "./support/Doubles.ts"
import { item } from "./support/Events.ts"
import { type Call, TestApi } from "./support/TestApi.ts"

const LINKS = "/v1/share/links"
const TENANTS = "/v1/admin/tenants"
const KEYS = `${TENANTS}/acme/keys`
const EXECUTIONS = "/api/v1/executions"
const admin = { key: ADMIN_TOKEN }
const other = { key: OTHER_KEY }
const read = { key: READ_KEY }

let api: TestApi
beforeAll(async () => {
  api = await TestApi.start()
})
afterAll(() => api.stop())

describe("a 201", () => {
  const made: ReadonlyArray<readonly [what: string, path: string, call: Call, key: string]> = [
    ["an event", "/v1/events?sync=true", { ...other, json: item(1, { id: "a/b c" }) }, OTHER_KEY],
    ["an execution", EXECUTIONS, { ...other, json: { agent_id: "a" } }, OTHER_KEY],
    ["a share link", LINKS, { ...read, json: {} }, READ_KEY],
    ["a tenant", TENANTS, { ...admin, json: { id: "made" } }, ADMIN_TOKEN],
    ["an API key", KEYS, { ...admin, json: { scopes: ["read"] } }, ADMIN_TOKEN]
  ]
  for (const [what, path, call, key] of made) {
    it(`says where ${what} is`, async () => {
      const created = await api.call(path, call)
      assert.strictEqual(created.status, 201)
      const found = await api.call(String(created.headers.location), { key })
      assert.strictEqual(found.status, 200)
      assert.strictEqual(found.body.id, created.body.id)
    })
  }

  it("says where a span is, beside its events", async () => {
    const { body } = await api.call(EXECUTIONS, { ...other, json: { agent_id: "a" } })
    const json = { span_type: "CUSTOM", name: "step" }
    const path = `${EXECUTIONS}/${body.id}/spans`
    const created = await api.call(path, { key: OTHER_KEY, json })
    assert.strictEqual(created.status, 201)
    const found = await api.call(String(created.headers.location), { key: OTHER_KEY })
    assert.strictEqual(found.body.span.id, created.body.id)
  })
})

describe("a list of long entries", () => {
  it("has pages that hold so many bytes, and what follows in the next ones", async () => {
    const json = { filters: { "metadata.k": "\\*".repeat(16_200) } }
    const own = await TestApi.start()
    const ids: Array<string> = []
    for (let n = 0; n < 300; n++) {
      const made = await own.call(LINKS, { key: READ_KEY, json })
      assert.strictEqual(made.status, 201, made.text)
      ids.unshift(made.body.id)
    }
    const found: Array<string> = []
    for (let path: string | undefined = LINKS; path !== undefined; ) {
      const { bytes, body, headers } = await own.call(path, read)
      assert.isBelow(bytes.length, 9 * 1_048_576)
      assert.strictEqual(body.total, ids.length)
      for (const { id } of body.links) found.push(id)
      path = /<([^>]*)>; rel="next"/.exec(String(headers.link))?.[1]
    }
    assert.deepStrictEqual(found, ids)
    await own.stop()
  })
})

interface List {
  readonly path: string
  readonly member: string
  readonly key: string
  /** Make one more; its id. */
  readonly make: (n: number) => Promise<string>
  readonly newestFirst: boolean
}

const lists: ReadonlyArray<List> = [
  {
    path: LINKS,
    member: "links",
    key: OTHER_KEY,
    make: async () => (await api.call(LINKS, { key: OTHER_KEY, json: {} })).body.id,
    newestFirst: true
  },
  {
    path: `${TENANTS}/paged/keys`,
    member: "keys",
    key: ADMIN_TOKEN,
    make: async () => {
      await api.call(TENANTS, { ...admin, json: { id: "paged" } })
      const call = { ...admin, json: { scopes: ["read"] } }
      return (await api.call(`${TENANTS}/paged/keys`, call)).body.id
    },
    newestFirst: true
  },
  {
    path: TENANTS,
    member: "tenants",
    key: ADMIN_TOKEN,
    make: async (n) => (await api.call(TENANTS, { ...admin, json: { id: `zz-${n}` } })).body.id,
    newestFirst: false
  }
]

describe("a list of what was made", () => {
  for (const { key, make, member, newestFirst, path } of lists) {
    it(`is paged, counted and ordered: ${member}`, async () => {
      const made: Array<string> = []
      for (let n = 0; n < 5; n++) made.push(await make(n))
      const idsOf = (body: any): Array<string> => body[member].map(({ id }: any) => id)
      const all = await api.call(path, { key })
      const ids = idsOf(all.body)
      const expected = newestFirst ? made.toReversed() : made
      assert.deepStrictEqual(
        ids.filter((id) => made.includes(id)),
        expected
      )
      const { page, page_size, total } = all.body
      assert.deepStrictEqual([total, page, page_size], [ids.length, 1, 1_000])
      const paged: Array<string> = []
      let next: string | undefined = `${path}?page_size=2`
      while (next !== undefined) {
        const answer = await api.call(next, { key })
        assert.strictEqual(answer.status, 200)
        assert.deepInclude(answer.body, { total, page_size: 2 })
        paged.push(...idsOf(answer.body))
        next = /<([^>]*)>; rel="next"/.exec(String(answer.headers.link))?.[1]
      }
      assert.deepStrictEqual(paged, ids)
      const beyond = await api.call(`${path}?page=99`, { key })
      assert.strictEqual(beyond.status, 200)
      assert.deepInclude(beyond.body, { [member]: [], total })
      for (const [query, field] of [
        ["page=0", "page"],
        ["page_size=1001", "page_size"],
        ["page=10001&page_size=1000", "page"],
        ["pages=1", "pages"]
      ]) {
        const { body, status } = await api.call(`${path}?${query}`, { key })
        assert.deepStrictEqual([status, body.error.field], [400, field])
      }
    })
  }
})

describe("a path parameter", () => {
  const impossible = [
    "%10",
    "%00",
    "%7f",
    "%C2%85",
    "%2F",
    "%2F..%2F",
    "%",
    "%zz",
    "%ff",
    "%C0%80",
    "%ED%A0%80",
    "%252F",
    "x".repeat(257),
    "x".repeat(4_000),
    "%F0%9F%98%80".repeat(257),
    "..%2f..",
    "%0d%0aX:1",
    ";",
    "*",
    "'",
    "%22",
    "%5C",
    "%E2%80%AE"
  ]

  it("that can be no id leads nowhere, on every route", async () => {
    const paths = Object.entries<object>(openApiDocument().paths).filter(([path]) =>
      path.includes("{")
    )
    assert.isAbove(paths.length, 10)
    const odd: Array<string> = []
    for (const [path, methods] of paths) {
      for (const method of Object.keys(methods)) {
        const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!)
        for (const at of names) {
          for (const id of impossible) {
            const target = path.replaceAll(/\{(\w+)\}/g, (_, name) =>
              name === at ? id : name === "tenant" ? "acme" : "known"
            )
            const key = path.includes("/admin/")
              ? ADMIN_TOKEN
              : method === "get" || /\/(?:share|exports)\//.test(path)
                ? READ_KEY
                : WRITE_KEY
            const body = method === "get" || method === "delete" ? {} : { json: bodyOf(path) }
            const call = { method: method.toUpperCase(), key, ...body }
            const { status } = await api.call(target, call)
            if (status !== 404 && status !== 400) odd.push(`${method} ${target}: ${status}`)
          }
        }
      }
    }
    assert.deepStrictEqual(odd, [])
  })
})

/** A body that would do, if there were something with this id. */
const bodyOf = (path: string): object => {
  if (path.endsWith("/erase")) return { reason: "asked for" }
  if (path.endsWith("/spans")) return { span_type: "CUSTOM", name: "step" }
  if (path.endsWith("/events")) return { event_type: "log" }
  return path.endsWith("/keys") ? { scopes: ["read"] } : {}
}

describe("the filters of a share link", () => {
  it("take no number where a string is due, nor a string where a number is", async () => {
    for (const [name, value] of [
      ["actor_id", 7],
      ["resource_id", 1.5],
      ["action", 4711],
      ["q", 0],
      ["actor_type", 1],
      ["outcome", 2]
    ]) {
      const { body, status } = await api.call(LINKS, {
        ...read,
        json: { filters: { [name as string]: value } }
      })
      assert.deepStrictEqual([status, body.error?.field], [400, `filters.${name}`])
      assert.match(body.error.message, /must be a string/)
    }
    for (const name of ["from", "to"]) {
      const { body, status } = await api.call(LINKS, { ...read, json: { [name]: 2026 } })
      assert.deepStrictEqual([status, body.error?.field], [400, name])
      assert.match(body.error.message, /must be a string/)
    }
    const both = { from_sequence: 1, to_sequence: "2" }
    assert.strictEqual((await api.call(LINKS, { ...read, json: { filters: both } })).status, 201)
  })
})

describe("the reference page", () => {
  it("is compressed once, kept by clients, and not sent again while it is the same", async () => {
    const plain = await api.call("/docs")
    const etag = String(plain.headers.etag)
    assert.match(etag, /^(?:W\/)?"[^"]+"$/)
    assert.match(String(plain.headers["cache-control"]), /public/)
    for (const [accept, coding] of [
      ["gzip", "gzip"],
      ["br", "br"],
      ["gzip, br;q=0", "gzip"],
      ["identity", undefined]
    ] as const) {
      const answer = await api.call("/docs", { headers: { "accept-encoding": accept } })
      assert.strictEqual(answer.headers["content-encoding"], coding)
      assert.match(String(answer.headers.vary), /accept-encoding/i)
      assert.strictEqual(Number(answer.headers["content-length"]), answer.bytes.length)
      if (coding !== undefined) assert.isBelow(answer.bytes.length, plain.bytes.length / 2)
      const again = await api.call("/docs", {
        headers: { "accept-encoding": accept, "if-none-match": String(answer.headers.etag) }
      })
      assert.deepStrictEqual([again.status, again.bytes.length], [304, 0])
      assert.strictEqual(again.headers.etag, answer.headers.etag)
    }
    for (const path of ["/openapi.json", "/asyncapi.yaml"]) {
      const { headers } = await api.call(path)
      const known = { headers: { "if-none-match": String(headers.etag) } }
      assert.strictEqual((await api.call(path, known)).status, 304)
    }
    const other = await api.call("/docs", { headers: { "if-none-match": '"another"' } })
    assert.strictEqual(other.status, 200)
  })
})
