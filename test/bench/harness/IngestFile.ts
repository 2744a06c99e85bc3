/** `alk ingest` of a file beside a program: events a second until the last one is in every list. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { createWriteStream, rmSync } from "node:fs"
import { join } from "node:path"
import { freshFolder, testKey } from "../../support/Program.ts"
import { eventText } from "./Events.ts"
import type { Program } from "./Programs.ts"

/** Lines that are put together before they are written. */
const LINES_OF_CHUNK = 10_000

const writeFile = async (file: string, lines: number): Promise<void> => {
  const out = createWriteStream(file)
  for (let first = 0; first < lines; first += LINES_OF_CHUNK) {
    const count = Math.min(LINES_OF_CHUNK, lines - first)
    const texts = Array.from({ length: count }, (_, n) => `${eventText(first + n)}\n`)
    if (!out.write(texts.join(""))) await once(out, "drain")
  }
  out.end()
  await once(out, "finish")
}

/** The command as a user calls it; throws unless it ends with 0. */
const ingest = async (file: string, url: string, tenant: string): Promise<void> => {
  const child = spawn(process.execPath, ["src/cli/alk.mjs", "ingest", file, "--quiet"], {
    env: { PATH: process.env["PATH"], ALK_URL: url, ALK_API_KEY: testKey(tenant) },
    stdio: ["ignore", "ignore", "inherit"]
  })
  const [code] = await once(child, "exit")
  if (code !== 0) throw new Error(`alk ingest ended with ${code}`)
}

export interface FileResult {
  /** Those of the file, and one that follows them. */
  readonly events: number
  readonly seconds: number
}

/** Sends a file of so many lines; one event after it is answered once all are in every list. */
export const ingestFile = async (
  program: Program,
  tenant: string,
  lines: number
): Promise<FileResult> => {
  const folder = freshFolder("bench-file")
  try {
    const file = join(folder, "events.ndjson")
    await writeFile(file, lines)
    const started = performance.now()
    await ingest(file, program.process.url, tenant)
    const { status, text } = await program
      .api(tenant)
      .call("/v1/events?sync=true", { body: eventText(lines) })
    if (status !== 201) throw new Error(`the event after the file: ${status} ${text}`)
    return { events: lines + 1, seconds: (performance.now() - started) / 1_000 }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
