/**
 * A store of an earlier version: its rows are read as they were before, while and after they are
 * rewritten into columns, whenever the rewriting is broken off.
 */
import * as fs from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Layer, Stream } from "effect"
import { ChdbEngine } from "../../../../src/adapters/clickhouse/client/ChdbEngine.ts"
import { ClickHouseConnection } from "../../../../src/adapters/clickhouse/client/ClickHouseConnection.ts"
import { layerClickHouse } from "../../../../src/adapters/clickhouse/EventStoreClickHouse.ts"
import { migrate, migrationsFolder } from "../../../../src/adapters/clickhouse/Migrations.ts"
import { emptyFilter } from "../../../../src/domain/events/EventFilter.ts"
import { EventStore } from "../../../../src/ports/EventStore.ts"
import { eventually } from "../../../support/Eventually.ts"
import { Chain, erasedForm, type Fields } from "../../../verify/support/Chains.ts"
import { temporaryFolder } from "../support/StoreProcesses.ts"

/** Files of the version that kept every event as its bytes. */
const EARLIER = 7

const command = (query: string) =>
  ClickHouseConnection.use(({ client }) => Effect.promise(() => client.command({ query })))

const ask = (query: string) =>
  ClickHouseConnection.use(({ client }) =>
    Effect.promise(async () => (await client.query({ query, format: "TabSeparated" })).text())
  )

const literal = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`

/** Tables of the earlier version with these events. */
const earlier = Effect.fnUntraced(function* (database: string, bodies: ReadonlyArray<string>) {
  const folder = yield* temporaryFolder
  const files = fs.readdirSync(migrationsFolder).filter((name) => name.endsWith(".sql"))
  for (const name of files.sort().slice(0, EARLIER)) {
    fs.copyFileSync(join(migrationsFolder, name), join(folder, name))
  }
  const { client } = yield* ClickHouseConnection
  yield* Effect.promise(() => migrate(client, { database }, folder))
  const values = bodies.map((body, offset) => `(0, ${offset}, ${literal(body)})`)
  yield* command(
    `INSERT INTO ${database}.events (kafka_partition, kafka_offset, body)`
      + ` SELECT * FROM VALUES('p UInt32, o UInt64, b String', ${values.join(", ")})`
  )
})

const strange = '\u{1F600} \n " \\ é'
const anyFields = (n: number): Fields => ({
  actor: { id: `user-"${n}\\`, type: "human", email: `secret.${n}@example.com` },
  resource: { id: `doc-${n}`, type: "document", name: strange },
  metadata: { n, small: 1e-7, text: [strange, { deep: true }], [strange]: null }
})

const ERASED_AT = "2026-11-22T08:00:00.000000Z"

const shown = (tenantId: string) =>
  EventStore.use((store) =>
    store.page({ tenantId, filter: emptyFilter, order: "asc", offset: 0, limit: 1_000 }, false)
  ).pipe(Effect.map(({ bodies }) => bodies))

const database = "earlier"
const connection = ClickHouseConnection.layerEmbedded({ database }).pipe(
  Layer.provide(Layer.unwrap(Effect.map(temporaryFolder, ChdbEngine.layer)))
)

