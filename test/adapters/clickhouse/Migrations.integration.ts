/**
 * Numbered migrations: once each, whoever starts at the same time, and never a changed file.
 */
import * as fs from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { ChdbEngine } from "../../../src/adapters/clickhouse/client/ChdbEngine.ts"
import { ClickHouseConnection } from "../../../src/adapters/clickhouse/client/ClickHouseConnection.ts"
import {
  MigrationRefused,
  migrate,
  migrationsFolder
} from "../../../src/adapters/clickhouse/Migrations.ts"
import { temporaryFolder } from "./support/StoreProcesses.ts"

const engine = Layer.unwrap(Effect.map(temporaryFolder, ChdbEngine.layer))
const connection = ClickHouseConnection.layerEmbedded({ database: "unused" }).pipe(
  Layer.provide(engine)
)

const run = (database: string, folder?: string) =>
  ClickHouseConnection.use(({ client }) =>
    Effect.promise(() => migrate(client, { database }, folder))
  )

const refusal = (database: string, folder: string) =>
  ClickHouseConnection.use(({ client }) =>
    Effect.promise(() =>
      migrate(client, { database }, folder).then(
        () => assert.fail("it was not refused"),
        (cause: unknown) => {
          assert.instanceOf(cause, MigrationRefused)
          return cause.message
        }
      )
    )
  )

const recorded = (database: string) =>
  ClickHouseConnection.use(({ client }) =>
    Effect.promise(() =>
      client
        .query({
          query:
            `SELECT version, name, length(checksum) FROM ${database}.schema_migrations FINAL`
            + " ORDER BY version",
          format: "JSONCompactEachRow"
        })
        .then((answer) => answer.json())
    )
  )

const tablesOf = (database: string) =>
  ClickHouseConnection.use(({ client }) =>
    Effect.promise(() =>
      client
        .query({
          query:
            "SELECT groupArray(name) FROM (SELECT name FROM system.tables"
            + " WHERE database = {database:String} ORDER BY name)",
          query_params: { database },
          format: "JSONCompactEachRow"
        })
        .then((answer) => answer.json())
    )
  )

const files = fs
  .readdirSync(migrationsFolder)
  .filter((name) => name.endsWith(".sql"))
  .sort()
/** A version that no file has yet. */
const next = String(files.length + 1).padStart(4, "0")
const overNext = String(files.length + 2).padStart(4, "0")

/** A folder with copies of the migrations. */
const copies = Effect.map(temporaryFolder, (folder) => {
  for (const name of files) fs.copyFileSync(join(migrationsFolder, name), join(folder, name))
  return folder
})

layer(connection, { excludeTestServices: true })("migrations", (it) => {
  it.effect("make the tables once and record each file", () =>
    Effect.gen(function* () {
      yield* run("once")
      const tables = [
        [
          [
            "checkpoints",
            "conflicts",
            "events",
            "fact_conflicts",
            "facts",
            "receipts",
            "schema_migrations",
            "set_aside",
            "span_ids",
            "subtrees"
          ]
        ]
      ]
      assert.deepStrictEqual(yield* tablesOf("once"), tables)
      const expected = files.map((name, index) => [index + 1, name, 64])
      assert.deepStrictEqual(yield* recorded("once"), expected)
      yield* run("once")
      assert.deepStrictEqual(yield* recorded("once"), expected)
    })
  )

  it.effect("bear several processes that start together", () =>
    Effect.gen(function* () {
      yield* Effect.all(
        Array.from({ length: 5 }, () => run("together")),
        { concurrency: 5 }
      )
      assert.deepStrictEqual(
        yield* recorded("together"),
        files.map((name, index) => [index + 1, name, 64])
      )
    })
  )

  it.effect("go on where an older program stopped", () =>
    Effect.gen(function* () {
      const folder = yield* copies
      yield* run("older", folder)
      fs.writeFileSync(
        join(folder, `${next}_more.sql`),
        "CREATE TABLE IF NOT EXISTS {{database}}.more{{on_cluster}} (n UInt8)\n"
          + "ENGINE = {{replicated}}MergeTree ORDER BY n;\n"
          + "ALTER TABLE {{database}}.more ADD COLUMN IF NOT EXISTS text String;\n"
      )
      yield* run("older", folder)
      const [[tables]] = (yield* tablesOf("older")) as [[Array<string>]]
      assert.include(tables, "more")
      const message = yield* refusal("older", migrationsFolder)
      assert.include(message, `version ${Number(next)} (${next}_more.sql)`)
    })
  )

  it.effect("refuse a file that was changed after it was applied, and name it", () =>
    Effect.gen(function* () {
      const folder = yield* copies
      yield* run("changed", folder)
      fs.appendFileSync(join(folder, "0001_tables.sql"), "-- a comment\n")
      const message = yield* refusal("changed", folder)
      assert.include(message, "0001_tables.sql is not the file that was applied")
    })
  )

  it.effect("refuse tables of before the first release, and say what to set", () =>
    Effect.gen(function* () {
      const folder = yield* copies
      fs.renameSync(join(folder, "0001_tables.sql"), join(folder, "0001_events.sql"))
      yield* run("earlier", folder)
      const message = yield* refusal("earlier", migrationsFolder)
      assert.match(message, /before the first release.* new database \(CLICKHOUSE_DATABASE\)/)
    })
  )

  it.effect("refuse gaps in the numbers and placeholders that nobody fills in", () =>
    Effect.gen(function* () {
      const folder = yield* copies
      fs.writeFileSync(join(folder, `${overNext}_gap.sql`), "SELECT 1;")
      assert.include(yield* refusal("gaps", folder), `${overNext}_gap.sql`)
      fs.rmSync(join(folder, `${overNext}_gap.sql`))
      fs.writeFileSync(join(folder, `${next}_unknown.sql`), "SELECT {{what}};")
      assert.include(yield* refusal("gaps", folder), "{{what}}")
    })
  )
})
