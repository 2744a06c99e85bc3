/**
 * The blocks of the pages run as they are. A page is one shell at a terminal, with a tenant of its
 * own; all pages share one service. Programs in TypeScript and Python run in the same shell, SQL in
 * the store. CONTRIBUTING.md says what the fences mean.
 */
import { execFile, spawnSync } from "node:child_process"
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, join, resolve } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { Client } from "../support/Client.ts"
import { ADMIN_TOKEN, freshFolder, type Started, start, testKey } from "../support/Program.ts"
import { type Block, blocks, blocksOf, fenceOf, placeOf } from "./Pages.ts"
import { showsPrinted } from "./Shapes.ts"
import { standInsFor } from "./StandIns.ts"

/** Commands that go on until they are stopped have to run for so long. */
const ENDLESS_SECONDS = 3
/** Programs that go on have to print the event of a seeded page within so long. */
const SEEDED_EVENT = "document.read alice"
const SEEDED_EVENT_SECONDS = 60

/** What the blocks of a page have to print, besides ending well and what the page itself shows. */
const PRINTED: Readonly<Record<string, ReadonlyArray<string>>> = {
  "README.md": ['"total":1', '"valid":true'],
  "docs/start.md": ["AUTHENTIC"],
  "docs/send.md": ['"duplicates":[{"index":0,"sequence_number":1}]'],
  "docs/security.md": ['"alk_live_', '"erased_at"'],
  "docs/evidence.md": ["AUTHENTIC"],
  "docs/agents.md": ['"critical_path"', '"valid":true'],
  "docs/subscribe.md": ["1 document.read", SEEDED_EVENT],
  "docs/verify.md": ['"valid":true', '"leaf_index":0', SEEDED_EVENT]
}

/** Pages that speak of a log that has events. */
const SEEDED = ["evidence", "query", "subscribe", "verify"].map((name) => `docs/${name}.md`)

/** Output that no block of its page prints, and the test that compares it. */
const PRINTED_ELSEWHERE: Readonly<Record<string, string>> = {
  "test/examples/consumers/README.md": "test/consumers/Consumers.e2e.ts"
}

const MS_MAX = 500_000
const TERMINAL_COLUMNS = 120

const RUN = ["sh", "sh endless", "ts", "ts endless", "python"]
const runs = (block: Block): boolean => RUN.includes(fenceOf(block))
const pagesThatRun = [...new Set(blocks.filter(runs).map(({ page }) => page))]
const pagesWithKeys = new Set([
  ...pagesThatRun,
  ...blocks.filter((block) => fenceOf(block) === "sql").map(({ page }) => page)
])

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
let programs: ReadonlyArray<string>

/** The text with the addresses, the key and the tenant that hold here. */
const filledIn = ({ page, text }: Block): string =>
  text
    .replaceAll("http://127.0.0.1:8080", running.url)
    .replaceAll("YOUR_KEY", testKey(tenantOf(page)))
    .replaceAll("TENANT", tenantOf(page))

/** A shell in which a refused request fails, and in which the variables of docs/start.md are set. */
const prelude = (page: string): string => `set -euo pipefail
exec 2>${nameOf(page)}.errors
stty cols ${TERMINAL_COLUMNS}
curl() { command curl --fail-with-body --silent --show-error --max-time 120 "$@"; }
export -f curl
export ALK_URL=${running.url} ALK_API_KEY=${testKey(tenantOf(page))}
export B=$ALK_URL H="Authorization: Bearer $ALK_API_KEY"
export ALK_ADMIN_TOKEN=${ADMIN_TOKEN} PYTHONPATH=test/examples/python
until_the_event() {
  "$@" > lines.txt & local pid=$!
  for _ in $(seq ${SEEDED_EVENT_SECONDS}0); do
    grep -q ${quoted(SEEDED_EVENT)} lines.txt && break; sleep 0.1
  done
  kill $pid; cat lines.txt; grep -q ${quoted(SEEDED_EVENT)} lines.txt
}
`

