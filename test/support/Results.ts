/**
 * A reporter of Vitest that keeps what RunTiers.ts needs to know: what became of each test, and the
 * errors that belong to none.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, relative } from "node:path"
import type { Reporter, SerializedError, TestModule } from "vitest/node"

export interface TestEnd {
  readonly tier: string
  /** Path from the folder of the project. */
  readonly file: string
  /** Names of its suites and its own; empty for what a file fails with outside of its tests. */
  readonly name: string
  readonly state: "passed" | "failed" | "skipped"
  /** What it failed with. */
  readonly error?: string
}

export interface Results {
  readonly tests: ReadonlyArray<TestEnd>
  /** Errors that no file and no test can be blamed for. */
  readonly unhandled: ReadonlyArray<string>
}

const textOf = (errors: ReadonlyArray<SerializedError>): string =>
  errors.map(({ message, stack }) => stack ?? message).join("\n")

const endsIn = (module: TestModule): ReadonlyArray<TestEnd> => {
  const place = { tier: module.project.name, file: relative(process.cwd(), module.moduleId) }
  const ends: Array<TestEnd> = []
  // What a file fails with before or between its tests: an import, a hook.
  const suites = [module, ...module.children.allSuites()]
  const outside = suites.flatMap((suite) => suite.errors())
  if (outside.length > 0) ends.push({ ...place, name: "", state: "failed", error: textOf(outside) })
  for (const test of module.children.allTests()) {
    const { errors, state } = test.result()
    ends.push({
      ...place,
      name: test.fullName,
      state: state === "passed" ? "passed" : state === "skipped" ? "skipped" : "failed",
      ...(state === "failed" && { error: textOf(errors) }),
      ...(state === "pending" && { error: "it did not end" })
    })
  }
  return ends
}

/** Written to the file that TEST_RESULTS names, if it names one. */
export default class ResultsReporter implements Reporter {
  onTestRunEnd(
    modules: ReadonlyArray<TestModule>,
    unhandled: ReadonlyArray<SerializedError>
  ): void {
    const file = process.env["TEST_RESULTS"]
    if (file === undefined) return
    const results: Results = {
      tests: modules.flatMap(endsIn),
      unhandled: unhandled.map((error) => textOf([error]))
    }
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, JSON.stringify(results))
  }
}
