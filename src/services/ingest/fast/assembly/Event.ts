/**
 * AssemblyScript. From the fields of an item to its entry and body in an EventBatch. The hashes of
 * a group of events are made together: first what hangs on the item alone, then the hash of the
 * core, which holds the hash of the details and the id.
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
import {
  ACCEPTED_AT,
  ADDED_BYTES_MAX,
  bodies,
  DEDUP_START,
  DERIVED_START,
  ENTRY_BYTES,
  entries,
  GROUP_MAX,
  MESSAGES,
  MESSAGES_BYTES,
  MESSAGES_OF_EVENT_MAX,
  PARTS,
  PARTS_BYTES,
  RANDOM,
  RANDOM_BYTES,
  SECRET
} from "./Layout"
import { addJob, hashAll } from "./Sha256"
import { ascii, out, write, writeAt, writeByte, writeHex, writeText } from "./Texts"
import { writeTimestamp } from "./Time"

// The entry, as src/domain/records/EventBatch.ts has it.
const BODY_LENGTH_AT = 4
const INDEX_AT = 8
const ID_LENGTH_AT = 12
const FLAGS_AT = 14
const SALT_AT: usize = 16
const DETAILS_HASH_AT: usize = 32
const CONTENT_HASH_AT: usize = 64
const DEDUP_KEY_AT: usize = 96
const FINGERPRINT_AT: usize = 112
const HAS_DETAILS: u16 = 1
const HAS_CLIENT_ID: u16 = 2
const HASH_BYTES: usize = 32
const HASH_WORDS: u32 = 8
/** Words of the hashes that are cut to 16 bytes. */
const SHORT_WORDS: u32 = 4
const SALT_BYTES: usize = 16
const UUID_LENGTH: usize = 36
const TIME_LENGTH: usize = 27

// Where the parts of the core begin in the body, each followed by its length.
const ID_PART = 0
const TIME_PART = 8
const ACTOR_ID_PART = 16
const ACTOR_TYPE_PART = 24
const ACTION_PART = 32
const RESOURCE_ID_PART = 40
const RESOURCE_TYPE_PART = 48
const OUTCOME_PART = 56

const BRACE: u8 = 0x7b
const CLOSING_BRACE: u8 = 0x7d
const QUOTE: u8 = 0x22
const HYPHEN: u8 = 0x2d
const COLON: u8 = 0x3a
const LINE_FEED: u8 = 0x0a
const ZERO: u8 = 0x30

const ID_FIRST = ascii('{"id":')
const ACTION_FIRST = ascii('{"action":')
const ID_MEMBER = ascii(',"id":')
const TIMESTAMP_MEMBER = ascii(',"timestamp":')
const ACTOR_MEMBER = ascii(',"actor":{"id":')
const TYPE_MEMBER = ascii(',"type":')
const EMAIL_MEMBER = ascii(',"email":')
const ACTION_MEMBER = ascii('},"action":')
const RESOURCE_MEMBER = ascii(',"resource":{"id":')
const NAME_MEMBER = ascii(',"name":')
const OUTCOME_MEMBER = ascii(',"outcome":')
const METADATA_MEMBER = ascii(',"metadata":')
const ACTOR_EMAIL_MEMBER = ascii(',"actor_email":')
const RESOURCE_NAME_MEMBER = ascii(',"resource_name":')
const DETAILS_HASH_MEMBER = ascii(',"details_hash":')
const HUMAN = ascii('"human"')
const SYSTEM = ascii('"system"')
const SUCCESS = ascii('"success"')

/** Events of this request. */
export let events: u32 = 0
/** Where the next body goes. */
export let bodiesEnd: usize = 0
let groupStart: u32 = 0
let groupBodies: usize = 0
let messagesEnd: usize = MESSAGES
let secretLength: usize = 0
let dedupLength: usize = 0
let derivedLength: usize = 0
let milliseconds: u64 = 0

/** A request begins. `derived`: bytes before the index in the text of derived ids, 0 without. */
export function beginEvents(secret: usize, dedup: usize, derived: usize, now: u64): void {
  events = 0
  bodiesEnd = bodies
  secretLength = secret
  dedupLength = dedup
  derivedLength = derived
  milliseconds = now
  beginGroup()
}

function beginGroup(): void {
  groupStart = events
  groupBodies = bodiesEnd
  messagesEnd = MESSAGES
}

function writeField(field: usize): void {
  write(startOf(field), lengthOf(field))
}

/** Write a field and note where, for the core. */
function writePart(part: usize, field: usize): void {
  notePart(part, lengthOf(field))
  writeField(field)
}

function notePart(part: usize, length: usize): void {
  const parts = PARTS + (events - groupStart) * PARTS_BYTES + part
  store<u32>(parts, <u32>out)
  store<u32>(parts, <u32>length, 4)
}

/** Write a text of the program in the place of a field that was not sent. */
function writeDefault(part: usize, text: usize): void {
  notePart(part, load<u32>(text))
  writeText(text)
}

function writeMember(name: usize, field: usize): void {
  if (!has(field)) return
  writeText(name)
  writeField(field)
}

