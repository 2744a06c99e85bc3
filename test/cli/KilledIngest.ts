/**
 * `alk ingest` of a file that is killed while it sends, and called again: what the file is, and the
 * check that every line is stored once and every refused one listed once. Holds no text of all lines.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { closeSync, openSync, readFileSync, statSync, writeSync } from "node:fs"
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { assert } from "vitest"
import { idAt } from "../../src/cli/ingest/Entries.ts"
import { contentHash } from "../../src/cli/ingest/Source.ts"
import { createClient } from "../../src/client/index.ts"
import { eventuallyAsync } from "../support/Eventually.ts"

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

/**
 * Stands between the command and the service. It passes everything on, or holds what is sent once so
 * much of the file is settled: who is killed then is killed while it sends, however fast it is.
 */
export class Gate {
  readonly #file: IngestFile
  readonly #target: string
  readonly #server = createServer((incoming, outgoing) => this.#take(incoming, outgoing))
  #until = Infinity
  #held = (): void => undefined

  private constructor(file: IngestFile, target: string) {
    this.#file = file
    this.#target = target
  }

  static async start(file: IngestFile, target: string): Promise<Gate> {
    const gate = new Gate(file, target)
    await new Promise<void>((resolve) => gate.#server.listen(0, "127.0.0.1", resolve))
    return gate
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Ends when the first request is held. */
  hold(until: number): Promise<void> {
    this.#until = until
    return new Promise((resolve) => {
      this.#held = resolve
    })
  }

  /** From now on everything is passed on. */
  open(): void {
    this.#until = Infinity
  }

  stop(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  #take(incoming: IncomingMessage, outgoing: ServerResponse): void {
    if (offsetOf(this.#file) >= this.#until) {
      incoming.resume()
      this.#held()
      return
    }
    const { headers, method, url } = incoming
    const passed = request(`${this.#target}${url}`, { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(outgoing)
    })
    passed.on("error", () => outgoing.destroy())
    outgoing.once("close", () => passed.destroy())
    incoming.pipe(passed)
  }
}

/** Kills the command so often, spread over the file, and lets the last call end. */
export const ingestThroughKills = async (
  file: IngestFile,
  kills: number,
  gate: Gate,
  begin: () => ChildProcess
): Promise<void> => {
  const { size } = statSync(file.path)
  for (let killed = 0; killed < kills; killed++) {
    const held = gate.hold(((killed + 0.5) / (kills + 1)) * size)
    const child = begin()
    const end = ended(child)
    await Promise.race([held, end])
    child.kill("SIGKILL")
    assert.strictEqual(await end, "SIGKILL", "it was killed while it was sending")
    assert.isBelow(offsetOf(file), size)
  }
  gate.open()
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
  const { total } = await eventuallyAsync(
    `all ${good} events are listed`,
    () => client.request("GET /v1/events", { query: { page_size: 1 } }),
    (page) => page.total >= good
  )
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
