/** What a scenario is, and what it gets to measure with. */
import type { LargeStore } from "./harness/LargeStore.ts"
import type { Subject } from "./harness/Programs.ts"
import type { Options } from "./Options.ts"
import type { Recorder } from "./report/Results.ts"

export interface Bench {
  readonly options: Options
  /** This checkout, then that of `--against`. */
  readonly subjects: ReadonlyArray<Subject>
  readonly recorder: Recorder
  /** A line of progress. */
  readonly say: (line: string) => void
}

interface Described {
  /** As `--only` takes it. */
  readonly name: string
  readonly title: string
  /** What is measured on what: sentences for the report. */
  readonly about: (options: Options) => string
}

/** Starts the programs that it needs. */
export interface PlainScenario extends Described {
  readonly run: (bench: Bench) => Promise<void>
}

/** Measures the large store, once at each size. Only this checkout has one. */
export interface LargeScenario extends Described {
  readonly runAt: (bench: Bench, store: LargeStore, size: number) => Promise<void>
}

export type Scenario = PlainScenario | LargeScenario

/** Each run takes the subjects in another order, so that neither is always first. */
export const inTurn = async (
  { options, subjects }: Bench,
  once: (subject: Subject, run: number) => Promise<void>
): Promise<void> => {
  for (let run = 0; run < options.runs; run++) {
    const order = run % 2 === 0 ? subjects : [...subjects].reverse()
    for (const subject of order) await once(subject, run)
  }
}
