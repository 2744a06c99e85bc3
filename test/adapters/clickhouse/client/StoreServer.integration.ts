/**
 * The HTTP face of the embedded engine, byte by byte where the client doesn't show it: who may ask,
 * what it says of errors, what it does with compressed, huge and half bodies, and how it ends.
 */
import { once } from "node:events"
import { writeFileSync } from "node:fs"
import * as http from "node:http"
import { createServer } from "node:net"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { promisify } from "node:util"
import * as zlib from "node:zlib"
import { ClickHouseError, ClickHouseLogLevel, createClient } from "@clickhouse/client"
import { assert, describe, it, layer } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Redacted, Scope } from "effect"
import {
  ChdbEngine,
  type Statement
} from "../../../../src/adapters/clickhouse/client/ChdbEngine.ts"
import { refusalOf } from "../../../../src/adapters/clickhouse/client/StatementGuard.ts"
import { StoreServer } from "../../../../src/adapters/clickhouse/client/StoreServer.ts"
import { takesFunction } from "../../../../src/domain/sql/SqlFunctions.ts"
import { timeZones } from "../../../../src/domain/sql/SqlTimeZones.ts"
import { eventually } from "../../../support/Eventually.ts"
import { endless, found, killed, RUNNING } from "../support/Endless.ts"
import { hiddenCalls } from "../support/QuoteForms.ts"
import { temporaryFolder } from "../support/StoreProcesses.ts"

const silent = { level: ClickHouseLogLevel.OFF }

interface Reply {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  readonly body: string
}

interface Request {
  readonly method?: string
  readonly headers?: http.OutgoingHttpHeaders
  readonly body?: string | Buffer
}

const send = (url: string, { body, headers = {}, method = "POST" }: Request): Promise<Reply> =>
  new Promise((resolve, reject) => {
    const request = http.request(url, { method, headers, agent: false }, (response) => {
      const { headers, statusCode = 0 } = response
      text(response).then((body) => resolve({ status: statusCode, headers, body }), reject)
    })
    request.on("error", reject)
    request.end(body)
  })

/** Functions that make tables of nothing but the store and the statement, and engines that keep rows in it. */
const INSIDE: ReadonlyArray<string> = `
  AggregatingMergeTree CoalescingMergeTree CollapsingMergeTree Join Log MaterializedView Memory
  MergeTree Null ReplacingMergeTree Set StripeLog SummingMergeTree TinyLog
  VersionedCollapsingMergeTree View format generateRandom generateSeries generate_series input null
  numbers numbers_mt values view zeros zeros_mt
`
  .trim()
  .split(/\s+/)

const engine = Layer.unwrap(Effect.map(temporaryFolder, ChdbEngine.layer))

