/**
 * Starts and stops `StoreProcess.ts`, and makes the temporary folders that stores live in.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { Effect, type Scope } from "effect"

const program = fileURLToPath(new URL("./StoreProcess.ts", import.meta.url))

export interface Said {
  readonly url?: string
  readonly error?: string
  readonly message?: string
}

export const temporaryFolder: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "alk-store-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** The first line that the process says, and the way to end it. */
export const startStore = async (folder: string, ...rest: ReadonlyArray<string>) => {
  const child = spawn(process.execPath, [program, folder, ...rest], {
    stdio: ["pipe", "pipe", "pipe", "ipc"]
  })
  const exited = once(child, "exit")
  let errors = ""
  child.stderr!.on("data", (chunk) => {
    errors += String(chunk)
  })
  const lines = createInterface({ input: child.stdout! })
  const [line] = await Promise.race([
    once(lines, "line"),
    exited.then(([code]) => {
      throw new Error(`the store process ended with ${code}: ${errors}`)
    })
  ])
  const said = JSON.parse(line as string) as Said
  /** The code that the process ends with by itself. */
  const ended = exited.then(([code]) => code as number | null)
  const stop = (): Promise<number | null> => {
    if (child.exitCode === null) child.kill("SIGTERM")
    return ended
  }
  return { child, said, ended, stop }
}

/** A running store on a folder of its own. */
export const runningStore = (...rest: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const { said, stop } = yield* Effect.acquireRelease(
      Effect.promise(() => startStore(folder, ...rest)),
      (started) => Effect.promise(started.stop)
    )
    if (said.url === undefined) return yield* Effect.die(new Error(said.message))
    return { folder, url: said.url, stop }
  })
