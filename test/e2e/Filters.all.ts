/**
 * Filters mean the same everywhere, and what the documentation says: random expressions over random
 * events, compared with an evaluator that shares no code with the program; 5,000 of them in
 * `npm run test:large`.
 */
import { afterAll, assert, beforeAll, describe, inject, it } from "vitest"
import { Client } from "../support/Client.ts"
import { agree } from "../support/FilterAgreement.ts"
import { freshFolder, type Started, start, TEST_SECRET, testKey } from "../support/Program.ts"
import { runs } from "../support/Runs.ts"
import { signingKeyIn } from "../support/SigningKeyFile.ts"

const ROUNDS = 1
const EXPRESSIONS = runs(400)
const SEED = Number(process.env["FILTER_SEED"] ?? 20_261_121)
const names = Array.from({ length: ROUNDS }, (_, round) => `filters-${round}`)
let running: Started

beforeAll(async () => {
  running = await start({
    ALK_SECRET: TEST_SECRET,
    ALK_TOPIC_PREFIX: `filters${process.pid}`,
    CLICKHOUSE_DATABASE: `filters${process.pid}`,
    ALK_REPLICATION: "1",
    ALK_PARTITIONS: "2",
    ALK_STREAMS_MAX: "10000",
    ALK_SIGNING_KEY_FILE: signingKeyIn(freshFolder("filters-key")),
    LOG_LEVEL: "warn",
    KAFKA_BROKERS: inject("bootstrap"),
    CLICKHOUSE_URL: inject("storeUrl"),
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
