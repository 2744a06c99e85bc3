/**
 * AssemblyScript. Hot path: measured in test/bench/Bench.ts (projection). Cuts stored events into
 * columns, as EventSplit.ts and EventBlock.ts do, up to the first row that is not fully understood.
 */
import {
  addBytes,
  addNumber,
  addPlain,
  addSearch,
  addText,
  clearColumns,
  endOf,
  setEnd
} from "./Columns"
import { PIECE, ROWS } from "./Layout"
import { after, mark, NOT } from "./Marks"
import { beginRow, objectEnd, omit, readPlain, readText } from "./Strings"
import { readHash, readHex, readSequence, readTime, sequenceNumber, time } from "./Values"

export { COLUMNS, PIECE, PIECE_BYTES_MAX, ROWS, ROWS_MAX } from "./Layout"

/** The columns of EventBlock.ts from the third on, in their order. */
const TENANT_COLUMN: u32 = 0
const SEQUENCE_COLUMN: u32 = 1
const HASH_COLUMN: u32 = 2
const ID_COLUMN: u32 = 3
const TIMESTAMP_COLUMN: u32 = 4
const CREATED_COLUMN: u32 = 5
const ACTOR_ID_COLUMN: u32 = 6
const ACTOR_TYPE_COLUMN: u32 = 7
const ACTION_COLUMN: u32 = 8
const RESOURCE_ID_COLUMN: u32 = 9
const RESOURCE_TYPE_COLUMN: u32 = 10
const OUTCOME_COLUMN: u32 = 11
const METADATA_COLUMN: u32 = 12
const SEARCH_COLUMN: u32 = 13
const EMAIL_COLUMN: u32 = 14
const NAME_COLUMN: u32 = 15
const SALT_COLUMN: u32 = 16
const DETAILS_HASH_COLUMN: u32 = 17
const CONTENT_HASH_COLUMN: u32 = 18
const PREV_HASH_COLUMN: u32 = 19

/** The fields of an event that are strings: first those to search in, in the order of `search`. */
const ACTION: u32 = 0
const ACTOR_ID: u32 = 1
const EMAIL: u32 = 2
const RESOURCE_ID: u32 = 3
const RESOURCE_TYPE: u32 = 4
const NAME: u32 = 5
const SEARCHED: u32 = 6
const ID: u32 = 6
const ACTOR_TYPE: u32 = 7
const OUTCOME: u32 = 8
const TENANT: u32 = 9

const BEFORE_ID = mark('{"id":"')
const BEFORE_TIMESTAMP = mark(',"timestamp":"')
const BEFORE_ACTOR = mark('","actor":{"id":"')
const BEFORE_TYPE = mark(',"type":"')
const BEFORE_EMAIL = mark(',"email":"')
const BEFORE_ACTION = mark('},"action":"')
const BEFORE_RESOURCE = mark(',"resource":{"id":"')
const BEFORE_NAME = mark(',"name":"')
const BEFORE_OUTCOME = mark('},"outcome":"')
const BEFORE_METADATA = mark(',"metadata":{')
const BEFORE_TENANT = mark(',"tenant_id":"')
const BEFORE_SEQUENCE = mark(',"sequence_number":')
const BEFORE_CREATED = mark(',"created_at":"')
const BEFORE_PREV_HASH = mark('","prev_hash":"')
const BEFORE_SALT = mark('","details_salt":"')
const BEFORE_DETAILS_HASH = mark('","details_hash":"')
const BEFORE_CONTENT_HASH = mark('","content_hash":"')
const BEFORE_HASH = mark('","hash":"')
const LAST = mark('"}')

const COMMA: u8 = 0x2c
const SALT_BYTES: usize = 16
const HASH_BYTES: usize = 32
const HASH_DIGITS: usize = 64

let timestamp: i64 = 0
let metadata: usize = 0
let metadataLength: usize = 0
let hash: usize = 0

/** An id and a type, and a field that may be absent, up to the closing brace. */
function readParty(from: usize, id: u32, type: u32, more: u32, beforeMore: usize): usize {
  const at = readPlain(type, after(readPlain(id, from), BEFORE_TYPE))
  if (at !== NOT && load<u8>(at) === COMMA) return readText(more, after(at, beforeMore))
  omit(more)
  return at
}

/** The metadata, which may be absent. */
function readMetadata(at: usize): usize {
  const from = after(at, BEFORE_METADATA)
  metadata = metadataLength = 0
  if (from === NOT) return at
  const end = objectEnd(from)
  metadata = from - 1
  metadataLength = end - metadata
  return end
}

