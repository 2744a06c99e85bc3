/**
 * `npm run bench`: what alk does on this machine, scenario by scenario, with the program, the
 * embedded broker, ClickHouse and the load on it together. `--help` says what it can be asked.
 */
import { killAll } from "./harness/Programs.ts"
import { helpText, OptionsError, parseOptions } from "./Options.ts"
import { Runner } from "./Runner.ts"
import { readResults, writeDocs, writeResults } from "./report/Files.ts"
import { originText, tablesOf, terminalTable } from "./report/Format.ts"
import type { Results } from "./report/Results.ts"
import { scenarios } from "./scenarios/All.ts"

const names = scenarios.map(({ name }) => name)

const print = (text: string): void => {
  process.stdout.write(`${text}\n`)
}

const show = (results: Results): void => {
  print(`\n${originText(results)}`)
  for (const scenario of results.scenarios) {
    print(`\n${scenario.title} (${scenario.seconds} s)`)
    if (scenario.failed !== undefined) print(`FAILED: ${scenario.failed}`)
    for (const table of tablesOf(scenario)) print(`\n${terminalTable(table)}`)
  }
}

/** With `--add`, the scenarios of before that this run has not measured. */
const joined = (before: Results | undefined, results: Results): Results => {
  if (before === undefined) return results
  const all = new Map([...before.scenarios, ...results.scenarios].map((one) => [one.name, one]))
  const against = results.against ?? before.against
  return {
    ...results,
    ...(against === undefined ? {} : { against }),
    quick: results.quick || before.quick,
    scenarios: names.flatMap((name) => all.get(name) ?? [])
  }
}

let stopping = false

/** Nothing that was started outlives the benchmark. npm passes a signal on that comes twice then. */
const stopWith = (code: number): void => {
  if (stopping) return
  stopping = true
  void killAll().finally(() => process.exit(code))
}

const main = async (): Promise<void> => {
  const options = parseOptions(process.argv.slice(2), names)
  if (options === "help") return print(helpText(scenarios.map(({ name, title }) => [name, title])))
  if (options.docs !== undefined) return writeDocs(options.docs)
  process.on("SIGINT", () => stopWith(130))
  process.on("SIGTERM", () => stopWith(143))
  process.on("SIGHUP", () => stopWith(129))
  const chosen = scenarios.filter(
    ({ name }) => options.only.length === 0 || options.only.includes(name)
  )
  const before = options.add ? readResults(options.out) : undefined
  const results = await new Runner(options).run(chosen, (sofar) => {
    // What a stop has made fail is no result.
    if (!stopping) writeResults(options.out, joined(before, sofar))
  })
  show(results)
  print(`\nTable, charts and numbers: ${options.out}`)
  if (results.scenarios.some(({ failed }) => failed !== undefined)) process.exitCode = 1
}

try {
  await main()
} catch (error) {
  if (!(error instanceof OptionsError)) throw error
  process.stderr.write(`${error.message}\nnpm run bench -- --help says what there is\n`)
  process.exitCode = 2
}
