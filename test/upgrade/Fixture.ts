/**
 * An earlier version of alk: its program, a data folder that it has written, and what it answered.
 * `npm run test:upgrade:fixture -- COMMIT` makes it anew (MakeFixture.ts); the files are in the
 * repository, so that the test needs no history.
 */
import { spawnSync } from "node:child_process"
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib"
import type { Json } from "../support/Client.ts"
import { type Checkout, checkoutAt, testKey } from "../support/Program.ts"

export const FOLDER = join(import.meta.dirname, "fixture")
export const TENANT = "acme"
export const KEY = testKey(TENANT)
export const OTHER_KEY = testKey("globex")

/** What the earlier version answered about its data. */
export interface Expected {
  /** The commit that the program is of. */
  readonly commit: string
  /** Variables that it ran with. */
  readonly environment: Readonly<Record<string, string>>
  /** Every event of the tenant, newest first, as the list gave it. */
  readonly events: ReadonlyArray<Json>
  readonly others: ReadonlyArray<Json>
  readonly execution: Json
  readonly executionId: string
  /** A synchronous request with an Idempotency-Key, and its answer. */
  readonly request: Json
  readonly receipt: Json
  /** The head of the chain, and the signed checkpoint that was kept outside. */
  readonly chain: Json
  readonly checkpoint: string
  /** A key that was made over HTTP, and a share link. */
  readonly madeKey: string
  readonly shareToken: string
}

const BYTES_MAX = 1_073_741_824

/** Every file below a folder as one compressed file; holes in files stay holes. */
export const pack = (folder: string, names: ReadonlyArray<string>, to: string): void => {
  const tar = spawnSync("tar", ["--sparse", "-C", folder, "-cf", "-", ...names], {
    maxBuffer: BYTES_MAX
  })
  if (tar.status !== 0) throw new Error(`tar: ${tar.stderr}`)
  const level = { params: { [constants.ZSTD_c_compressionLevel]: 19 } }
  writeFileSync(to, zstdCompressSync(tar.stdout, level))
}

const unpack = (from: string, folder: string): void => {
  mkdirSync(folder, { recursive: true })
  const input = zstdDecompressSync(readFileSync(from))
  const tar = spawnSync("tar", ["-C", folder, "-xf", "-"], { input, maxBuffer: BYTES_MAX })
  if (tar.status !== 0) throw new Error(`tar: ${tar.stderr}`)
}

/** The earlier program in a folder of its own, with the modules of this checkout. */
export const programIn = (folder: string): Checkout => {
  symlinkSync(resolve("node_modules"), join(folder, "node_modules"))
  return checkoutAt(folder, process.execPath)
}

export const unpackProgram = (folder: string): Checkout => {
  unpack(join(FOLDER, "program.tar.zst"), folder)
  return programIn(folder)
}

/** A data folder as the earlier program has left it. */
export const unpackData = (folder: string): void => unpack(join(FOLDER, "data.tar.zst"), folder)

export const expected = (): Expected =>
  JSON.parse(readFileSync(join(FOLDER, "expected.json"), "utf8")) as Expected