/** Write 16 bytes as a UUID. */
function writeUuid(from: usize): void {
  writeHex(from, 4)
  writeByte(HYPHEN)
  writeHex(from + 4, 2)
  writeByte(HYPHEN)
  writeHex(from + 6, 2)
  writeByte(HYPHEN)
  writeHex(from + 8, 2)
  writeByte(HYPHEN)
  writeHex(from + 10, 6)
}

/** Make 16 bytes those of a UUID of this version, of the variant of RFC 9562. */
function markUuid(bytes: usize, version: u8): void {
  store<u8>(bytes, (load<u8>(bytes, 6) & 0x0f) | (version << 4), 6)
  store<u8>(bytes, (load<u8>(bytes, 8) & 0x3f) | 0x80, 8)
}

/** Write a new id, or leave room for one that is derived. */
function writeNewId(random: usize): void {
  notePart(ID_PART, UUID_LENGTH + 2)
  writeByte(QUOTE)
  if (derivedLength === 0) {
    store<u16>(random, bswap<u16>(<u16>(milliseconds >> 32)))
    store<u32>(random, bswap<u32>(<u32>milliseconds), 2)
    markUuid(random, 7)
    writeUuid(random)
  } else {
    writeAt(out + UUID_LENGTH)
  }
  writeByte(QUOTE)
}

function writeTime(): void {
  notePart(TIME_PART, TIME_LENGTH + 2)
  writeByte(QUOTE)
  if (has(TIMESTAMP)) writeTimestamp(startOf(TIMESTAMP) + 1, lengthOf(TIMESTAMP) - 2)
  else write(ACCEPTED_AT, TIME_LENGTH)
  writeByte(QUOTE)
}

function writeBody(random: usize): void {
  writeText(ID_FIRST)
  if (has(ID)) writePart(ID_PART, ID)
  else writeNewId(random)
  writeText(TIMESTAMP_MEMBER)
  writeTime()
  writeText(ACTOR_MEMBER)
  writePart(ACTOR_ID_PART, ACTOR_ID)
  writeText(TYPE_MEMBER)
  if (has(ACTOR_TYPE)) writePart(ACTOR_TYPE_PART, ACTOR_TYPE)
  else writeDefault(ACTOR_TYPE_PART, has(EMAIL) ? HUMAN : SYSTEM)
  writeMember(EMAIL_MEMBER, EMAIL)
  writeText(ACTION_MEMBER)
  writePart(ACTION_PART, ACTION)
  writeText(RESOURCE_MEMBER)
  writePart(RESOURCE_ID_PART, RESOURCE_ID)
  writeText(TYPE_MEMBER)
  writePart(RESOURCE_TYPE_PART, RESOURCE_TYPE)
  writeMember(NAME_MEMBER, NAME)
  writeByte(CLOSING_BRACE)
  writeText(OUTCOME_MEMBER)
  if (has(OUTCOME)) writePart(OUTCOME_PART, OUTCOME)
  else writeDefault(OUTCOME_PART, SUCCESS)
  writeMember(METADATA_MEMBER, METADATA)
}

/** End the object whose members were written since `start`: its brace takes the first comma. */
function closeObject(start: usize): void {
  store<u8>(start, BRACE)
  writeByte(CLOSING_BRACE)
}

/** The text of salt and details, which is hashed. */
function addDetails(entry: usize, random: usize): void {
  v128.store(entry + SALT_AT, v128.load(random + SALT_BYTES))
  writeAt(messagesEnd)
  writeHex(entry + SALT_AT, SALT_BYTES)
  writeByte(LINE_FEED)
  const start = out
  writeMember(ACTOR_EMAIL_MEMBER, EMAIL)
  writeMember(METADATA_MEMBER, METADATA)
  writeMember(RESOURCE_NAME_MEMBER, NAME)
  closeObject(start)
  messagesEnd = addJob(messagesEnd, out - messagesEnd, entry + DETAILS_HASH_AT, HASH_WORDS)
}

/** The name of tenant and id, which is hashed. */
function addDedupKey(entry: usize): void {
  writeAt(messagesEnd)
  write(DEDUP_START, dedupLength)
  write(startOf(ID) + 1, lengthOf(ID) - 2)
  messagesEnd = addJob(messagesEnd, out - messagesEnd, entry + DEDUP_KEY_AT, SHORT_WORDS)
}

/** The secret and the body, which are hashed: without its time if that was not sent. */
function addFingerprint(entry: usize, body: usize): void {
  writeAt(messagesEnd)
  write(SECRET, secretLength)
  if (has(TIMESTAMP)) {
    write(body, bodiesEnd - body)
  } else {
    const parts = PARTS + (events - groupStart) * PARTS_BYTES
    const time = <usize>load<u32>(parts + TIME_PART)
    const after = time + <usize>load<u32>(parts + TIME_PART, 4)
    write(body, time - body)
    writeByte(QUOTE)
    writeByte(QUOTE)
    write(after, bodiesEnd - after)
  }
  messagesEnd = addJob(messagesEnd, out - messagesEnd, entry + FINGERPRINT_AT, SHORT_WORDS)
}

