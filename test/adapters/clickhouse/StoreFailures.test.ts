/**
 * The store adapter against servers that fail: every failure is a `StoreUnavailable` that names the
 * operation, and an acknowledgement that says less than was given is a failure too.
 */
import { once } from "node:events"
import * as http from "node:http"
import { buffer } from "node:stream/consumers"
import { inspect } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import { ClickHouseConnection } from "../../../src/adapters/clickhouse/client/ClickHouseConnection.ts"
import { layerClickHouse } from "../../../src/adapters/clickhouse/EventStoreClickHouse.ts"
import { emptyFilter } from "../../../src/domain/events/EventFilter.ts"
import { EventStore, type StoreUnavailable } from "../../../src/ports/EventStore.ts"
import { chainOf, rowsOf } from "./support/StoredBodies.ts"

interface Received {
  readonly address: URL
  readonly body: string
}

/** A server that answers everything in one way, and what it received. */
const server = (answer: (response: http.ServerResponse) => void) =>
  Effect.gen(function* () {
    const received: Array<Received> = []
    const listening = yield* Effect.acquireRelease(
      Effect.promise(async () => {
        const made = http.createServer((request, response) => {
          void buffer(request).then((body) => {
            const address = new URL(request.url!, "http://127.0.0.1")
            received.push({ address, body: body.toString("latin1") })
            answer(response)
          })
        })
        made.listen(0, "127.0.0.1")
        await once(made, "listening")
        return made
      }),
      (made) =>
        Effect.sync(() => {
          made.close()
          made.closeAllConnections()
        })
    )
    const { port } = listening.address() as { readonly port: number }
    return { url: `http://127.0.0.1:${port}`, received }
  })

const on = <A>(
  url: string,
  use: Effect.Effect<A, StoreUnavailable, EventStore>,
  cluster?: string
): Effect.Effect<A, StoreUnavailable> =>
  use.pipe(
    Effect.provide(
      layerClickHouse.pipe(
        Layer.provide(
          ClickHouseConnection.layerServer({
            url,
            database: "alk",
            ...(cluster === undefined ? {} : { cluster })
          }).pipe(Layer.orDie)
        )
      )
    )
  )

const query = { tenantId: "t", filter: emptyFilter, order: "desc", offset: 0, limit: 5 } as const
const page = EventStore.use((store) => store.page(query, false))
const insert = EventStore.use((store) => store.insertEvents(rowsOf(chainOf("t", 3))))

const summary = (rows: number) => ({
  "x-clickhouse-summary": JSON.stringify({ written_rows: String(rows) })
})