const nameOf = (page: string): string => tenantOf(page)
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/** The blocks that are one program with this one. */
const programOf = (block: Block): ReadonlyArray<Block> =>
  block.kind === "endless"
    ? [block]
    : blocksOf(block.page).filter((other) => fenceOf(other) === fenceOf(block))

/** Where a program is; only the last block of a program has a file. */
const fileOf = (block: Block): string | undefined => {
  const last = programOf(block).at(-1)!
  if (last.line !== block.line) return undefined
  return `${nameOf(block.page)}-${block.line}.${block.language === "ts" ? "ts" : "py"}`
}

/** Writes the programs of all pages; gives the names of their files. */
const writePrograms = (): ReadonlyArray<string> =>
  blocks
    .filter(({ language }) => language === "ts" || language === "python")
    .flatMap((block) => {
      const file = fileOf(block)
      if (file === undefined) return []
      writeFileSync(join(workplace, file), `${programOf(block).map(filledIn).join("\n")}\n`)
      return [file]
    })

const commandFor = (block: Block): string => {
  const text = filledIn(block)
  if (block.language === "sh") {
    if (block.kind !== "endless") return [...standInsFor(block), text].join("\n")
    const limit = `timeout --foreground ${ENDLESS_SECONDS}`
    return `${limit} bash -c ${quoted(text)} && exit 1 || test $? = 124`
  }
  const file = fileOf(block)
  if (file === undefined) return ":"
  const interpreter = block.language === "ts" ? "node --preserve-symlinks-main" : "python3 -B"
  return `${block.kind === "endless" ? "until_the_event " : ""}${interpreter} ${file}`
}

/** The commands of a block; functions that stand in for programs are gone after it. */
const runnable = (block: Block): string => {
  const lines = [`echo '== ${placeOf(block)}' >&2`, `printf '\\n== ${placeOf(block)}\\n'`]
  const names = standInsFor(block).map((text) => text.slice(0, text.indexOf("(")))
  const waiting = 'for job in $(jobs -p); do wait "$job"; done'
  const after = names.length === 0 ? [] : [waiting, `unset -f ${names.join(" ")}`]
  return [...lines, commandFor(block), ...after].join("\n")
}

const TERMINAL = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"

/** What the blocks of a page print, by line of the block; fails with all of it where one fails. */
const runPage = (page: string): Promise<ReadonlyMap<number, string>> =>
  new Promise((done, failed) => {
    const script = join(workplace, `${nameOf(page)}.sh`)
    const text = [prelude(page), ...blocksOf(page).filter(runs).map(runnable)].join("\n")
    writeFileSync(script, `${text}\n`)
    execFile(
      "python3",
      ["-c", TERMINAL, "bash", script],
      {
        cwd: workplace,
        env: {
          ...process.env,
          PATH: [join(workplace, "node_modules/.bin"), process.env["PATH"]].join(delimiter)
        },
        timeout: MS_MAX,
        maxBuffer: 64 * 1_048_576
      },
      (error, output) => {
        const errors = readFileSync(join(workplace, `${nameOf(page)}.errors`), "utf8")
        const printed = output.replaceAll("\r\n", "\n")
        if (error !== null || errors.includes("ERROR")) {
          failed(new Error(`${page}: ${error?.code}\n${errors}\n${printed.slice(-2_000)}`))
          return
        }
        const parts = printed.split(/^== .*:(\d+)$/m).slice(1)
        const byLine = new Map<number, string>()
        for (let at = 0; at < parts.length; at += 2) byLine.set(Number(parts[at]), parts[at + 1]!)
        done(byLine)
      }
    )
  })

