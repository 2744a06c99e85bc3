/** Filters against the independent evaluator, over as many expressions as the goal names. */
import { rmSync } from "node:fs"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { Client } from "../support/Client.ts"
import { agree, type Figures } from "../support/FilterAgreement.ts"
import { freshFolder, type Started, start, testKey } from "../support/Program.ts"

const EXPRESSIONS = 5_000
const ROUNDS = 25
const SEED = Number(process.env["FILTER_SEED"] ?? 5_000)
const folder = freshFolder("filters")
const names = Array.from({ length: ROUNDS }, (_, round) => `round-${round}`)
let running: Started

beforeAll(async () => {
  running = await start({
    ALK_DATA_DIR: folder,
    ALK_STREAMS_MAX: "10000",
    LOG_LEVEL: "warn",
    ALK_BOOTSTRAP_KEYS: names.map((name) => `${testKey(name)}=${name}:read+write`).join(",")
  })
})
afterAll(async () => {
  await running.stop()
  rmSync(folder, { recursive: true, force: true })
})

describe(`${EXPRESSIONS} random expressions`, () => {
  const figures: Array<Figures> = []

  it.each(names)(
    "mean the same in lists, tables, statistics, facets, streams and SQL as in the evaluator: %s",
    async (name) => {
      figures.push(
        await agree(new Client(running.url, testKey(name)), {
          seed: SEED + names.indexOf(name),
          events: 150,
          expressions: EXPRESSIONS / ROUNDS,
          concurrency: 4
        })
      )
    }
  )

  it("were all asked, and worth asking", () => {
    const sum = (name: keyof Figures) => figures.reduce((all, one) => all + one[name], 0)
    console.log(
      `${sum("expressions")} expressions, ${sum("refused")} refused, ${sum("empty")} without a `
        + `match, ${sum("matches")} matches, ${sum("statements")} asked by SQL too, seed ${SEED}`
    )
    assert.strictEqual(sum("expressions"), EXPRESSIONS)
    assert.isAbove(sum("matches"), EXPRESSIONS)
    assert.isAbove(sum("statements"), EXPRESSIONS / 10)
  })
})
