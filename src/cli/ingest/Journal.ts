/**
 * How far a file was acknowledged, in a small file beside it, which is replaced in one step: after a
 * crash at any moment it says something true. Rejected lines are on the disk before it counts them.
 */
import {
  closeSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { parseJson } from "../../domain/json/Json.ts"
import { CommandFailure, EXIT } from "../Failure.ts"
import type { Format, Place } from "./Units.ts"

const VERSION = 1

/** All of a file up to `offset` is decided. */
export interface JournalState extends Place {
  readonly version: typeof VERSION
  /** SHA-256 of the first `size` bytes: names the file, and the ids of its lines. */
  readonly identity: string
  readonly size: number
  readonly format: Format
  /** Address and tenant: what one of them has, another one may lack. */
  readonly target: string
  readonly stored: number
  readonly rejected: number
  /** Bytes of the file of rejected lines that are of lines before `offset`. */
  readonly rejectsBytes: number
}

export const newState = (
  begun: Pick<JournalState, "format" | "identity" | "size" | "target">
): JournalState => ({
  version: VERSION,
  ...begun,
  offset: 0,
  lines: 0,
  stored: 0,
  rejected: 0,
  rejectsBytes: 0
})

export const journalFile = (file: string): string => `${file}.alk-ingest.json`

/** What is known of a file; undefined if it was never begun. Throws CommandFailure. */
export const readJournal = (file: string): JournalState | undefined => {
  try {
    const state = parseJson(readFileSync(journalFile(file), "utf8")) as JournalState
    if (state.version === VERSION) return state
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined
    if (!(error instanceof SyntaxError)) throw error
  }
  const message = `${journalFile(file)}: can't be read`
  throw new CommandFailure(EXIT.failed, message, "--restart begins anew; lines stay stored once")
}

/** A line that was refused. */
export interface Reject {
  readonly line: number
  readonly code: string
  readonly message: string
  readonly text: string
}

const writeAll = (fd: number, text: string): number => {
  const bytes = Buffer.from(text)
  writeFileSync(fd, bytes)
  return bytes.length
}

/** Milliseconds between two writes of the journal: what was sent since is sent again after a crash. */
const SAVE_MS = 250

/** The journal of a file that is being sent, and its rejected lines. */
export class Journal {
  readonly #file: string
  readonly #rejectsFile: string
  #rejects: number | undefined
  #state: JournalState
  #savedAt = 0

  constructor(file: string, rejectsFile: string, state: JournalState) {
    this.#file = file
    this.#rejectsFile = rejectsFile
    this.#state = state
    // What was written after the journal was saved is written again.
    if (state.rejectsBytes > 0) ftruncateSync(this.#openRejects(), state.rejectsBytes)
    else rmSync(rejectsFile, { force: true })
    this.save()
  }

  get state(): JournalState {
    return this.#state
  }

  #openRejects(): number {
    this.#rejects ??= openSync(this.#rejectsFile, "a")
    return this.#rejects
  }

  /** All up to a place is decided. */
  settle(place: Place, stored: number, rejects: ReadonlyArray<Reject>): void {
    const text = rejects.map((one) => `${JSON.stringify(one)}\n`).join("")
    const written = text === "" ? 0 : writeAll(this.#openRejects(), text)
    const { rejected, rejectsBytes, stored: before } = this.#state
    this.#state = {
      ...this.#state,
      ...place,
      stored: before + stored,
      rejected: rejected + rejects.length,
      rejectsBytes: rejectsBytes + written
    }
    if (performance.now() - this.#savedAt > SAVE_MS) this.save()
  }

  /** Write it to the disk. */
  save(): void {
    if (this.#rejects !== undefined) fsyncSync(this.#rejects)
    const path = journalFile(this.#file)
    const temporary = `${path}.part`
    const fd = openSync(temporary, "w")
    writeAll(fd, `${JSON.stringify(this.#state)}\n`)
    fsyncSync(fd)
    closeSync(fd)
    renameSync(temporary, path)
    this.#savedAt = performance.now()
  }
}
