/**
 * A ZIP names its files twice, in a header before each and in a directory at its end, and programs
 * differ in which of the two they follow and in what they skip. So a ZIP is read only if it has one
 * reading: entries and their headers fill it from byte 0 to the directory, which ends where the end
 * record begins, which ends the file; both headers of an entry say the same; no comments, no
 * encryption, no parts, no links, no name twice (in whatever case) and none that leads elsewhere.
 * What breaks these rules is "unreadable", never "tampered": there is no one content to judge.
 * verify.py follows the same rules.
 */
import {
  type Chunks,
  FILES_MAX,
  isSafeName,
  type PackSource,
  SMALL_FILE_BYTES_MAX,
  Unreadable
} from "./PackFiles.ts"

/** A part of the file, shorter where that ends. */
type Read = (start: number, length: number) => Promise<Uint8Array>

/** The file that a ZIP is in. */
export interface ZipFile {
  readonly size: number
  readonly read: Read
  /** A part of it in pieces, inflated if it is packed. */
  stream(start: number, length: number, isPacked: boolean): Chunks
  readonly close?: () => Promise<void>
}

interface ZipEntry {
  readonly name: string
  readonly rawName: Uint8Array
  /** Bytes, inflated and as they are. */
  readonly size: number
  readonly packed: number
  /** Where its header begins. */
  readonly offset: number
  readonly isFolder: boolean
  readonly flags: number
  readonly method: number
  readonly crc: number
  /** Where its data begins, once its header was read. */
  start: number
}

const crcTable = Int32Array.from({ length: 256 }, (_, byte) => {
  let value = byte
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1
  return value
})

const LOCAL = 0x04034b50
const LOCAL_BYTES = 30
const DESCRIPTOR = 0x08074b50
const CENTRAL = 0x02014b50
const CENTRAL_BYTES = 46
const END = 0x06054b50
const END_BYTES = 22
const WIDE_END = 0x06064b50
const WIDE_END_BYTES = 56
const LOCATOR = 0x07064b50
const LOCATOR_BYTES = 20
/** In place of a number that the ZIP64 field or record holds in 8 bytes. */
const WIDE_16 = 0xffff
const WIDE_32 = 0xffffffff
const ZIP64_FIELD = 1
/** Another name of the file, for programs that know this field. */
const NAME_FIELD = 0x7075
const STORED = 0
const DEFLATED = 8
const DESCRIPTOR_FLAG = 8
/** Besides it: how hard it was compressed (1, 2), and that the name is UTF-8 (11). */
const KNOWN_FLAGS = 0x080e
/** Kinds of files as Unix writes them into the attributes. */
const KIND_MASK = 0o170000
const PLAIN_FILE = 0o100000
const PLAIN_FOLDER = 0o040000

const ambiguous = (what: string): Unreadable =>
  new Unreadable(`the ZIP has no single reading: ${what}`)

/** Numbers of a ZIP: unsigned, little-endian. Beyond 2^53 they are inexact and fit nowhere. */
class ZipBytes {
  readonly bytes: Uint8Array
  readonly #view: DataView

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  u16(at: number): number {
    return this.#view.getUint16(at, true)
  }

  u32(at: number): number {
    return this.#view.getUint32(at, true)
  }

