/**
 * Hot path: measured in test/bench/Bench.ts (ingest, sequencing). The events of one request that
 * have passed validation, as bytes: an entry of fixed size for each, and their bodies one after the
 * other. From accept to the sequencer a plain event is these bytes and nothing else.
 *
 * An entry has 128 bytes, numbers little-endian, what is absent zero:
 *
 *     0  u32  offset of the body in the bodies
 *     4  u32  length of the body
 *     8  u32  place in the request, from 0
 *    12  u16  length of the id's JSON text without its quotes; it begins at byte 7 of the body
 *    14  u8   flags: 1 it has details (salt and hash), 2 the client gave the id (key, fingerprint)
 *    15  u8   zero
 *    16  16 bytes of salt
 *    32  32 bytes of the hash of the details
 *    64  32 bytes of the hash of the content
 *    96  16 bytes of the dedup key
 *   112  16 bytes of the fingerprint
 */
import { isUtf8 } from "node:buffer"
import { parseJson } from "../json/Json.ts"

/** An event that has passed validation: canonical, hashed, ready to be given its place. */
export interface PreparedEvent {
  /** Place in the request, from 0. */
  readonly index: number
  readonly id: string
  /** The stored JSON up to and including `metadata`, without the closing brace. */
  readonly body: string
  readonly contentHash: string
  readonly detailsSalt?: string | undefined
  readonly detailsHash?: string | undefined
  /** 32 hex digits naming tenant and id; only if the client gave the id. */
  readonly dedupKey?: string | undefined
  /** 32 hex digits that two items share only if they were sent with the same content. */
  readonly fingerprint?: string | undefined
}

/** The events of a request. Read by the functions of this file; never changed. */
export interface EventBatch {
  readonly count: number
  /** `count` entries of EVENT_ENTRY_BYTES. */
  readonly entries: Buffer
  /** The bodies in the order of the entries, with nothing before, between or after them. */
  readonly bodies: Buffer
}

/** The bytes are not those of a batch of events. */
export class BatchUnreadable extends Error {
  override readonly name = "BatchUnreadable"
}

/** Bytes of an entry. */
export const EVENT_ENTRY_BYTES = 128

/** Offsets in an entry, in bytes. */
export const EntryAt = {
  bodyOffset: 0,
  bodyLength: 4,
  index: 8,
  idLength: 12,
  flags: 14,
  zero: 15,
  salt: 16,
  detailsHash: 32,
  contentHash: 64,
  dedupKey: 96,
  fingerprint: 112
} as const

/** Flag of an event with details: salt and details hash are there. */
export const HAS_DETAILS = 1
/** Flag of an event whose id is the client's: dedup key and fingerprint are there. */
export const HAS_CLIENT_ID = 2

const ALL_FLAGS = HAS_DETAILS | HAS_CLIENT_ID
/** Bytes of hashes, and of salts, keys and fingerprints. */
const HASH_BYTES = 32
const SHORT_BYTES = 16
/** How every body begins: the JSON text of the id follows. */
const BODY_START = '{"id":"'
/** Where the id begins in a body. */
export const ID_AT = BODY_START.length
const START_WORD = Buffer.from(BODY_START).readUInt32LE(0)
const START_REST = Buffer.from(BODY_START).readUIntLE(4, 3)
const QUOTE = 0x22
const ID_LENGTH_MAX = 0xffff

/** The batch without events. */
export const EMPTY_BATCH: EventBatch = {
  count: 0,
  entries: Buffer.alloc(0),
  bodies: Buffer.alloc(0)
}

/** Bytes of entries and bodies together. */
export const batchBytes = ({ bodies, entries }: EventBatch): number =>
  entries.length + bodies.length

export const flagsAt = ({ entries }: EventBatch, event: number): number =>
  entries[event * EVENT_ENTRY_BYTES + EntryAt.flags]!

export const indexAt = ({ entries }: EventBatch, event: number): number =>
  entries.readUInt32LE(event * EVENT_ENTRY_BYTES + EntryAt.index)

/** Where the body begins in the bodies. */
export const bodyOffsetAt = ({ entries }: EventBatch, event: number): number =>
  entries.readUInt32LE(event * EVENT_ENTRY_BYTES + EntryAt.bodyOffset)

