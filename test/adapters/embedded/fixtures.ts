/** Temporary folders and helper processes for the tests of the embedded parts. */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { homedir, tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { onTestFinished } from "vitest"

/** The cache of the real jars, shared by all tests and with a developer's own alk. */
export const cacheDir = process.env["ALK_CACHE_DIR"] ?? join(homedir(), ".cache", "alk")

export const temporaryFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "alk-embedded-"))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }))
  return folder
}

export interface Held {
  readonly child: ChildProcess
  readonly pid: number
  /** The first line that it printed. */
  readonly line: string
}

/** Runs a file of this folder in a process group of its own until it has printed a line. */
export const hold = async (file: string, args: ReadonlyArray<string>): Promise<Held> => {
  const script = fileURLToPath(new URL(file, import.meta.url))
  const child = spawn(process.execPath, ["--no-warnings", script, ...args], {
    detached: true,
    stdio: ["ignore", "pipe", "inherit"]
  })
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill("SIGTERM")
    await once(child, "exit")
  })
  const line = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).once("line", resolve)
    child.once("exit", (code) => reject(new Error(`${file} ended with ${code}`)))
  })
  return { child, pid: child.pid ?? 0, line }
}
