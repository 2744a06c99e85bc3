/**
 * The mappings of docs/mapping.md on records of other systems, through the commands of the page: every
 * record arrives whole, and once however often it is sent.
 */
import { execFileSync } from "node:child_process"
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { Client, type Json } from "../support/Client.ts"
import { freshFolder, type Started, start, testKey } from "../support/Program.ts"

const EXAMPLES = "test/examples/mapping"
const RECORDS_FOLDER = join(EXAMPLES, "records")
const sources = readdirSync(RECORDS_FOLDER).map((file) => basename(file, ".ndjson"))

const folder = freshFolder("mappings")
const key = testKey("mappings")
let running: Started
let client: Client

beforeAll(async () => {
  running = await start({
    ALK_DATA_DIR: join(folder, "data"),
    ALK_BOOTSTRAP_KEYS: `${key}=mappings:read+write`
  })
  client = new Client(running.url, key)
})

afterAll(async () => {
  await running?.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** Maps records as the page does, and gives the file of their events. */
const mapped = (name: string, source: string, records: string): string => {
  const file = join(folder, `${name}.ndjson`)
  const program = join(EXAMPLES, "map.mjs")
  writeFileSync(file, execFileSync(process.execPath, [program, source], { input: records }))
  return file
}

/** What the command says of it; throws unless all of it is stored. */
const ingested = (file: string): Json => {
  const options = ["--actions", "any", "--numbers", "text", "--restart", "--json"]
  const output = execFileSync(process.execPath, ["src/cli/alk.mjs", "ingest", file, ...options], {
    env: { PATH: process.env["PATH"], ALK_URL: running.url, ALK_API_KEY: key },
    encoding: "utf8"
  })
  return JSON.parse(output)
}

const linesOf = (text: string): ReadonlyArray<string> => text.split("\n").filter(Boolean)

/** The events whose ids begin so, in the order of the log. */
const listed = async (beginning: string): Promise<ReadonlyArray<Json>> => {
  const { status, text } = await client.call(
    `/v1/events?format=ndjson&order=asc&id=${encodeURIComponent(beginning)}*`
  )
  assert.strictEqual(status, 200, text)
  return linesOf(text).map((line) => JSON.parse(line))
}

describe("records of other systems", () => {
  it("are there for each source that the program maps", () => {
    const page = readFileSync("docs/mapping.md", "utf8")
    for (const source of sources) assert.include(page, `\`${source}\``)
    assert.lengthOf(sources, 13)
  })

  for (const source of sources) {
    it(`arrive whole, and once however often they are sent (${source})`, async () => {
      const text = readFileSync(join(RECORDS_FOLDER, `${source}.ndjson`), "utf8")
      const records = linesOf(text)
      const file = mapped(source, source, text)
      const all = { stored: records.length, rejected: 0 }
      assert.deepInclude(ingested(file), all)
      assert.deepInclude(ingested(file), all)
      const events = await listed(`${source}:`)
      assert.deepStrictEqual(
        events.map(({ metadata }) => metadata),
        records.map((record) => JSON.parse(record))
      )
    })
  }

  it("keep numbers beyond a double as texts, and are found by ids that are too long by their hash", async () => {
    const arn = `arn:aws:s3:::bucket/${"k".repeat(1_024)}`
    const record = `{"eventID":"big","eventSource":"s3.amazonaws.com","eventName":"GetObject",
      "resources":[{"ARN":"${arn}","type":"AWS::S3::Object"}],"additionalEventData":
      {"bytes":12345678901234567890}}`.replaceAll(/\n */g, "")
    assert.deepInclude(ingested(mapped("big", "cloudtrail", record)), { stored: 1, rejected: 0 })
    const [event] = await listed("cloudtrail:big")
    assert.strictEqual(event!["action"], "s3.amazonaws.com/GetObject")
    assert.match(event!["resource"].id, /^sha256:[0-9a-f]{64}$/)
    assert.strictEqual(event!["metadata"].resources[0].ARN, arn)
    assert.strictEqual(event!["metadata"].additionalEventData.bytes, "12345678901234567890")
  })

  it("are in a chain that verifies", async () => {
    const { body, status } = await client.call("/v1/verify")
    assert.strictEqual(status, 200)
    assert.isTrue(body.valid)
  })
})
