/**
 * Clients that others generate from the published document: they compile under the strictest
 * settings, and one of them sends metadata, pages by cursor and by page, and reads refusals. The
 * Python one has a script of its own, `test/clients/python.sh`.
 */
import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { OTHER_KEY } from "../http/support/Doubles.ts"
import { TestApi } from "../http/support/TestApi.ts"

const DOCUMENT = resolve("schemas/openapi.json")
const HOOK = new URL("../../src/tools/typescript5.mjs", import.meta.url).href
const OUTPUT_MAX = 16 * 1_048_576

const run = (program: string, ...args: ReadonlyArray<string>): void => {
  const { status, stderr, stdout } = spawnSync(process.execPath, [program, ...args], {
    encoding: "utf8",
    maxBuffer: OUTPUT_MAX
  })
  assert.strictEqual(status, 0, `${program}\n${stdout}\n${stderr}`)
}

const compilerOptions = {
  strict: true,
  noUncheckedIndexedAccess: true,
  noImplicitOverride: true,
  noEmit: true,
  target: "es2023",
  module: "esnext",
  moduleResolution: "bundler",
  lib: ["es2023", "dom", "dom.iterable"],
  types: []
}

/** What a user writes with the generated functions: checked with them, and run. */
const USAGE = `
import { createClient } from "./hey/client"
import {
  createEvent, createTraces, endExecution, listEvents, listExecutions, listSpans, startExecution,
  startSpan, verifyChain
} from "./hey"
import type { paths } from "./schema"

type Body = paths["/v1/events"]["post"]["requestBody"]["content"]["application/json"]
const event = (n: number): Body => ({
  actor: { id: "user_1", type: "human" },
  action: "document.read",
  resource: { id: \`doc_\${n}\`, type: "document" },
  outcome: "success",
  metadata: { n, nested: { list: [1, "two", null] } }
})

export const use = async (baseUrl: string, key: string) => {
  const client = createClient({ baseUrl, auth: () => key })
  const sequences: Array<number> = []
  for (let n = 1; n <= 5; n++) {
    const { data, error } = await createEvent({
      client, body: event(n), query: { sync: "true" }
    })
    if (data === undefined || !("sequence_number" in data)) throw new Error(JSON.stringify(error))
    if (data.metadata?.["n"] !== n) throw new Error(JSON.stringify(data.metadata))
  }
  let after = 0
  for (;;) {
    const { data } = await listEvents({
      client, query: { order: "asc", page_size: 2, after_sequence: after }
    })
    if (data === undefined || typeof data === "string") throw new Error("no page")
    const last = data.events.at(-1)
    if (last === undefined) break
    sequences.push(...data.events.map((found) => found.sequence_number))
    after = last.sequence_number
  }
  const executions: Array<string> = []
  for (let n = 0; n < 3; n++) {
    const { data } = await startExecution({
      client, body: { agent_id: "agent", id: \`run-\${n}\`, metadata: { n } }
    })
    if (data === undefined) throw new Error("no execution")
    const span = await startSpan({
      client, path: { id: data.id }, body: { span_type: "TOOL_CALL", name: "search", metadata: { n } }
    })
    if (span.data?.metadata["n"] !== n) throw new Error(JSON.stringify(span.error))
    await endExecution({ client, path: { id: data.id } })
  }
  await createTraces({
    client,
    query: { sync: "true" },
    body: { operations: [{ op: "execution.start", agent_id: "agent", id: "run-3" }] }
  })
  for (let page = 1; ; page++) {
    const { data } = await listExecutions({ client, query: { page, page_size: 2 } })
    if (data === undefined || data.executions.length === 0) break
    executions.push(...data.executions.map((found) => found.id))
  }
  const spans = await listSpans({ client, path: { id: "run-0" } })
  const verified = await verifyChain({ client })
  const refused = await listEvents({ client, query: { page: 0 } })
  return {
    sequences,
    executions: executions.sort(),
    spans: spans.data?.spans.length,
    verified: verified.data !== undefined && "valid" in verified.data && verified.data.valid,
    refused: refused.error?.error.code
  }
}
`

interface Usage {
  readonly use: (baseUrl: string, key: string) => Promise<unknown>
}

describe("generated clients", () => {
  let api: TestApi
  let folder: string
  beforeAll(async () => {
    api = await TestApi.start()
    // Below the project, so that the generated TypeScript can be imported.
    mkdirSync("coverage", { recursive: true })
    folder = mkdtempSync(resolve("coverage", "clients-"))
  })
  afterAll(async () => {
    await api.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  it("compile, send metadata, page by cursor and read refusals", async () => {
    const generators = ["--import", HOOK]
    run(
      ...(generators as ["--import", string]),
      "node_modules/openapi-typescript/bin/cli.js",
      DOCUMENT,
      "-o",
      join(folder, "schema.ts")
    )
    run(
      ...(generators as ["--import", string]),
      "node_modules/@hey-api/openapi-ts/dist/run.mjs",
      "-i",
      DOCUMENT,
      "-o",
      join(folder, "hey"),
      "--no-log-file"
    )
    writeFileSync(join(folder, "usage.ts"), USAGE)
    const settings = { compilerOptions, include: ["**/*.ts"] }
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(settings))
    run("node_modules/typescript/bin/tsc", "-p", folder)
    const { use } = (await import(/* @vite-ignore */ join(folder, "usage.ts"))) as Usage
    assert.deepStrictEqual(await use(api.url, OTHER_KEY), {
      sequences: [1, 2, 3, 4, 5],
      executions: ["run-0", "run-1", "run-2", "run-3"],
      spans: 2,
      verified: true,
      refused: "invalid_request"
    })
  })
})
