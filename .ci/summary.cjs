/**
 * Says at the end of a CI run what failed, each test with the start of its message, and counts:
 * node summary.cjs RESULTS.json [RESULTS.json ...], results as Vitest's JSON reporter writes them.
 * A test that ran more than once counts once, and as failed if one of its runs failed. Exits with 1
 * on a failure.
 */
const { readFileSync } = require("node:fs")

/** Characters of a message that are repeated. */
const MESSAGE_LENGTH = 1500

const read = (path) => {
  try {
    return JSON.parse(readFileSync(path, "utf8"))
  } catch (error) {
    console.log(`no results of the tests in ${path}: ${error.message}`)
    return undefined
  }
}

const failuresOf = ({ testResults }) =>
  testResults.flatMap(({ assertionResults, message, name, status }) => {
    const failed = assertionResults.filter((one) => one.status === "failed")
    if (failed.length === 0) return status === "failed" ? [{ name, text: message ?? "" }] : []
    return failed.map(({ failureMessages, fullName }) => ({
      name: `${name} > ${fullName}`,
      text: (failureMessages ?? []).join("\n")
    }))
  })

const runs = process.argv.slice(2).map(read)
const failures = runs.map((run) => (run === undefined ? [] : failuresOf(run)))
for (const { name, text } of failures.flat()) {
  console.log(`FAILED ${name.replace(`${process.cwd()}/`, "")}\n${text.slice(0, MESSAGE_LENGTH)}\n`)
}
const failed = failures.flat().length
/** Each test once, with the end that counts: failed before passed before skipped. */
const ends = new Map()
for (const { name, assertionResults } of runs.flatMap((run) => run?.testResults ?? [])) {
  for (const { fullName, status } of assertionResults) {
    const test = `${name} > ${fullName}`
    const broke = ends.get(test) === "failed" || status === "failed"
    const passed = ends.get(test) === "passed" || status === "passed"
    ends.set(test, broke ? "failed" : passed ? "passed" : "skipped")
  }
}
const count = (end) => [...ends.values()].filter((one) => one === end).length
const passed = count("passed")
console.log(`${passed} passed, ${failed} failed, ${count("skipped")} skipped`)
const complete = runs.every((run) => run?.success === true)
process.exit(complete && passed > 0 && failed === 0 ? 0 : 1)
