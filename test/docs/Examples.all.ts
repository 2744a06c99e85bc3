/**
 * The blocks of the pages run as they are: commands, a page at a time, in one shell against one
 * service; SQL in its store; JSON against the schema that its fence names; programs in TypeScript.
 */
import { execFile, spawn, spawnSync } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, join, resolve } from "node:path"
import { Ajv2020 } from "ajv/dist/2020.js"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { openApiDocument } from "../../src/http/Api.ts"
import { Client } from "../support/Client.ts"
import { freePort } from "../support/FreePort.ts"
import { ADMIN_TOKEN, freshFolder, type Started, start, testKey } from "../support/Program.ts"
import { type Block, blocks } from "./Pages.ts"

/** Blocks that only have to be correct shell, by page and beginning, and why they are not run. */
const NOT_RUN: ReadonlyArray<readonly [page: string, beginning: string, reason: string]> = [
  ["README.md", "npm ci && npm start", "installs, and serves until it is stopped; test/e2e/Npm"],
  ["README.md", "npm ci && npm test", "installs, and runs tests"],
  ["docs/operations.md", "ALK_ROLES=store", "serves until it is stopped; test/e2e/Roles"],
  ["docs/operations.md", "export KAFKA_BROKERS", "serves until it is stopped; test/e2e/Roles"],
  ["docs/operations.md", "tar -czf", "there is no data folder where the pages run"],
  ["docs/platforms.md", "docker run", "needs a container engine; test/containers"],
  ["docs/speed.md", "npm run bench", "takes minutes; test/bench/Bench.all.ts"],
  ["docs/verification.md", "curl -sf $B/.well-known", "needs Go and a module; test/tlog"],
  ["CONTRIBUTING.md", "npm ci", "installs, and runs this test"]
]

/** Blocks that go on until they are stopped: they run for a while, and have to run on. */
const ENDLESS: ReadonlyArray<readonly [page: string, beginning: string]> = [
  ["docs/api.md", "curl -N"]
]
const ENDLESS_SECONDS = 3

/** What the commands of a page have to print, besides ending well. */
const PRINTED: Readonly<Record<string, ReadonlyArray<string>>> = {
  "README.md": ['"total":1', '"valid":true'],
  "docs/api.md": ['"duplicates":[{"index":0,"sequence_number":1}]', '"alk_live_', '"erased_at"'],
  "docs/evidence.md": ["AUTHENTIC"],
  "docs/traces.md": ['"critical_path"', '"valid":true'],
  "docs/verification.md": ['"valid":true', '"leaf_index":0']
}

const MS_MAX = 150_000

const place = ({ line, page }: Block): string => `${page}:${line}`

const isListed = (
  list: ReadonlyArray<readonly [string, string, string?]>,
  { page, text }: Block
): boolean => list.some(([where, beginning]) => where === page && text.startsWith(beginning))

const commands = blocks.filter(({ language }) => language === "sh")
const pagesThatRun = [
  ...new Set(commands.filter((block) => !isListed(NOT_RUN, block)).map(({ page }) => page))
]

/** The tenant of a page. */
const tenantOf = (page: string): string =>
  page
    .toLowerCase()
    .replaceAll(/[^a-z]+/g, "-")
    .replace(/-md$/, "")

const folder = freshFolder("docs")
/** Where the pages run: what the repository has, so that files which commands write are not in it. */
const workplace = mkdtempSync(join(tmpdir(), "alk-docs-workplace-"))
let running: Started

/** The text with the addresses and the key that hold here. */
const filledIn = ({ page, text }: Block): string =>
  text
    .replaceAll("http://127.0.0.1:8080", running.url)
    .replaceAll("127.0.0.1:9092", running.kafka)
    .replaceAll("YOUR_KEY", testKey(tenantOf(page)))

/** A shell in which a refused request fails, and in which a page's `B` and `H` are set. */
const prelude = (page: string): string => `set -euo pipefail
curl() { command curl --fail-with-body --silent --show-error --max-time 120 "$@"; }
export -f curl
export B=${running.url} H='Authorization: Bearer ${testKey(tenantOf(page))}'
export ALK_ADMIN_TOKEN=${ADMIN_TOKEN}
`

const runnable = (block: Block): string =>
  `echo '== ${place(block)}' >&2\n`
  + (isListed(ENDLESS, block)
    ? `timeout ${ENDLESS_SECONDS} bash -c ${quoted(filledIn(block))} && exit 1 || test $? = 124`
    : filledIn(block))

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

const environment = (): NodeJS.ProcessEnv => ({
  ...process.env,
  PATH: [join(workplace, "node_modules/.bin"), process.env["PATH"]].join(delimiter)
})

