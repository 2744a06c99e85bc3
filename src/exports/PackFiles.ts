/**
 * The files of a pack that is being checked: read as texts or line by line, each hashed on its way,
 * and at the end held against the manifest and the sums. Memory holds one line and one small file.
 */
import { createHash } from "node:crypto"
import { parseJson } from "../domain/Json.ts"
import { ArchiveUnreadable, type ArchiveReader } from "../ports/Archive.ts"
import { counted, packFiles, type PackFindings } from "./PackFindings.ts"

/** Bytes of one line, and of one file that is read as a whole. */
const LINE_BYTES_MAX = 1_048_576
const SMALL_FILE_BYTES_MAX = 16_777_216

/** What every pack has; without one of them there is nothing to hold the rest against. */
const required: ReadonlyArray<string> = Object.values(packFiles)

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const textOf = (bytes: Uint8Array): string | undefined => {
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}

/** The value of a JSON text; undefined for anything else. */
export const jsonOf = (text: string | undefined): unknown => {
  if (text === undefined) return undefined
  try {
    return parseJson(text) as unknown
  } catch {
    return undefined
  }
}

/** Lines as texts; undefined for one that is no text, or far too long. */
async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string | undefined> {
  let rest: Buffer = Buffer.alloc(0)
  let isTooLong = false
  for await (const chunk of chunks) {
    let start = 0
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      const piece = chunk.subarray(start, end)
      const line = rest.length === 0 ? piece : Buffer.concat([rest, piece])
      yield isTooLong || line.length > LINE_BYTES_MAX ? undefined : textOf(line)
      rest = Buffer.alloc(0)
      isTooLong = false
      start = end + 1
    }
    if (!isTooLong) rest = Buffer.concat([rest, chunk.subarray(start)])
    if (rest.length > LINE_BYTES_MAX) {
      isTooLong = true
      rest = Buffer.alloc(0)
    }
  }
  if (rest.length > 0 || isTooLong) yield isTooLong ? undefined : textOf(rest)
}

/** Where manifest and sums are asked about a file. */
interface Sums {
  readonly listed: ReadonlyMap<string, string> | undefined
  readonly sums: ReadonlyMap<string, string>
}

export class PackFiles {
  /** Files of the folder that are none of the pack's. */
  readonly strangers: Array<string> = []
  readonly #reader: ArchiveReader
  readonly #found: PackFindings
  readonly #hashes = new Map<string, string>()

  /** @throws ArchiveUnreadable if these are not the files of a pack at all */
  constructor(reader: ArchiveReader, found: PackFindings) {
    this.#reader = reader
    this.#found = found
    const missing = required.filter((name) => !this.has(name))
    if (missing.length >= required.length - 1) {
      throw new ArchiveUnreadable({ message: "this is no evidence pack" })
    }
    for (const name of missing) {
      found.problem(name, null, "file_missing", `the file ${name}`, "none")
    }
    for (const name of reader.duplicates) {
      found.problem(name, null, "file_duplicate", "one file of this name", "more than one")
    }
  }

  get names(): ReadonlyArray<string> {
    return this.#reader.names
  }

  has(name: string): boolean {
    return this.#reader.names.includes(name)
  }

  /** SHA-256 of a file that has been read. */
  hashOf(name: string): string | undefined {
    return this.#hashes.get(name)
  }

  /** A whole small file; undefined if it is missing or no text. */
  async text(name: string): Promise<string | undefined> {
    if (!this.has(name)) return undefined
    const chunks: Array<Uint8Array> = []
    let size = 0
    for await (const chunk of this.#reading(name)) {
      size += chunk.length
      if (size > SMALL_FILE_BYTES_MAX) {
        throw new ArchiveUnreadable({ message: "a file is larger than any of a pack is" })
      }
      chunks.push(chunk)
    }
    return textOf(Buffer.concat(chunks))
  }

  /** Lines of a file; none if it is missing. */
  async *lines(name: string): AsyncGenerator<string | undefined> {
    if (this.has(name)) yield* linesOf(this.#reading(name))
  }

  /** Hold every file against what the manifest names and the sums say. */
  async compare(listed: ReadonlyMap<string, string> | undefined): Promise<void> {
    for (const name of this.names) {
      if (this.#hashes.has(name) || !this.#isOfPack(name, listed)) continue
      for await (const _chunk of this.#reading(name)) continue
    }
    const sums = await this.#sums()
    const names = new Set([...(listed?.keys() ?? []), ...sums.keys(), ...this.names])
    names.delete(packFiles.sums)
    const agreeing = [...names].sort().filter((name) => this.#agrees(name, { listed, sums }))
    this.#found.checked.push(
      `${counted(agreeing.length, "file")} ${agreeing.length === 1 ? "has" : "have"} the SHA-256 ` +
        `that ${packFiles.manifest} and ${packFiles.sums} say.`
    )
  }

  async *#reading(name: string): AsyncGenerator<Uint8Array> {
    const hash = createHash("sha256")
    for await (const chunk of this.#reader.open(name)) {
      hash.update(chunk)
      yield chunk
    }
    this.#hashes.set(name, hash.digest("hex"))
  }

  #isOfPack(name: string, listed: ReadonlyMap<string, string> | undefined): boolean {
    if (name === packFiles.sums) return false
    const isOwn = name === packFiles.manifest || name === packFiles.signature
    return this.#reader.kind === "zip" || isOwn || listed === undefined || listed.has(name)
  }

  async #sums(): Promise<ReadonlyMap<string, string>> {
    const found = this.#found
    const text = this.has(packFiles.sums) ? await this.text(packFiles.sums) : ""
    if (text === undefined) {
      found.problem(packFiles.sums, null, "content_mismatch", "UTF-8 text", "other bytes")
    }
    const sums = new Map<string, string>()
    for (const line of (text ?? "").split("\n")) {
      const [, hash, name] = /^([0-9a-f]{64}) {2}(.+)$/u.exec(line) ?? []
      if (hash !== undefined && name !== undefined) sums.set(name, hash)
      else if (line !== "") {
        found.problem(
          packFiles.sums,
          null,
          "content_mismatch",
          "a SHA-256 and a name",
          "another line"
        )
      }
    }
    return sums
  }

  #agrees(name: string, { listed, sums }: Sums): boolean {
    const found = this.#found
    const isOwn = name === packFiles.manifest || name === packFiles.signature
    const wanted = isOwn || listed === undefined ? sums.get(name) : listed.get(name)
    const own = this.#hashes.get(name)
    if (!this.has(name)) {
      if (!required.includes(name)) {
        found.problem(name, null, "file_missing", `the file ${name}`, "none")
      }
      return false
    }
    if (wanted === undefined) {
      this.#unexpected(name, isOwn)
      return false
    }
    if (own !== wanted) {
      found.problem(name, null, "file_mismatch", `SHA-256 ${wanted}`, `SHA-256 ${own}`)
      return false
    }
    if (this.has(packFiles.sums) && sums.get(name) !== own) {
      const said = sums.get(name) ?? "none"
      found.problem(packFiles.sums, null, "file_mismatch", `${own} for ${name}`, said)
      return false
    }
    return true
  }

  #unexpected(name: string, isOwn: boolean): void {
    if (this.#reader.kind === "folder" && !isOwn) this.strangers.push(name)
    else {
      const expected = `no file that ${packFiles.manifest} does not name`
      this.#found.problem(name, null, "file_unexpected", expected, name)
    }
  }
}
