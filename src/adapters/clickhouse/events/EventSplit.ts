/**
 * Hot path: measured in test/bench/Bench.ts (projection). Cuts the stored JSON of an event into the
 * columns that it is a function of (EventText.ts), by position and without parsing it. Takes only
 * bytes that the columns give back exactly. A change here needs the same change in `fast/assembly`,
 * which does most rows, or less of it done there.
 */
import {
  bytesOf,
  HASH_DIGITS,
  marks,
  SALT_DIGITS,
  SEQUENCE_DIGITS_MAX,
  TIME_LENGTH
} from "../../../domain/chain/ChainMarks.ts"

/** Offsets into the bytes of an actor or a resource: where a part begins, and where it ends. */
class PartyOffsets {
  idFrom = 0
  idEnd = 0
  typeFrom = 0
  typeEnd = 0
  /** With its quotation marks; equal if the member is absent. */
  textFrom = 0
  textEnd = 0
}

/** Microseconds since 1970: beyond those that a double holds exactly as a bigint. */
export type Micros = number | bigint

/** Offsets into the bytes: where a part begins, and where it ends. */
export class EventOffsets {
  idFrom = 0
  idEnd = 0
  timestamp: Micros = 0
  /** Its text is the e-mail address. */
  readonly actor = new PartyOffsets()
  actionFrom = 0
  actionEnd = 0
  /** Its text is the name. */
  readonly resource = new PartyOffsets()
  outcomeFrom = 0
  outcomeEnd = 0
  /** With its braces; equal if the member is absent. */
  metadataFrom = 0
  metadataEnd = 0
  tenantFrom = 0
  tenantEnd = 0
  sequenceNumber = 0
  createdAt: Micros = 0
  prevHash = 0
  /** Undefined if the event has none. */
  salt: number | undefined
  detailsHash: number | undefined
  contentHash = 0
  hash = 0
  /** 0 if the event is not erased. */
  erasedAt: Micros = 0
  /** From, end, from, end, … of the strings in metadata that are not keys, without their marks. */
  readonly strings: Array<number> = []
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const SPACE = 0x20
const COLON = 0x3a
const COMMA = 0x2c
const LOWER_U = 0x75
const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = [0x7b, 0x7d, 0x5b, 0x5d]
const [ZERO, NINE, LOWER_A, LOWER_F] = [0x30, 0x39, 0x61, 0x66]

/** Years that DateTime64(6) holds, up to the last one of an event. */
const [YEAR_MIN, YEAR_MAX] = [1900, 2261]
/** Whose microseconds a double holds exactly, in mid-2255. */
const SECONDS_MAX = 9_007_199_253

const NOT = -1
/** What may follow a backslash: the two characters that are escaped as they are, and b, f, n, r, t. */
const SHORT_ESCAPES = [QUOTE, BACKSLASH, 0x62, 0x66, 0x6e, 0x72, 0x74]

const ID = bytesOf('{"id":"')
const TIMESTAMP = bytesOf(',"timestamp":"')
const ACTOR = bytesOf('","actor":{"id":"')
const TYPE = bytesOf(',"type":"')
const EMAIL = bytesOf(',"email":"')
const ACTION = bytesOf('},"action":"')
const RESOURCE = bytesOf(',"resource":{"id":"')
const NAME = bytesOf(',"name":"')
const OUTCOME = bytesOf('},"outcome":"')
const METADATA = bytesOf(',"metadata":{')
const SEQUENCE = bytesOf(',"sequence_number":')

/** Where reading goes on after the mark, or NOT. */
const after = (bytes: Buffer, at: number, mark: Uint8Array): number => {
  if (at === NOT) return NOT
  for (let index = 0; index < mark.length; index++) {
    if (bytes[at + index] !== mark[index]) return NOT
  }
  return at + mark.length
}

/**
 * The end of a string that a column holds without its escapes: only quotation marks and
 * backslashes are escaped in it. `from` is behind the mark that opens it; NOT if it is another one.
 */
const plainEnd = (bytes: Buffer, from: number): number => {
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at]!
    if (byte === QUOTE) return at
    if (byte < SPACE) return NOT
    if (byte !== BACKSLASH) continue
    const escaped = bytes[++at]
    if (escaped !== QUOTE && escaped !== BACKSLASH) return NOT
  }
  return NOT
}

/** The end of a string of which a column holds the JSON text. */
const textEnd = (bytes: Buffer, from: number): number => {
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at]!
    if (byte === QUOTE) return at
    if (byte < SPACE) return NOT
    if (byte !== BACKSLASH) continue
    const end = escapeEnd(bytes, at + 1)
    if (end === NOT) return NOT
    at = end
  }
  return NOT
}

/** The last byte of what RFC 8785 writes after a backslash, which begins at `at`. */
const escapeEnd = (bytes: Buffer, at: number): number => {
  const escaped = bytes[at]!
  if (SHORT_ESCAPES.includes(escaped)) return at
  const isControl = escaped === LOWER_U && bytes[at + 1] === ZERO && bytes[at + 2] === ZERO
  return isControl && areHexDigits(bytes, at + 3, 2) ? at + 4 : NOT
}

