/**
 * AssemblyScript. Hot path: measured in test/bench/Accept.ts. Reads a request, and makes of every
 * item that it fully understands an event as bytes. It never refuses anything: it says where the
 * other items are, or that the request as a whole is not for it.
 */
import { addEvent, beginEvents, bodiesEnd, events, finishGroup } from "./Event"
import { readItem } from "./Item"
import {
  at,
  BACKSLASH,
  COLON,
  COMMA,
  LEFT_BRACE,
  LEFT_BRACKET,
  LINE_FEED,
  QUOTE,
  RIGHT_BRACE,
  RIGHT_BRACKET,
  readAt,
  setLines,
  skipSpace,
  take,
  takeMark
} from "./Json"
import { bodies, entries, ITEMS_MAX, itemsIn, makeRoom, REQUEST, REST, REST_BYTES } from "./Layout"
import { dropJobs } from "./Sha256"
import { areFieldsValid } from "./Validate"

export {
  ACCEPTED_AT,
  DEDUP_START,
  DERIVED_START,
  RANDOM,
  REQUEST,
  REST,
  SECRET,
  SHARED_BYTES_MAX
} from "./Layout"
export { bodies, bodiesEnd, entries, events, itemsIn, makeRoom }

/** What a request consists of. */
export const BATCH: u32 = 0
export const LINES: u32 = 1
export const SINGLE: u32 = 2

/** `events"` in little-endian order, with the quote before it left out. */
const EVENTS_NAME: u64 = 0x2273746e657665
const BYTES_7: u64 = 0xffffffffffffff

/** Items that are not done, in REST. */
export let rest: u32 = 0
let items: u32 = 0
let itemsMax: u32 = 0
let end: usize = 0
let isSingle: bool = false
let eventBytesMax: usize = 0
let actionMax: usize = 0
let metadataMax: usize = 0

/** Limits of the items that follow: lengths of the action in characters, of the rest in bytes. */
export function setLimits(count: u32, event: u32, action: u32, metadata: u32): void {
  itemsMax = min(count, ITEMS_MAX)
  eventBytesMax = event
  actionMax = action
  metadataMax = metadata
}

/** Read the item at the next byte; true if it has become an event. */
function doItem(): bool {
  const start = at
  if (!readItem()) return false
  if (at > end || at - start > eventBytesMax) return false
  return areFieldsValid(isSingle, actionMax, metadataMax) && events < itemsIn(<u32>(end - REQUEST))
}

/** The item from `start` to `stop` is not done. */
function addRest(start: usize, stop: usize): void {
  const place = REST + rest * REST_BYTES
  store<u32>(place, items)
  store<u32>(place, <u32>(start - REQUEST), 4)
  store<u32>(place, <u32>(stop - start), 8)
  rest++
}

/** Go behind the string at the next byte; false if it does not end. */
function skipString(): bool {
  let place = at + 1
  while (place < end) {
    const byte = load<u8>(place)
    if (byte === QUOTE) {
      readAt(place + 1)
      return true
    }
    place += byte === BACKSLASH ? 2 : 1
  }
  return false
}

/**
 * Go behind the object at the next byte, by nothing but its brackets and strings: what it holds is
 * read by StrictJson, which finds it to be no JSON if the brackets do not belong together.
 */
function skipObject(): bool {
  let open = 0
  while (at < end) {
    const byte = load<u8>(at)
    if (byte === QUOTE) {
      if (!skipString()) return false
      continue
    }
    if (byte === LEFT_BRACE || byte === LEFT_BRACKET) open++
    else if (byte === RIGHT_BRACE || byte === RIGHT_BRACKET) open--
    readAt(at + 1)
    if (open === 0) return true
  }
  return false
}

/** The items of an array, up to its end. */
function readArray(): bool {
  while (true) {
    if (items === itemsMax || load<u8>(at) !== LEFT_BRACE) return false
    const start = at
    if (doItem()) {
      addEvent(items)
    } else {
      readAt(start)
      if (!skipObject()) return false
      addRest(start, at)
    }
    items++
    skipSpace()
    if (take(RIGHT_BRACKET)) return true
    if (!take(COMMA)) return false
    skipSpace()
  }
}

/** `{"events":[…]}` with nothing beside the array, or the array alone. */
function readBatch(): bool {
  if (takeMark(LEFT_BRACKET)) return readArray()
  if (!takeMark(LEFT_BRACE)) return false
  if (load<u8>(at) !== QUOTE || (load<u64>(at, 1) & BYTES_7) !== EVENTS_NAME) return false
  readAt(at + 8)
  if (!takeMark(COLON) || !takeMark(LEFT_BRACKET) || !readArray()) return false
  skipSpace()
  return take(RIGHT_BRACE)
}

/** One item a line; lines of nothing but space are none. */
function readLines(): bool {
  while (at < end) {
    const start = at
    skipSpace()
    if (at < end && !take(LINE_FEED)) {
      if (items === itemsMax) return false
      const isDone = doItem()
      if (isDone) skipSpace()
      if (isDone && (at === end || load<u8>(at) === LINE_FEED)) {
        addEvent(items)
      } else {
        readAt(start)
        while (at < end && load<u8>(at) !== LINE_FEED) readAt(at + 1)
        addRest(start, at)
      }
      items++
      take(LINE_FEED)
    }
  }
  return items > 0
}

/** The one item, which has to be done. */
function readSingle(): bool {
  skipSpace()
  if (!doItem()) return false
  addEvent(0)
  items++
  return true
}

/**
 * Read the request, which is UTF-8 and has been put to REQUEST after makeRoom. `secret`, `dedup` and
 * `derived` are the lengths of the texts that were put beside it, `now` is in milliseconds. The
 * items, done or not; -1 if the request as a whole is not for this.
 */
export function accept(
  form: u32,
  length: u32,
  secret: u32,
  dedup: u32,
  derived: u32,
  now: f64
): i32 {
  end = REQUEST + length
  items = 0
  rest = 0
  isSingle = form === SINGLE
  readAt(REQUEST)
  setLines(form === LINES)
  beginEvents(secret, dedup, derived, <u64>now)
  const isRead = form === BATCH ? readBatch() : form === LINES ? readLines() : readSingle()
  skipSpace()
  if (!isRead || at !== end) {
    dropJobs()
    return -1
  }
  finishGroup()
  return items
}
