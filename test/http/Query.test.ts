/**
 * Reading back: pages of stored bytes, links between pages, every match as lines or as a table, one
 * event, statistics.
 */
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from "node:zlib"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { fieldNames, tableFields, whereNames } from "../../src/domain/events/EventFields.ts"
import { OTHER_KEY, READ_KEY, WRITE_KEY } from "./support/Doubles.ts"
import { item, items } from "./support/Events.ts"
import { type Answer, type Call, TestApi } from "./support/TestApi.ts"

const COUNT = 25
const TRICKY = "2026-01-02T00:00:00.000000Z"

const linksOf = (answer: Answer): Record<string, string> =>
  Object.fromEntries(
    [...String(answer.headers.link).matchAll(/<([^>]*)>; rel="(\w+)"/g)].map(([, target, rel]) => [
      rel,
      target
    ])
  )

const numbers = (answer: Answer): Array<number> =>
  answer.body.events.map(({ sequence_number }: any) => sequence_number)

const range = (from: number, to: number): Array<number> =>
  Array.from({ length: Math.abs(to - from) + 1 }, (_, n) => (to > from ? from + n : from - n))

describe("facets", () => {
  let api: TestApi
  beforeAll(async () => {
    api = await TestApi.start()
  })
  afterAll(() => api.stop())

  const facets = (query: string) => api.call(`/v1/events/facets?${query}`, { key: READ_KEY })

  it("are those of four fields, unless others are named", async () => {
    const { body, status } = await facets("")
    assert.strictEqual(status, 200)
    assert.deepStrictEqual(
      body.facets.map(({ field }: { field: string }) => field),
      ["action", "actor_type", "resource_type", "outcome"]
    )
    const asked = await facets("fields=metadata.a.b,outcome&limit=1&action=document.read")
    assert.deepStrictEqual(
      asked.body.facets.map(({ field }: { field: string }) => field),
      ["metadata.a.b", "outcome"]
    )
  })

  it("refuse what is no field", async () => {
    const wrong = [
      "fields=nothing",
      "fields=action,",
      "fields=metadata.",
      "fields=action,action",
      `fields=metadata.${"a.".repeat(40)}b`,
      `fields=${Array.from({ length: 11 }, (_, n) => `metadata.m${n}`).join(",")}`,
      "fields=",
      "limit=0&fields=action"
    ]
    for (const query of wrong) {
      const { body, status } = await facets(query)
      assert.deepStrictEqual([status, body.error.code], [400, "invalid_request"], query)
    }
  })
})

