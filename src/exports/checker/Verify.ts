/** Checks the pack in a file or folder of this machine, as the arguments of a command line say. */
import crypto from "node:crypto"
import { createReadStream } from "node:fs"
import { open, readdir, readFile, stat } from "node:fs/promises"
import { join } from "node:path"
import { createInflateRaw } from "node:zlib"
import { type GivenKey, keysOfText, SPKI_PREFIX } from "./Keys.ts"
import type { Host } from "./Notes.ts"
import { checkPack, type KeptCheckpoint } from "./PackCheck.ts"
import { FILES_MAX, type PackSource, Unreadable } from "./PackFiles.ts"
import { reportLines } from "./ReportText.ts"
import { type ZipFile, zipSource } from "./Zip.ts"

const host: Host = {
  verifyEd25519: async (raw, message, signature) => {
    const key = Buffer.concat([Buffer.from(SPKI_PREFIX, "hex"), raw])
    try {
      const spki = crypto.createPublicKey({ key, format: "der", type: "spki" })
      return crypto.verify(null, message, spki, signature)
    } catch {
      return false
    }
  }
}

/** Folders of a pack; what lies elsewhere below a folder is not looked at. */
const FOLDERS = ["", "checkpoints", "keys", "schema"]

const folderSource = async (folder: string): Promise<PackSource> => {
  const names: Array<string> = []
  for (const inner of FOLDERS) {
    const found = await readdir(join(folder, inner), { withFileTypes: true }).catch(() => [])
    for (const entry of found)
      if (entry.isFile()) names.push(inner === "" ? entry.name : `${inner}/${entry.name}`)
  }
  if (names.length > FILES_MAX) throw new Unreadable("it holds more files than any pack")
  return { kind: "folder", names, open: (name) => createReadStream(join(folder, name)) }
}

const zipFile = async (path: string): Promise<ZipFile> => {
  const handle = await open(path)
  const { size } = await handle.stat()
  return {
    size,
    close: () => handle.close(),
    read: async (position, length) => {
      if (length === 0) return new Uint8Array()
      const { buffer, bytesRead } = await handle.read(new Uint8Array(length), 0, length, position)
      return buffer.subarray(0, bytesRead)
    },
    async *stream(start, length, isPacked) {
      if (length === 0 && !isPacked) return
      const packed = createReadStream(path, { start, end: start + Math.max(length, 1) - 1 })
      try {
        if (!isPacked) return yield* packed
        const inflate = createInflateRaw()
        packed.on("error", (error) => inflate.destroy(error))
        yield* packed.pipe(inflate)
        if (inflate.bytesWritten !== length) throw new Error("bytes follow its compressed data")
      } finally {
        packed.destroy()
      }
    }
  }
}

const sourceOf = async (path: string): Promise<PackSource> => {
  const found = await stat(path).catch(() => {
    throw new Unreadable(`${path} can't be opened`)
  })
  return found.isDirectory() ? folderSource(path) : zipSource(await zipFile(path))
}

/** What a command line says of its options and of its end. */
export const VERIFY_OPTIONS = `  --public-key KEY     the service's public key, or a file that holds it: the answer of
                       /.well-known/alk-keys.json, C2SP (name+id+base64), PEM, or base64. May be
                       repeated.
  --checkpoint FILE    a checkpoint that you kept earlier: a signed note, or the answer of
                       /v1/chain/checkpoints/latest. May be repeated.
  --require-origin     exit code 3 unless the pack is authentic
  --json               the report as JSON

Verdicts and exit codes
  authentic    0  everything agrees, and a key or checkpoint that you gave shows who made it
  consistent   0  everything agrees; who made it is not shown (3 with --require-origin)
  tampered     1  something does not agree
  unreadable   2  there is no verdict on its content
`

export const EXIT_CODES = { authentic: 0, consistent: 0, tampered: 1, unreadable: 2 } as const
const ORIGIN_NOT_CHECKED = 3

/** The arguments are not those of the program; `message` says which. */
export class Usage extends Error {}

const optionsOf = async (args: ReadonlyArray<string>) => {
  const options = {
    keys: [] as Array<GivenKey>,
    checkpoints: [] as Array<KeptCheckpoint>,
    json: false,
    isOriginRequired: false,
    path: undefined as string | undefined
  }
  for (let at = 0; at < args.length; at++) {
    const arg = args[at]!
    if (arg === "--json") options.json = true
    else if (arg === "--require-origin") options.isOriginRequired = true
    else if (arg === "--public-key" || arg === "--checkpoint") {
      const value = args[++at]
      if (value === undefined) throw new Usage(`${arg} needs a value`)
      const file = await readFile(value, "utf8").catch(() => undefined)
      if (arg === "--checkpoint") {
        if (file === undefined) throw new Usage(`${value} can't be opened`)
        options.checkpoints.push({ label: value, text: file })
        continue
      }
      const keys = keysOfText(file ?? value)
      if (keys.length === 0) throw new Usage(`${value} is no public key and no file that holds one`)
      options.keys.push(...keys)
    } else if (arg.startsWith("-") || options.path !== undefined) {
      throw new Usage(`unknown argument ${arg}`)
    } else options.path = arg
  }
  return options
}

/** What the program prints, and its exit code. */
export interface VerifyOutcome {
  readonly text: string
  readonly exitCode: 0 | 1 | 2 | 3
}

/** Checks the pack that the arguments name, or else the folder `own`. Rejects with Usage. */
export const verify = async (args: ReadonlyArray<string>, own?: string): Promise<VerifyOutcome> => {
  const options = await optionsOf(args)
  const path = options.path ?? own
  if (path === undefined) throw new Usage("name a pack or a folder")
  const report = await checkPack(() => sourceOf(path), host, options)
  const text = options.json ? JSON.stringify(report, null, 2) : reportLines(path, report).join("\n")
  const isOpen = report.verdict === "consistent" && options.isOriginRequired
  return { text: `${text}\n`, exitCode: isOpen ? ORIGIN_NOT_CHECKED : EXIT_CODES[report.verdict] }
}