export const bodyLengthAt = ({ entries }: EventBatch, event: number): number =>
  entries.readUInt32LE(event * EVENT_ENTRY_BYTES + EntryAt.bodyLength)

/** Bytes of the id's JSON text without its quotes. */
export const idLengthAt = ({ entries }: EventBatch, event: number): number =>
  entries.readUInt16LE(event * EVENT_ENTRY_BYTES + EntryAt.idLength)

/** The JSON text of the id, quotes included. */
export const idTextAt = (batch: EventBatch, event: number): string => {
  const start = bodyOffsetAt(batch, event) + ID_AT
  return batch.bodies.toString("utf8", start - 1, start + idLengthAt(batch, event) + 1)
}

/** The id of an event. */
export const idAt = (batch: EventBatch, event: number): string => {
  const text = idTextAt(batch, event)
  return text.includes("\\") ? (parseJson(text) as string) : text.slice(1, -1)
}

/** The ids in the order of the events. */
export const idsOf = (batch: EventBatch): ReadonlyArray<string> =>
  Array.from({ length: batch.count }, (_, event) => idAt(batch, event))

const hexAt = ({ entries }: EventBatch, event: number, at: number, bytes: number): string => {
  const start = event * EVENT_ENTRY_BYTES + at
  return entries.toString("hex", start, start + bytes)
}

/** 32 hex digits; meaningless unless the client gave the id. */
export const dedupKeyAt = (batch: EventBatch, event: number): string =>
  hexAt(batch, event, EntryAt.dedupKey, SHORT_BYTES)

/** 32 hex digits; meaningless unless the client gave the id. */
export const fingerprintAt = (batch: EventBatch, event: number): string =>
  hexAt(batch, event, EntryAt.fingerprint, SHORT_BYTES)

/** An event as an object: for tests and for what is rare. */
export const eventAt = (batch: EventBatch, event: number): PreparedEvent => {
  const flags = flagsAt(batch, event)
  const start = bodyOffsetAt(batch, event)
  return {
    index: indexAt(batch, event),
    id: idAt(batch, event),
    body: batch.bodies.toString("utf8", start, start + bodyLengthAt(batch, event)),
    contentHash: hexAt(batch, event, EntryAt.contentHash, HASH_BYTES),
    ...((flags & HAS_DETAILS) === 0
      ? {}
      : {
          detailsSalt: hexAt(batch, event, EntryAt.salt, SHORT_BYTES),
          detailsHash: hexAt(batch, event, EntryAt.detailsHash, HASH_BYTES)
        }),
    ...((flags & HAS_CLIENT_ID) === 0
      ? {}
      : { dedupKey: dedupKeyAt(batch, event), fingerprint: fingerprintAt(batch, event) })
  }
}

/** Every event as an object: for tests and for what is rare. */
export const eventsOf = (batch: EventBatch): ReadonlyArray<PreparedEvent> =>
  Array.from({ length: batch.count }, (_, event) => eventAt(batch, event))

const torn = (event: number, reason: string): never => {
  throw new BatchUnreadable(`event ${event} of the batch: ${reason}`)
}

const isZero = (bytes: Buffer, start: number, end: number): boolean => {
  for (let at = start; at < end; at++) if (bytes[at] !== 0) return false
  return true
}

/** Check the entry of an event whose body has to begin at `offset`; where its body ends. */
const checkEntry = (batch: EventBatch, event: number, offset: number): number => {
  const { bodies, entries } = batch
  const start = event * EVENT_ENTRY_BYTES
  const flags = flagsAt(batch, event)
  if ((flags & ~ALL_FLAGS) !== 0 || entries[start + EntryAt.zero] !== 0) torn(event, "its flags")
  if (bodyOffsetAt(batch, event) !== offset) torn(event, "its body is not after the one before")
  const end = offset + bodyLengthAt(batch, event)
  const idEnd = offset + ID_AT + idLengthAt(batch, event)
  if (end > bodies.length || idEnd >= end) torn(event, "its body is cut off")
  const begins =
    bodies.readUInt32LE(offset) === START_WORD && bodies.readUIntLE(offset + 4, 3) === START_REST
  if (!begins || bodies[idEnd] !== QUOTE) torn(event, "its body does not begin with its id")
  const hasDetails = (flags & HAS_DETAILS) !== 0
  if (!hasDetails && !isZero(entries, start + EntryAt.salt, start + EntryAt.contentHash)) {
    torn(event, "details without their flag")
  }
  const hasClientId = (flags & HAS_CLIENT_ID) !== 0
  if (!hasClientId && !isZero(entries, start + EntryAt.dedupKey, start + EVENT_ENTRY_BYTES)) {
    torn(event, "a dedup key without its flag")
  }
  return end
}