describe("a store that fails", () => {
  it.live("is unavailable when nobody listens", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(on("http://127.0.0.1:1", page))
      assert.strictEqual(error._tag, "StoreUnavailable")
      assert.strictEqual(error.operation, "page")
      const { operation } = yield* Effect.flip(on("http://127.0.0.1:1", insert))
      assert.strictEqual(operation, "insertEvents")
    })
  )

  it.live("is unavailable when it answers half a row", () =>
    Effect.gen(function* () {
      const { url } = yield* server((response) =>
        response.writeHead(200, summary(0)).end(Buffer.from([1, 2, 3]))
      )
      assert.strictEqual((yield* Effect.flip(on(url, page)))._tag, "StoreUnavailable")
    })
  )

  it.live("is unavailable when the answer comes from something else", () =>
    Effect.gen(function* () {
      const { url: proxy } = yield* server((response) => response.end())
      const receipt = EventStore.use((store) => store.receipt("t", "r"))
      assert.strictEqual((yield* Effect.flip(on(proxy, receipt))).operation, "receipt")
      const { url: empty } = yield* server((response) => response.writeHead(200, summary(0)).end())
      assert.strictEqual((yield* Effect.flip(on(empty, page))).operation, "page")
      assert.isUndefined(yield* on(empty, receipt))
    })
  )

  it.live("is not used when it reads events differently", () =>
    Effect.gen(function* () {
      const answers = [
        ["", "unknown version"],
        ['[[], "99.1"]\n', "99.1"]
      ] as const
      for (const [answer, version] of answers) {
        const { received, url } = yield* server((response) => response.end(answer))
        const error = yield* Effect.flip(
          on(
            url,
            EventStore.use((store) => store.migrate)
          )
        )
        const message = `this ClickHouse (${version}) reads events differently (id, timestamp,`
        assert.include(String(error.cause), message)
        assert.strictEqual(received.length, 1)
      }
    })
  )

  it.live("is unavailable when it breaks off", () =>
    Effect.gen(function* () {
      const { url } = yield* server((response) => {
        response.writeHead(200, { "content-length": 100, ...summary(0) })
        response.write("x", () => response.destroy())
      })
      assert.strictEqual((yield* Effect.flip(on(url, page)))._tag, "StoreUnavailable")
    })
  )

  it.live("is asked once more when it closes a connection before it answers", () =>
    Effect.gen(function* () {
      for (const [resets, isRead] of [
        [1, true],
        [2, false]
      ] as const) {
        let requests = 0
        const { url } = yield* server((response) => {
          requests += 1
          if (requests <= resets) response.socket?.destroy()
          else response.writeHead(200, summary(0)).end()
        })
        const receipt = EventStore.use((store) => store.receipt("t", "r"))
        const exit = yield* Effect.exit(on(url, receipt))
        assert.strictEqual(Exit.isSuccess(exit), isRead)
        assert.strictEqual(requests, 2)
      }
    })
  )

  it.live("has not stored what it does not count", () =>
    Effect.gen(function* () {
      const { url: all } = yield* server((response) => response.writeHead(200, summary(3)).end())
      yield* on(all, insert)
      const { url: fewer } = yield* server((response) => response.writeHead(200, summary(2)).end())
      const error = yield* Effect.flip(on(fewer, insert))
      assert.include((error.cause as Error).message, "3 rows were given, 2 were stored")
      const { url: silent } = yield* server((response) => response.end())
      assert.strictEqual((yield* Effect.flip(on(silent, insert))).operation, "insertEvents")
    })
  )

  it.live("is given an insert again that it had no room for, and no other", () =>
    Effect.gen(function* () {
      const refusals = [
        ["241", "MEMORY_LIMIT_EXCEEDED", 3],
        ["202", "TOO_MANY_SIMULTANEOUS_QUERIES", 3],
        ["27", "CANNOT_PARSE_INPUT", 1],
        ["319", "UNKNOWN_STATUS_OF_INSERT", 1]
      ] as const
      for (const [code, type, expected] of refusals) {
        let requests = 0
        const { url } = yield* server((response) => {
          requests += 1
          return requests > 2
            ? response.writeHead(200, summary(3)).end()
            : response
                .writeHead(500, { "x-clickhouse-exception-code": code })
                .end(`Code: ${code}. DB::Exception: no. (${type})`)
        })
        const exit = yield* Effect.exit(on(url, insert))
        assert.strictEqual(requests, expected, type)
        assert.strictEqual(Exit.isSuccess(exit), expected === 3)
      }
    })
  )

  it.live("is not quoted where it quotes a body", () =>
    Effect.gen(function* () {
      const { url } = yield* server((response) =>
        response
          .writeHead(400, { "x-clickhouse-exception-code": "27" })
          .end("Code: 27. DB::Exception: Cannot parse: secret@example.com. (CANNOT_PARSE_INPUT)")
      )
      const error = yield* Effect.flip(on(url, insert))
      assert.notInclude(inspect(error, { depth: null, showHidden: true }), "secret")
      assert.include((error.cause as Error).message, "CANNOT_PARSE_INPUT")
    })
  )

  it.live("is asked to store first, and by a majority where there are replicas", () =>
    Effect.gen(function* () {
      const { received, url } = yield* server((response) =>
        response.writeHead(200, summary(3)).end()
      )
      yield* on(url, insert)
      yield* on(url, insert, "main")
      yield* Effect.flip(on(url, page, "main"))
      const [alone, replicated, read] = received
      assert.strictEqual(alone!.address.searchParams.get("async_insert"), "0")
      assert.strictEqual(alone!.address.searchParams.get("insert_deduplicate"), "0")
      assert.isFalse(alone!.address.searchParams.has("insert_quorum"))
      assert.strictEqual(replicated!.address.searchParams.get("insert_quorum"), "auto")
      assert.include(read!.body, "select_sequential_consistency = 1")
      assert.strictEqual(read!.address.searchParams.get("wait_end_of_query"), "1")
      assert.strictEqual(read!.address.searchParams.get("param_p0"), "t")
      assert.notInclude(read!.body, "'t'")
    })
  )

  it.live("refuses names that would end up in statements", () =>
    Effect.gen(function* () {
      for (const database of ["", "1x", "a b", "a;b", "a'b", "x".repeat(64)]) {
        const error = yield* Effect.flip(
          ClickHouseConnection.toServer({ url: "http://127.0.0.1:1", database })
        )
        assert.include(error.message, "CLICKHOUSE_DATABASE")
      }
      const cluster = "a' b"
      const error = yield* Effect.flip(
        ClickHouseConnection.toServer({ url: "http://127.0.0.1:1", database: "alk", cluster })
      )
      assert.include(error.message, "cluster")
    })
  )
})
