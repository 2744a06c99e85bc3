/**
 * AssemblyScript. Whether the fields of an item are valid beyond doubt. Lengths are limits in
 * characters: a text with so few bytes keeps them, one with more is not decided here.
 */
import {
  ACTION,
  ACTOR_ID,
  ACTOR_TYPE,
  EMAIL,
  has,
  ID,
  lengthOf,
  METADATA,
  NAME,
  OUTCOME,
  RESOURCE_ID,
  RESOURCE_TYPE,
  startOf,
  TIMESTAMP
} from "./Fields"
import { BACKSLASH, isDigit } from "./Json"
import { isTimestamp } from "./Time"

const QUOTES: usize = 2
const ID_LENGTH_MAX: usize = 256
const PARTY_ID_LENGTH_MAX: usize = 1_024
const EMAIL_LENGTH_MAX: usize = 320
const NAME_LENGTH_MAX: usize = 1_024
const DOT: u8 = 0x2e
const HYPHEN: u8 = 0x2d
const UNDERSCORE: u8 = 0x5f
const DELETE: u8 = 0x7f
/** The first byte of U+0080 to U+00BF, of which the first 32 are control characters. */
const LATIN: u8 = 0xc2
const CONTROLS_END: u8 = 0xa0
/** "alk." in little-endian order. */
const RESERVED: u32 = 0x2e6b6c61

/** Values with their quotes but the first, in little-endian order. */
const HUMAN: u64 = 0x226e616d7568
const AGENT: u64 = 0x22746e656761
const SYSTEM: u64 = 0x226d6574737973
const SUCCESS: u64 = 0x2273736563637573
const FAILURE: u64 = 0x226572756c696166
const ERROR: u64 = 0x22726f727265
const BYTES_6: u64 = 0xffffffffffff
const BYTES_7: u64 = 0xffffffffffffff

/** An id without control characters, and without escapes. */
function isId(field: usize, lengthMax: usize = ID_LENGTH_MAX): bool {
  const length = lengthOf(field)
  if (length <= QUOTES || length > lengthMax + QUOTES) return false
  const end = startOf(field) + length - 1
  for (let at = startOf(field) + 1; at < end; at++) {
    const byte = load<u8>(at)
    if (byte === BACKSLASH || byte === DELETE) return false
    if (byte === LATIN && load<u8>(at, 1) < CONTROLS_END) return false
  }
  return true
}

function isAction(lengthMax: usize): bool {
  const start = startOf(ACTION) + 1
  const end = startOf(ACTION) + lengthOf(ACTION) - 1
  if (end - start > lengthMax || load<u32>(start) === RESERVED) return false
  let dots = 0
  let segment = 0
  for (let at = start; at < end; at++) {
    const byte = load<u8>(at)
    if (byte === DOT) {
      if (segment === 0) return false
      dots++
      segment = 0
    } else {
      const letter = byte | 0x20
      const isLetter = letter >= 0x61 && letter <= 0x7a
      if (!isLetter && !isDigit(byte) && byte !== UNDERSCORE && byte !== HYPHEN) return false
      segment++
    }
  }
  return dots > 0 && segment > 0
}

function isActorType(): bool {
  const word = load<u64>(startOf(ACTOR_TYPE), 1)
  const six = word & BYTES_6
  return six === HUMAN || six === AGENT || (word & BYTES_7) === SYSTEM
}

function isOutcome(): bool {
  const word = load<u64>(startOf(OUTCOME), 1)
  return word === SUCCESS || word === FAILURE || (word & BYTES_6) === ERROR
}

function isNotOver(field: usize, lengthMax: usize): bool {
  return !has(field) || lengthOf(field) <= lengthMax
}

/** True if every field that has to be there is there, and every field is valid. */
export function areFieldsValid(isSingle: bool, actionMax: usize, metadataMax: usize): bool {
  if (!has(ACTOR_ID) || !has(ACTION) || !has(RESOURCE_ID) || !has(RESOURCE_TYPE)) return false
  if (isSingle && (!has(ACTOR_TYPE) || !has(OUTCOME))) return false
  return (
    isId(ACTOR_ID, PARTY_ID_LENGTH_MAX)
    && isId(RESOURCE_ID, PARTY_ID_LENGTH_MAX)
    && isId(RESOURCE_TYPE)
    && isAction(actionMax)
    && (!has(ID) || isId(ID))
    && (!has(ACTOR_TYPE) || isActorType())
    && (!has(OUTCOME) || isOutcome())
    && (!has(TIMESTAMP) || isTimestamp(startOf(TIMESTAMP) + 1, lengthOf(TIMESTAMP) - QUOTES))
    && isNotOver(EMAIL, EMAIL_LENGTH_MAX + QUOTES)
    && isNotOver(NAME, NAME_LENGTH_MAX + QUOTES)
    && isNotOver(METADATA, metadataMax)
  )
}
