/**
 * `fsck` of transparency-dev/tessera: a checker of C2SP tlog-tiles logs that other people wrote in
 * Go. Installed through the Go module proxy into the cache folder the first time.
 */
import { execFile, spawnSync } from "node:child_process"
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { cacheDir } from "../adapters/embedded/fixtures.ts"
import { freshFolder } from "./Program.ts"

const MODULE = "github.com/transparency-dev/tessera/cmd/fsck"
const VERSION = "v1.0.4"
const INSTALL_TIMEOUT_MS = 600_000
const RUN_TIMEOUT_MS = 1_800_000

const execute = promisify(execFile)

/** True where Go is installed. */
export const hasGo = spawnSync("go", ["version"]).status === 0

/** The path of the program. */
export const installFsck = async (): Promise<string> => {
  const folder = join(cacheDir, "go", `tessera-${VERSION}`)
  const program = join(folder, "fsck")
  if (existsSync(program)) return program
  mkdirSync(folder, { recursive: true })
  await execute("go", ["install", `${MODULE}@${VERSION}`], {
    env: { ...process.env, GOBIN: folder },
    timeout: INSTALL_TIMEOUT_MS
  })
  return program
}

export interface LogToCheck {
  /** Prefix of the log. */
  readonly url: string
  readonly key: string
  readonly origin: string
  /** The public key as C2SP writes it. */
  readonly vkey: string
}

export interface Fsck {
  /** Entries of the log that the program found to be in order; undefined if it found a fault. */
  readonly size: number | undefined
  readonly output: string
}

/** Goes over a whole log. Its exit code says nothing: what it found is in its output. */
export const fsck = async (
  program: string,
  { key, origin, url, vkey }: LogToCheck
): Promise<Fsck> => {
  const folder = freshFolder("fsck")
  const keyFile = join(folder, "key.pub")
  writeFileSync(keyFile, vkey)
  const args = [
    `--storage_url=${url}`,
    `--bearer_token=${key}`,
    `--origin=${origin}`,
    `--public_key=${keyFile}`,
    "--ui=false",
    "--N=4"
  ]
  const options = { timeout: RUN_TIMEOUT_MS, maxBuffer: 16 * 1_048_576 }
  const ran = await execute(program, args, options).finally(() =>
    rmSync(folder, { recursive: true })
  )
  const output = ran.stdout + ran.stderr
  const size = /Successfully fsck'd log with size ([0-9]+) /.exec(output)?.[1]
  const isFailed = output.includes("fsck failed")
  if (isFailed === (size !== undefined)) throw new Error(`fsck said neither or both: ${output}`)
  return { size: size === undefined ? undefined : Number(size), output }
}
