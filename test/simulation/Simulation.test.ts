/**
 * Two hundred runs of the service in memory, each with other faults; a thousand in
 * `npm run test:all`. One run alone, with all that happens in it:
 *
 *     SIMULATION_SEED=7 SIMULATION_LOG=1 npm run test:unit -- test/simulation
 *
 * SIMULATION_SEEDS says how many instead. The other tests break a promise on purpose: what no run
 * notices is not looked at.
 */
import { assert, describe, it } from "@effect/vitest"
import { runs } from "../support/Runs.ts"
import { type SimulationOptions, simulate } from "./Simulation.ts"

const { SIMULATION_LOG, SIMULATION_SEED, SIMULATION_SEEDS } = process.env

/** What CI has time for. */
const SEEDS_MAX = 1_000
const seeds =
  SIMULATION_SEED === undefined
    ? Array.from(
        { length: Number(SIMULATION_SEEDS ?? Math.min(runs(2_000), SEEDS_MAX)) },
        (_, seed) => seed
      )
    : [Number(SIMULATION_SEED)]

const log =
  SIMULATION_LOG === undefined ? {} : { log: (line: string) => process.stdout.write(`${line}\n`) }

/** Seeds that are tried until one of them notices what is broken. */
const BROKEN_SEEDS_MAX = 200
/** Seeds of a run that goes well. */
const LOSING_SEEDS = 20

/** What the first run says that notices it. */
const noticed = (options: Omit<SimulationOptions, "seed">, count = BROKEN_SEEDS_MAX): string => {
  for (let seed = 0; seed < count; seed++) {
    const { failure } = simulate({ ...options, seed })
    if (failure !== undefined) return failure
  }
  return "nothing"
}

/** Seeds of one test: in between the process answers those who wait for it. */
const SEEDS_AT_ONCE = 100
const parts = Array.from({ length: Math.ceil(seeds.length / SEEDS_AT_ONCE) }, (_, part) =>
  seeds.slice(part * SEEDS_AT_ONCE, (part + 1) * SEEDS_AT_ONCE)
)

describe("the service with faults between any two steps", () => {
  it.each(parts.map((part) => [`${part[0]} to ${part.at(-1)}`, part] as const))(
    "P1 and P2: loses nothing, shows nothing twice and comes to its end, seeds %s",
    async (_, part) => {
      for (const seed of part) {
        await new Promise((done) => setImmediate(done))
        const { failure } = simulate({ seed, ...log })
        assert.isUndefined(
          failure,
          `again with SIMULATION_SEED=${seed} SIMULATION_LOG=1: ${failure}`
        )
      }
    }
  )

  /** What another program's record of the same key makes compaction remove, and is gone itself. */
  it.each(["dedup/", "writer/"])("does so though the changelog loses its %s…", (prefix) => {
    const loses = ({ key, topic }: { readonly key: string | Buffer; readonly topic: string }) =>
      topic === "state" && String(key).startsWith(prefix)
    assert.strictEqual(noticed({ broken: { loses } }, LOSING_SEEDS), "nothing")
  })

  it("does the same again with the same seed", () => {
    assert.deepStrictEqual(simulate({ seed: 5 }), simulate({ seed: 5 }))
  })
})

describe("a run notices", () => {
  it("P2: a projection that does not wait for inserts of unknown outcome", () => {
    assert.match(noticed({ settleMs: 0 }), /a list: event \d+ of .* where \d+ was expected|twice/)
  })

  it("a sequencer that goes on although its transaction was not committed", () => {
    const found = noticed({ broken: { falseCommits: 0.1 } })
    assert.match(found, /no end|lacks what is visible|where \d+ was expected|does not link|is lost/)
  })

  it("an older sequencer that is not fenced by the places of its records", () => {
    const found = noticed({ broken: { isBlind: true } })
    assert.match(found, /where \d+ was expected|twice|does not link|no end/)
  })
})
