/**
 * AssemblyScript. Where everything lies in the memory of the module, whose size is fixed. After
 * every area there are SLACK_BYTES that no value uses, because bytes are read and written 16 at a
 * time.
 */

/** Bytes of the bodies that are read together. */
export const PIECE_BYTES_MAX: u32 = 262_144
/** Rows that are read together. */
export const ROWS_MAX: u32 = 1_024
/** Strings in the metadata of one row: with more of them it is not done. */
export const STRINGS_MAX: u32 = 4_096
/** Columns that are written. */
export const COLUMNS_COUNT: u32 = 20
/** Parts of an event that are strings. */
const FIELDS_COUNT: u32 = 10
/** Bytes of a length before a string, at most, for each row. */
const LENGTH_BYTES_MAX: u32 = 4
/** Bytes of the place of a column: start, end. */
export const COLUMN_BYTES: u32 = 8
/** Bytes of the place of a string: start, end, bytes that go when its escapes are resolved. */
export const STRING_BYTES: u32 = 12
const SLACK_BYTES: u32 = 64
/** No string of a column is longer than its body, and no value of fixed size than 32 bytes. */
const AREA_BYTES: u32 = PIECE_BYTES_MAX + ROWS_MAX * LENGTH_BYTES_MAX + SLACK_BYTES
const PAGE_BYTES: usize = 65_536

let next: usize = (__heap_base + 63) & ~63

function take(bytes: usize): usize {
  const area = next
  next = (next + bytes + SLACK_BYTES + 63) & ~63
  return area
}

/** The bodies, one after the other. */
export const PIECE: usize = take(PIECE_BYTES_MAX)
/** Where each body ends, counted from PIECE. */
export const ROWS: usize = take(ROWS_MAX * 4)
export const COLUMNS: usize = take(COLUMNS_COUNT * COLUMN_BYTES)
/** The strings of the row that is being read: its fields, and those in its metadata. */
export const FIELDS: usize = take(FIELDS_COUNT * STRING_BYTES)
export const STRINGS: usize = take(STRINGS_MAX * STRING_BYTES)

/** What is written, column by column. */
const AREAS: usize = take(COLUMNS_COUNT * AREA_BYTES)

const pages = <i32>((next + PAGE_BYTES - 1) / PAGE_BYTES)
if (pages > memory.size() && memory.grow(pages - memory.size()) < 0) unreachable()
for (let column: u32 = 0; column < COLUMNS_COUNT; column++) {
  store<u32>(COLUMNS + column * COLUMN_BYTES, <u32>AREAS + column * AREA_BYTES)
}
