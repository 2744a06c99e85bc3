/**
 * Cuts the bytes of a file into the texts of its events: lines, records of CSV, elements of an array.
 * Each has its line and the offset at which it ends, so that reading can go on after it.
 */
import { isUtf8 } from "node:buffer"
import { CommandFailure, EXIT } from "../Failure.ts"

export const FORMATS = ["ndjson", "json", "csv"] as const
export type Format = (typeof FORMATS)[number]

/** A place between two units. */
export interface Place {
  /** Bytes from the beginning of the file. */
  readonly offset: number
  /** Line feeds before it. */
  readonly lines: number
}

/** The text of one event. */
export interface Unit {
  readonly text: string
  /** Of its first character, from 1. */
  readonly line: number
  /** Where it ends, its line feed included. */
  readonly end: Place
  /** False if bytes of it are no text: it must not be sent as something else. */
  readonly isUtf8: boolean
}

/** Bytes of one unit at most; the service takes far less, and memory stays bounded. */
const UNIT_BYTES_MAX = 4 * 1024 * 1024

const LINE_FEED = 0x0a
const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c

/** Where the unit that begins at `start` ends; undefined if more bytes are needed. */
type FindEnd = (bytes: Buffer, start: number) => number | undefined

const endOfLine: FindEnd = (bytes, start) => {
  const at = bytes.indexOf(LINE_FEED, start)
  return at < 0 ? undefined : at + 1
}

/** A line feed within quotes belongs to the record. */
const endOfRecord: FindEnd = (bytes, start) => {
  let isQuoted = false
  for (let at = start; at < bytes.length; at++) {
    if (bytes[at] === QUOTE) isQuoted = !isQuoted
    else if (bytes[at] === LINE_FEED && !isQuoted) return at + 1
  }
  return undefined
}

const isOpening = (byte: number): boolean => byte === 0x7b || byte === 0x5b
const isClosing = (byte: number): boolean => byte === 0x7d || byte === 0x5d

/** After the comma that follows the element, or after the bracket that ends the array. */
const endOfElement: FindEnd = (bytes, start) => {
  let depth = 0
  let isString = false
  for (let at = start; at < bytes.length; at++) {
    const byte = bytes[at]!
    if (isString) {
      if (byte === BACKSLASH) at += 1
      else if (byte === QUOTE) isString = false
    } else if (byte === QUOTE) isString = true
    else if (isOpening(byte)) depth += 1
    else if (isClosing(byte)) {
      depth -= 1
      if (depth < 0) return at + 1
    } else if (byte === COMMA && depth === 0) return at + 1
  }
  return undefined
}

const FINDERS: Readonly<Record<Format, FindEnd>> = {
  ndjson: endOfLine,
  csv: endOfRecord,
  json: endOfElement
}

/** Line feeds in a part of the bytes. */
const lineFeeds = (bytes: Buffer, from: number, to: number): number => {
  let found = 0
  for (let at = bytes.indexOf(LINE_FEED, from); at >= 0 && at < to; found++) {
    at = bytes.indexOf(LINE_FEED, at + 1)
  }
  return found
}

const BYTE_ORDER_MARK = "\ufeff"

/** Cuts units off as bytes come. */
export class UnitReader {
  readonly #format: Format
  readonly #findEnd: FindEnd
  #rest: Buffer = Buffer.alloc(0)
  #offset: number
  #lines: number
  #isAtStart: boolean

  constructor(format: Format, { lines, offset }: Place = { offset: 0, lines: 0 }) {
    this.#format = format
    this.#findEnd = FINDERS[format]
    this.#offset = offset
    this.#lines = lines
    this.#isAtStart = offset === 0
  }

  /** The units that are complete with these bytes; blank ones are left out. */
  *read(chunk: Buffer): Generator<Unit, void> {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    let at = this.#isAtStart && this.#format === "json" ? this.#enterArray(bytes) : 0
    if (this.#isAtStart && at < 0) {
      this.#rest = bytes
      return
    }
    this.#advance(bytes, 0, at)
    for (let end = this.#findEnd(bytes, at); end !== undefined; end = this.#findEnd(bytes, at)) {
      yield* this.#cut(bytes, at, end)
      at = end
    }
    this.#rest = bytes.subarray(at)
    if (this.#rest.length <= UNIT_BYTES_MAX) return
    throw new CommandFailure(
      EXIT.failed,
      `line ${this.#lines + 1}: an event of more than 4 MiB`,
      "name the format of the file with --format, or take the line out"
    )
  }

  /** What is left when the bytes have ended. */
  *end(): Generator<Unit, void> {
    const bytes = this.#rest
    this.#rest = Buffer.alloc(0)
    yield* this.#cut(bytes, 0, bytes.length)
  }

  /** After the bracket that begins the array; -1 if it has not come yet. */
  #enterArray(bytes: Buffer): number {
    const start = bytes.toString("latin1").search(/[^\s\u00ef\u00bb\u00bf]/)
    if (start < 0) return -1
    if (bytes[start] === 0x5b) return start + 1
    throw new CommandFailure(
      EXIT.usage,
      "the file does not begin with [, so it is no JSON array",
      "--format ndjson reads one event a line"
    )
  }

  #advance(bytes: Buffer, from: number, to: number): void {
    if (to > from) this.#isAtStart = false
    this.#offset += to - from
    this.#lines += lineFeeds(bytes, from, to)
  }

  *#cut(bytes: Buffer, from: number, to: number): Generator<Unit, void> {
    const isFirst = this.#isAtStart
    const part = bytes.subarray(from, to)
    const whole = part.toString("utf8")
    const line = this.#lines + 1 + this.#blankLines(whole)
    this.#advance(bytes, from, to)
    const marked = isFirst && whole.startsWith(BYTE_ORDER_MARK) ? whole.slice(1) : whole
    // Of an array, the comma or bracket after an element is not part of it.
    const text = (this.#format === "json" ? marked.replace(/[,\]]\s*$/, "") : marked).trim()
    if (text !== "") yield this.#unit(text, line, isUtf8(part))
  }

  #unit(text: string, line: number, isText: boolean): Unit {
    return { text, line, end: { offset: this.#offset, lines: this.#lines }, isUtf8: isText }
  }

  #blankLines(text: string): number {
    return this.#format === "ndjson" ? 0 : (/^\s*/.exec(text)![0].match(/\n/g) ?? []).length
  }
}
