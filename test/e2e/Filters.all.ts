/**
 * Filters mean the same everywhere, and what the documentation says: random expressions over random
 * events, compared with an evaluator that shares no code with the program; 5,000 of them in
 * `npm run test:large`.
 */
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { Client } from "../support/Client.ts"
import { agree } from "../support/FilterAgreement.ts"
import { type Started, start, testKey } from "../support/Program.ts"
import { runs } from "../support/Runs.ts"
import { sharedParts } from "../support/SharedParts.ts"

const ROUNDS = 1
const EXPRESSIONS = runs(400)
const SEED = Number(process.env["FILTER_SEED"] ?? 20_261_121)
const names = Array.from({ length: ROUNDS }, (_, round) => `filters-${round}`)
let running: Started

beforeAll(async () => {
  running = await start({
    ...sharedParts("filters"),
    ALK_STREAMS_MAX: "10000",
    LOG_LEVEL: "warn",
    ALK_BOOTSTRAP_KEYS: names.map((name) => `${testKey(name)}=${name}:read+write`).join(",")
  })
})
afterAll(() => running.stop())

describe("filters, streams, lists, tables and statistics", () => {
  it.each(names)(
    "agree with the independent evaluator: %s",
    async (name) => {
      const round = names.indexOf(name)
      const figures = await agree(new Client(running.url, testKey(name), true, 5), {
        seed: SEED + round,
        events: 120,
        expressions: EXPRESSIONS,
        concurrency: 4
      })
      assert.strictEqual(figures.expressions, EXPRESSIONS)
      // Neither all nor nothing: the cases are worth asking.
      assert.isBelow(figures.refused, EXPRESSIONS / 2)
      assert.isAbove(figures.matches, EXPRESSIONS)
      assert.isAbove(figures.statements, EXPRESSIONS / 10)
    },
    600_000
  )
})
