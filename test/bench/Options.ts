/** The command line of `npm run bench`. */
import { parseArgs } from "node:util"

export interface Options {
  readonly quick: boolean
  /** Names of scenarios, in their own order; empty for all. */
  readonly only: ReadonlyArray<string>
  /** Runs of each measurement. */
  readonly runs: number
  /** Seconds of each load. */
  readonly seconds: number
  /** Events of the store at which lists, verification and restarts are measured, ascending. */
  readonly sizes: ReadonlyArray<number>
  readonly tenants: number
  /** Folder for results.json, README.md and the charts. */
  readonly out: string
  /** Keeps the scenarios that results.json in `out` has and this run does not measure. */
  readonly add: boolean
  /** Another checkout, whose program is measured in turn with this one. */
  readonly against: string | undefined
  /** Data folder of the large store, kept afterwards. */
  readonly folder: string | undefined
  /** Folder of a run whose results go into docs/; nothing is measured then. */
  readonly docs: string | undefined
}

/** The command line can't be followed; the message says why. */
export class OptionsError extends Error {}

export const OUT_DEFAULT = "coverage/bench"

const FULL = { runs: 5, seconds: 60, sizes: [1e6, 10e6, 30e6], tenants: 10_000 }
const QUICK = { runs: 1, seconds: 1, sizes: [20_000], tenants: 50 }

const MULTIPLES: Readonly<Record<string, number>> = { "": 1, K: 1e3, M: 1e6 }

/** `250000`, `250K` or `10M`. */
const toCount = (name: string, text: string): number => {
  const [, digits, unit] = /^(\d+)([KM]?)$/i.exec(text) ?? []
  const count = Number(digits) * (MULTIPLES[(unit ?? "").toUpperCase()] ?? Number.NaN)
  if (Number.isSafeInteger(count) && count > 0) return count
  throw new OptionsError(`--${name} ${text}: give a positive number such as 250000, 250K or 10M`)
}

const toList = (text: string): ReadonlyArray<string> =>
  text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "")

const definitions = {
  help: { type: "boolean", default: false },
  quick: { type: "boolean", default: false },
  only: { type: "string" },
  runs: { type: "string" },
  seconds: { type: "string" },
  events: { type: "string" },
  sizes: { type: "string" },
  tenants: { type: "string" },
  out: { type: "string", default: OUT_DEFAULT },
  add: { type: "boolean", default: false },
  against: { type: "string" },
  folder: { type: "string" },
  docs: { type: "string" }
} as const

const parse = (args: ReadonlyArray<string>) => {
  try {
    return parseArgs({ args: [...args], options: definitions }).values
  } catch (error) {
    throw new OptionsError((error as Error).message)
  }
}

/** Throws OptionsError. `scenarios`: the names that there are. */
export const parseOptions = (
  args: ReadonlyArray<string>,
  scenarios: ReadonlyArray<string>
): Options | "help" => {
  const values = parse(args)
  if (values.help) return "help"
  const only = toList(values.only ?? "")
  const unknown = only.find((name) => !scenarios.includes(name))
  if (unknown !== undefined) {
    throw new OptionsError(`--only ${unknown}: there are ${scenarios.join(", ")}`)
  }
  for (const name of ["only", "sizes", "events"] as const) {
    const given = values[name]
    if (given !== undefined && toList(given).length === 0) {
      throw new OptionsError(`--${name} ${given}: give at least one`)
    }
  }
  if (values.events !== undefined && values.sizes !== undefined) {
    throw new OptionsError("--events is one size, --sizes are several: give one of them")
  }
  const defaults = values.quick ? QUICK : FULL
  const number = (name: "runs" | "seconds" | "tenants"): number =>
    values[name] === undefined ? defaults[name] : toCount(name, values[name])
  const sizes = values.sizes ?? values.events
  return {
    quick: values.quick,
    only: scenarios.filter((name) => only.includes(name)),
    runs: number("runs"),
    seconds: number("seconds"),
    sizes:
      sizes === undefined
        ? defaults.sizes
        : toList(sizes)
            .map((size) => toCount("sizes", size))
            .sort((left, right) => left - right),
    tenants: number("tenants"),
    out: values.out,
    add: values.add,
    against: values.against,
    folder: values.folder,
    docs: values.docs
  }
}

/** The text of `--help`. `scenarios`: name and title of each. */
export const helpText = (scenarios: ReadonlyArray<readonly [string, string]>): string => `\
npm run bench -- [options]

Measures this checkout on this machine: program, broker, ClickHouse and load together. Prints a
table, and writes it with charts and the numbers as JSON. Exits with 1 if a scenario failed.

  --quick           small numbers, within three minutes: for a look, not for a comparison
  --only A,B        these scenarios only
  --runs N          runs of each measurement (${FULL.runs})
  --seconds N       seconds of each load (${FULL.seconds})
  --sizes 1M,10M    events of the large store (${FULL.sizes.map((size) => `${size / 1e6}M`).join(",")})
  --events N        one size
  --tenants N       tenants of the scenario of that name (${FULL.tenants})
  --out FOLDER      where the results go (${OUT_DEFAULT})
  --add             keep the scenarios in FOLDER/results.json that this run does not measure
  --against PATH    another checkout with node_modules of its own, measured in turn with this one
  --folder PATH     data folder of the large store; kept, and taken up again by the next run
  --docs FOLDER     put the results in FOLDER into docs/speed.md; measures nothing

Scenarios:
${scenarios.map(([name, title]) => `  ${name.padEnd(16)}  ${title}`).join("\n")}
`