layer(layerClickHouse.pipe(Layer.provideMerge(connection)), {
  excludeTestServices: true
})("a store of an earlier version", (it) => {
  it.effect("gives the same answers before and after its rows are rewritten", () =>
    Effect.gen(function* () {
      const chain = new Chain("acme").extend(50, anyFields)
      chain.append({ actor: { id: "bare", type: "system" }, resource: { id: "r", type: "t" } })
      // Its metadata is not read by ClickHouse, so it is not rewritten.
      chain.append({ metadata: { big: 1e20 } })
      // A row that no columns give back.
      const forged = new Chain("forged").append({}).replace('"outcome":', '"note":1,"outcome":')
      const bodies = chain.bodies.map((body, index) =>
        index === 6 ? erasedForm(body, ERASED_AT) : body
      )
      yield* earlier(database, [...bodies, forged])
      const store = yield* EventStore
      yield* store.migrate
      assert.deepStrictEqual(yield* shown("acme"), bodies)
      const found = (q: string) =>
        store.page(
          {
            tenantId: "acme",
            filter: { ...emptyFilter, q },
            order: "asc",
            offset: 0,
            limit: 100
          },
          false
        )
      assert.strictEqual((yield* found("secret.")).total, 49)
      // What comes meanwhile, and what is erased meanwhile.
      const more = new Chain("later").extend(3, anyFields)
      yield* store.insertEvents(
        more.bodies.map((body, index) => ({
          partition: 0,
          offset: 1_000 + index,
          body: Buffer.from(body)
        }))
      )
      yield* store.eraseDetails("acme", [{ sequenceNumber: 9, erasedAt: ERASED_AT }])
      bodies[8] = erasedForm(bodies[8]!, ERASED_AT)
      assert.deepStrictEqual(yield* shown("acme"), bodies)
      // An erasure does not wait for the rewriting, which can't go on here.
      yield* command(`SYSTEM STOP MERGES ${database}.events`)
      const rewriting = yield* Effect.forkChild(store.upgrade)
      const waiting = `SELECT count() FROM system.mutations WHERE database = '${database}'`
      yield* eventually(
        "the rewriting waits for merges",
        ask(`${waiting} AND table = 'events' AND NOT is_done AND command LIKE '%actor_email%'`),
        (count) => Number(count) > 0
      )
      yield* store.eraseDetails("acme", [{ sequenceNumber: 12, erasedAt: ERASED_AT }])
      bodies[11] = erasedForm(bodies[11]!, ERASED_AT)
      assert.deepStrictEqual(yield* shown("acme"), bodies)
      yield* command(`SYSTEM START MERGES ${database}.events`)
      yield* Fiber.join(rewriting)
      assert.deepStrictEqual(yield* shown("acme"), bodies)
      assert.deepStrictEqual(yield* shown("forged"), [forged])
      assert.deepStrictEqual(yield* shown("later"), more.bodies)
      assert.strictEqual((yield* found("secret.")).total, 47)
      const kept = `SELECT tenant_id, sequence_number FROM ${database}.events WHERE body != ''`
      assert.strictEqual(
        yield* ask(`${kept} AND version = 0 ORDER BY tenant_id`),
        "acme\t52\nforged\t1\n"
      )
      const rows = (yield* Stream.runCollect(store.rows("acme", 1, 100))).flat()
      assert.deepStrictEqual(
        rows.flatMap(({ wrongColumns }) => wrongColumns.filter((name) => name !== "version")),
        []
      )
      assert.strictEqual(
        yield* ask(`SELECT state FROM ${database}.upgrades FINAL ORDER BY state`),
        "done\nstarted\n"
      )
      // Nothing is left to do.
      yield* store.upgrade
      yield* store.eraseDetails("acme", [{ sequenceNumber: 10, erasedAt: ERASED_AT }])
      bodies[9] = erasedForm(bodies[9]!, ERASED_AT)
      assert.deepStrictEqual(yield* shown("acme"), bodies)
      assert.strictEqual(yield* store.purgeErased, 3)
      assert.deepStrictEqual(yield* shown("acme"), bodies)
      assert.strictEqual(yield* store.purgeErased, 0)
    })
  )

  it.effect("says so, and keeps saying so, if the rows don't say any more what they said", () =>
    Effect.gen(function* () {
      const store = yield* EventStore
      yield* command(
        `INSERT INTO ${database}.upgrades (name, state, details) SELECT 'event_columns', 'started',`
          + ` '{"ends":{"0":51},"rows":99,"erased":3,"sum":"1"}'`
      )
      yield* command(
        `ALTER TABLE ${database}.upgrades DELETE WHERE state = 'done' SETTINGS mutations_sync = 2`
      )
      yield* store.upgrade
      const states = `SELECT state FROM ${database}.upgrades FINAL ORDER BY state`
      assert.strictEqual(yield* ask(states), "damaged\nstarted\n")
      yield* store.upgrade
      assert.strictEqual(yield* ask(states), "damaged\nstarted\n")
    })
  )
})
