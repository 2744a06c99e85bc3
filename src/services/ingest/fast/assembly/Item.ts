/**
 * AssemblyScript. Reads an item: its fields as canonical texts. False if it has a member that is
 * not known, or not of the type that it has to be, null included.
 */
import {
  ACTION,
  ACTOR_ID,
  ACTOR_TYPE,
  clearFields,
  EMAIL,
  has,
  ID,
  METADATA,
  NAME,
  OUTCOME,
  RESOURCE_ID,
  RESOURCE_TYPE,
  setField,
  TIMESTAMP
} from "./Fields"
import {
  at,
  beginItem,
  COLON,
  COMMA,
  copyString,
  copyValue,
  LEFT_BRACE,
  QUOTE,
  RIGHT_BRACE,
  readAt,
  skipSpace,
  take,
  takeMark
} from "./Json"
import { SCRATCH } from "./Layout"
import { out, writeAt } from "./Texts"

// Names as little-endian words, with the quote after them where it is within eight bytes.
const ID_NAME: u64 = 0x226469
const TYPE_NAME: u64 = 0x2265707974
const NAME_NAME: u64 = 0x22656d616e
const EMAIL_NAME: u64 = 0x226c69616d65
const ACTOR_NAME: u64 = 0x22726f746361
const ACTION_NAME: u64 = 0x226e6f69746361
const OUTCOME_NAME: u64 = 0x22656d6f6374756f
const RESOURCE_NAME: u64 = 0x656372756f736572
const METADATA_NAME: u64 = 0x617461646174656d
const TIMESTAM_NAME: u64 = 0x6d617473656d6974
const LAST_OF_TIMESTAMP: u8 = 0x70

/** Masks of the first bytes of a word. */
const BYTES_3: u64 = 0xffffff
const BYTES_5: u64 = 0xffffffffff
const BYTES_6: u64 = 0xffffffffffff
const BYTES_7: u64 = 0xffffffffffffff

/** Go on after a name of so many bytes, its quotes included, and the colon. */
function afterName(length: usize): bool {
  readAt(at + length)
  return takeMark(COLON)
}

/** Read a string as the text of a field. */
function readText(field: usize): bool {
  const start = out
  return copyString() && setField(field, start)
}

/** Read a member of actor or resource, whose ids and types are different fields. */
function readPart(id: usize, type: usize, other: usize): bool {
  if (load<u8>(at) !== QUOTE) return false
  const word = load<u64>(at, 1)
  if ((word & BYTES_3) === ID_NAME) return afterName(4) && readText(id)
  if ((word & BYTES_5) === TYPE_NAME) return afterName(6) && readText(type)
  if (other === EMAIL) return (word & BYTES_6) === EMAIL_NAME && afterName(7) && readText(EMAIL)
  return (word & BYTES_5) === NAME_NAME && afterName(6) && readText(NAME)
}

/** Read actor or resource. It has at least one member, so that a second one is noticed. */
function readParts(id: usize, type: usize, other: usize): bool {
  if (has(id) || has(type) || has(other) || !take(LEFT_BRACE)) return false
  while (true) {
    skipSpace()
    if (!readPart(id, type, other)) return false
    skipSpace()
    if (take(RIGHT_BRACE)) return true
    if (!take(COMMA)) return false
  }
}

function readMetadata(): bool {
  const start = out
  return load<u8>(at) === LEFT_BRACE && copyValue(0) && setField(METADATA, start)
}

/** A member whose name has eight bytes or more. */
function readLongMember(word: u64): bool {
  if (word === RESOURCE_NAME && load<u8>(at, 9) === QUOTE) {
    return afterName(10) && readParts(RESOURCE_ID, RESOURCE_TYPE, NAME)
  }
  if (word === METADATA_NAME && load<u8>(at, 9) === QUOTE) return afterName(10) && readMetadata()
  return (
    word === TIMESTAM_NAME
    && load<u8>(at, 9) === LAST_OF_TIMESTAMP
    && load<u8>(at, 10) === QUOTE
    && afterName(11)
    && readText(TIMESTAMP)
  )
}

function readMember(): bool {
  if (load<u8>(at) !== QUOTE) return false
  const word = load<u64>(at, 1)
  if ((word & BYTES_6) === ACTOR_NAME) {
    return afterName(7) && readParts(ACTOR_ID, ACTOR_TYPE, EMAIL)
  }
  if ((word & BYTES_7) === ACTION_NAME) return afterName(8) && readText(ACTION)
  if (word === OUTCOME_NAME) return afterName(9) && readText(OUTCOME)
  if ((word & BYTES_3) === ID_NAME) return afterName(4) && readText(ID)
  return readLongMember(word)
}

/** Read the item at the next byte. What it has is in the fields then. */
export function readItem(): bool {
  clearFields()
  beginItem()
  writeAt(SCRATCH)
  if (!take(LEFT_BRACE)) return false
  while (true) {
    skipSpace()
    if (!readMember()) return false
    skipSpace()
    if (take(RIGHT_BRACE)) return true
    if (!take(COMMA)) return false
  }
}
