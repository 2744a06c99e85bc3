/**
 * Runs tiers of the tests, one after the other, and what failed of those on real parts once more,
 * alone: `node test/support/RunTiers.ts TIER,TIER [arguments of Vitest]`. The last lines name what
 * failed, what passed only then (`flaky:`), and count every test once. Exits with 1 on a failure.
 */
import { spawn } from "node:child_process"
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import type { Results } from "./Results.ts"
import { judge } from "./Verdict.ts"

/** Where the two runs write what became of their tests, and this file what it comes to. */
const FOLDER = "coverage"
const FILES = {
  first: `${FOLDER}/first.json`,
  again: `${FOLDER}/again.json`,
  counts: `${FOLDER}/counts`
}
/** `random` seeds are below this. */
const SEEDS = 2 ** 31
const DEFAULT_SEED = "1"
const VITEST = "node_modules/vitest/vitest.mjs"

const vitest = (
  resultsFile: string,
  variables: Readonly<Record<string, string>>,
  more: ReadonlyArray<string>
): Promise<number> => {
  rmSync(resultsFile, { force: true })
  const child = spawn(process.execPath, [VITEST, "run", ...more], {
    env: { ...process.env, ...variables, TEST_RESULTS: resultsFile },
    stdio: "inherit"
  })
  process.once("SIGTERM", () => child.kill("SIGTERM"))
  return new Promise((resolve) => {
    child.once("error", () => resolve(1))
    child.once("exit", (code) => resolve(code ?? 1))
  })
}

/** Undefined if the run ended before it wrote them. */
const resultsIn = (file: string): Results | undefined => {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as Results
  } catch {
    return undefined
  }
}

/** Ctrl-C goes to Vitest too, which ends what it has started; nothing is run again then. */
let isInterrupted = false
process.on("SIGINT", () => {
  isInterrupted = true
})

const [tiers = "", ...more] = process.argv.slice(2)
const { TEST_SEED: wanted = DEFAULT_SEED } = process.env
const seed = wanted === "random" ? String(Math.floor(Math.random() * SEEDS)) : wanted
const variables = { TEST_SEED: seed }
const projects = tiers.split(",").flatMap((tier) => ["--project", tier])

const code = await vitest(FILES.first, variables, [...projects, ...more])
const first = { code, results: resultsIn(FILES.first) }
let verdict = judge(first)
const { retried } = verdict
if (retried.length > 0 && !isInterrupted) {
  console.log(`\nonce more, alone: ${retried.join(", ")}`)
  const again = await vitest(FILES.again, { ...variables, TEST_ALONE: "true" }, [
    ...projects,
    ...retried
  ])
  verdict = judge(first, { code: again, results: resultsIn(FILES.again) })
}
if (verdict.lines.length > 0) console.log(`\n${verdict.lines.join("\n")}`)
if (!verdict.passed && seed !== DEFAULT_SEED) console.log(`the same again: TEST_SEED=${seed}`)
console.log(verdict.counts)
mkdirSync(FOLDER, { recursive: true })
writeFileSync(FILES.counts, `${verdict.counts}\n`)
process.exitCode = verdict.passed ? 0 : 1
