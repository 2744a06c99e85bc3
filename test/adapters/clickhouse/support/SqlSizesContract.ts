/**
 * How large what a statement makes can get, held against what the engine makes: run on the engine in
 * this process at length, and on the same engine behind HTTP.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import fc from "fast-check"
import { ClickHouseConnection } from "../../../../src/adapters/clickhouse/client/ClickHouseConnection.ts"
import { runs } from "../../../support/Runs.ts"
import { beyondBounds, callsOfAll, constants, conversions, growingCalls } from "./SqlSizing.ts"

/** Calls of each function that the engine computes, beside those that it refuses. */
const CALLS = runs(10)
/** Of a function, before it counts as one that needs other arguments. */
const ATTEMPTS = runs(100)
const EXPRESSIONS = runs(5_000)

export const sqlSizesContract = (
  what: string,
  connection: (database: string) => Layer.Layer<ClickHouseConnection, unknown>
): void => {
  layer(connection("alk_sql_sizes"), { excludeTestServices: true })(what, (it) => {
    const beyond = (expressions: ReadonlyArray<string>, enough?: number) =>
      ClickHouseConnection.use(({ client }) =>
        Effect.promise(() => beyondBounds(client, expressions, enough))
      )

    it.effect("bounds what makes more than it is given", () =>
      Effect.gen(function* () {
        const made = yield* beyond(growingCalls)
        assert.deepStrictEqual(made.beyond, [])
        assert.strictEqual(made.computed, growingCalls.length)
      })
    )

    it.effect("bounds the calls of every function", () =>
      Effect.gen(function* () {
        const all = callsOfAll(ATTEMPTS)
        let computed = 0
        for (const calls of all.values()) {
          const made = yield* beyond(calls, CALLS)
          assert.deepStrictEqual(made.beyond, [])
          if (made.computed > 0) computed += 1
        }
        assert.isAbove(computed, 0.3 * all.size)
      })
    )

    it.effect("bounds what is read as types in one another", () =>
      Effect.gen(function* () {
        const made = yield* beyond(fc.sample(conversions, { numRuns: EXPRESSIONS }))
        assert.deepStrictEqual(made.beyond, [])
        assert.isAbove(made.computed, 0.2 * EXPRESSIONS)
      })
    )

    it.effect("bounds expressions of constants", () =>
      Effect.gen(function* () {
        const made = yield* beyond(fc.sample(constants, { numRuns: EXPRESSIONS }))
        assert.deepStrictEqual(made.beyond, [])
        assert.isAbove(made.computed, 0.5 * EXPRESSIONS)
      })
    )
  })
}