/** What a derived id is made of, which is hashed: the shared start and the index. */
function addDerivedId(index: u32, random: usize): void {
  writeAt(messagesEnd)
  write(DERIVED_START, derivedLength)
  const digits = index > 999 ? 4 : index > 99 ? 3 : index > 9 ? 2 : 1
  writeByte(ZERO + <u8>digits)
  writeByte(COLON)
  let divisor: u32 = digits === 4 ? 1_000 : digits === 3 ? 100 : digits === 2 ? 10 : 1
  for (; divisor > 0; divisor /= 10) writeByte(ZERO + <u8>((index / divisor) % 10))
  messagesEnd = addJob(messagesEnd, out - messagesEnd, random, SHORT_WORDS)
}

/** The messages of the group have no room for one more event. */
function isGroupFull(): bool {
  const count = events - groupStart
  const cores = bodiesEnd - groupBodies + count * ADDED_BYTES_MAX
  const bytes = max(messagesEnd - MESSAGES, cores)
  return count === GROUP_MAX || bytes + MESSAGES_OF_EVENT_MAX > MESSAGES_BYTES
}

/** Make an event of the fields: the item is valid, and `index` its place in the request. */
export function addEvent(index: u32): void {
  if (isGroupFull()) finishGroup()
  const entry = entries + events * ENTRY_BYTES
  const random = RANDOM + events * RANDOM_BYTES
  const body = bodiesEnd
  memory.fill(entry, 0, ENTRY_BYTES)
  writeAt(body)
  writeBody(random)
  bodiesEnd = out
  store<u32>(entry, <u32>(body - bodies))
  store<u32>(entry, <u32>(bodiesEnd - body), BODY_LENGTH_AT)
  store<u32>(entry, index, INDEX_AT)
  store<u16>(entry, has(ID) ? <u16>(lengthOf(ID) - 2) : <u16>UUID_LENGTH, ID_LENGTH_AT)
  let flags: u16 = 0
  if (has(EMAIL) || has(METADATA) || has(NAME)) {
    flags |= HAS_DETAILS
    addDetails(entry, random)
  }
  if (has(ID)) {
    flags |= HAS_CLIENT_ID
    addDedupKey(entry)
    addFingerprint(entry, body)
  } else if (derivedLength > 0) {
    addDerivedId(index, random)
  }
  store<u16>(entry, flags, FLAGS_AT)
  events++
}

/** Put the derived id into the room that its body has for it. */
function placeDerivedId(event: u32): void {
  const random = RANDOM + event * RANDOM_BYTES
  const before = out
  markUuid(random, 8)
  writeAt(<usize>load<u32>(PARTS + (event - groupStart) * PARTS_BYTES, ID_PART) + 1)
  writeUuid(random)
  writeAt(before)
}

function writePartOf(parts: usize, part: usize): void {
  write(<usize>load<u32>(parts + part), <usize>load<u32>(parts + part, 4))
}

/** The text of the core, which is hashed. */
function addCore(event: u32): void {
  const entry = entries + event * ENTRY_BYTES
  const parts = PARTS + (event - groupStart) * PARTS_BYTES
  writeAt(messagesEnd)
  writeText(ACTION_FIRST)
  writePartOf(parts, ACTION_PART)
  writeText(ACTOR_MEMBER)
  writePartOf(parts, ACTOR_ID_PART)
  writeText(TYPE_MEMBER)
  writePartOf(parts, ACTOR_TYPE_PART)
  writeByte(CLOSING_BRACE)
  if ((load<u16>(entry, FLAGS_AT) & HAS_DETAILS) !== 0) {
    writeText(DETAILS_HASH_MEMBER)
    writeByte(QUOTE)
    writeHex(entry + DETAILS_HASH_AT, HASH_BYTES)
    writeByte(QUOTE)
  }
  writeText(ID_MEMBER)
  writePartOf(parts, ID_PART)
  writeText(OUTCOME_MEMBER)
  writePartOf(parts, OUTCOME_PART)
  writeText(RESOURCE_MEMBER)
  writePartOf(parts, RESOURCE_ID_PART)
  writeText(TYPE_MEMBER)
  writePartOf(parts, RESOURCE_TYPE_PART)
  writeByte(CLOSING_BRACE)
  writeText(TIMESTAMP_MEMBER)
  writePartOf(parts, TIME_PART)
  writeByte(CLOSING_BRACE)
  messagesEnd = addJob(messagesEnd, out - messagesEnd, entry + CONTENT_HASH_AT, HASH_WORDS)
}

/** Make the hashes of the events since the last group. */
export function finishGroup(): void {
  hashAll()
  messagesEnd = MESSAGES
  for (let event = groupStart; event < events; event++) {
    const isOwnId = (load<u16>(entries + event * ENTRY_BYTES, FLAGS_AT) & HAS_CLIENT_ID) === 0
    if (isOwnId && derivedLength > 0) placeDerivedId(event)
    addCore(event)
  }
  hashAll()
  beginGroup()
}
