/**
 * Packs in the hands of somebody else: files taken out, changed, put back, and the sums made to
 * fit. Reads and writes ZIPs by itself, so that nothing of the program is in between.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { crc32, deflateRawSync, inflateRawSync } from "node:zlib"
import { sha256 } from "./PackWorld.ts"

const EOCD = 0x06054b50
const CENTRAL = 0x02014b50

const filesOf = (zip: Buffer): Map<string, Buffer> => {
  const end = zip.lastIndexOf(Buffer.from([0x50, 0x4b, 0x05, 0x06]))
  if (end < 0 || zip.readUInt32LE(end) !== EOCD) throw new Error("no ZIP")
  const files = new Map<string, Buffer>()
  let at = zip.readUInt32LE(end + 16)
  for (let left = zip.readUInt16LE(end + 10); left > 0; left--) {
    if (zip.readUInt32LE(at) !== CENTRAL) throw new Error("no directory")
    const [nameLength, extraLength] = [zip.readUInt16LE(at + 28), zip.readUInt16LE(at + 30)]
    const name = zip.toString("utf8", at + 46, at + 46 + nameLength)
    const local = zip.readUInt32LE(at + 42)
    const start = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28)
    const data = zip.subarray(start, start + zip.readUInt32LE(at + 20))
    files.set(name, zip.readUInt16LE(at + 10) === 8 ? inflateRawSync(data) : Buffer.from(data))
    at += 46 + nameLength + extraLength + zip.readUInt16LE(at + 32)
  }
  return files
}

const header = (signature: number, name: Buffer, content: Buffer, packed: Buffer): Buffer => {
  const head = Buffer.alloc(signature === CENTRAL ? 46 : 30)
  const shift = signature === CENTRAL ? 2 : 0
  head.writeUInt32LE(signature, 0)
  if (signature === CENTRAL) head.writeUInt16LE(20, 4)
  head.writeUInt16LE(20, 4 + shift)
  head.writeUInt16LE(0x0800, 6 + shift)
  head.writeUInt16LE(8, 8 + shift)
  head.writeUInt16LE(0x21, 12 + shift)
  head.writeUInt32LE(crc32(content), 14 + shift)
  head.writeUInt32LE(packed.length, 18 + shift)
  head.writeUInt32LE(content.length, 22 + shift)
  head.writeUInt16LE(name.length, 26 + shift)
  return head
}

const int64 = (...values: ReadonlyArray<number>): Buffer => {
  const bytes = Buffer.alloc(8 * values.length)
  values.forEach((value, at) => bytes.writeBigUInt64LE(BigInt(value), 8 * at))
  return bytes
}

/** Sizes and offset in the extra field instead, as a large ZIP has them. */
const widened = (central: Buffer): Buffer => {
  const numbers = [24, 20, 42].map((at) => central.readUInt32LE(at))
  for (const at of [24, 20, 42]) central.writeUInt32LE(0xffffffff, at)
  central.writeUInt16LE(28, 30)
  return Buffer.concat([Buffer.from([1, 0, 24, 0]), int64(...numbers)])
}

/** The end of a large ZIP: a record with wide numbers, and where it stands. */
const largeEnd = (count: number, bytes: number, offset: number): Buffer => {
  const record = Buffer.concat([
    Buffer.from([0x50, 0x4b, 0x06, 0x06]),
    int64(44),
    Buffer.from([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    int64(count, count, bytes, offset)
  ])
  const locator = Buffer.from([0x50, 0x4b, 0x06, 0x07, 0, 0, 0, 0])
  return Buffer.concat([record, locator, int64(offset + bytes), Buffer.from([1, 0, 0, 0])])
}

/**
 * A ZIP of these files, in their order; a name may stand twice. `large`: with the numbers of a ZIP
 * of more than 4 GB.
 */
export const zipOf = (files: Iterable<readonly [string, Buffer]>, large = false): Buffer => {
  const parts: Array<Buffer> = []
  const directory: Array<Buffer> = []
  let offset = 0
  let count = 0
  for (const [text, content] of files) {
    const name = Buffer.from(text)
    const packed = deflateRawSync(content)
    const local = Buffer.concat([header(0x04034b50, name, content, packed), name, packed])
    const central = header(CENTRAL, name, content, packed)
    central.writeUInt32LE(offset, 42)
    directory.push(central, name, ...(large ? [widened(central)] : []))
    parts.push(local)
    offset += local.length
    count += 1
  }
  const listing = Buffer.concat(directory)
  const end = Buffer.alloc(22)
  end.writeUInt32LE(EOCD, 0)
  end.writeUInt16LE(count, 8)
  end.writeUInt16LE(count, 10)
  end.writeUInt32LE(listing.length, 12)
  end.writeUInt32LE(large ? 0xffffffff : offset, 16)
  const wide = large ? [largeEnd(count, listing.length, offset)] : []
  return Buffer.concat([...parts, listing, ...wide, end])
}

type Json = Record<string, any>

/** The files of one pack, to be changed. */
export class PackEditor {
  readonly files: Map<string, Buffer>

  constructor(zip: Buffer) {
    this.files = filesOf(zip)
  }

  text(name: string): string {
    const file = this.files.get(name)
    if (file === undefined) throw new Error(`there is no ${name}`)
    return file.toString()
  }

  set(name: string, text: string | Buffer): this {
    this.files.set(name, Buffer.from(text))
    return this
  }

  remove(name: string): this {
    this.files.delete(name)
    return this
  }

  lines(name: string): Array<string> {
    const text = this.text(name)
    return text === "" ? [] : text.slice(0, -1).split("\n")
  }

  setLines(name: string, lines: ReadonlyArray<string>): this {
    return this.set(name, lines.map((line) => `${line}\n`).join(""))
  }

  /** Change the lines of a file. */
  edit(name: string, change: (lines: Array<string>) => ReadonlyArray<string>): this {
    return this.setLines(name, change(this.lines(name)))
  }

  json(name: string, change: (value: Json) => void): this {
    const value = JSON.parse(this.text(name)) as Json
    change(value)
    return this.set(name, `${JSON.stringify(value, null, 2)}\n`)
  }

  /** Make manifest and sums fit the files, as somebody without the signing key can. */
  settle(): this {
    const own = ["manifest.json", "manifest.sig", "sha256sums.txt"]
    if (this.files.has("manifest.json")) {
      this.json("manifest.json", (manifest) => {
        manifest["files"] = [...this.files]
          .filter(([name]) => !own.includes(name))
          .map(([name, bytes]) => ({ name, bytes: bytes.length, sha256: sha256(bytes) }))
      })
    }
    return this.sums()
  }

  /** Make the sums alone fit. */
  sums(): this {
    const sums = [...this.files].filter(([name]) => name !== "sha256sums.txt")
    return this.set(
      "sha256sums.txt",
      sums.map(([name, bytes]) => `${sha256(bytes)}  ${name}\n`).join("")
    )
  }

  zip(): Buffer {
    return zipOf(this.files)
  }

  /** The files in a folder of their own. */
  unpack(folder: string): string {
    for (const [name, bytes] of this.files) {
      const path = join(folder, name)
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, bytes)
    }
    return folder
  }
}