/** Digits that may be absent but are not all zero: room for so many bytes is zero without them. */
function readOptional(at: usize, before: usize, column: u32, length: usize): usize {
  const to = endOf(column)
  const from = after(at, before)
  if (from === NOT) {
    memory.fill(to, 0, length)
    return at
  }
  const end = length === SALT_BYTES ? readHex(from, to) : readHash(from, to)
  if (end === NOT) return NOT
  let bits = v128.load(to)
  if (length === HASH_BYTES) bits = v128.or(bits, v128.load(to, 16))
  return v128.any_true(bits) ? end : NOT
}

/** The hashes up to the end: decoded behind the ends of their columns, which stay. */
function readHashes(start: usize): usize {
  let at = readHash(after(start, BEFORE_PREV_HASH), endOf(PREV_HASH_COLUMN))
  at = readOptional(at, BEFORE_SALT, SALT_COLUMN, SALT_BYTES)
  at = readOptional(at, BEFORE_DETAILS_HASH, DETAILS_HASH_COLUMN, HASH_BYTES)
  at = readHash(after(at, BEFORE_CONTENT_HASH), endOf(CONTENT_HASH_COLUMN))
  hash = after(at, BEFORE_HASH)
  // Not decoded: the column holds the digits. What is written here is written over.
  return after(readHash(hash, endOf(HASH_COLUMN)), LAST)
}

/** Reads a row; true if it has the form of which the columns give back every byte. */
function readRow(start: usize, end: usize): bool {
  beginRow(end)
  let at = readTime(after(readPlain(ID, after(start, BEFORE_ID)), BEFORE_TIMESTAMP))
  if (at === NOT) return false
  timestamp = time
  at = readParty(after(at, BEFORE_ACTOR), ACTOR_ID, ACTOR_TYPE, EMAIL, BEFORE_EMAIL)
  at = after(readPlain(ACTION, after(at, BEFORE_ACTION)), BEFORE_RESOURCE)
  at = readParty(at, RESOURCE_ID, RESOURCE_TYPE, NAME, BEFORE_NAME)
  at = readMetadata(readPlain(OUTCOME, after(at, BEFORE_OUTCOME)))
  at = readSequence(after(readPlain(TENANT, after(at, BEFORE_TENANT)), BEFORE_SEQUENCE))
  at = readTime(after(at, BEFORE_CREATED))
  return at !== NOT && readHashes(at) === end
}

/** Adds the row that was read to the columns. */
function addRow(): void {
  addPlain(TENANT_COLUMN, TENANT)
  addNumber(SEQUENCE_COLUMN, sequenceNumber)
  addBytes(HASH_COLUMN, hash, HASH_DIGITS)
  addPlain(ID_COLUMN, ID)
  addNumber(TIMESTAMP_COLUMN, timestamp)
  addNumber(CREATED_COLUMN, time)
  addPlain(ACTOR_ID_COLUMN, ACTOR_ID)
  addPlain(ACTOR_TYPE_COLUMN, ACTOR_TYPE)
  addPlain(ACTION_COLUMN, ACTION)
  addPlain(RESOURCE_ID_COLUMN, RESOURCE_ID)
  addPlain(RESOURCE_TYPE_COLUMN, RESOURCE_TYPE)
  addPlain(OUTCOME_COLUMN, OUTCOME)
  addBytes(METADATA_COLUMN, metadata, metadataLength)
  addSearch(SEARCH_COLUMN, SEARCHED)
  addText(EMAIL_COLUMN, EMAIL)
  addText(NAME_COLUMN, NAME)
  setEnd(SALT_COLUMN, endOf(SALT_COLUMN) + SALT_BYTES)
  setEnd(DETAILS_HASH_COLUMN, endOf(DETAILS_HASH_COLUMN) + HASH_BYTES)
  setEnd(CONTENT_HASH_COLUMN, endOf(CONTENT_HASH_COLUMN) + HASH_BYTES)
  setEnd(PREV_HASH_COLUMN, endOf(PREV_HASH_COLUMN) + HASH_BYTES)
}

/**
 * Writes the columns of the rows from `first` on, of `rows` whose bodies have been put to PIECE and
 * their ends to ROWS. The rows that are done: the one after them is not for this.
 */
export function split(first: u32, rows: u32): u32 {
  clearColumns()
  let start = PIECE + (first === 0 ? 0 : load<u32>(ROWS + (first - 1) * 4))
  for (let row = first; row < rows; row++) {
    const end = PIECE + load<u32>(ROWS + row * 4)
    if (!readRow(start, end)) return row - first
    addRow()
    start = end
  }
  return rows - first
}