/** The end of the object that begins before `from`, the strings of it noted; NOT if it has none. */
const objectEnd = (bytes: Buffer, from: number, strings: Array<number>): number => {
  let depth = 1
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at]!
    if (byte === QUOTE) {
      const end = textEnd(bytes, at + 1)
      if (end === NOT) return NOT
      if (bytes[end + 1] !== COLON) strings.push(at + 1, end)
      at = end
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      depth--
      if (depth === 0) return at + 1
    } else if (byte < SPACE) return NOT
  }
  return NOT
}

/** The number of so many decimal digits; NOT if there are others. */
const digits = (bytes: Buffer, from: number, count: number): number => {
  let value = 0
  for (let at = from; at < from + count; at++) {
    const byte = bytes[at]!
    if (!(byte >= ZERO && byte <= NINE)) return NOT
    value = 10 * value + byte - ZERO
  }
  return value
}

const isLeap = (year: number): boolean => year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)

const MONTH_DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

/** Days from 1970-01-01 to a day, whose parts are in their ranges. */
const daysTo = (year: number, month: number, day: number): number => {
  // Years that begin in March, so that the day that leap years add is their last one.
  const shifted = month <= 2 ? year - 1 : year
  const era = Math.floor(shifted / 400)
  const yearOfEra = shifted - era * 400
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1
  const leaps = Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100)
  return era * 146_097 + yearOfEra * 365 + leaps + dayOfYear - 719_468
}

/** A time that was read. */
let time: Micros = 0

/** Reads a time in canonical microsecond form into `time`; false if the bytes are not a time. */
const readTime = (bytes: Buffer, at: number): boolean => {
  const year = digits(bytes, at, 4)
  const month = digits(bytes, at + 5, 2)
  const day = digits(bytes, at + 8, 2)
  const hour = digits(bytes, at + 11, 2)
  const minute = digits(bytes, at + 14, 2)
  const second = digits(bytes, at + 17, 2)
  const micros = digits(bytes, at + 20, 6)
  if (
    bytes[at + 4] !== 0x2d
    || bytes[at + 7] !== 0x2d
    || bytes[at + 10] !== 0x54
    || bytes[at + 13] !== COLON
    || bytes[at + 16] !== COLON
    || bytes[at + 19] !== 0x2e
    || bytes[at + 26] !== 0x5a
  ) {
    return false
  }
  if (year < YEAR_MIN || year > YEAR_MAX || month < 1 || month > 12 || day < 1 || micros === NOT) {
    return false
  }
  const days = month === 2 && isLeap(year) ? 29 : MONTH_DAYS[month - 1]!
  if (day > days || !inRange(hour, 23) || !inRange(minute, 59) || !inRange(second, 59)) return false
  const seconds = ((daysTo(year, month, day) * 24 + hour) * 60 + minute) * 60 + second
  time =
    seconds <= SECONDS_MAX
      ? seconds * 1_000_000 + micros
      : BigInt(seconds) * 1_000_000n + BigInt(micros)
  return true
}

const inRange = (value: number, max: number): boolean => value >= 0 && value <= max

const areHexDigits = (bytes: Buffer, from: number, count: number): boolean => {
  for (let at = from; at < from + count; at++) {
    const byte = bytes[at]!
    const isDigit = (byte >= ZERO && byte <= NINE) || (byte >= LOWER_A && byte <= LOWER_F)
    if (!isDigit) return false
  }
  return true
}

const isZero = (bytes: Buffer, from: number, count: number): boolean => {
  for (let at = from; at < from + count; at++) if (bytes[at] !== ZERO) return false
  return true
}

/** Where reading goes on after a value that begins behind a mark, see `after`. */
const afterDigits = (bytes: Buffer, from: number, count: number): number =>
  from !== NOT && areHexDigits(bytes, from, count) ? from + count : NOT

/** An id and a type, and a text that may be absent, up to the closing brace. */
const cutParty = (
  bytes: Buffer,
  start: number,
  party: PartyOffsets,
  markOfId: Uint8Array,
  markOfText: Uint8Array
): number => {
  party.idFrom = after(bytes, start, markOfId)
  if (party.idFrom === NOT) return NOT
  party.idEnd = plainEnd(bytes, party.idFrom)
  party.typeFrom = after(bytes, next(party.idEnd), TYPE)
  if (party.typeFrom === NOT) return NOT
  party.typeEnd = plainEnd(bytes, party.typeFrom)
  const at = next(party.typeEnd)
  party.textFrom = party.textEnd = 0
  if (at === NOT || bytes[at] !== COMMA) return at
  const from = after(bytes, at, markOfText)
  const end = from === NOT ? NOT : textEnd(bytes, from)
  party.textFrom = from - 1
  party.textEnd = next(end)
  return party.textEnd
}

/** Behind the mark that ends a string. */
const next = (end: number): number => (end === NOT ? NOT : end + 1)

