/**
 * What a run of the tests comes to, when files of the tiers on real parts get a second run. Pure:
 * RunTiers.ts runs them.
 */
import type { Results, TestEnd } from "./Results.ts"

export interface Run {
  /** Exit code of Vitest. */
  readonly code: number
  /** Undefined if it ended before it wrote them. */
  readonly results: Results | undefined
}

export interface Verdict {
  readonly passed: boolean
  /** Files that may run once more. */
  readonly retried: ReadonlyArray<string>
  /** What failed and what was flaky. */
  readonly lines: ReadonlyArray<string>
  /** `N passed, N failed, N skipped` */
  readonly counts: string
}

/** Units and measurements have no second run: there is no machine to blame for a unit. */
const SECOND_CHANCE = new Set(["integration", "e2e", "all"])

/** More files than this don't fail by luck: they are not run again. */
export const FILES_RETRIED_MAX = 10

/** Characters of an error that are repeated of a failure, and of something flaky. */
const ERROR_LENGTH_MAX = 1_500
const FLAKY_LENGTH_MAX = 300

const nameOf = ({ file, name }: TestEnd): string =>
  name === "" ? `${file} (outside of its tests)` : `${file} > ${name}`

const isFailed = ({ state }: TestEnd): boolean => state === "failed"

const failureOf = (test: TestEnd): string =>
  `FAILED ${nameOf(test)}\n${(test.error ?? "").slice(0, ERROR_LENGTH_MAX)}\n`

const flakyLine = (test: TestEnd): string => {
  const [line = ""] = (test.error ?? "").split("\n")
  return `flaky: ${nameOf(test)} (first error: ${line.slice(0, FLAKY_LENGTH_MAX)})`
}

/** Whether Vitest failed although no test did, or has nothing to show. */
const troubleOf = ({ code, results }: Run): ReadonlyArray<string> => {
  if (results === undefined) return [`FAILED: the run ended with ${code} and no results`]
  const unhandled = results.unhandled.map(
    (error) => `FAILED outside of all files\n${error.slice(0, ERROR_LENGTH_MAX)}\n`
  )
  if (unhandled.length > 0) return unhandled
  if (results.tests.length === 0) return ["FAILED: no test was run"]
  return code !== 0 && !results.tests.some(isFailed)
    ? [`FAILED: the run ended with ${code}, though no test failed`]
    : []
}

export const judge = (first: Run, again?: Run): Verdict => {
  const all = first.results?.tests ?? []
  const unlucky = new Set(
    all.filter((test) => isFailed(test) && SECOND_CHANCE.has(test.tier)).map(({ file }) => file)
  )
  const retried = unlucky.size > FILES_RETRIED_MAX ? [] : [...unlucky]
  const later = again?.results?.tests ?? []
  const ranAgain = new Set(again === undefined ? [] : retried)
  // Of a file that ran again only the second run counts, all of it.
  const ends = [...all.filter(({ file }) => !ranAgain.has(file)), ...later]
  const failed = ends.filter(isFailed)
  const missing = [...ranAgain].filter((name) => !later.some(({ file }) => file === name))
  const trouble = [
    ...troubleOf(first),
    ...(again === undefined ? [] : troubleOf(again)),
    ...missing.map((file) => `FAILED ${file}: it did not run again`)
  ]
  const broken = new Set(failed.map(({ file }) => file))
  const flaky = all.filter(
    (test) => isFailed(test) && ranAgain.has(test.file) && !broken.has(test.file)
  )
  const count = (state: TestEnd["state"]): number =>
    ends.filter((test) => test.name !== "" && test.state === state).length
  const failures = failed.filter(({ name }) => name === "").length + count("failed")
  return {
    passed: failed.length === 0 && trouble.length === 0 && count("passed") > 0,
    retried,
    lines: [...failed.map(failureOf), ...trouble, ...flaky.map(flakyLine)],
    counts: `${count("passed")} passed, ${failures + trouble.length} failed, ${count("skipped")} skipped`
  }
}
