/**
 * Erasing in the store: the details are gone from every column and every answer, nothing else
 * changes, and nobody who reads meanwhile sees an event twice or not at all. On the engine in this
 * process and on one behind HTTP.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Layer, Stream } from "effect"
import { inject } from "vitest"
import { ChdbEngine } from "../../../../src/adapters/clickhouse/client/ChdbEngine.ts"
import { ClickHouseConnection } from "../../../../src/adapters/clickhouse/client/ClickHouseConnection.ts"
import { layerClickHouse } from "../../../../src/adapters/clickhouse/EventStoreClickHouse.ts"
import { type EventFilter, emptyFilter } from "../../../../src/domain/events/EventFilter.ts"
import { recompute } from "../../../../src/domain/events/HashChain.ts"
import { EventStore } from "../../../../src/ports/EventStore.ts"
import { freshPrefix } from "../../../support/Log.ts"
import { Chain, erasedForm, type Fields } from "../../../verify/support/Chains.ts"
import { temporaryFolder } from "../support/StoreProcesses.ts"

const ERASED_AT = "2026-11-22T08:00:00.000000Z"

/** An event whose every detail holds the word Geheimnis, each in its own way. */
const telling = (n: number): Fields => ({
  actor: { id: `user-${n}`, type: "human", email: `geheimnis.${n}@example.com` },
  resource: { id: `doc-${n}`, type: "document", name: `Geheimnis „${n}“ 📄` },
  metadata: { note: `Geheimnis ${n}`, [`Geheimnis-${n}`]: [true, { deep: "Geheimnis" }], n }
})

const rowsOf = (bodies: ReadonlyArray<string>, partition: number, firstOffset = 0) =>
  bodies.map((body, index) => ({
    partition,
    offset: firstOffset + index,
    body: Buffer.from(body)
  }))

const page = (tenantId: string, filter: Partial<EventFilter> = {}, final = false) =>
  EventStore.use((store) =>
    store.page(
      { tenantId, filter: { ...emptyFilter, ...filter }, order: "asc", offset: 0, limit: 1_000 },
      final
    )
  )

const stored = (chain: Chain, partition = 1) =>
  EventStore.use((store) => store.insertEvents(rowsOf(chain.bodies, partition)))

const erase = (tenantId: string, ...sequences: ReadonlyArray<number>) =>
  EventStore.use((store) =>
    store.eraseDetails(
      tenantId,
      sequences.map((sequenceNumber) => ({ sequenceNumber, erasedAt: ERASED_AT }))
    )
  )

const command = (query: string) =>
  ClickHouseConnection.use(({ client }) => Effect.promise(() => client.command({ query })))

const ask = (query: string) =>
  ClickHouseConnection.use(({ client }) =>
    Effect.promise(async () => (await client.query({ query, format: "TabSeparated" })).text())
  )

/** Rows of a tenant in which a text stands, whatever the column. */
const holding = (tenantId: string, text: string) =>
  ClickHouseConnection.use(({ place }) =>
    ask(
      `SELECT count() FROM ${place.database}.events WHERE tenant_id = '${tenantId}'`
        + ` AND positionCaseInsensitiveUTF8(concat(${[
          "json",
          "if(toUnixTimestamp64Micro(erased_at) = 0, metadata, '')",
          "if(toUnixTimestamp64Micro(erased_at) = 0, search, '')",
          "id",
          "actor_id",
          "resource_id"
        ].join(", ")}), '${text}') > 0`
    )
  ).pipe(Effect.map(Number))

const rowsInStore = (tenantId: string, last: number) =>
  EventStore.use((store) => Stream.runCollect(store.rows(tenantId, 1, last))).pipe(
    Effect.map((chunks) => chunks.flat())
  )

const expected = (chain: Chain, ...erased: ReadonlyArray<number>): ReadonlyArray<string> =>
  chain.bodies.map((body, index) =>
    erased.includes(index + 1) ? erasedForm(body, ERASED_AT) : body
  )