describe("reading back", () => {
  let api: TestApi
  let absolute: TestApi
  beforeAll(async () => {
    api = await TestApi.start()
    absolute = await TestApi.start({ publicUrl: "https://audit.example.com/log" }, api.world)
    await api.call("/v1/events/batch?sync=true", { key: WRITE_KEY, json: { events: items(COUNT) } })
    await api.call("/v1/events/batch?sync=true", {
      key: OTHER_KEY,
      json: { events: [item(1, { id: "theirs" })] }
    })
  })
  afterAll(async () => {
    await api.stop()
    await absolute.stop()
  })
  const get = (path: string, call: Call = {}) => api.call(path, { key: READ_KEY, ...call })

  it("shows the newest first, 50 a page, as the stored bytes", async () => {
    const answer = await get("/v1/events")
    const { events: _events, ...rest } = answer.body
    assert.deepStrictEqual(rest, { total: COUNT, page: 1, page_size: 50 })
    assert.deepStrictEqual(numbers(answer), range(COUNT, 1))
    const stored = api.world.bodies.slice(0, COUNT).reverse().join(",")
    assert.isTrue(answer.text.startsWith(`{"events":[${stored}]`))
  })

  it("pages by number, with links that keep the filters", async () => {
    const path = "/v1/events?actor_type=human&page_size=10&metadata.x=%3Ca%3E%20b&page=2"
    const empty = await get(path)
    assert.strictEqual(empty.body.total, 0)
    const middle = await get("/v1/events?actor_type=human&page_size=10&page=2&q=doc")
    assert.deepStrictEqual(numbers(middle), range(15, 6))
    const links = linksOf(middle)
    const target = (page: number) => `/v1/events?actor_type=human&page_size=10&q=doc&page=${page}`
    assert.deepStrictEqual(links, {
      first: target(1),
      prev: target(1),
      next: target(3),
      last: target(3)
    })
    const last = await get(links["next"]!)
    assert.deepStrictEqual(numbers(last), range(5, 1))
    assert.notProperty(linksOf(last), "next")
    const first = await get(linksOf(last)["first"]!)
    assert.notProperty(linksOf(first), "prev")
  })

  it("links to pages of the moments that times from now meant, and else to what was asked", async () => {
    const query =
      "from=-2500w&to=%2B2500w&outcome!=failure&timestamp>-2500w&created_at!=now,2026-11-20"
      + "&where=actor:*%20timestamp<now&to_sequence=25&page_size=10"
    const asked = await get(`/v1/events?${query}`)
    assert.strictEqual(asked.body.total, COUNT)
    const { first, next } = linksOf(asked)
    const pairsOf = (target: string) => target.split("?")[1]!.split("&")
    const timeless = (pair: string) =>
      decodeURIComponent(pair).replaceAll(/\d{4}-\d\d-\d\dT[\d:.]{15}Z/g, "T")
    assert.deepStrictEqual(pairsOf(next!).map(timeless), [
      "from=T",
      "to=T",
      "outcome!=failure",
      "timestamp>T",
      "created_at!=T,2026-11-20",
      "where=actor:* timestamp<T",
      "to_sequence=25",
      "page_size=10",
      "page=2"
    ])
    const second = await get(next!)
    assert.deepStrictEqual([second.status, second.body.total], [200, COUNT])
    assert.deepStrictEqual(numbers(second), range(15, 6))
    // Nothing in it moves any more.
    assert.strictEqual(linksOf(second)["first"], first)
    const bySequence = await get("/v1/events?after_sequence=0&order=asc&page_size=10&from=-2500w")
    assert.match(
      linksOf(bySequence)["next"]!,
      /&page_size=10&from=\d{4}-\d\d-\d\dT[^&]+Z&after_sequence=10$/
    )
  })

  it("answers a page past the end with no events and the same total", async () => {
    const answer = await get("/v1/events?page=9&page_size=10")
    assert.strictEqual(answer.status, 200)
    assert.deepStrictEqual([answer.body.events, answer.body.total], [[], COUNT])
    assert.match(linksOf(answer)["prev"]!, /page=3$/)
  })

  it("gives no link to a page that may not be asked for", async () => {
    const links = linksOf(await get("/v1/events?page=10000&page_size=1000"))
    assert.notProperty(links, "next")
    assert.match(links["last"]!, /page=1$/)
  })

  it("pages by sequence, in both orders", async () => {
    for (const order of ["asc", "desc"]) {
      const seen: Array<number> = []
      const cursor = order === "asc" ? "after_sequence=0" : "before_sequence=1000"
      let next: string | undefined = `/v1/events?order=${order}&page_size=10&${cursor}`
      while (next !== undefined) {
        const answer: Answer = await get(next)
        assert.strictEqual(answer.body.total, COUNT)
        seen.push(...numbers(answer))
        next = linksOf(answer)["next"]
        assert.match(linksOf(answer)["first"]!, /^\/v1\/events\?order=\w+&page_size=10$/)
      }
      assert.deepStrictEqual(seen, order === "asc" ? range(1, COUNT) : range(COUNT, 1))
    }
    const between = await get("/v1/events?after_sequence=3&before_sequence=7")
    assert.deepStrictEqual(numbers(between), [6, 5, 4])
  })

  it("leads from a page by sequence to the ones before, after and at the end", async () => {
    const walk = async (path: string, rel: string): Promise<Array<Array<number>>> => {
      const pages: Array<Array<number>> = []
      for (let next: string | undefined = path; next !== undefined; ) {
        const answer: Answer = await get(next)
        if (numbers(answer).length > 0) pages.push(numbers(answer))
        next = linksOf(answer)[rel]
      }
      return pages
    }
    const list = "/v1/events?q=doc&page_size=10"
    const pages = [range(1, 10), range(11, 20), range(21, 25)]
    const back = await walk(`${list}&order=asc&after_sequence=20`, "prev")
    assert.deepStrictEqual(back, pages.toReversed())
    const middle = await get(`${list}&order=asc&after_sequence=10`)
    assert.deepStrictEqual(numbers(await get(linksOf(middle)["last"]!)), range(16, 25))
    const down = await get(`${list}&before_sequence=16`)
    assert.deepStrictEqual(numbers(await get(linksOf(down)["prev"]!)), range(25, 16))
    assert.deepStrictEqual(numbers(await get(linksOf(down)["last"]!)), range(10, 1))
    const within = await get(`${list}&order=asc&after_sequence=5&before_sequence=22`)
    assert.deepStrictEqual(numbers(await get(linksOf(within)["last"]!)), range(12, 21))
    const past = await get(`${list}&order=asc&after_sequence=1000`)
    assert.deepStrictEqual(numbers(await get(linksOf(past)["prev"]!)), range(16, 25))
    assert.notProperty(linksOf(await get(`${list}&order=asc&after_sequence=0`)), "prev")
    assert.sameMembers(Object.keys(linksOf(await get("/v1/events?id=none&after_sequence=0"))), [
      "first"
    ])
  })

  it("makes absolute links where a public address is configured", async () => {
    const answer = await absolute.call("/v1/events?page_size=20", { key: READ_KEY })
    assert.strictEqual(
      linksOf(answer)["next"],
      "https://audit.example.com/log/v1/events?page_size=20&page=2"
    )
  })

  it("never lets a parameter break out of its link", async () => {
    const link = String((await get("/v1/events?metadata.x=>;rel=%22next%22,<evil>")).headers.link)
    assert.notMatch(link, /<evil>/)
  })

  it("filters", async () => {
    const total = async (query: string) => (await get(`/v1/events?${query}`)).body.total
    assert.strictEqual(await total("action=document.read"), 13)
    assert.strictEqual(await total("action=document.*"), COUNT)
    assert.strictEqual(await total("action=docum.*"), 0)
    assert.strictEqual(await total("actor_id=user_0&outcome=success"), 9)
    assert.strictEqual(await total("metadata.n=7"), 1)
    assert.strictEqual(await total("from_sequence=3&to_sequence=5"), 3)
    assert.strictEqual(await total("from=2026-01-01T01:00:00.00002%2B01:00"), 5)
    const at = "from=2026-01-01T01:00:00.000020%2b01:00&to=2026-01-01t00:00:00.00002z"
    assert.strictEqual(await total(at), 1)
    assert.strictEqual(await total("q=DOC+24"), 1)
    assert.strictEqual(await total("id=theirs"), 0)
  })

  it("filters by an expression, in lists, tables and statistics", async () => {
    const whereOf = (where: string) => `where=${encodeURIComponent(where)}`
    const cases: ReadonlyArray<readonly [where: string, total: number]> = [
      ["action:document.read", 13],
      ["action:document.* outcome:success,failure,error", COUNT],
      ["actor:user_0 outcome:success", 9],
      ["sequence_number>=3 sequence_number<=5", 3],
      ["NOT sequence_number<=3", COUNT - 3],
      ["metadata.n:7 OR metadata.n:8", 2],
      ["metadata.n>=7 metadata.n<10", 3],
      ["timestamp<2026-01-01", 0],
      ["timestamp:2026-01-01", COUNT],
      ['"DOC 24"', 1]
    ]
    for (const [where, total] of cases) {
      const { body } = await get(`/v1/events?${whereOf(where)}`)
      assert.strictEqual(body.total, total, where)
      const stats = await get(`/v1/events/stats?${whereOf(where)}`)
      assert.strictEqual(stats.body.total, total, where)
      const lines = await get(`/v1/events?${whereOf(where)}`, {
        headers: { accept: "application/x-ndjson" }
      })
      assert.strictEqual(lines.text.split("\n").length - 1, total, where)
    }
    const both = await get(`/v1/events?action=document.read&${whereOf("sequence_number<=4")}`)
    assert.isAbove(both.body.total, 0)
    assert.isBelow(both.body.total, 4)
  })

  it("names the column of what is wrong with an expression", async () => {
    const answer = await get(`/v1/events?where=${encodeURIComponent("outcome:no")}`)
    assert.strictEqual(answer.status, 400)
    assert.strictEqual(answer.body.error.field, "where")
    assert.include(
      answer.body.error.message,
      "column 9: outcome must be one of success, failure, error"
    )
  })

  it("streams every match as NDJSON, paging ignored, order kept", async () => {
    const answer = await get("/v1/events?page=2&page_size=3&order=asc", {
      headers: { accept: "application/x-ndjson" }
    })
    assert.strictEqual(answer.headers["content-type"], "application/x-ndjson")
    assert.strictEqual(answer.text, `${api.world.bodies.slice(0, COUNT).join("\n")}\n`)
  })

  it.each(["application/x-ndjson", "text/csv"])(
    "resumes a stream of every match by sequence, in both orders: %s",
    async (accept) => {
      const column = async (query: string): Promise<Array<number>> => {
        const { text } = await get(`/v1/events?${query}`, { headers: { accept } })
        return accept === "text/csv"
          ? readCsv(text)
              .slice(1)
              .map(([sequence]) => Number(sequence))
          : text
              .split("\n")
              .filter(Boolean)
              .map((line) => JSON.parse(line).sequence_number)
      }
      assert.deepStrictEqual(await column("order=asc&after_sequence=20"), range(21, COUNT))
      assert.deepStrictEqual(await column("before_sequence=4"), range(3, 1))
      assert.deepStrictEqual(
        await column("after_sequence=3&before_sequence=9&from_sequence=5&to_sequence=30"),
        range(8, 5)
      )
      assert.deepStrictEqual(await column("order=asc&page=1&page_size=50&after_sequence=24"), [25])
      assert.deepStrictEqual(await column("before_sequence=0"), [])
      assert.deepStrictEqual(await column(`after_sequence=${Number.MAX_SAFE_INTEGER}`), [])
    }
  )

  it("shows the fields that are asked for, as flat objects and as columns", async () => {
    const metadata = { n: 1.5, deep: { list: [1, "x"] }, "=sum": "=1+1" }
    const event = item(1, { id: "shown", metadata, actor: { id: "ann", email: "a@example.com" } })
    await api.call("/v1/events/batch?sync=true", { key: OTHER_KEY, json: { events: [event] } })
    const fields = ["id", "actor_email", "resource_name", "metadata", "sequence_number"]
    const paths = ["n", "deep", "deep.list", "=sum", "none"].map((path) => `metadata.${path}`)
    const query = `id=shown&fields=${encodeURIComponent([...fields, ...paths].join(","))}`
    const ask = (more: string) => api.call(`/v1/events?${query}${more}`, { key: OTHER_KEY })
    const page = await ask("")
    const [row] = page.body.rows
    assert.deepStrictEqual(page.body.events, [])
    assert.deepStrictEqual(Object.keys(row), [...fields, ...paths])
    const { sequence_number, ...shown } = row
    assert.isNumber(sequence_number)
    assert.deepStrictEqual(shown, {
      id: "shown",
      actor_email: "a@example.com",
      resource_name: "Doc 1",
      metadata,
      "metadata.n": 1.5,
      "metadata.deep": { list: [1, "x"] },
      "metadata.deep.list": [1, "x"],
      "metadata.=sum": "=1+1",
      "metadata.none": null
    })
    assert.deepStrictEqual(JSON.parse((await ask("&format=ndjson")).text), row)
    const csv = await ask("&format=csv")
    assert.match(csv.headers["content-type"]!, /^text\/csv/)
    const [header, line] = readCsv(csv.text)
    assert.deepStrictEqual(header, [...fields, ...paths])
    const deep = '{"list":[1,"x"]}'
    assert.deepStrictEqual(line!.slice(0, 3), ["shown", "a@example.com", "Doc 1"])
    assert.deepStrictEqual(line!.slice(5), ["1.5", deep, '[1,"x"]', "'=1+1", ""])
  })

  it("knows the same fields in conditions, expressions, statistics, facets and columns", async () => {
    for (const name of whereNames) {
      const path = `/v1/events?${name}=*&where=${name}:*`
      const { body, text } = await get(`${path}&fields=${name}`)
      assert.isAbove(body.total, 0, text)
      assert.deepStrictEqual(Object.keys(body.rows[0]), [name])
      for (const counted of [`stats?group_by=${name}&${name}=*`, `facets?fields=${name}`]) {
        const { status, text } = await get(`/v1/events/${counted}`)
        assert.strictEqual(status, 200, text)
      }
    }
    const table = await get(`/v1/events?format=csv&page_size=1&fields=${fieldNames.join(",")}`)
    assert.deepStrictEqual(readCsv(table.text)[0], [...fieldNames])
    const whole = await get("/v1/events?format=csv")
    assert.deepStrictEqual(readCsv(whole.text)[0], [...tableFields])
  })

  it("takes the form from a parameter before that of Accept", async () => {
    const accept = "text/csv"
    const json = await get("/v1/events?format=json&page_size=1", { headers: { accept } })
    assert.strictEqual(json.body.events.length, 1)
    const parquet = await get("/v1/events?format=parquet&action=document.read&fields=id")
    assert.strictEqual(parquet.headers["content-type"], "application/vnd.apache.parquet")
    assert.deepStrictEqual(JSON.parse(parquet.text), { fields: ["id"], rows: 13 })
    const accepted = await get("/v1/events?before_sequence=0", {
      headers: { accept: "application/vnd.apache.parquet" }
    })
    assert.strictEqual(JSON.parse(accepted.text).rows, 0)
  })

  it("streams every match as OCSF, with the filters and the order of the other forms", async () => {
    const filter = "action=document.read&order=asc&sequence_number>=3"
    const ocsf = await get(`/v1/events?format=ocsf&${filter}`)
    assert.strictEqual(ocsf.headers["content-type"], "application/x-ndjson")
    const stored = await get(`/v1/events?format=ndjson&${filter}`)
    const parsed = ({ text }: Answer) =>
      text
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line))
    assert.isAbove(parsed(stored).length, 5)
    assert.deepStrictEqual(
      parsed(ocsf).map(({ class_uid, metadata, unmapped }) => [
        class_uid,
        metadata.uid,
        unmapped.hash
      ]),
      parsed(stored).map(({ hash, id }) => [6003, id, hash])
    )
    const refused = await get("/v1/events?format=ocsf&fields=id")
    assert.strictEqual(refused.status, 400)
    assert.include(refused.text, "can't be given with format=ocsf")
  })

  it("sorts by time on request, and not together with paging by sequence", async () => {
    const page = await get("/v1/events?sort=timestamp&order=asc&page_size=3")
    assert.deepStrictEqual(numbers(page), range(1, 3))
    assert.include(linksOf(page)["next"]!, "sort=timestamp")
    const refused = await get("/v1/events?sort=timestamp&after_sequence=3")
    assert.strictEqual(refused.status, 400)
    assert.strictEqual(refused.body.error.field, "sort")
    assert.include(refused.body.error.message, "use from and to")
  })

  it.each([
    ["fields=", "fields"],
    ["fields=id,nothing", "fields"],
    ["fields=id,id", "fields"],
    [`fields=metadata.${"a.".repeat(6)}b`, "fields"],
    ["format=xml", "format"],
    ["sort=action", "sort"]
  ])("refuses %s and names the parameter", async (query, field) => {
    const answer = await get(`/v1/events?${query}`)
    assert.strictEqual(answer.status, 400)
    assert.strictEqual(answer.body.error.field, field)
  })

  it.each([
    ["group_by=action,outcome,actor_type", "group_by"],
    ["group_by=tenant_id", "group_by"],
    ["group_by=action,action", "group_by"],
    ["measure=amount", "measure"],
    ["measure=metadata.", "measure"],
    ["interval=year", "interval"]
  ])("refuses statistics by %s and names the parameter", async (query, field) => {
    const answer = await get(`/v1/events/stats?${query}`)
    assert.strictEqual(answer.status, 400)
    assert.strictEqual(answer.body.error.field, field)
  })

  it("takes the defaults of a generated client beside a sequence", async () => {
    const answer = await get("/v1/events?page=1&page_size=50&order=desc&after_sequence=22")
    assert.deepStrictEqual(numbers(answer), range(25, 23))
    assert.strictEqual((await get("/v1/events?page=1&before_sequence=3")).status, 200)
  })

  it("shows an event with the id of a route by its id, and all that can be done with it", async () => {
    const ids = ["batch", "stats", "stream"]
    const key = OTHER_KEY
    const events = ids.map((id) => item(1, { id }))
    await api.call("/v1/events/batch?sync=true", { key, json: { events } })
    for (const id of ids) {
      const found = await api.call(`/v1/events?id=${id}`, { key })
      assert.deepStrictEqual(
        found.body.events.map((event: any) => event.id),
        [id]
      )
      assert.strictEqual((await api.call(`/v1/verify/events/${id}`, { key })).status, 200)
      const erased = await api.call(`/v1/events/${id}/erase`, { key, json: { reason: "asked" } })
      assert.strictEqual(erased.body.id, id)
    }
  })

  it.each(["identity", "gzip"])("never ends a broken stream as if whole: %s", async (coding) => {
    api.world.scanBreaks = true
    const broken = await get("/v1/events", {
      headers: { accept: "application/x-ndjson", "accept-encoding": coding }
    }).then(
      () => false,
      () => true
    )
    api.world.scanBreaks = false
    assert.isTrue(broken)
    const { annotations, level } = api.logs.findLast(
      ({ message }) => message === "an answer was broken off"
    )!
    assert.strictEqual(level, "Error")
    assert.include(annotations, { operation: "listEvents", tenantId: "acme" })
    assert.match(String(annotations["reason"]), /StoreUnavailable/)
  })

  it("has a line of NDJSON for each event, whatever a reader takes for its end", async () => {
    const text = "a\nb\r\nc\u2028d\u2029e\u0085f\u000bg\fh"
    const json = { events: [item(1, { metadata: { [`k${text}`]: text } }), item(2)] }
    await api.call("/v1/events/batch?sync=true", { key: WRITE_KEY, json })
    const kept = api.world.bodies.at(-2)!
    assert.include(kept, "c\u2028d\u2029e\u0085f")
    for (const query of ["format=ndjson", "format=ocsf", "format=ndjson&fields=metadata"]) {
      const answer = await get(`/v1/events?order=asc&after_sequence=${COUNT}&${query}`)
      const lines = answer.text.split(/\r\n|[\n\u000b\f\r\u001c-\u001e\u0085\u2028\u2029]/)
      assert.strictEqual(lines.length, 3, query)
      const [first] = lines.map((line) => (line === "" ? undefined : JSON.parse(line)))
      assert.include(JSON.stringify(first), JSON.stringify(text))
      if (query === "format=ndjson") assert.deepStrictEqual(first, JSON.parse(kept))
    }
  })

  it("streams nothing as an empty NDJSON and a table with only its header", async () => {
    const lines = await get("/v1/events?id=none", { headers: { accept: "application/x-ndjson" } })
    assert.deepStrictEqual([lines.status, lines.text], [200, ""])
    const table = await get("/v1/events?id=none", { headers: { accept: "text/csv" } })
    assert.strictEqual(
      table.text,
      "sequence_number,id,timestamp,created_at,tenant_id,actor_id,actor_type,actor_email,action,"
        + "resource_id,resource_type,resource_name,outcome,metadata,prev_hash,hash\r\n"
    )
  })

  it("guards and quotes what stands in a table", async () => {
    const guarded = ["=1+1", "+1", "-1", "@x", "\tx", "\rx"]
    const plain = ["a,b", 'say "x"', "two\nlines", "'quoted", "a=b"]
    const events = [...guarded, ...plain].map((name) =>
      item(1, {
        timestamp: TRICKY,
        resource: { id: "r", type: "t", name },
        metadata: { "10": 1, "9": '","tenant_id":"x', b: [1, "é"] }
      })
    )
    await api.call("/v1/events/batch?sync=true", { key: WRITE_KEY, json: { events } })
    const answer = await get(`/v1/events?from=${TRICKY}&order=asc`, {
      headers: { accept: "text/csv" }
    })
    assert.match(String(answer.headers["content-type"]), /^text\/csv; charset=utf-8/)
    const names = readCsv(answer.text)
      .slice(1)
      .map((row) => row[11])
    assert.deepStrictEqual(names, [...guarded.map((name) => `'${name}`), ...plain])
    const metadata = new Set(
      readCsv(answer.text)
        .slice(1)
        .map((row) => row[13])
    )
    assert.deepStrictEqual([...metadata], ['{"10":1,"9":"\\",\\"tenant_id\\":\\"x","b":[1,"é"]}'])
    assert.isTrue(readCsv(answer.text).every((row) => row.length === 16))
  })

  it("leaves numbers in a table as they are, and guards texts only", async () => {
    const amounts = [-12.5, -1e-7, 1e21, "-5", "+5", true, "=1"]
    const events = amounts.map((amount) => item(1, { metadata: { amount } }))
    await api.call("/v1/events/batch?sync=true", { key: WRITE_KEY, json: { events } })
    const asked = "/v1/events?order=asc&format=csv&fields=metadata.amount&metadata.amount=*"
    const rows = readCsv((await get(asked)).text)
    assert.deepStrictEqual(rows.slice(1).flat(), [
      "-12.5",
      "-1e-7",
      "1e+21",
      "'-5",
      "'+5",
      "true",
      "'=1"
    ])
  })

  it("begins a table with a byte order mark where that is asked for", async () => {
    const mark = Buffer.from("\ufeff")
    const marked = await get("/v1/events?format=csv&bom=true")
    const plain = await get("/v1/events?bom=false", { headers: { accept: "text/csv" } })
    assert.deepStrictEqual(marked.bytes, Buffer.concat([mark, plain.bytes]))
    assert.strictEqual(plain.text.slice(0, 9), "sequence_")
    for (const query of ["bom=true", "bom=true&format=ndjson", "bom=true&format=parquet"]) {
      const { body, status } = await get(`/v1/events?${query}`)
      assert.deepStrictEqual([status, body.error.field], [400, "bom"], query)
    }
    assert.strictEqual((await get("/v1/events?format=csv&bom=1")).status, 400)
  })

  it("chooses the type that is liked best", async () => {
    const typeFor = async (accept: string) =>
      (await get("/v1/events?id=none", { headers: { accept } })).headers["content-type"]
    assert.strictEqual(await typeFor("*/*"), "application/json")
    assert.strictEqual(await typeFor("text/*"), "text/csv; charset=utf-8; header=present")
    assert.strictEqual(await typeFor("text/html, */*;q=0.1"), "application/json")
    assert.strictEqual(
      await typeFor("application/json;q=0.5, application/x-ndjson"),
      "application/x-ndjson"
    )
  })

  it("shows one event, and of two with one id the one that is asked for", async () => {
    const id = JSON.parse(api.world.bodies[4]!).id
    assert.strictEqual((await get(`/v1/events/${id}`)).text, api.world.bodies[4])
    assert.strictEqual((await get(`/v1/events/${id}?sequence_number=5`)).status, 200)
    const head = await get(`/v1/events/${id}`, { method: "HEAD" })
    assert.deepStrictEqual([head.status, head.text], [200, ""])
  })

  it("counts", async () => {
    const answer = await get("/v1/events/stats?to=2026-01-01T12:00:00Z&metadata.n=1&limit=1")
    assert.deepStrictEqual(answer.body, {
      groups: [{ key: "document.read", count: 1 }],
      other: 0,
      missing: 0,
      total: 1
    })
  })

  it.each([
    ["gzip", "gzip"],
    ["gzip, br, zstd", "zstd"],
    ["gzip;q=1.0, br;q=0.5, zstd;q=0.1", "gzip"],
    ["zstd;q=0, br;q=0.2, gzip;q=0.1", "br"],
    ["*", "zstd"],
    ["*;q=0.5, gzip", "gzip"],
    ["zstd;q=0, *", "br"],
    ["gzip;q=0", undefined],
    ["*;q=0", undefined],
    ["identity, gzip;q=0.5", undefined],
    ["identity;q=0.5, gzip", "gzip"],
    ["deflate", undefined],
    ["", undefined]
  ])("answers in the coding that a client likes best: %s", async (accepted, coding) => {
    const answer = await get("/v1/events", { headers: { "accept-encoding": accepted } })
    assert.strictEqual(answer.status, 200)
    assert.strictEqual(answer.headers["content-encoding"], coding)
    assert.include(String(answer.headers["vary"]), "Accept-Encoding")
  })

  it("compresses even little for those who take nothing else", async () => {
    for (const accepted of ["gzip, identity;q=0", "gzip, *;q=0"]) {
      const small = await get("/v1/events?id=none", { headers: { "accept-encoding": accepted } })
      assert.strictEqual(small.headers["content-encoding"], "gzip", accepted)
      assert.include(gunzipSync(small.bytes).toString(), '"total":0')
    }
  })

  it("compresses on request what is worth it", async () => {
    const plain = await get("/v1/events")
    const inflate = { gzip: gunzipSync, br: brotliDecompressSync, zstd: zstdDecompressSync }
    for (const [coding, undo] of Object.entries(inflate)) {
      const answer = await get("/v1/events", { headers: { "accept-encoding": coding } })
      assert.strictEqual(answer.headers["content-encoding"], coding)
      assert.strictEqual(undo(answer.bytes).toString(), plain.text)
      assert.include(String(answer.headers["vary"]), "Accept-Encoding")
    }
    const lines = await get("/v1/events", {
      headers: { "accept-encoding": "gzip", accept: "application/x-ndjson" }
    })
    assert.include(gunzipSync(lines.bytes).toString(), api.world.bodies[0]!)
    const small = await get("/v1/events?id=none", { headers: { "accept-encoding": "gzip" } })
    assert.isUndefined(small.headers["content-encoding"])
  })
})

/** A reader of RFC 4180 that shares no code with the writer. */
const readCsv = (text: string): Array<Array<string>> => {
  const rows: Array<Array<string>> = []
  let row: Array<string> = []
  let at = 0
  while (at < text.length) {
    let value = ""
    if (text[at] === '"') {
      for (at += 1; ; at++) {
        if (text[at] !== '"') value += text[at]
        else if (text[at + 1] === '"') value += text[at++]
        else break
      }
      at += 1
    } else {
      while (at < text.length && text[at] !== "," && !text.startsWith("\r\n", at)) {
        value += text[at++]
      }
    }
    row.push(value)
    if (text[at] === ",") {
      at += 1
      continue
    }
    rows.push(row)
    row = []
    at += 2
  }
  return rows
}