/**
 * The batch of `count` events that these bytes are: entries, then bodies. Keeps the bytes.
 * @throws BatchUnreadable unless they are all of such a batch and nothing else
 */
export const readEventBatch = (count: number, bytes: Buffer): EventBatch => {
  const entriesEnd = count * EVENT_ENTRY_BYTES
  if (entriesEnd > bytes.length) {
    throw new BatchUnreadable(`${bytes.length} bytes are no batch of ${count} events`)
  }
  const batch = {
    count,
    entries: bytes.subarray(0, entriesEnd),
    bodies: bytes.subarray(entriesEnd)
  }
  let offset = 0
  for (let event = 0; event < count; event++) offset = checkEntry(batch, event, offset)
  if (offset !== batch.bodies.length) throw new BatchUnreadable("bytes after the last body")
  // Every body begins with ASCII, so that each is UTF-8 if all of them together are.
  if (!isUtf8(batch.bodies)) throw new BatchUnreadable("bodies that are not UTF-8")
  return batch
}

/** Events and bytes of bodies that a builder has room for at first. */
const EVENTS_AT_FIRST = 16
const BODY_BYTES_AT_FIRST = 8_192
/** A UTF-16 unit has at most so many bytes in UTF-8. */
const UTF8_BYTES_MAX = 3

/** Puts a batch together, event by event. */
export class EventBatchBuilder {
  #count = 0
  #entries = Buffer.alloc(EVENTS_AT_FIRST * EVENT_ENTRY_BYTES)
  #bodies = Buffer.allocUnsafe(BODY_BYTES_AT_FIRST)
  #bodiesEnd = 0

  get count(): number {
    return this.#count
  }

