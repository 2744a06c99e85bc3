/**
 * The segment files of one partition in a broker's log folder: which there are, their batches in
 * order, and how one is put in the place of another so that the broker accepts what it finds
 * whenever that is ended.
 */
import * as fs from "node:fs"
import { join } from "node:path"
import { BATCH_HEAD_BYTES } from "../protocol/BatchLayout.ts"
import { RecordsUnreadable } from "../protocol/FetchResponse.ts"
import { batchBytesOf, readBatch, type SegmentBatch } from "./BatchRewrite.ts"

export interface Segment {
  /** Offset of its first record: the name of its files. */
  readonly baseOffset: number
  /** Absolute path of the file with its records. */
  readonly path: string
  readonly bytes: number
}

const LOG = ".log"
/** What the broker makes anew at its start, if the first of them is missing. */
const INDEXES = [".index", ".timeindex"]
/** A broker that starts deletes files that end so: its own cleaner writes such. */
const UNFINISHED = ".cleaned"

const SEGMENT_NAME = /^([0-9]{20})\.log$/

/** The file of the segment that begins at this offset. */
export const segmentPath = (folder: string, baseOffset: number): string =>
  join(folder, `${String(baseOffset).padStart(20, "0")}${LOG}`)

/** The segments of a partition's folder, in the order of their offsets. */
export const segmentsOf = (folder: string): ReadonlyArray<Segment> =>
  fs
    .readdirSync(folder)
    .flatMap((name) => {
      const found = SEGMENT_NAME.exec(name)
      const path = join(folder, name)
      return found === null
        ? []
        : [{ baseOffset: Number(found[1]), path, bytes: fs.statSync(path).size }]
    })
    .sort((left, right) => left.baseOffset - right.baseOffset)

/** Bytes that are read from the disk at a time, unless a batch is larger. */
const READ_BYTES = 4 * 1_048_576

/** Reads a file from its start, a window at a time. */
class Window {
  readonly #descriptor: number
  #bytes = Buffer.alloc(0)
  #at = 0
  #readTo = 0

  constructor(descriptor: number) {
    this.#descriptor = descriptor
  }

  /** The next bytes, which are not consumed; fewer at the end of the file. */
  peek(count: number): Buffer {
    if (this.#bytes.length - this.#at < count) this.#fill(count)
    return this.#bytes.subarray(this.#at, this.#at + count)
  }

  skip(count: number): void {
    this.#at += count
  }

  #fill(count: number): void {
    const left = this.#bytes.subarray(this.#at)
    const bytes = Buffer.allocUnsafe(Math.max(READ_BYTES, count))
    left.copy(bytes)
    let end = left.length
    while (end < count) {
      const read = fs.readSync(this.#descriptor, bytes, end, bytes.length - end, this.#readTo)
      if (read === 0) break
      this.#readTo += read
      end += read
    }
    this.#bytes = bytes.subarray(0, end)
    this.#at = 0
  }
}

/**
 * The batches of a segment in order, each with a checksum that holds. Its bytes are good until the next.
 * `isWritten`: a broker may be writing to it, so it may end within a batch.
 * @throws RecordsUnreadable for anything that a broker which was stopped properly does not leave
 */
export function* batchesOf({ path }: Segment, isWritten = false): Generator<SegmentBatch> {
  const descriptor = fs.openSync(path, "r")
  try {
    const window = new Window(descriptor)
    let place = 0
    for (;;) {
      const head = window.peek(BATCH_HEAD_BYTES)
      if (head.length === 0) return
      const length = head.length === BATCH_HEAD_BYTES ? batchBytesOf(head) : Infinity
      const bytes = Number.isFinite(length) && length > 0 ? window.peek(length) : head
      if (bytes.length !== length) {
        if (isWritten) return
        throw new RecordsUnreadable(`${path} ends within a batch that begins at byte ${place}`)
      }
      yield readAt(bytes, path, place)
      window.skip(length)
      place += length
    }
  } finally {
    fs.closeSync(descriptor)
  }
}

const readAt = (bytes: Buffer, path: string, place: number): SegmentBatch => {
  try {
    return readBatch(bytes)
  } catch (cause) {
    const what = (cause as Error).message
    throw new RecordsUnreadable(`${path} has at byte ${place} ${what}`, { cause })
  }
}

/** Names that were made, changed or removed there are on the disk. */
export const syncFolder = (folder: string): void => {
  const descriptor = fs.openSync(folder, "r")
  fs.fsyncSync(descriptor)
  fs.closeSync(descriptor)
}

/** Files of a partition that a rewriting has left which was ended. */
export const removeUnfinished = (folder: string): void => {
  for (const name of fs.readdirSync(folder)) {
    if (name.endsWith(LOG + UNFINISHED)) fs.rmSync(join(folder, name))
  }
}

/** The file that will be a segment. */
export class NewSegment {
  readonly #old: Segment
  readonly #path: string
  readonly #descriptor: number

  constructor(old: Segment) {
    this.#old = old
    this.#path = `${old.path}${UNFINISHED}`
    const { gid, mode, uid } = fs.statSync(old.path)
    this.#descriptor = fs.openSync(this.#path, "w", mode & 0o777)
    const made = fs.fstatSync(this.#descriptor)
    // The broker's user has to be able to go on writing to it.
    if (made.uid !== uid || made.gid !== gid) fs.fchownSync(this.#descriptor, uid, gid)
  }

  get path(): string {
    return this.#path
  }

  append(bytes: Buffer): void {
    for (let at = 0; at < bytes.length; ) at += fs.writeSync(this.#descriptor, bytes, at)
  }

  /** All of it is on the disk. */
  close(): void {
    const { atime, mtime } = fs.statSync(this.#old.path)
    // Where no record has a time, a broker's retention goes by the file's.
    fs.futimesSync(this.#descriptor, atime, mtime)
    fs.fsyncSync(this.#descriptor)
    fs.closeSync(this.#descriptor)
  }

  discard(): void {
    fs.closeSync(this.#descriptor)
    fs.rmSync(this.#path)
  }

  /**
   * Puts it in the old one's place. The indexes name places in the old file, so they go first: a broker
   * that finds a segment without them makes them from it.
   */
  replaceOld(): void {
    const { path } = this.#old
    const folder = join(path, "..")
    for (const suffix of INDEXES) {
      fs.rmSync(path.slice(0, -LOG.length) + suffix, { force: true })
    }
    syncFolder(folder)
    fs.renameSync(this.#path, path)
    syncFolder(folder)
  }
}
