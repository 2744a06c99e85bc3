/** The command line of the benchmark. */
import { assert, describe, it } from "vitest"
import { helpText, OptionsError, parseOptions } from "./Options.ts"

const scenarios = ["ingest", "latency", "lists"]
const parse = (...args: ReadonlyArray<string>) => parseOptions(args, scenarios)
const message = (...args: ReadonlyArray<string>): string => {
  try {
    parse(...args)
  } catch (error) {
    assert.instanceOf(error, OptionsError)
    return error.message
  }
  return "accepted"
}

describe("the options of the benchmark", () => {
  it("have the full numbers by default and small ones with --quick", () => {
    assert.include(parse(), { runs: 5, seconds: 60, quick: false, tenants: 10_000 })
    assert.include(parse("--quick"), { runs: 1, seconds: 1, quick: true })
    assert.include(parse("--quick", "--runs", "3"), { runs: 3, seconds: 1 })
  })

  it("take sizes with units, and put them in order", () => {
    assert.deepInclude(parse("--sizes", "10M,250k,7"), { sizes: [7, 250_000, 10_000_000] })
    assert.deepInclude(parse("--events", "2M"), { sizes: [2_000_000] })
  })

  it("take scenarios in the order in which they are measured", () => {
    assert.deepInclude(parse("--only", "lists, ingest"), { only: ["ingest", "lists"] })
  })

  it("refuse what they don't know, and say what there is", () => {
    assert.include(message("--only", "ingest,speed"), "ingest, latency, lists")
    assert.include(message("--runs", "0"), "--runs 0")
    assert.include(message("--sizes", "1G"), "--sizes 1G")
    assert.include(message("--sizes", "1M", "--events", "2M"), "--events")
    assert.include(message("--fast"), "--fast")
  })

  it("are explained, with each scenario", () => {
    assert.strictEqual(parse("--help"), "help")
    const help = helpText([["ingest", "Events a second"]])
    assert.match(help, /ingest {2,}Events a second/)
    assert.isTrue(help.split("\n").every((line) => line.length <= 100))
  })
})