  u64(at: number): number {
    return Number(this.#view.getBigUint64(at, true))
  }
}

const readZip = async (read: Read, start: number, length: number): Promise<ZipBytes> => {
  const bytes = await read(start, length)
  if (bytes.length !== length) throw ambiguous("it is cut off")
  return new ZipBytes(bytes)
}

/** It ends where the records of the end begin. */
interface Directory {
  /** Entries. */
  readonly count: number
  readonly bytes: number
  readonly start: number
}

const zipDirectory = async (read: Read, size: number): Promise<Directory> => {
  const endAt = size - END_BYTES
  if (endAt < 0) throw ambiguous("it has no end record")
  const end = await readZip(read, endAt, END_BYTES)
  if (end.u32(0) !== END || end.u16(20) !== 0) throw ambiguous("it does not end with an end record")
  if (end.u16(4) !== 0 || end.u16(6) !== 0 || end.u16(8) !== end.u16(10)) {
    throw ambiguous("it has parts")
  }
  const said = { count: end.u16(10), bytes: end.u32(12), start: end.u32(16) }
  const wide = await wideDirectory(read, endAt)
  const directory = wide ?? said
  const isSaid = (name: keyof Directory, all: number): boolean =>
    said[name] === directory[name] || said[name] === all
  if (!isSaid("count", WIDE_16) || !isSaid("bytes", WIDE_32) || !isSaid("start", WIDE_32)) {
    throw ambiguous("its two end records differ")
  }
  const stop = wide === undefined ? endAt : endAt - LOCATOR_BYTES - WIDE_END_BYTES
  if (directory.start + directory.bytes !== stop) {
    throw ambiguous("its directory does not end where its end record begins")
  }
  if (directory.count > FILES_MAX || directory.bytes > SMALL_FILE_BYTES_MAX) {
    throw new Unreadable("it holds more files than any pack")
  }
  return directory
}

/** The ZIP64 end record before the end record; undefined in a ZIP without it. */
const wideDirectory = async (read: Read, endAt: number): Promise<Directory | undefined> => {
  if (endAt < LOCATOR_BYTES) return undefined
  const locator = await readZip(read, endAt - LOCATOR_BYTES, LOCATOR_BYTES)
  if (locator.u32(0) !== LOCATOR) return undefined
  const start = endAt - LOCATOR_BYTES - WIDE_END_BYTES
  const isPlaced = start >= 0 && locator.u64(8) === start
  if (!isPlaced || locator.u32(4) !== 0 || locator.u32(16) !== 1) {
    throw ambiguous("its ZIP64 end record is not before its end record")
  }
  const end = await readZip(read, start, WIDE_END_BYTES)
  const isPlain =
    end.u32(0) === WIDE_END
    && end.u64(4) === WIDE_END_BYTES - 12
    && end.u32(16) === 0
    && end.u32(20) === 0
    && end.u64(24) === end.u64(32)
  if (!isPlain) throw ambiguous("its ZIP64 end record is damaged")
  return { count: end.u64(32), bytes: end.u64(40), start: end.u64(48) }
}

/** The ZIP64 field of an extra field, or undefined. */
const wideField = (extra: Uint8Array, name: string): ZipBytes | undefined => {
  const zip = new ZipBytes(extra)
  let wide: ZipBytes | undefined
  for (let at = 0; at < extra.length; ) {
    const end = at + 4 > extra.length ? Infinity : at + 4 + zip.u16(at + 2)
    if (end > extra.length) throw ambiguous(`an extra field of ${name} is cut off`)
    const id = zip.u16(at)
    if (id === NAME_FIELD || (id === ZIP64_FIELD && wide !== undefined)) {
      throw ambiguous(`an extra field of ${name} contradicts its header`)
    }
    if (id === ZIP64_FIELD) wide = new ZipBytes(extra.subarray(at + 4, end))
    at = end
  }
  return wide
}

/** The numbers with those in their place that did not fit into 4 bytes, in this order. */
const widened = (
  numbers: ReadonlyArray<number>,
  wide: ZipBytes | undefined,
  name: string
): ReadonlyArray<number> => {
  const places = numbers.flatMap((number, at) => (number === WIDE_32 ? [at] : []))
  if ((wide?.bytes.length ?? 0) !== 8 * places.length) {
    throw ambiguous(`the ZIP64 field of ${name} does not fit its header`)
  }
  return numbers.map((number, at) =>
    number === WIDE_32 ? wide!.u64(8 * places.indexOf(at)) : number
  )
}

/** The entry of the directory at a place, and where the next one begins. */
const centralEntry = (directory: ZipBytes, at: number) => {
  const { bytes } = directory
  if (at + CENTRAL_BYTES > bytes.length || directory.u32(at) !== CENTRAL) {
    throw ambiguous("its directory is damaged")
  }
  const nameEnd = at + CENTRAL_BYTES + directory.u16(at + 28)
  const next = nameEnd + directory.u16(at + 30)
  if (next > bytes.length || directory.u16(at + 32) !== 0 || directory.u16(at + 34) !== 0) {
    throw ambiguous("its directory is damaged, or holds a comment or a part")
  }
  const rawName = bytes.subarray(at + CENTRAL_BYTES, nameEnd)
  const name = nameOfEntry(rawName)
  const wide = wideField(bytes.subarray(nameEnd, next), name)
  const numbers = [directory.u32(at + 24), directory.u32(at + 20), directory.u32(at + 42)]
  const [size = 0, packed = 0, offset = 0] = widened(numbers, wide, name)
  const entry: ZipEntry = {
    name,
    rawName,
    size,
    packed,
    offset,
    isFolder: name.endsWith("/"),
    flags: directory.u16(at + 8),
    method: directory.u16(at + 10),
    crc: directory.u32(at + 16),
    start: Number.NaN
  }
  checkKind(entry, directory.u16(at + 40) & KIND_MASK)
  return { entry, next }
}

/** The name of an entry, of a folder with a slash at its end. */
const nameOfEntry = (raw: Uint8Array): string => {
  let name = ""
  for (const byte of raw) name += String.fromCharCode(byte)
  if (!isSafeName(name.endsWith("/") ? name.slice(0, -1) : name)) {
    throw ambiguous(`${JSON.stringify(name)} is no safe name`)
  }
  return name
}

const checkKind = (
  { flags, isFolder, method, name, packed, size }: ZipEntry,
  kind: number
): void => {
  if ((flags & ~KNOWN_FLAGS) !== 0 || (method !== STORED && method !== DEFLATED)) {
    throw ambiguous(`${name} is encrypted, or compressed in an unknown way`)
  }
  if (kind !== 0 && kind !== (isFolder ? PLAIN_FOLDER : PLAIN_FILE)) {
    throw ambiguous(`${name} is a link or a device`)
  }
  if ((isFolder && size + packed !== 0) || (method === STORED && size !== packed)) {
    throw ambiguous(`${name} has two sizes`)
  }
}

/** Holds the header before an entry, and what follows its data, against the directory. */
const checkLocal = async (read: Read, entry: ZipEntry, next: number): Promise<void> => {
  const { crc, flags, method, name, offset, packed, rawName, size } = entry
  const differs = () => ambiguous(`the two headers of ${name} differ`)
  if (offset + LOCAL_BYTES > next) throw ambiguous(`${name} overlaps the next entry`)
  const header = await readZip(read, offset, LOCAL_BYTES)
  const nameEnd = offset + LOCAL_BYTES + header.u16(26)
  entry.start = nameEnd + header.u16(28)
  const rest = next - entry.start - packed
  if (header.u32(0) !== LOCAL || header.u16(26) !== rawName.length) throw differs()
  if (rest < 0) throw ambiguous(`${name} overlaps the next entry`)
  const { bytes } = await readZip(read, offset + LOCAL_BYTES, entry.start - offset - LOCAL_BYTES)
  if (!rawName.every((byte, at) => byte === bytes[at])) throw differs()
  if (header.u16(6) !== flags || header.u16(8) !== method) throw differs()
  const wide = wideField(bytes.subarray(rawName.length), name)
  const numbers = [header.u32(14), ...widened([header.u32(22), header.u32(18)], wide, name)]
  const isStreamed = (flags & DESCRIPTOR_FLAG) !== 0
  const isSame = [crc, size, packed].every(
    (wanted, at) => numbers[at] === wanted || (isStreamed && numbers[at] === 0)
  )
  if (!isSame) throw differs()
  if (!isStreamed) {
    if (rest !== 0) throw ambiguous(`there are bytes after ${name}`)
    return
  }
  if (rest !== 16 && rest !== 24) throw ambiguous(`there are other bytes after ${name}`)
  const after = await readZip(read, entry.start + packed, rest)
  const sizes = rest === 16 ? [after.u32(8), after.u32(12)] : [after.u64(8), after.u64(16)]
  const isEnd =
    after.u32(0) === DESCRIPTOR && after.u32(4) === crc && sizes[0] === packed && sizes[1] === size
  if (!isEnd) throw differs()
}

/** The entries of a ZIP with one reading; each knows where its data starts. */
const zipEntries = async (read: Read, size: number): Promise<ReadonlyArray<ZipEntry>> => {
  const { bytes, count, start } = await zipDirectory(read, size)
  const directory = await readZip(read, start, bytes)
  const entries: Array<ZipEntry> = []
  const known = new Set<string>()
  let at = 0
  while (at < bytes) {
    const { entry, next } = centralEntry(directory, at)
    const name = entry.name.toLowerCase()
    if (known.has(name)) throw ambiguous(`more than one entry is named ${entry.name}`)
    known.add(name)
    entries.push(entry)
    at = next
  }
  if (entries.length !== count) throw ambiguous("its directory has another number of entries")
  const placed = [...entries].sort((left, right) => left.offset - right.offset)
  if ((placed[0]?.offset ?? start) !== 0) throw ambiguous("there are bytes before its first entry")
  for (const [index, entry] of placed.entries()) {
    await checkLocal(read, entry, placed[index + 1]?.offset ?? start)
  }
  return entries.filter(({ isFolder }) => !isFolder)
}

/** The inflated bytes of an entry; ends with an error if they are not what its header says. */
async function* entryChunks(file: ZipFile, entry: ZipEntry): Chunks {
  const { crc: wanted, method, name, packed, size: wantedSize, start } = entry
  let crc = -1
  let size = 0
  try {
    for await (const chunk of file.stream(start, packed, method === DEFLATED)) {
      size += chunk.length
      if (size > wantedSize) break
      for (let at = 0; at < chunk.length; at++) {
        crc = (crc >>> 8) ^ crcTable[(crc ^ chunk[at]!) & 0xff]!
      }
      yield chunk
    }
  } catch (error) {
    throw new Unreadable(`${name} in the ZIP can't be read: ${(error as Error).message}`)
  }
  if (size !== wantedSize || (crc ^ -1) >>> 0 !== wanted) {
    throw new Unreadable(`${name} in the ZIP is damaged: its checksum differs`)
  }
}

/** A ZIP as the files of a pack. */
export const zipSource = async (file: ZipFile): Promise<PackSource> => {
  try {
    const entries = new Map(
      (await zipEntries(file.read, file.size)).map((entry) => [entry.name, entry])
    )
    return {
      kind: "zip",
      names: [...entries.keys()],
      ...(file.close === undefined ? {} : { close: file.close }),
      open: (name) => entryChunks(file, entries.get(name)!)
    }
  } catch (error) {
    await file.close?.()
    throw error
  }
}
