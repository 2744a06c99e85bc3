/** What is read before a command asks anything: arguments, contexts, and how failures are said. */
import { chmodSync, mkdtempSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "vitest"
import { jsonOf, refuseSecrets } from "../../src/cli/Arguments.ts"
import {
  contextsFile,
  readContexts,
  requireContext,
  resolveContext,
  withContext,
  writeContexts
} from "../../src/cli/Contexts.ts"
import { startLine } from "../../src/cli/commands/Service.ts"
import { commandFailureOf, linesOf } from "../../src/cli/Failure.ts"
import { queryOf } from "../../src/cli/Filters.ts"
import { cliPage } from "../../src/cli/HelpPage.ts"
import { makeProgram } from "../../src/cli/Program.ts"
import { ApiFailure } from "../../src/client/ApiFailure.ts"

const KEY = `alk_live_${"x".repeat(43)}`

describe("arguments", () => {
  it("are refused where one is a key", () => {
    for (const secret of [
      KEY,
      `shr_${"y".repeat(40)}`,
      `--key=${KEY}`,
      "--api-key",
      "--token",
      `Bearer ${KEY}`
    ]) {
      assert.throws(() => refuseSecrets(["events", secret]), /a key can't be an argument/, secret)
    }
    refuseSecrets(["send", '{"action":"key.made"}', "--id", "alk_live_", "keys"])
  })

  it("become parameters of the API", () => {
    assert.deepStrictEqual(
      queryOf({
        action: ["a.*"],
        actorType: ["human", "agent"],
        search: "tides",
        filter: ["metadata.n>=2", "sequence_number>5", "metadata.with=a=b", "metadata.with=c"]
      }),
      {
        action: ["a.*"],
        actor_type: ["human", "agent"],
        q: "tides",
        "metadata.n>": ["2"],
        "sequence_number>5": [""],
        "metadata.with": ["a=b", "c"]
      }
    )
    assert.deepStrictEqual(jsonOf("--metadata", '{"n":1}'), { n: 1 })
    for (const text of ["{", '{"n":12345678901234567890}', '{"a":1,"a":2}']) {
      assert.throws(() => jsonOf("--metadata", text), /^--metadata: /, text)
    }
    assert.throws(() => queryOf({ filter: ["=x"] }), /--filter: must be NAME=VALUE/)
  })
})

describe("contexts", () => {
  const home = mkdtempSync(join(tmpdir(), "alk-contexts-"))
  const environment = { XDG_CONFIG_HOME: home }
  const file = contextsFile(environment)
  afterAll(() => rmSync(home, { recursive: true }))

  it("are kept where only their owner reads, and not read where others could", () => {
    const stored = { url: "https://a.example", key: "key-a" }
    writeContexts(file, withContext(readContexts(file), "default", stored))
    assert.strictEqual(statSync(file).mode & 0o777, 0o600)
    assert.strictEqual(statSync(join(home, "alk")).mode & 0o777, 0o700)
    assert.deepStrictEqual(requireContext({}, environment), stored)
    chmodSync(file, 0o644)
    assert.throws(() => readContexts(file), /other users can read the keys/)
    chmodSync(file, 0o600)
  })

  it("give way to the environment, and never send a key to another address", () => {
    const ofEnvironment = { ...environment, ALK_URL: "https://b.example", ALK_API_KEY: "key-b" }
    const expected = { url: "https://b.example", key: "key-b" }
    assert.deepStrictEqual(resolveContext({}, ofEnvironment), expected)
    const elsewhere = resolveContext({ url: "https://c.example" }, environment)
    assert.deepStrictEqual(elsewhere, { url: "https://c.example", key: undefined })
    const same = resolveContext({ url: "https://a.example/" }, environment)
    assert.strictEqual(same.key, "key-a")
    const onlyKey = resolveContext({}, { ...environment, ALK_API_KEY: "key-b" })
    assert.deepStrictEqual(onlyKey, { url: "https://a.example", key: "key-b" })
    assert.throws(() => resolveContext({ context: "x" }, environment), /there are: default/)
  })
})

describe("failures", () => {
  const exitOf = (status: number, code: string) =>
    commandFailureOf(new ApiFailure(status, code, "m")).exitCode

  it("have an exit code, and name the next step", () => {
    assert.deepStrictEqual(
      [exitOf(0, "unreachable"), exitOf(401, "unauthorized"), exitOf(400, "invalid_request")],
      [3, 3, 2]
    )
    assert.deepStrictEqual([exitOf(404, "not_found"), exitOf(409, "id_conflict")], [1, 1])
    const broken = new ApiFailure(
      503,
      "unavailable",
      "checkpoint_mismatch: the checkpoint of size 3"
    )
    assert.strictEqual(commandFailureOf(broken).exitCode, 1)
    const failure = commandFailureOf(new ApiFailure(401, "unauthorized", "no such key"))
    assert.strictEqual(
      linesOf(failure),
      "alk: no such key [unauthorized]\nnext: give another key: alk login, or ALK_API_KEY\n"
    )
  })
})

describe("the program", () => {
  it("has examples for every command, and each of them is one of its commands", () => {
    const page = cliPage()
    for (const command of makeProgram().commands.filter(({ commands }) => commands.length === 0)) {
      assert.include(page, `## alk ${command.name()}\n`)
    }
    const sections = page.split("\n## ").slice(2)
    for (const text of sections) assert.match(text, /\nExamples:\n {2}\S/)
  })

  it("starts the service with the start line of package.json", () => {
    const { flags, variables } = startLine()
    assert.deepStrictEqual(variables, { UV_THREADPOOL_SIZE: "8" })
    assert.include(flags, "--max-semi-space-size=32")
  })
})
