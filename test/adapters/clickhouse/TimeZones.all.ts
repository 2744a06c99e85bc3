/**
 * Every function of the engine that a statement may call, and where it takes the name of a time zone, or
 * a type that has one: ClickHouse opens what such a name says as a file.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { ChdbEngine } from "../../../src/adapters/clickhouse/client/ChdbEngine.ts"
import { refusalOf } from "../../../src/adapters/clickhouse/client/StatementGuard.ts"
import { readStatement } from "../../../src/adapters/clickhouse/sql/SqlStatement.ts"
import { allowedFunctions, isAllowedFunction } from "../../../src/domain/sql/SqlFunctions.ts"
import { typeArgument, zoneArgument } from "../../../src/domain/sql/SqlTimeZones.ts"
import { temporaryFolder } from "./support/StoreProcesses.ts"
import { placesOf } from "./support/ZoneProbes.ts"

const engine = Layer.unwrap(Effect.map(temporaryFolder, ChdbEngine.layer))

const isRead = (sql: string): boolean => {
  try {
    return readStatement(sql, []).text([]) !== ""
  } catch {
    return false
  }
}

layer(engine, { excludeTestServices: true })("time zones", (it) => {
  it.effect("are taken at no other argument than those that are looked at", () =>
    Effect.gen(function* () {
      const { run } = yield* ChdbEngine
      const failure = (sql: string) =>
        run({ sql }).then(
          () => "",
          ({ message }) => String(message)
        )
      const sql =
        "SELECT name FROM system.functions UNION DISTINCT SELECT alias_to FROM system.functions FORMAT TSV"
      const { bytes } = yield* Effect.promise(() => run({ sql }))
      const named = `${bytes}`.trim().split("\n")
      const isCalled = (name: string) =>
        /^\w+$/.test(name) && !/^sleep/.test(name) && refusalOf(`SELECT ${name}()`) === undefined
      const names = [...new Set([...allowedFunctions, ...named])].filter(isCalled)
      const found = new Set<string>()
      const probe = async () => {
        for (let name = names.pop(); name !== undefined; name = names.pop()) {
          for (const { at, count, kind, sql } of await placesOf(name, failure)) {
            found.add(name)
            const isKnown =
              kind === "zone" ? at >= zoneArgument(name) : at === typeArgument(name, count)
            assert.isTrue(isKnown, sql)
            assert.isString(refusalOf(sql), sql)
            if (isAllowedFunction(name)) assert.isFalse(isRead(sql), sql)
          }
        }
      }
      yield* Effect.promise(() => Promise.all([probe(), probe()]))
      assert.isAbove(found.size, 100)
    })
  )
})
