/** The files of a pack while it is checked: each is hashed as it is read. */
import { sha256Hasher } from "#sha256"
import { textOf } from "../../domain/Bytes.ts"
import { counted, Findings, shown } from "./Findings.ts"
import { bytesOfFile, linesOf } from "./Lines.ts"
import type { Manifest } from "./Manifest.ts"
import { type Chunks, FILE, isSafeName, type PackSource, REQUIRED } from "./PackFiles.ts"

/** Is told of each part that was read, by the name of its file in the pack. */
export type Progress = (name: string, bytes: number) => void

/** True for what no manifest lists. */
const isOwn = (name: string): boolean => name === FILE.manifest || name === FILE.signature

export class OpenPack {
  readonly found = new Findings()
  readonly source: PackSource
  /** SHA-256 of what was read, by name. */
  readonly hashes = new Map<string, string>()
  /** Files of a folder that are not of the pack. */
  readonly strangers: Array<string> = []
  readonly #progress: Progress | undefined

  constructor(source: PackSource, progress: Progress | undefined) {
    this.source = source
    this.#progress = progress
  }

  has(name: string): boolean {
    return this.source.names.includes(name)
  }

  /** A file as a stream whose hash is known when it has been read. */
  async *#reading(name: string): Chunks {
    const hasher = sha256Hasher()
    for await (const chunk of this.source.open(name)) {
      hasher.update(chunk)
      this.#progress?.(name, chunk.length)
      yield chunk
    }
    this.hashes.set(name, hasher.hex())
  }

  /** A file as a whole; undefined if it is missing or no UTF-8. */
  async text(name: string): Promise<string | undefined> {
    return this.has(name) ? textOf(await bytesOfFile(this.#reading(name))) : undefined
  }

  /** Lines of a file; none if it is missing. */
  async *lines(name: string): AsyncGenerator<string | undefined, undefined> {
    if (this.has(name)) yield* linesOf(this.#reading(name))
  }

  /** Every file against manifest and sums; reads what nothing has read yet. */
  async checkFiles(manifest: Manifest | undefined): Promise<void> {
    const { found } = this
    for (const name of this.source.names) {
      if (this.hashes.has(name) || !this.#isOfPack(name, manifest)) continue
      for await (const _ of this.#reading(name));
    }
    const sums = await this.#sums()
    const listed = new Map((manifest?.files ?? []).map(({ name, sha256 }) => [name, sha256]))
    const names = new Set([...listed.keys(), ...sums.keys(), ...this.source.names])
    let agreeing = 0
    for (const name of [...names].sort()) {
      if (name === FILE.sums) continue
      const own = this.hashes.get(name)
      const wanted = isOwn(name) || manifest === undefined ? sums.get(name) : listed.get(name)
      if (!this.has(name)) {
        if (!REQUIRED.includes(name))
          found.problem(name, null, "file_missing", `the file ${name}`, "none")
      } else if (wanted === undefined) {
        this.#unexpected(name)
      } else if (own !== wanted) {
        found.problem(name, null, "file_mismatch", `SHA-256 ${wanted}`, `SHA-256 ${own}`)
      } else if (this.has(FILE.sums) && sums.get(name) !== own) {
        found.problem(FILE.sums, null, "file_mismatch", `${own} for ${name}`, shown(sums.get(name)))
      } else {
        agreeing += 1
      }
    }
    found.checked.push(
      `${counted(agreeing, "file")} ${agreeing === 1 ? "has" : "have"} the SHA-256 that `
        + `${FILE.manifest} and ${FILE.sums} say.`
    )
  }

  /** What sha256sums.txt says, by name. */
  async #sums(): Promise<ReadonlyMap<string, string>> {
    const sums = new Map<string, string>()
    const text = this.has(FILE.sums) ? await this.text(FILE.sums) : ""
    for (const line of (text ?? "").split("\n")) {
      const [, hash, name] = /^([0-9a-f]{64}) {2}([^\n]+)$/u.exec(line) ?? []
      if (hash !== undefined && name !== undefined && isSafeName(name)) sums.set(name, hash)
      else if (line !== "")
        this.found.mismatch(FILE.sums, null, "a SHA-256 and a name", "another line")
    }
    if (text === undefined) this.found.mismatch(FILE.sums, null, "UTF-8 text", "other bytes")
    return sums
  }

  /** What else lies in a folder is not looked at. */
  #isOfPack(name: string, manifest: Manifest | undefined): boolean {
    if (name === FILE.sums) return false
    if (this.source.kind === "zip" || manifest === undefined) return true
    return isOwn(name) || manifest.files.some((file) => file.name === name)
  }

  #unexpected(name: string): void {
    if (this.source.kind === "folder" && !isOwn(name)) {
      this.strangers.push(name)
      return
    }
    const expected = `no file that ${FILE.manifest} does not name`
    this.found.problem(name, null, "file_unexpected", expected, name)
  }
}