const erasureContract = <E>(name: string, connection: Layer.Layer<ClickHouseConnection, E>) => {
  const stores = Layer.effectDiscard(EventStore.use((store) => store.migrate)).pipe(
    Layer.provideMerge(layerClickHouse),
    Layer.provideMerge(connection)
  )
  layer(stores, { excludeTestServices: true })(name, (it) => {
    it.effect("takes the details out of every column and every answer, and nothing else", () =>
      Effect.gen(function* () {
        const chain = new Chain("everywhere").extend(6, telling)
        yield* stored(chain)
        assert.strictEqual(yield* holding("everywhere", "geheimnis"), 6)
        yield* erase("everywhere", 2, 5)
        const bodies = expected(chain, 2, 5)
        for (const final of [false, true]) {
          const { total, ...shown } = yield* page("everywhere", {}, final)
          assert.deepStrictEqual([shown.bodies, total], [bodies, 6])
        }
        assert.strictEqual(yield* holding("everywhere", "geheimnis"), 4)
        const store = yield* EventStore
        const query = { tenantId: "everywhere", filter: emptyFilter, order: "asc" as const }
        const scanned = yield* Stream.runCollect(store.scan(query, false))
        assert.deepStrictEqual(scanned.flat(), bodies)
        assert.strictEqual(
          (yield* store.byId("everywhere", "event-2", undefined, false))?.body,
          bodies[1]
        )
        for (const row of yield* rowsInStore("everywhere", 6)) {
          const found = recompute(row.body)!
          assert.isTrue(found.exact)
          assert.strictEqual(found.hash, found.event.hash)
          assert.deepStrictEqual(
            row.wrongColumns.filter((column) => column !== "version"),
            []
          )
        }
      })
    )

    it.effect("leaves an event to be found by what is left of it, and by nothing else", () =>
      Effect.gen(function* () {
        const chain = new Chain("found").extend(3, telling)
        yield* stored(chain)
        yield* erase("found", 2)
        const totalOf = (filter: Partial<EventFilter>) =>
          page("found", filter).pipe(Effect.map(({ total }) => total))
        assert.strictEqual(yield* totalOf({ q: "geheimnis" }), 2)
        assert.strictEqual(yield* totalOf({ q: "user-1" }), 1)
        assert.strictEqual(yield* totalOf({ q: "DOC-1" }), 1)
        assert.strictEqual(yield* totalOf({ metadata: [{ path: "n", value: "1" }] }), 0)
        assert.strictEqual(yield* totalOf({ metadata: [{ path: "n", value: "2" }] }), 1)
        for (const filter of [{ id: "event-2" }, { actorId: "user-1" }, { resourceId: "doc-1" }]) {
          assert.deepStrictEqual((yield* page("found", filter)).bodies, [expected(chain, 2)[1]!])
        }
        const store = yield* EventStore
        const asked = { tenantId: "found", filter: emptyFilter, limit: 10 }
        const { total } = yield* store.stats({ ...asked, groupBy: ["actor_id"] }, false)
        assert.strictEqual(total, 3)
      })
    )

    it.effect("does it once: what is erased keeps its time, and nothing is written again", () =>
      Effect.gen(function* () {
        const chain = new Chain("once").extend(3, telling)
        yield* stored(chain)
        yield* erase("once", 1)
        const store = yield* EventStore
        const later = "2027-01-01T00:00:00.000000Z"
        yield* store.eraseDetails("once", [
          { sequenceNumber: 1, erasedAt: later },
          { sequenceNumber: 2, erasedAt: ERASED_AT },
          { sequenceNumber: 2, erasedAt: later },
          { sequenceNumber: 99, erasedAt: later }
        ])
        yield* store.eraseDetails("nobody", [{ sequenceNumber: 1, erasedAt: later }])
        yield* store.eraseDetails("once", [])
        assert.deepStrictEqual((yield* page("once")).bodies, expected(chain, 1, 2))
      })
    )

    it.effect("marks an event that has no details", () =>
      Effect.gen(function* () {
        const bare = { actor: { id: "u", type: "system" }, resource: { id: "r", type: "t" } }
        const chain = new Chain("bare").extend(2, () => bare)
        yield* stored(chain)
        yield* erase("bare", 1)
        assert.deepStrictEqual((yield* page("bare")).bodies, expected(chain, 1))
      })
    )

    it.effect("touches one tenant, and an event that speaks of erasures is like any other", () =>
      Effect.gen(function* () {
        const own = new Chain("own").extend(2, telling)
        const other = new Chain("other").extend(2, telling)
        own.append({ metadata: { erased_at: "never", details_salt: "none", note: "Geheimnis" } })
        yield* stored(own, 2)
        yield* stored(other, 3)
        yield* erase("own", 1, 3)
        assert.deepStrictEqual((yield* page("own")).bodies, expected(own, 1, 3))
        assert.deepStrictEqual((yield* page("other")).bodies, other.bodies)
      })
    )

    it.effect("erases each of several rows under one sequence as what it is", () =>
      Effect.gen(function* () {
        const chain = new Chain("forged").extend(3, telling)
        const body = chain.bodies[1]!
        const otherHash = body.replaceAll(/"hash":"[0-9a-f]{64}"/g, `"hash":"${"f".repeat(64)}"`)
        const otherBody = body
          .replace("human", "agent")
          .replace(/"hash":"[0-9a-f]{64}"}$/, `"hash":"${"e".repeat(64)}"}`)
        yield* stored(chain)
        const store = yield* EventStore
        const { place } = yield* ClickHouseConnection
        yield* store.insertEvents(rowsOf([otherHash], 1, 10))
        // Another hash keeps it from being merged with the event.
        yield* command(
          `INSERT INTO ${place.database}.events SELECT * REPLACE ('agent' AS actor_type,`
            + ` repeat('e', 64) AS hash) FROM ${place.database}.events`
            + ` WHERE tenant_id = 'forged' AND sequence_number = 2 AND kafka_offset < 10`
        )
        yield* erase("forged", 2)
        const bodies = (yield* rowsInStore("forged", 3)).map((row) => row.body)
        assert.sameMembers(bodies, [
          chain.bodies[0]!,
          ...[body, otherHash, otherBody].map((text) => erasedForm(text, ERASED_AT)),
          chain.bodies[2]!
        ])
      })
    )

    it.effect("shows each event once, whoever reads while 200 of them are erased", () =>
      Effect.gen(function* () {
        const count = 600
        const chain = new Chain("meanwhile").extend(count, telling)
        const third = Math.floor(count / 3)
        const store = yield* EventStore
        for (const from of [0, third, 2 * third]) {
          const rows = rowsOf(chain.bodies.slice(from, from + third), 4, from)
          yield* store.insertEvents(rows)
        }
        const erased = Array.from({ length: 200 }, (_, index) => 3 * index + 1)
        let looks = 0
        const look = Effect.gen(function* () {
          const final = looks % 2 === 0
          const { bodies, total } = yield* page("meanwhile", {}, final)
          const query = { tenantId: "meanwhile", filter: emptyFilter, order: "asc" as const }
          const scanned = (yield* Stream.runCollect(store.scan(query, final))).flat()
          for (const shown of [bodies, scanned]) {
            const numbers = shown.map((body) => recompute(body)!.event.sequence_number)
            assert.deepStrictEqual(
              numbers,
              Array.from({ length: count }, (_, index) => index + 1)
            )
          }
          assert.strictEqual(total, count)
          looks += 1
        })
        for (let at = 0; at < erased.length; at += 50) {
          const erasing = yield* Effect.forkChild(
            erase("meanwhile", ...erased.slice(at, at + 50)),
            { startImmediately: true }
          )
          do yield* look
          while (erasing.pollUnsafe() === undefined)
          yield* Fiber.join(erasing)
        }
        assert.deepStrictEqual((yield* page("meanwhile")).bodies, expected(chain, ...erased))
      })
    )

    it.effect("erases at once more, and larger ones, than one statement could name", () =>
      Effect.gen(function* () {
        const long = "\u{1F600}".repeat(256)
        const chain = new Chain("large").extend(200, (n) => ({
          ...telling(n),
          id: `${n}${long.slice(String(n).length * 2)}`,
          actor: { id: long, type: "agent", email: "geheimnis@example.com" },
          resource: { id: long, type: long, name: "Geheimnis" }
        }))
        yield* stored(chain, 5)
        const all = chain.bodies.map((_, index) => index + 1)
        yield* erase("large", ...all)
        assert.deepStrictEqual((yield* page("large")).bodies, expected(chain, ...all))
        assert.strictEqual(yield* holding("large", "geheimnis"), 0)
      })
    )

    it.effect("erases again what a late insert has brought back, merged or not", () =>
      Effect.gen(function* () {
        const chain = new Chain("late").extend(4, telling)
        chain.erase(2, { createdAt: ERASED_AT })
        const store = yield* EventStore
        const { place } = yield* ClickHouseConnection
        const rows = rowsOf(chain.bodies, 6, 100)
        yield* store.insertEvents(rows.slice(0, 4))
        yield* erase("late", 2)
        yield* store.insertEvents(rows.slice(4))
        for (const isMerged of [true, false]) {
          // An insert that was given up comes to its end after all.
          yield* store.insertEvents(rows.slice(0, 4))
          if (isMerged) yield* command(`OPTIMIZE TABLE ${place.database}.events FINAL`)
          assert.isAbove(yield* holding("late", "geheimnis 1"), 0)
          // Other partitions, and erasures that were there before, have nothing to do with it.
          yield* store.eraseAgain(7, 0)
          yield* store.eraseAgain(6, 105)
          assert.isAbove(yield* holding("late", "geheimnis 1"), 0)
          yield* store.eraseAgain(6, 100)
          assert.strictEqual(yield* holding("late", "geheimnis 1"), 0)
          assert.deepStrictEqual((yield* page("late", {}, true)).bodies, expected(chain, 2))
        }
        yield* store.mergeDuplicates
        assert.deepStrictEqual((yield* page("late")).bodies, expected(chain, 2))
      })
    )

    it.effect("erases again however many erasures there were", () =>
      Effect.gen(function* () {
        const count = 1_100
        const chain = new Chain("many").extend(count, telling)
        const last = chain.bodies.length
        for (const sequence of [1, 2]) {
          for (let index = 0; index < count / 2; index++) {
            chain.erase(sequence, { createdAt: ERASED_AT })
          }
        }
        chain.erase(3, { createdAt: ERASED_AT })
        const store = yield* EventStore
        yield* store.insertEvents(rowsOf(chain.bodies, 8))
        yield* store.eraseAgain(8, 0)
        const { bodies } = yield* page("many", { toSequence: 5 })
        assert.deepStrictEqual(bodies, expected(chain, 1, 2, 3).slice(0, 5))
        assert.isAbove(chain.bodies.length - last, 1_000)
      })
    )
  })
}

const database = `${freshPrefix()}_erasure`
const engine = Layer.unwrap(Effect.map(temporaryFolder, ChdbEngine.layer))

erasureContract(
  "an erasure in this process",
  ClickHouseConnection.layerEmbedded({ database }).pipe(Layer.provide(engine))
)
erasureContract(
  "an erasure behind HTTP",
  Layer.unwrap(
    Effect.sync(() => ClickHouseConnection.layerServer({ url: inject("storeUrl"), database }))
  )
)
