/**
 * What a run of the benchmark leaves behind: results.json has this form. Knows nothing of how it is
 * measured or shown.
 */
import { median } from "./Statistics.ts"

/** Rates are better the higher they are, everything else the lower. */
export type Unit =
  | "events/s"
  | "operations/s"
  | "spans/s"
  | "records/s"
  | "rows/s"
  | "requests/s"
  | "deliveries/s"
  | "MB/s"
  | "ratio"
  | "ms"
  | "s"
  | "µs"
  | "MB"
  | "streams"

const HIGHER_IS_BETTER = /\/s$|^ratio$/

/** Which program: that of this checkout, or that of `--against`. */
export type Measured = "this" | "against"

export interface Figure {
  readonly name: string
  readonly of: Measured
  readonly unit: Unit
  /** One value a run. */
  readonly values: ReadonlyArray<number>
  readonly goal?: number
  /** Figures of the same sum are its parts, such as the CPU of each group of threads. */
  readonly sum?: string
}

export interface ScenarioResult {
  readonly name: string
  readonly title: string
  /** What was measured on what, in sentences. */
  readonly about: string
  /** Commit of the program; ends with -dirty where files were changed. */
  readonly commit: string
  /** Seconds that the scenario took. */
  readonly seconds: number
  readonly figures: ReadonlyArray<Figure>
  /** Why the scenario has no result, or not all of it. */
  readonly failed?: string
}

export interface Machine {
  readonly cpu: string
  readonly cores: number
  /** Gigabytes of 10^9 bytes. */
  readonly memory: number
  readonly kernel: string
  /** Programs that ran or waited before the benchmark did, as a mean over a minute. */
  readonly loadBefore: number
  readonly node: string
  readonly clickhouse: string
  readonly kafka: string
  readonly java: string
}

export interface Results {
  readonly machine: Machine
  /** Commit of `--against`. */
  readonly against?: string
  /** Day of the run, YYYY-MM-DD. */
  readonly day: string
  /** Numbers of `--quick` are for a look, not for a comparison. */
  readonly quick: boolean
  readonly scenarios: ReadonlyArray<ScenarioResult>
}

/** Whether the median reaches the goal; undefined for a figure without one. */
export const reached = ({ goal, unit, values }: Figure): boolean | undefined => {
  if (goal === undefined) return undefined
  const value = median(values)
  return HIGHER_IS_BETTER.test(unit) ? value >= goal : value <= goal
}

/** Run by run one figure over another one. */
export const ratio = (name: string, over: Figure, under: Figure, goal?: number): Figure => ({
  name,
  of: over.of,
  unit: "ratio",
  values: over.values.slice(0, under.values.length).map((value, run) => value / under.values[run]!),
  ...(goal === undefined ? {} : { goal })
})

/** What a scenario has measured so far, figure by figure in the order in which they came. */
export class Recorder {
  readonly #figures = new Map<string, Figure>()
  readonly #withGoals: boolean

  /** Without goals where the numbers are too small to be held against them. */
  constructor(withGoals = true) {
    this.#withGoals = withGoals
  }

  /** One value more of a figure. */
  add(
    name: string,
    unit: Unit,
    value: number,
    more: { readonly of?: Measured; readonly goal?: number; readonly sum?: string } = {}
  ): void {
    if (!Number.isFinite(value)) throw new Error(`${name}: ${value} is no measurement`)
    const { of = "this", ...rest } = more
    const key = JSON.stringify([name, of, unit, rest.sum])
    const before = this.#figures.get(key)?.values ?? []
    // Goals are those of this program, not of an earlier one.
    const isGoal = this.#withGoals && of === "this" && rest.goal !== undefined
    const goal = isGoal ? { goal: rest.goal! } : {}
    const sum = rest.sum === undefined ? {} : { sum: rest.sum }
    this.#figures.set(key, { name, of, unit, values: [...before, value], ...goal, ...sum })
  }

  /** Undefined if nothing of this name was measured. */
  figure(name: string, of: Measured = "this"): Figure | undefined {
    return this.figures().find((one) => one.name === name && one.of === of && !("sum" in one))
  }

  /** Puts the ratio of two figures beside them; nothing if one of them is missing. */
  ratio(
    name: string,
    over: readonly [name: string, of?: Measured],
    under: readonly [name: string, of?: Measured],
    goal?: number
  ): void {
    const [left, right] = [this.figure(...over), this.figure(...under)]
    if (left === undefined || right === undefined) return
    const figure = ratio(name, left, right, this.#withGoals ? goal : undefined)
    this.#figures.set(JSON.stringify([name, figure.of, "ratio"]), figure)
  }

  figures(): ReadonlyArray<Figure> {
    return [...this.#figures.values()]
  }
}
