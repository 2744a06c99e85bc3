/**
 * `alk ingest` of a file that is killed while it sends, and called again: what the file is, and the
 * check that every line is stored once and every refused one listed once. Holds no text of all lines.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { closeSync, openSync, readFileSync, statSync, writeSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"
import { assert } from "vitest"
import { idAt } from "../../src/cli/ingest/Entries.ts"
import { contentHash } from "../../src/cli/ingest/Source.ts"
import { createClient } from "../../src/client/index.ts"

export interface IngestFile {
  readonly path: string
  readonly lines: number
  /** Every so many lines one is refused by the service, and another one is no JSON. */
  readonly refusedEvery: number
}

/** Lines that are written at once. */
const WRITTEN_AT_ONCE = 10_000

const isRefused = ({ refusedEvery }: IngestFile, line: number): boolean => line % refusedEvery === 0
const isBroken = ({ refusedEvery }: IngestFile, line: number): boolean => line % refusedEvery === 7
const isGood = (file: IngestFile, line: number): boolean =>
  !isRefused(file, line) && !isBroken(file, line)

export const lineOf = (file: IngestFile, line: number): string => {
  if (isBroken(file, line)) return `{"actor": ${line}`
  return JSON.stringify({
    actor: { id: `user-${line % 7}`, type: "human" },
    action: isRefused(file, line) ? "nonsense" : "document.read",
    resource: { id: `doc-${line}`, type: "document" },
    outcome: "success",
    metadata: { line }
  })
}

export const writeLines = (file: IngestFile): void => {
  const fd = openSync(file.path, "w")
  for (let from = 1; from <= file.lines; from += WRITTEN_AT_ONCE) {
    const count = Math.min(WRITTEN_AT_ONCE, file.lines - from + 1)
    const part = Array.from({ length: count }, (_, at) => lineOf(file, from + at))
    writeSync(fd, `${part.join("\n")}\n`)
  }
  closeSync(fd)
}

/** The command on the file; `options` beside it. */
export const beginIngest = (
  { path }: IngestFile,
  url: string,
  key: string,
  ...options: ReadonlyArray<string>
): ChildProcess =>
  spawn(process.execPath, ["src/cli/alk.mjs", "ingest", path, ...options], {
    env: { PATH: process.env["PATH"], ALK_URL: url, ALK_API_KEY: key }
  })

export const ended = (child: ChildProcess): Promise<number | NodeJS.Signals | null> =>
  new Promise((resolve) => child.once("exit", (code, signal) => resolve(code ?? signal)))

/** Bytes of the file that are settled. */
export const offsetOf = ({ path }: IngestFile): number => {
  try {
    return JSON.parse(readFileSync(`${path}.alk-ingest.json`, "utf8")).offset
  } catch {
    return 0
  }
}

/** Kills the command so often, spread over the file, and lets the last call end. */
export const ingestThroughKills = async (
  file: IngestFile,
  kills: number,
  begin: () => ChildProcess
): Promise<void> => {
  const { size } = statSync(file.path)
  for (let killed = 0; killed < kills; killed++) {
    const child = begin()
    const end = ended(child)
    const until = ((killed + 0.5) / (kills + 1)) * size
    let hasEnded = false
    void end.then(() => {
      hasEnded = true
    })
    while (offsetOf(file) < until && !hasEnded) await sleep(5)
    child.kill("SIGKILL")
    assert.strictEqual(await end, "SIGKILL", "it was killed while it was sending")
    assert.isBelow(offsetOf(file), size)
  }
  assert.strictEqual(await ended(begin()), 1, "lines were refused")
}

/** Every refused line is listed once, in the order of the file. */
export const checkRejects = (file: IngestFile): void => {
  const rejected = readFileSync(`${file.path}.alk-rejects.ndjson`, "utf8").trim().split("\n")
  const expected: Array<number> = []
  for (let line = 1; line <= file.lines; line++) if (!isGood(file, line)) expected.push(line)
  assert.deepStrictEqual(
    rejected.map((text) => JSON.parse(text).line),
    expected
  )
}

/** The ids that the command gives to the lines; the first is that of line 1. */
const idsOf = async function* (file: IngestFile) {
  const identity = await contentHash(file.path)
  let end = 0
  for (let line = 1; line <= file.lines; line++) {
    end += Buffer.byteLength(lineOf(file, line)) + 1
    yield idAt(identity, end)
  }
}

/** Every other line is in the chain once, with the id of its place, and nothing else is. */
export const checkStored = async (file: IngestFile, url: string, key: string): Promise<void> => {
  const client = createClient({ url, key })
  let good = 0
  for (let line = 1; line <= file.lines; line++) if (isGood(file, line)) good += 1
  let total = 0
  while (total < good) ({ total } = await client.request("GET /v1/events"))
  assert.strictEqual(total, good)
  const stored = new Map<number, string>()
  let sequence = 0
  for await (const event of client.events({ order: "asc" })) {
    sequence += 1
    assert.strictEqual(event.sequence_number, sequence)
    const { line } = event.metadata as { readonly line: number }
    assert.isFalse(stored.has(line), `line ${line} is stored twice`)
    stored.set(line, event.id)
  }
  assert.strictEqual(sequence, good)
  let line = 0
  for await (const id of idsOf(file)) {
    line += 1
    assert.strictEqual(stored.get(line), isGood(file, line) ? id : undefined, `line ${line}`)
  }
}
