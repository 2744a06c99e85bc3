import { defineConfig, type TestProjectConfiguration } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"

/**
 * The tests in tiers. The end of a file's name says its tier:
 *
 * - `.test.ts`: unit. No processes, no broker, no engine of a store; an API on doubles is fine. One
 *   process runs many files, so a test leaves nothing behind. `npm run test:unit`, within a minute.
 * - `.integration.ts`: parts of alk on a real broker and a real ClickHouse, which are started once
 *   for the whole run, or beside programs that share no code with alk (Python, a browser).
 * - `.e2e.ts`: the program, started as a user starts it and seen from outside.
 * - `.all.ts`: what costs more of either kind: other engines for the same contract, restarts, every
 *   column that can be tampered with, other people's clients, measurements.
 *
 * `npm test` runs the first three, and the type check beside them; each promise of the README is in
 * it once. `npm run test:all` runs all four, with ten times the runs of the properties
 * (test/support/Runs.ts). A test goes into the lowest tier that can show what it shows. New cases of
 * a promise that `npm test` already covers go into `.all.ts` when they take more than seconds.
 * Faults and sizes have configurations of their own: vitest.faults.config.ts, vitest.large.config.ts.
 */
interface Tier {
  readonly name: string
  readonly files: string
  /** Tiers of the same number run together; more workers than two cores, as many tests wait. */
  readonly order: number
  readonly workers: number
  /** A process per file: for tests that look at their own process, or fill it. */
  readonly isolate: boolean
  readonly globalSetup?: string
  readonly setupFiles?: string
}

const machine = { globalSetup: "test/support/Machine.ts" }

const tiers: ReadonlyArray<Tier> = [
  {
    name: "unit",
    files: "test/**/*.test.ts",
    order: 0,
    workers: 3,
    isolate: false,
    setupFiles: "test/support/NoProcesses.ts"
  },
  {
    name: "integration",
    files: "test/**/*.integration.ts",
    order: 1,
    workers: 3,
    isolate: false,
    ...machine
  },
  { name: "e2e", files: "test/**/*.e2e.ts", order: 1, workers: 3, isolate: true, ...machine },
  { name: "all", files: "test/**/*.all.ts", order: 2, workers: 3, isolate: true, ...machine }
]

const project = ({ files, name, order, workers, ...rest }: Tier): TestProjectConfiguration => ({
  test: {
    ...rest,
    name,
    include: [files],
    pool: "forks",
    maxWorkers: workers,
    sequence: { groupOrder: order },
    // A test that hangs ends; one that is slow on a busy machine does not.
    testTimeout: name === "all" ? 600_000 : 300_000,
    hookTimeout: 300_000
  }
})

/** Files that take long for their size: they start, wait, or run a contract from another file. */
const LONG =
  /\/e2e\/|FastAccept|FastSplit|OverHttp|InProcess|Types|Starting|Connections|Refusals|http\/Otlp/

/** Vitest begins with the largest files as long as it knows no times. */
class LongFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const rank = ({ moduleId, project }: TestSpecification): number =>
      project.config.sequence.groupOrder * 2 + (LONG.test(moduleId) ? 0 : 1)
    const sorted = await super.sort(files)
    return sorted.sort((left, right) => rank(left) - rank(right))
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: LongFirst },
    projects: tiers.map(project),
    reporters: ["default", "json"],
    outputFile: { json: "coverage/results.json" }
  }
})
