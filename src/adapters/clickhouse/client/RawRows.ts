/**
 * Rows of an insert as one piece of bytes, the stored bytes among them as they are. Knows the two
 * formats that do this, and no table.
 */
import type { ClickHouseSettings } from "@clickhouse/client"

/** Ends a field; can't be in JSON, and neither can the line feed that ends a row. */
const SEPARATOR = "\x01"
const SEPARATOR_BYTE = 1
const LINE_FEED_BYTE = 10

/**
 * CSV without quotes and escapes. (TabSeparatedRaw would do the same, but chDB takes that format
 * only as a decoded string, at ten times the cost.)
 */
export const RAW_ROWS: ClickHouseSettings = {
  format_csv_delimiter: SEPARATOR,
  format_csv_allow_single_quotes: 0,
  format_csv_allow_double_quotes: 0,
  input_format_csv_trim_whitespaces: 0,
  input_format_csv_empty_as_default: 0
}

export interface RawRow {
  /** What comes before the body; none may hold a control character. */
  readonly fields: ReadonlyArray<string | number>
  /** JSON. */
  readonly body: Buffer
}

/** True for bytes that would end a field or a row. */
export const containsDelimiter = (bytes: Buffer): boolean =>
  bytes.includes(LINE_FEED_BYTE) || bytes.includes(SEPARATOR_BYTE)

/**
 * Hot path: measured in test/bench/Bench.ts (projection). Rows in CSV with the settings RAW_ROWS.
 * @throws Error for a body that would end a field or a row
 */
export const rawRows = (rows: ReadonlyArray<RawRow>): Buffer => {
  const prefixes = rows.map(({ fields }) => fields.map((field) => `${field}${SEPARATOR}`).join(""))
  let length = 0
  for (const [index, { body }] of rows.entries()) {
    length += Buffer.byteLength(prefixes[index]!) + body.length + 1
  }
  const bytes = Buffer.allocUnsafe(length)
  let at = 0
  for (const [index, { body, fields }] of rows.entries()) {
    if (containsDelimiter(body)) {
      throw new Error(`a body with a raw control character is no JSON: row ${fields.join(", ")}`)
    }
    at += bytes.write(prefixes[index]!, at, "utf8")
    at += body.copy(bytes, at)
    bytes[at++] = LINE_FEED_BYTE
  }
  return bytes
}

const ESCAPES: Record<string, string> = {
  "\\": "\\\\",
  "\t": "\\t",
  "\n": "\\n",
  "\r": "\\r",
  "\0": "\\0"
}

/** Any bytes at all as a field of TabSeparated. */
const escaped = (field: string | number | Buffer): string =>
  (Buffer.isBuffer(field) ? field : Buffer.from(String(field), "utf8"))
    .toString("latin1")
    .replace(/[\\\t\n\r\0]/g, (mark) => ESCAPES[mark]!)

/** Rows in TabSeparated: every field may hold any bytes. */
export const escapedRows = (rows: ReadonlyArray<ReadonlyArray<string | number | Buffer>>): Buffer =>
  Buffer.from(rows.map((fields) => `${fields.map(escaped).join("\t")}\n`).join(""), "latin1")
