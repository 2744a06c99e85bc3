/** The command line as a user has it, `node src/cli/alk.mjs`, and a service that `alk up` has started. */
import { type ChildProcess, spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, beforeAll } from "vitest"
import { ADMIN_TOKEN, freshFolder, type Started, start, testKey } from "../support/Program.ts"

export interface Ended {
  readonly code: number | null
  readonly output: string
  readonly errors: string
}

/** Arguments that send an event, but for its actor. */
export const SEND = [
  "send",
  "--action",
  "document.read",
  "--resource",
  "d1",
  "--resource-type",
  "document"
]

export interface AlkWorld {
  readonly running: Started
  /** A key of the tenant that reads and writes. */
  readonly key: string
  /** Where the commands keep their contexts. */
  readonly home: string
  readonly begin: (
    args: ReadonlyArray<string>,
    environment?: Readonly<Record<string, string>>
  ) => ChildProcess
  readonly alkWith: (
    given: { readonly input?: string; readonly environment?: Record<string, string> },
    ...args: ReadonlyArray<string>
  ) => Promise<Ended>
  readonly alk: (...args: ReadonlyArray<string>) => Promise<Ended>
  /** The output of a command that has to end well, a JSON document a line. */
  readonly rows: (...args: ReadonlyArray<string>) => Promise<ReadonlyArray<any>>
}

/** Started for the file that calls it. */
export const alkWorld = (tenant: string): AlkWorld => {
  const folder = freshFolder(tenant)
  const home = mkdtempSync(join(tmpdir(), "alk-home-"))
  const key = testKey(tenant)
  let running: Started

  const begin = (
    args: ReadonlyArray<string>,
    environment: Readonly<Record<string, string>> = {}
  ): ChildProcess =>
    spawn(process.execPath, ["src/cli/alk.mjs", ...args], {
      env: { PATH: process.env["PATH"], HOME: home, XDG_CONFIG_HOME: home, ...environment }
    })

  const alkWith = (
    { environment = {}, input = "" }: { input?: string; environment?: Record<string, string> },
    ...args: ReadonlyArray<string>
  ): Promise<Ended> =>
    new Promise((resolve) => {
      const child = begin(args, environment)
      let output = ""
      let errors = ""
      child.stdout!.on("data", (chunk) => {
        output += chunk
      })
      child.stderr!.on("data", (chunk) => {
        errors += chunk
      })
      child.stdin!.end(input)
      child.once("close", (code) => resolve({ code, output, errors }))
    })

  const alk = (...args: ReadonlyArray<string>): Promise<Ended> => alkWith({}, ...args)

  const rows = async (...args: ReadonlyArray<string>): Promise<ReadonlyArray<any>> => {
    const { code, errors, output } = await alk(...args)
    assert.strictEqual(code, 0, errors)
    return output
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line))
  }

  beforeAll(async () => {
    const environment = {
      ALK_DATA_DIR: folder,
      ALK_ADMIN_TOKEN: ADMIN_TOKEN,
      ALK_BOOTSTRAP_KEYS: `${key}=${tenant}:read+write`
    }
    running = await start(environment, [process.execPath, "src/cli/alk.mjs", "up"])
  })
  afterAll(async () => {
    const code = await running?.stop()
    for (const made of [folder, home]) rmSync(made, { recursive: true, force: true })
    assert.strictEqual(code, 0, "alk up ends well when it is asked to")
  })
  return {
    get running() {
      return running
    },
    key,
    home,
    begin,
    alkWith,
    alk,
    rows
  }
}