/** What the commands of a page print; fails with all of it where one of them fails. */
const runPage = (page: string): Promise<string> =>
  new Promise((done, failed) => {
    const script = [
      prelude(page),
      ...commands.filter((block) => block.page === page && !isListed(NOT_RUN, block)).map(runnable)
    ].join("\n")
    execFile(
      "bash",
      ["-c", script],
      { cwd: workplace, env: environment(), timeout: MS_MAX, maxBuffer: 64 * 1_048_576 },
      (error, output, errors) => {
        if (error === null) done(output)
        else
          failed(new Error(`${page} ended with ${error.code}:\n${errors}\n${output.slice(-2_000)}`))
      }
    )
  })

beforeAll(async () => {
  for (const name of readdirSync(".")) {
    if (!/^(?:\.git|\.data|coverage)$/.test(name)) symlinkSync(resolve(name), join(workplace, name))
  }
  running = await start({
    ALK_DATA_DIR: folder,
    ALK_KAFKA_PORT: String(await freePort()),
    ALK_ADMIN_TOKEN: ADMIN_TOKEN,
    ALK_ROLES: "api,sequencer,projection,store",
    ALK_STORE_PORT: "0",
    ALK_BOOTSTRAP_KEYS: pagesThatRun
      .map((page) => `${testKey(tenantOf(page))}=${tenantOf(page)}:read+write`)
      .join(",")
  })
  // The pages after the README speak of a log that has events.
  const body = {
    actor: { id: "alice", type: "human" },
    action: "document.read",
    resource: { id: "doc-1", type: "document" },
    outcome: "success"
  }
  for (const page of ["docs/evidence.md", "docs/subscribing.md", "docs/verification.md"]) {
    const client = new Client(running.url, testKey(tenantOf(page)))
    const { status } = await client.call("/v1/events?sync=true", { body })
    assert.strictEqual(status, 201)
  }
})

afterAll(async () => {
  await running?.stop()
  for (const made of [folder, workplace]) rmSync(made, { recursive: true, force: true })
})

describe("the commands of the pages", () => {
  it("are correct shell", () => {
    for (const block of commands) {
      const { status, stderr } = spawnSync("bash", ["-n"], { input: block.text, encoding: "utf8" })
      assert.strictEqual(status, 0, `${place(block)}: ${stderr}`)
    }
  })

  it("that are not run are there", () => {
    for (const [page, beginning] of [...NOT_RUN, ...ENDLESS]) {
      const found = commands.some((block) => isListed([[page, beginning]], block))
      assert.isTrue(found, `${page} has no block that begins with ${beginning}`)
    }
  })

  for (const page of pagesThatRun) {
    it(`of ${page} do what it says`, async () => {
      const output = await runPage(page)
      for (const text of PRINTED[page] ?? []) assert.include(output, text)
    })
  }
})

/** What is asked of alk is on a page of its own; the other pages ask the store. */
const answerTo = async ({ page, text: query }: Block) => {
  if (page === "docs/sql.md") {
    return new Client(running.url, testKey(tenantOf(page))).call("/v1/sql", { body: { query } })
  }
  const answer = await fetch(running.store, { method: "POST", body: query })
  return { status: answer.status, text: await answer.text() }
}

describe("the SQL of the pages", () => {
  for (const block of blocks.filter(({ language }) => language === "sql")) {
    it(`is answered (${place(block)})`, async () => {
      const { status, text } = await answerTo(block)
      assert.strictEqual(status, 200, text)
    })
  }
})

describe("the JSON of the pages", () => {
  for (const block of blocks.filter(({ language }) => language === "json")) {
    it(`fits the schema that it names (${place(block)})`, () => {
      const value = JSON.parse(block.text)
      assert.isDefined(block.schema, "name a schema of openapi.json after ```json")
      const ajv = new Ajv2020({ strict: false, validateFormats: false })
      ajv.addSchema(openApiDocument() as object, "openapi")
      const fits = ajv.validate({ $ref: `openapi#/components/schemas/${block.schema}` }, value)
      assert.isTrue(fits, ajv.errorsText())
    })
  }
})

describe("the programs of the pages", () => {
  for (const block of blocks.filter(({ language }) => language === "ts")) {
    it(`run as they are (${place(block)})`, async () => {
      const file = join(workplace, "example.ts")
      writeFileSync(file, filledIn(block))
      const errors = join(workplace, "errors.txt")
      const child = spawn(
        "bash",
        ["-c", `exec node --preserve-symlinks-main example.ts 2>${errors}`],
        {
          cwd: workplace,
          env: environment(),
          stdio: ["ignore", "pipe", "inherit"]
        }
      )
      let output = ""
      const timer = setTimeout(() => child.kill(), 60_000)
      for await (const chunk of child.stdout) {
        output += chunk
        if (output.includes("document.read")) break
      }
      clearTimeout(timer)
      child.kill()
      assert.include(output, `document.read alice`, readFileSync(errors, "utf8"))
    })
  }
})