/** The action, and the mark that ends it. */
const cutAction = (bytes: Buffer, start: number, cut: EventOffsets): number => {
  cut.actionFrom = after(bytes, start, ACTION)
  if (cut.actionFrom === NOT) return NOT
  cut.actionEnd = plainEnd(bytes, cut.actionFrom)
  return next(cut.actionEnd)
}

/** From the outcome up to the end of the metadata. */
const cutMetadata = (bytes: Buffer, start: number, cut: EventOffsets): number => {
  cut.outcomeFrom = after(bytes, start, OUTCOME)
  if (cut.outcomeFrom === NOT) return NOT
  cut.outcomeEnd = plainEnd(bytes, cut.outcomeFrom)
  const at = next(cut.outcomeEnd)
  cut.strings.length = 0
  cut.metadataFrom = cut.metadataEnd = 0
  const from = after(bytes, at, METADATA)
  if (from === NOT) return at
  cut.metadataFrom = from - 1
  cut.metadataEnd = objectEnd(bytes, from, cut.strings)
  return cut.metadataEnd
}

/** The tenant, the number and the time of the place in the chain. */
const cutPlace = (bytes: Buffer, start: number, cut: EventOffsets): number => {
  cut.tenantFrom = after(bytes, start, marks.tenant)
  if (cut.tenantFrom === NOT) return NOT
  cut.tenantEnd = plainEnd(bytes, cut.tenantFrom)
  const from = after(bytes, next(cut.tenantEnd), SEQUENCE)
  if (from === NOT) return NOT
  let end = from
  while (bytes[end]! >= ZERO && bytes[end]! <= NINE) end++
  const count = end - from
  if (count === 0 || count > SEQUENCE_DIGITS_MAX || (bytes[from] === ZERO && count > 1)) return NOT
  cut.sequenceNumber = digits(bytes, from, count)
  const created = after(bytes, end, marks.created)
  if (created === NOT || !readTime(bytes, created)) return NOT
  cut.createdAt = time
  return created + TIME_LENGTH
}

/** Of an event without details: nothing of them is in the bytes. */
const hasNoDetails = ({ actor, metadataEnd, resource, salt }: EventOffsets): boolean =>
  actor.textEnd === 0 && resource.textEnd === 0 && metadataEnd === 0 && salt === undefined

/** When the event was erased, which ends the bytes. */
const cutErasure = (bytes: Buffer, start: number, cut: EventOffsets): boolean => {
  const from = after(bytes, start, marks.erased)
  if (from === NOT || !hasNoDetails(cut) || !readTime(bytes, from) || time <= 0) return false
  cut.erasedAt = time
  return after(bytes, from + TIME_LENGTH, marks.end) === bytes.length
}

/** The hashes up to the end of the bytes; true if that is all. */
const cutHashes = (bytes: Buffer, start: number, cut: EventOffsets): boolean => {
  cut.prevHash = after(bytes, start, marks.prevHash)
  let at = afterDigits(bytes, cut.prevHash, HASH_DIGITS)
  if (at === NOT) return false
  cut.salt = cut.detailsHash = undefined
  const salt = after(bytes, at, marks.salt)
  if (salt !== NOT) {
    if (afterDigits(bytes, salt, SALT_DIGITS) === NOT || isZero(bytes, salt, SALT_DIGITS)) {
      return false
    }
    cut.salt = salt
    at = salt + SALT_DIGITS
  }
  const detailsHash = after(bytes, at, marks.detailsHash)
  if (detailsHash !== NOT) {
    if (afterDigits(bytes, detailsHash, HASH_DIGITS) === NOT) return false
    if (isZero(bytes, detailsHash, HASH_DIGITS)) return false
    cut.detailsHash = detailsHash
    at = detailsHash + HASH_DIGITS
  }
  cut.contentHash = after(bytes, at, marks.contentHash)
  cut.hash = after(bytes, afterDigits(bytes, cut.contentHash, HASH_DIGITS), marks.hash)
  const end = afterDigits(bytes, cut.hash, HASH_DIGITS)
  cut.erasedAt = 0
  return after(bytes, end, marks.end) === bytes.length || cutErasure(bytes, end, cut)
}

/**
 * Cuts the stored JSON of an event, or what erasing has left of one; false if it has not the form of
 * which the columns give back every byte. UTF-8 is not checked.
 */
export const cutEvent = (bytes: Buffer, cut: EventOffsets): boolean => {
  cut.idFrom = after(bytes, 0, ID)
  if (cut.idFrom === NOT) return false
  cut.idEnd = plainEnd(bytes, cut.idFrom)
  const at = after(bytes, next(cut.idEnd), TIMESTAMP)
  if (at === NOT || !readTime(bytes, at)) return false
  cut.timestamp = time
  const action = cutParty(bytes, at + TIME_LENGTH, cut.actor, ACTOR, EMAIL)
  const resource = cutAction(bytes, action, cut)
  const outcome = cutParty(bytes, resource, cut.resource, RESOURCE, NAME)
  const place = outcome === NOT ? NOT : cutMetadata(bytes, outcome, cut)
  const hashes = place === NOT ? NOT : cutPlace(bytes, place, cut)
  return hashes !== NOT && cutHashes(bytes, hashes, cut)
}
