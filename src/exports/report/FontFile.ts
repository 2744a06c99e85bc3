/**
 * Which characters a WOFF file really has glyphs for, read from its `cmap` table (W3C WOFF 1.0,
 * OpenType 1.9 chapter cmap). The ranges that font packages publish with their files promise
 * more than the files hold.
 */
import { inflateSync } from "node:zlib"

const HEADER_BYTES = 44
const ENTRY_BYTES = 20
const CMAP_HEADER_BYTES = 4
const CMAP_RECORD_BYTES = 8
const SEGMENTS = 4
const GROUPS = 12

const tableOf = (file: Buffer, wanted: string): Buffer => {
  const tables = file.readUInt16BE(12)
  for (let index = 0; index < tables; index++) {
    const at = HEADER_BYTES + index * ENTRY_BYTES
    if (file.toString("latin1", at, at + 4) !== wanted) continue
    const offset = file.readUInt32BE(at + 4)
    const length = file.readUInt32BE(at + 8)
    const bytes = file.subarray(offset, offset + length)
    return length < file.readUInt32BE(at + 12) ? inflateSync(bytes) : bytes
  }
  throw new Error(`a font file without the table ${wanted}`)
}

/** Segments of the characters up to U+FFFF: ends, starts, differences and offsets, in columns. */
const readSegments = (table: Buffer, at: number, found: (codePoint: number) => void): void => {
  const columnBytes = table.readUInt16BE(at + 6)
  const ends = at + 14
  const starts = ends + columnBytes + 2
  const deltas = starts + columnBytes
  const offsets = deltas + columnBytes
  for (let column = 0; column < columnBytes; column += 2) {
    const end = table.readUInt16BE(ends + column)
    const start = table.readUInt16BE(starts + column)
    const delta = table.readUInt16BE(deltas + column)
    const offset = table.readUInt16BE(offsets + column)
    for (let codePoint = start; codePoint <= end && codePoint < 0xffff; codePoint++) {
      const glyphAt = offsets + column + offset + 2 * (codePoint - start)
      const glyph = offset === 0 ? (codePoint + delta) & 0xffff : table.readUInt16BE(glyphAt)
      if (glyph !== 0) found(codePoint)
    }
  }
}

const readGroups = (table: Buffer, at: number, found: (codePoint: number) => void): void => {
  const groups = table.readUInt32BE(at + 12)
  for (let index = 0; index < groups; index++) {
    const group = at + 16 + index * 12
    const end = table.readUInt32BE(group + 4)
    for (let codePoint = table.readUInt32BE(group); codePoint <= end; codePoint++) found(codePoint)
  }
}

/** Calls `found` with every character that the WOFF file has a glyph for, some more than once. */
export const forEachCharacter = (file: Buffer, found: (codePoint: number) => void): void => {
  const table = tableOf(file, "cmap")
  const records = table.readUInt16BE(2)
  for (let index = 0; index < records; index++) {
    const at = table.readUInt32BE(CMAP_HEADER_BYTES + index * CMAP_RECORD_BYTES + 4)
    const format = table.readUInt16BE(at)
    if (format === SEGMENTS) readSegments(table, at, found)
    else if (format === GROUPS) readGroups(table, at, found)
  }
}