  /** @throws BatchUnreadable if it is no event that accept makes; nothing is added then */
  add(event: PreparedEvent): void {
    const idText = JSON.stringify(event.id)
    const idLength = Buffer.byteLength(idText) - 2
    if (idLength > ID_LENGTH_MAX) torn(this.#count, "its id is too long")
    if (!event.body.startsWith(`{"id":${idText}`)) {
      torn(this.#count, "its body does not begin with its id")
    }
    this.#ensure(1, event.body.length * UTF8_BYTES_MAX)
    const entries = this.#entries
    const at = this.#count * EVENT_ENTRY_BYTES
    const flags = this.#writeHashes(event, at)
    const length = this.#bodies.write(event.body, this.#bodiesEnd)
    entries.writeUInt32LE(this.#bodiesEnd, at + EntryAt.bodyOffset)
    entries.writeUInt32LE(length, at + EntryAt.bodyLength)
    entries.writeUInt32LE(event.index, at + EntryAt.index)
    entries.writeUInt16LE(idLength, at + EntryAt.idLength)
    entries[at + EntryAt.flags] = flags
    this.#bodiesEnd += length
    this.#count += 1
  }

  /** Add every event of a batch, its places in the request unchanged. */
  addBatch({ bodies, count, entries }: EventBatch): void {
    this.#ensure(count, bodies.length)
    const start = this.#count * EVENT_ENTRY_BYTES
    entries.copy(this.#entries, start, 0, count * EVENT_ENTRY_BYTES)
    bodies.copy(this.#bodies, this.#bodiesEnd)
    for (let event = 0; event < count; event++) {
      const at = start + event * EVENT_ENTRY_BYTES
      const offset = this.#entries.readUInt32LE(at) + this.#bodiesEnd
      this.#entries.writeUInt32LE(offset, at)
    }
    this.#bodiesEnd += bodies.length
    this.#count += count
  }

  /** What was added. The builder is used up: the batch has its bytes. */
  build(): EventBatch {
    return {
      count: this.#count,
      entries: this.#entries.subarray(0, this.#count * EVENT_ENTRY_BYTES),
      bodies: this.#bodies.subarray(0, this.#bodiesEnd)
    }
  }

  /** Hashes, key and salt; the flags that say which are there. */
  #writeHashes(event: PreparedEvent, at: number): number {
    const { contentHash, dedupKey, detailsHash, detailsSalt, fingerprint } = event
    const hasDetails = detailsSalt !== undefined && detailsHash !== undefined
    const hasClientId = dedupKey !== undefined && fingerprint !== undefined
    if (!hasDetails && (detailsSalt ?? detailsHash) !== undefined) {
      torn(this.#count, "a salt without a hash of details, or the hash without the salt")
    }
    if (!hasClientId && (dedupKey ?? fingerprint) !== undefined) {
      torn(this.#count, "a dedup key without a fingerprint, or the fingerprint without the key")
    }
    this.#entries.fill(0, at, at + EVENT_ENTRY_BYTES)
    this.#hex(contentHash, at + EntryAt.contentHash, HASH_BYTES)
    if (hasDetails) {
      this.#hex(detailsSalt, at + EntryAt.salt, SHORT_BYTES)
      this.#hex(detailsHash, at + EntryAt.detailsHash, HASH_BYTES)
    }
    if (hasClientId) {
      this.#hex(dedupKey, at + EntryAt.dedupKey, SHORT_BYTES)
      this.#hex(fingerprint, at + EntryAt.fingerprint, SHORT_BYTES)
    }
    return (hasDetails ? HAS_DETAILS : 0) | (hasClientId ? HAS_CLIENT_ID : 0)
  }

  #hex(digits: string, at: number, bytes: number): void {
    const isWhole = digits.length === 2 * bytes && this.#entries.write(digits, at, "hex") === bytes
    if (!isWhole) torn(this.#count, `not ${2 * bytes} hex digits: ${digits.slice(0, 80)}`)
  }

  #ensure(events: number, bodyBytes: number): void {
    const entryBytes = (this.#count + events) * EVENT_ENTRY_BYTES
    if (entryBytes > this.#entries.length) this.#entries = grown(this.#entries, entryBytes)
    const bytes = this.#bodiesEnd + bodyBytes
    if (bytes > this.#bodies.length) this.#bodies = grown(this.#bodies, bytes)
  }
}

const grown = (bytes: Buffer, needed: number): Buffer<ArrayBuffer> => {
  const larger = Buffer.allocUnsafe(Math.max(needed, bytes.length * 2))
  bytes.copy(larger)
  return larger
}

/** The batch of these events. @throws BatchUnreadable if one is no event that accept makes */
export const toBatch = (events: Iterable<PreparedEvent>): EventBatch => {
  const builder = new EventBatchBuilder()
  for (const event of events) builder.add(event)
  return builder.build()
}

/** The events of two batches of one request in the order of the request. */
export const mergeBatches = (one: EventBatch, other: EventBatch): EventBatch => {
  if (one.count === 0) return other
  if (other.count === 0) return one
  const entries = Buffer.allocUnsafe(one.entries.length + other.entries.length)
  const bodies = Buffer.allocUnsafe(one.bodies.length + other.bodies.length)
  let bodiesEnd = 0
  let ones = 0
  let others = 0
  for (let at = 0; at < entries.length; at += EVENT_ENTRY_BYTES) {
    const isOne =
      others === other.count || (ones < one.count && indexAt(one, ones) < indexAt(other, others))
    const from = isOne ? one : other
    const event = isOne ? ones++ : others++
    const start = event * EVENT_ENTRY_BYTES
    from.entries.copy(entries, at, start, start + EVENT_ENTRY_BYTES)
    entries.writeUInt32LE(bodiesEnd, at + EntryAt.bodyOffset)
    const body = bodyOffsetAt(from, event)
    bodiesEnd += from.bodies.copy(bodies, bodiesEnd, body, body + bodyLengthAt(from, event))
  }
  return { count: one.count + other.count, entries, bodies }
}
