import { defineConfig, type TestProjectConfiguration } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"

/**
 * The tests in tiers, which run one after the other. The end of a file's name says its tier:
 *
 * - `.test.ts`: unit. No processes, no broker, no engine of a store; an API on doubles is fine. One
 *   process runs many files, so a test leaves nothing behind. `npm run test:unit`, within a minute.
 * - `.integration.ts`: parts of alk on a real broker and a real ClickHouse, which are started once
 *   for the whole run, or beside programs that share no code with alk (Python, a browser).
 * - `.e2e.ts`: the program, started as a user starts it and seen from outside.
 * - `.all.ts`: what costs more of either kind: other engines for the same contract, restarts, every
 *   column that can be tampered with, other people's clients.
 * - `.limits.ts`: what has to stay below so many milliseconds, bytes or times something else. One
 *   after the other with nothing beside it, as what else runs would be measured, too.
 *
 * `npm test` runs the first three; each promise of the README is in it once. `npm run test:all` runs
 * all five, with ten times the runs of the properties (test/support/Runs.ts) and other seeds each
 * time. A test goes into the lowest tier that can show what it shows. New cases of a promise that
 * `npm test` already covers go into `.all.ts` when they take more than seconds. Faults and sizes have
 * configurations of their own: vitest.faults.config.ts, vitest.large.config.ts.
 */
interface Tier {
  readonly name: string
  readonly files: string
  readonly workers: number
  /** A process per file: for tests that look at their own process, or fill it. */
  readonly isolate: boolean
  /** Beside the seed of properties, which every tier has. */
  readonly setupFiles?: ReadonlyArray<string>
  readonly globalSetup?: string
  /** Milliseconds; a test that hangs ends, one that is slow on a busy machine does not. */
  readonly testTimeout: number
}

const TEST_TIMEOUT_MS = 300_000
const LONG_TEST_TIMEOUT_MS = 600_000

const machine = { globalSetup: "test/support/Machine.ts" }

const tiers: ReadonlyArray<Tier> = [
  {
    name: "unit",
    files: "test/**/*.test.ts",
    workers: 3,
    isolate: false,
    setupFiles: ["test/support/NoProcesses.ts"],
    testTimeout: TEST_TIMEOUT_MS
  },
  {
    name: "integration",
    files: "test/**/*.integration.ts",
    workers: 3,
    isolate: false,
    testTimeout: TEST_TIMEOUT_MS,
    ...machine
  },
  {
    name: "e2e",
    files: "test/**/*.e2e.ts",
    workers: 2,
    isolate: true,
    testTimeout: TEST_TIMEOUT_MS,
    ...machine
  },
  {
    name: "all",
    files: "test/**/*.all.ts",
    workers: 2,
    isolate: true,
    testTimeout: LONG_TEST_TIMEOUT_MS,
    ...machine
  },
  {
    name: "limits",
    files: "test/**/*.limits.ts",
    workers: 1,
    isolate: true,
    testTimeout: LONG_TEST_TIMEOUT_MS,
    ...machine
  }
]

/** Files that run a second time have the machine to themselves. */
const { TEST_ALONE: isAlone } = process.env

const project = (
  { files, name, setupFiles = [], workers, ...rest }: Tier,
  index: number
): TestProjectConfiguration => ({
  test: {
    ...rest,
    name,
    include: [files],
    setupFiles: ["test/support/Seed.ts", ...setupFiles],
    pool: "forks",
    maxWorkers: isAlone === undefined ? workers : 1,
    sequence: { groupOrder: index },
    hookTimeout: 300_000
  }
})

/** Files that take long for their size: they start, wait, or run a contract from another file. */
const LONG =
  /\/e2e\/|Simulation|FastAccept|OverHttp|InProcess|Starting|Connections|Refusals|ExportJobs|http\/Otlp/

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
    reporters: ["default", "./test/support/Results.ts"]
  }
})