/** What the page shows of output, compared with what the block above it has printed. */
const assertShown = (page: string, printed: ReadonlyMap<number, string>): void => {
  for (const shown of blocksOf(page).filter((block) => fenceOf(block) === "text output")) {
    const above = blocksOf(page).findLast((block) => runs(block) && block.line < shown.line)
    assert.isDefined(above, `${placeOf(shown)}: there is no command above it`)
    const output = printed.get(above!.line) ?? ""
    assert.isTrue(showsPrinted(shown.text, output), `${placeOf(shown)} is not in:\n${output}`)
  }
}

beforeAll(async () => {
  for (const name of readdirSync(".")) {
    if (!/^(?:\.git|\.data|coverage)$/.test(name)) symlinkSync(resolve(name), join(workplace, name))
  }
  mkdirSync(join(workplace, ".data"))
  running = await start({
    ALK_DATA_DIR: folder,
    ALK_ADMIN_TOKEN: ADMIN_TOKEN,
    ALK_ROLES: "api,sequencer,projection,store",
    ALK_BOOTSTRAP_KEYS: [...pagesWithKeys]
      .map((page) => `${testKey(tenantOf(page))}=${tenantOf(page)}:read+write`)
      .join(",")
  })
  for (const name of readdirSync(folder).filter((name) => /\.(?:env|properties)$/.test(name))) {
    symlinkSync(join(folder, name), join(workplace, ".data", name))
  }
  programs = writePrograms()
  const body = {
    actor: { id: "alice", type: "human" },
    action: "document.read",
    resource: { id: "doc-1", type: "document" },
    outcome: "success"
  }
  for (const page of SEEDED) {
    const client = new Client(running.url, testKey(tenantOf(page)))
    const { status } = await client.call("/v1/events?sync=true", { body })
    assert.strictEqual(status, 201)
  }
})

afterAll(async () => {
  await running?.stop()
  for (const made of [folder, workplace]) rmSync(made, { recursive: true, force: true })
})

describe("the programs of the pages", () => {
  it("compile", () => {
    const files = programs.filter((file) => file.endsWith(".ts"))
    const flags =
      "--ignoreConfig --noEmit --strict --skipLibCheck --preserveSymlinks --module nodenext"
    const { status, stdout } = spawnSync(
      "node",
      [
        "node_modules/typescript/bin/tsc",
        ...`${flags} --target es2024 --types node`.split(" "),
        ...files
      ],
      { cwd: workplace, encoding: "utf8" }
    )
    assert.strictEqual(status, 0, stdout)
  })
})

describe("the blocks of the pages", () => {
  for (const page of pagesThatRun) {
    it(`do what they say (${page})`, async () => {
      const printed = await runPage(page)
      const output = [...printed.values()].join("\n")
      for (const text of PRINTED[page] ?? []) assert.include(output, text)
      if (PRINTED_ELSEWHERE[page] === undefined) assertShown(page, printed)
    })
  }
})

/** The statements of a block are only read where the engine can't run them. */
const inStore = async (query: string): Promise<void> => {
  const password = readFileSync(join(folder, "store.password"), "utf8").trim()
  const headers = { authorization: `Basic ${btoa(`alk:${password}`)}` }
  const answer = await fetch(running.store, { method: "POST", body: query, headers })
  assert.strictEqual(answer.status, 200, await answer.text())
}

const sqlChecks: Readonly<Record<string, (block: Block) => Promise<void>>> = {
  sql: async ({ page, text: query }) => {
    const client = new Client(running.url, testKey(tenantOf(page)))
    const { status, text } = await client.call("/v1/sql", { body: { query } })
    assert.strictEqual(status, 200, text)
  },
  "sql store": ({ text }) => inStore(text),
  "sql admin": async ({ text }) => {
    for (const statement of text.split(/;(?:\n|$)/).filter(Boolean)) {
      await inStore(`SELECT formatQuery('${statement.replaceAll(/[\\']/g, "\\$&")}')`)
    }
  }
}

describe("the SQL of the pages", () => {
  for (const block of blocks.filter(({ language }) => language === "sql")) {
    it(`is answered (${placeOf(block)})`, () => sqlChecks[fenceOf(block)]!(block))
  }
})