layer(StoreServer.layer({ port: 0 }).pipe(Layer.provideMerge(engine)), {
  excludeTestServices: true
})("the store's HTTP face", (it) => {
  const ask = (path: string, request: Request = {}) =>
    StoreServer.use(({ url }) => Effect.promise(() => send(`${url}${path}`, request)))
  const query = (sql: string) => encodeURIComponent(sql)

  it.effect("listens on loopback only and says where", () =>
    Effect.gen(function* () {
      const { host, port, url } = yield* StoreServer
      assert.strictEqual(host, "127.0.0.1")
      assert.strictEqual(url, `http://127.0.0.1:${port}`)
      const pong = yield* ask("/ping", { method: "GET" })
      assert.deepStrictEqual([pong.status, pong.body], [200, "Ok.\n"])
    })
  )

  it.effect("serves the unmodified client: ping, query, command, exec, insert, errors", () =>
    Effect.gen(function* () {
      const { url } = yield* StoreServer
      const client = createClient({ url, log: silent })
      yield* Effect.promise(async () => {
        assert.isTrue((await client.ping()).success)
        assert.isTrue((await client.ping({ select: true })).success)
        await client.command({
          query: "CREATE TABLE t (a String, n UInt64) ENGINE = MergeTree ORDER BY n"
        })
        const inserted = await client.insert({
          table: "t",
          values: [
            { a: "é\u{1F600}\n\t\\'\"", n: 1 },
            { a: "", n: 2 }
          ],
          format: "JSONEachRow"
        })
        assert.strictEqual(inserted.summary?.written_rows, "2")
        const answer = await client.query({
          query: "SELECT a, n FROM t WHERE a = {a:String} AND n < {n:UInt64}",
          query_params: { a: "é\u{1F600}\n\t\\'\"", n: 9 },
          query_id: "the-question",
          format: "JSONEachRow"
        })
        assert.strictEqual(answer.query_id, "the-question")
        assert.strictEqual(answer.response_headers["x-clickhouse-query-id"], "the-question")
        assert.deepStrictEqual(await answer.json(), [{ a: "é\u{1F600}\n\t\\'\"", n: 1 }])
        const executed = await client.exec({ query: "SELECT sum(n) FROM t FORMAT TSV" })
        assert.strictEqual(await text(executed.stream), "3\n")
        const error = await client.query({ query: "SELECT * FROM nowhere" }).catch((cause) => cause)
        assert.instanceOf(error, ClickHouseError)
        assert.deepStrictEqual([error.code, error.type], ["60", "UNKNOWN_TABLE"])
        await client.close()
      })
    })
  )

  it.effect("knows databases and settings for the length of one statement", () =>
    Effect.gen(function* () {
      yield* ask("/", { body: "CREATE DATABASE other" })
      yield* ask("/?database=other", { body: "CREATE TABLE mine (n UInt8) ENGINE = Memory" })
      const insert = `/?database=other&query=${query("INSERT INTO mine FORMAT TabSeparated")}`
      const inserted = yield* ask(insert, { body: "1\n2\n" })
      const summary = JSON.parse(String(inserted.headers["x-clickhouse-summary"]))
      assert.strictEqual(summary.written_rows, "2")
      const counted = yield* ask("/?database=other&max_threads=1", {
        body: "SELECT count(), getSetting('max_threads') FROM mine FORMAT TSV"
      })
      assert.strictEqual(counted.body, "2\t1\n")
      assert.strictEqual((yield* ask("/", { body: "SELECT count() FROM mine" })).status, 404)
      const refused = yield* ask("/?no_such_setting=1", { body: "SELECT 1" })
      assert.strictEqual(refused.headers["x-clickhouse-exception-code"], "497")
      const template = yield* ask("/?default_format=Template", { body: "SELECT 1" })
      assert.strictEqual(template.headers["x-clickhouse-exception-code"], "497")
      const forged = yield* ask("/?max_threads%3D1%3B%20x=1", { body: "SELECT 1" })
      assert.notStrictEqual(forged.status, 200)
    })
  )

  it.effect("tells what went wrong as ClickHouse does", () =>
    Effect.gen(function* () {
      const syntax = yield* ask("/", { body: "SELECT FROM WHERE" })
      assert.strictEqual(syntax.status, 400)
      assert.strictEqual(syntax.headers["x-clickhouse-exception-code"], "62")
      assert.match(syntax.body, /^Code: 62\. DB::Exception: /)
      const slow = yield* ask("/?max_execution_time=1", {
        body: "SELECT count() FROM numbers(100000000000) WHERE NOT ignore(sipHash64(number))"
      })
      assert.strictEqual(slow.headers["x-clickhouse-exception-code"], "159")
      const missing = yield* ask("/", { body: "SELECT {x:String}" })
      assert.strictEqual(missing.headers["x-clickhouse-exception-code"], "456")
    })
  )

  it.effect("reads compressed bodies, and no bomb", () =>
    Effect.gen(function* () {
      const compress = {
        gzip: promisify(zlib.gzip),
        zstd: promisify(zlib.zstdCompress),
        br: promisify(zlib.brotliCompress)
      }
      for (const [encoding, make] of Object.entries(compress)) {
        const body = yield* Effect.promise(() => make(Buffer.from("SELECT 'é' FORMAT TSV")))
        const answer = yield* ask("/", { body, headers: { "content-encoding": encoding } })
        assert.deepStrictEqual([answer.status, answer.body], [200, "é\n"], encoding)
      }
      const headers = { "content-encoding": "gzip" }
      const bomb = zlib.gzipSync(Buffer.alloc(150 * 1_048_576))
      assert.strictEqual((yield* ask("/", { body: bomb, headers })).status, 413)
      assert.strictEqual((yield* ask("/", { body: "no gzip", headers })).status, 400)
      const unknown = { "content-encoding": "deflate64" }
      assert.strictEqual((yield* ask("/", { body: "SELECT 1", headers: unknown })).status, 400)
    })
  )

  it.effect("refuses more than an insert can have", () =>
    Effect.gen(function* () {
      const body = Buffer.alloc(144 * 1_048_576 + 1, "SELECT 1 ")
      const outcome = yield* StoreServer.use(({ url }) =>
        Effect.promise(() =>
          send(`${url}/`, { body }).then(
            ({ status }) => status,
            () => 413
          )
        )
      )
      assert.strictEqual(outcome, 413)
      assert.strictEqual((yield* ask("/", { body: "SELECT 1" })).status, 200)
    })
  )

  it.effect("answers no web page, by whatever name it calls this host", () =>
    Effect.gen(function* () {
      const { port } = yield* StoreServer
      const strangers: ReadonlyArray<http.OutgoingHttpHeaders> = [
        { origin: "https://example.com" },
        { origin: "null" },
        { "sec-fetch-site": "cross-site" },
        { host: `example.com:${port}` }
      ]
      for (const headers of strangers) {
        for (const method of ["GET", "POST"]) {
          const { status } = yield* ask(`/?query=${query("SELECT 1")}`, { method, headers })
          assert.strictEqual(status, 403, JSON.stringify(headers))
        }
      }
      const { status } = yield* ask("/ping", { headers: { host: `localhost:${port}` } })
      assert.strictEqual(status, 200)
    })
  )

  it.effect("changes nothing by GET", () =>
    Effect.gen(function* () {
      const answer = yield* ask(`/?query=${query("CREATE DATABASE by_get")}`, { method: "GET" })
      assert.strictEqual(answer.headers["x-clickhouse-exception-code"], "164")
      const found = yield* ask("/", { body: "EXISTS DATABASE by_get FORMAT TSV" })
      assert.strictEqual(found.body, "0\n")
    })
  )

  it.effect("changes nothing by GET, whatever stands before", () =>
    Effect.gen(function* () {
      yield* ask("/", { body: "CREATE TABLE by_with (x UInt8) ENGINE = Memory" })
      const insert = query("WITH 1 AS y INSERT INTO by_with SELECT y")
      const answer = yield* ask(`/?query=${insert}`, { method: "GET" })
      assert.strictEqual(answer.headers["x-clickhouse-exception-code"], "164")
      const found = yield* ask("/", { body: "SELECT count() FROM by_with FORMAT TSV" })
      assert.strictEqual(found.body, "0\n")
    })
  )

  it.effect("opens no file and calls no host, by any function or engine that the engine has", () =>
    Effect.gen(function* () {
      const namesIn = Effect.fnUntraced(function* (table: string) {
        const { body } = yield* ask("/", { body: `SELECT name FROM system.${table} FORMAT TSV` })
        return body.trim().split("\n")
      })
      const isRefused = Effect.fnUntraced(function* (body: string) {
        const { headers, status } = yield* ask("/", { body })
        return status === 403 && headers["x-clickhouse-exception-code"] === "497"
      })
      const open: Array<string> = []
      for (const name of yield* namesIn("table_functions")) {
        if (!(yield* isRefused(`SELECT * FROM ${name}('/etc/hostname')`))) open.push(name)
      }
      for (const name of yield* namesIn("table_engines")) {
        const made = `CREATE TABLE made (a String) ENGINE = ${name}('/etc/hostname')`
        if (!(yield* isRefused(made))) open.push(name)
      }
      assert.deepStrictEqual(open.toSorted(), [...INSIDE].toSorted())
      const databases: Array<string> = []
      for (const name of yield* namesIn("database_engines")) {
        const made = `CREATE DATABASE made ENGINE = ${name}('/etc/hostname')`
        if (!(yield* isRefused(made))) databases.push(name)
      }
      const inside = ["Atomic", "Memory"]
      assert.deepStrictEqual(databases.toSorted(), inside)
      assert.isTrue(yield* isRefused("SELECT file('/etc/hostname')"))
      assert.isTrue(yield* isRefused("SELECT 1; SELECT 2"))
    })
  )

  it.effect("opens no file by a function's bare name, nor by the name of a database in parts", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const path = join(folder, "canary.csv")
      writeFileSync(path, "canary\n1\n")
      for (const body of [
        `SELECT * APPLY(file) FROM (SELECT '${path}' AS x)`,
        `SELECT arrayMap((file AS f), ['${path}'])`,
        `SELECT file\u200b('${path}')`,
        `SELECT 1 AS a$$, file('${path}') AS b$$`,
        `SELECT * FROM (SELECT * FROM loop(concat('def', 'ault'), '${path}') LIMIT 1)`,
        `SELECT hasColumnInTable(concat('def', 'ault'), '${path}', 'canary')`,
        "DROP TABLE IF EXISTS no PARALLEL WITH CREATE TABLE made (a String) ENGINE = File(CSV)"
      ]) {
        const { headers } = yield* ask("/", { body })
        assert.strictEqual(headers["x-clickhouse-exception-code"], "497", body)
      }
    })
  )

  it.effect("opens no file behind any two forms of comments and quotes", () =>
    Effect.gen(function* () {
      const path = join(yield* temporaryFolder, "canary.txt")
      writeFileSync(path, "canary")
      const { run } = yield* ChdbEngine
      const statements = hiddenCalls(`file(char(${[...Buffer.from(path)].join(", ")}))`)
      let opened = 0
      for (const sql of statements) {
        const { body } = yield* ask("/", { body: sql })
        assert.notInclude(body, "canary", sql)
        // Without the guard some of them do.
        const answer = Effect.promise(() => run({ sql }).then(({ bytes }) => `${bytes}`, String))
        if (refusalOf(sql) !== undefined && (yield* answer).includes("canary")) opened += 1
      }
      assert.isAbove(opened, 20)
    })
  )

  it.effect("knows the zones of the engine, and opens no file by the name of another one", () =>
    Effect.gen(function* () {
      const sql = "SELECT time_zone FROM system.time_zones FORMAT TSV"
      const { body } = yield* ask("/", { body: sql })
      assert.deepStrictEqual(timeZones, body.trim().split("\n").toSorted())
      for (const zone of timeZones) assert.notMatch(zone, /^(Fixed|posix|right)|\.\.|:/)
      const path = join(yield* temporaryFolder, "zone")
      writeFileSync(path, "no zone")
      for (const zone of [`file:${path}`, "Fixed/UTC+00:00:10"]) {
        for (const use of [`now('${zone}')`, `0::DateTime('${zone}')`]) {
          const { headers } = yield* ask("/", { body: `SELECT ${use}` })
          assert.strictEqual(headers["x-clickhouse-exception-code"], "497", use)
        }
      }
    })
  )

  it.effect("gives a function to another one only where its name is looked at", () =>
    Effect.gen(function* () {
      const names = yield* ask("/", { body: "SELECT name FROM system.functions FORMAT TSV" })
      const takers: Array<string> = []
      for (const name of names.body.trim().split("\n")) {
        const isSlow = name.startsWith("sleep")
        if (isSlow || refusalOf(`SELECT ${name}(1)`) !== undefined || takesFunction(name)) continue
        const sql = `SELECT ${name}(upper, ['a'])`
        if (refusalOf(sql)?.includes("time zone")) continue
        const { body } = yield* ask("/", { body: sql })
        if (!body.includes("Unknown expression")) takers.push(name)
      }
      // They say something else of their arguments before they look for any.
      assert.deepStrictEqual(takers, ["groupConcat", "group_concat"])
    })
  )

  it.effect("opens no file of its folder as the table of that name", () =>
    Effect.gen(function* () {
      for (const name of ["`package.json`", "default.`package.json`", "loop(`package.json`)"]) {
        const body = `SELECT * FROM ${name} LIMIT 1 FORMAT TSV`
        for (const path of ["/", "/?database=default", "/?database=Default"]) {
          const answer = yield* ask(path, { body })
          assert.notStrictEqual(answer.status, 200, `${path} ${body}`)
        }
      }
    })
  )

  it.effect("lets no statement change how later ones are answered", () =>
    Effect.gen(function* () {
      yield* ask("/", { body: "SET allow_ddl = 0" })
      yield* ask("/", { body: "USE default" })
      const made = yield* ask("/", { body: "CREATE DATABASE after_set" })
      assert.strictEqual(made.status, 200, made.body)
    })
  )
})

describe("the store's server", () => {
  it.live("lets in who knows the password", () =>
    Effect.gen(function* () {
      const settings = { port: 0, password: Redacted.make("öpen") }
      const context = yield* Layer.build(StoreServer.layer(settings).pipe(Layer.provide(engine)))
      const { url } = Context.get(context, StoreServer)
      const ping = (password: string | undefined) =>
        Effect.promise(async () => {
          const credentials = password === undefined ? {} : { password }
          const client = createClient({ url, log: silent, ...credentials })
          const { success } = await client.ping({ select: true })
          await client.close()
          return success
        })
      assert.isTrue(yield* ping("öpen"))
      assert.isFalse(yield* ping("open"))
      assert.isFalse(yield* ping(undefined))
    })
  )

  it.live("says which port is in use", () =>
    Effect.gen(function* () {
      const other = createServer()
      other.listen(0, "127.0.0.1")
      yield* Effect.promise(() => once(other, "listening"))
      const { port } = other.address() as { readonly port: number }
      const error = yield* Effect.flip(
        Layer.build(StoreServer.layer({ port }).pipe(Layer.provide(engine)))
      )
      other.close()
      assert.strictEqual(error._tag, "StoreServerNotStarted")
      assert.include(error.message, `Port ${port} of 127.0.0.1 is in use: set ALK_STORE_PORT`)
    })
  )

  it.live("forgets a statement that waits when its client is gone", () =>
    Effect.gen(function* () {
      const asked: Array<{ readonly sql: string; readonly outcome: Promise<unknown> }> = []
      const watched = Layer.effect(
        ChdbEngine,
        Effect.map(ChdbEngine, (own) => ({
          ...own,
          run: (statement: Statement) => {
            const answer = own.run(statement)
            asked.push({ sql: statement.sql, outcome: answer.then(() => "answered", String) })
            return answer
          }
        }))
      ).pipe(Layer.provide(engine))
      const server = StoreServer.layer({ port: 0 }).pipe(Layer.provide(watched))
      const { port, url } = Context.get(yield* Layer.build(server), StoreServer)
      const ask = (body: string) => Effect.promise(() => send(`${url}/`, { body }))
      const whenAsked = (sql: string) =>
        eventually(
          `the server is asked ${sql}`,
          Effect.sync(() => asked),
          (all) => all.some((one) => one.sql === sql)
        )
      const names = ["first", "second"]
      const busy = yield* Effect.forEach(names, (name) => Effect.forkChild(ask(endless(name))))
      for (const name of names) {
        yield* eventually(`${name} runs`, ask(found(name)), ({ body }) => body !== "")
      }
      const leaving = http.request({ port, method: "POST", agent: false })
      leaving.on("error", () => {})
      leaving.end(endless("left"))
      yield* whenAsked(endless("left"))
      leaving.destroy()
      const { outcome } = asked.find(({ sql }) => sql === endless("left"))!
      assert.include(
        yield* eventually(
          "it is forgotten",
          Effect.promise(() => outcome)
        ),
        "the client is gone"
      )
      // It was the next: whoever comes behind it gets the place, and nothing is left of it.
      const next = yield* Effect.forkChild(ask("SELECT 1 FORMAT TSV"))
      yield* whenAsked("SELECT 1 FORMAT TSV")
      for (const name of names) yield* ask(killed(name))
      assert.strictEqual((yield* Fiber.join(next)).body, "1\n")
      for (const fiber of busy) assert.include((yield* Fiber.join(fiber)).body, "CANCELLED")
      assert.strictEqual((yield* ask(found("left"))).body, "")
    })
  )

  it.live("finishes what it was asked before it ends, and then listens no more", () =>
    Effect.gen(function* () {
      const server = StoreServer.layer({ port: 0 }).pipe(Layer.provideMerge(engine))
      const scope = yield* Scope.make()
      const context = yield* Layer.buildWithScope(server, scope)
      const { url } = Context.get(context, StoreServer)
      const { run } = Context.get(context, ChdbEngine)
      const ask = (sql: string) => Effect.promise(() => run({ sql }))
      const answer = send(`${url}/`, { body: endless("asked") })
      yield* eventually("it runs", ask(RUNNING), ({ bytes }) => bytes.toString() === "asked\n")
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
      const late = Effect.promise(() =>
        send(`${url}/ping`, {}).then(
          () => "answered",
          (cause) => cause.code as string
        )
      )
      yield* eventually("nobody listens", late, (said) => said === "ECONNREFUSED")
      // It runs still, and is answered as it ends.
      assert.strictEqual((yield* ask(RUNNING)).bytes.toString(), "asked\n")
      yield* ask(killed("asked"))
      const { headers } = yield* Effect.promise(() => answer)
      assert.strictEqual(headers["x-clickhouse-exception-code"], "394")
      yield* Fiber.join(closing)
    })
  )
})
