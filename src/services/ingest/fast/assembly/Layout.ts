/**
 * AssemblyScript. Where everything lies in the memory of the module: first what has a fixed size,
 * then the request, the entries and the bodies of its events. After every area there are
 * SLACK_BYTES that hold nothing, because text is read and written 16 bytes at a time.
 */

/** Items that a request may have. */
export const ITEMS_MAX: u32 = 1_000
/** Bytes of a request. */
export const REQUEST_BYTES_MAX: u32 = 8 * 1_048_576
/** Bytes of an item as it was sent. What is canonical is never longer than what was sent. */
export const ITEM_BYTES_MAX: u32 = 16_384
/** Bytes of an item that can be valid, at least: its names and marks alone have more. */
export const ITEM_BYTES_MIN: u32 = 60
/** Bytes of a text that all events of a request share: a secret, the start of a hashed text. */
export const SHARED_BYTES_MAX: u32 = 2_048
/** Bytes that a body has more than its item, at most: id, time, type and outcome with their names. */
export const ADDED_BYTES_MAX: u32 = 256
/** Bytes of an entry of EventBatch. */
export const ENTRY_BYTES: u32 = 128
/** Random bytes of an event: 16 of its id, 16 of its salt. */
export const RANDOM_BYTES: u32 = 32
/** Bytes of the place of an item that is not done: index, start, length. */
export const REST_BYTES: u32 = 12
/** Keys of one object, and how deep objects and arrays nest: more goes the other way. */
export const KEYS_MAX: u32 = 64
export const LEVELS_MAX: u32 = 30
/** Bytes of an entry in the table of keys: start and length of the key, end of its value. */
export const KEY_BYTES: u32 = 12
/** Events that are hashed together, and the bytes of their messages. */
export const GROUP_MAX: u32 = 256
export const MESSAGES_BYTES: u32 = 262_144
/** Bytes that the messages of one event have at most: details, fingerprint, keys, core. */
export const MESSAGES_OF_EVENT_MAX: u32 = 3 * ITEM_BYTES_MAX + 2 * SHARED_BYTES_MAX + 2_048
/** Bytes of a hash job and of the parts of an event of the group. */
export const JOB_BYTES: u32 = 16
export const PARTS_BYTES: u32 = 64
const JOBS_OF_EVENT: u32 = 3
const SLACK_BYTES: u32 = 64
const PAGE_BYTES: usize = 65_536

let next: usize = (__heap_base + 63) & ~63

function take(bytes: usize): usize {
  const area = next
  next = (next + bytes + SLACK_BYTES + 63) & ~63
  return area
}

/** The time of acceptance, 27 characters. */
export const ACCEPTED_AT: usize = take(32)
export const SECRET: usize = take(SHARED_BYTES_MAX)
/** What comes before the id in the text of a dedup key. */
export const DEDUP_START: usize = take(SHARED_BYTES_MAX)
/** What comes before the index in the text of a derived id. */
export const DERIVED_START: usize = take(SHARED_BYTES_MAX)
export const RANDOM: usize = take(ITEMS_MAX * RANDOM_BYTES)
export const REST: usize = take(ITEMS_MAX * REST_BYTES)
/** Canonical texts of the item that is being read, and room to sort its keys. */
export const SCRATCH: usize = take(2 * ITEM_BYTES_MAX + 1_024)
export const KEYS: usize = take((LEVELS_MAX + 2) * (KEYS_MAX + 1) * KEY_BYTES)
export const JOBS: usize = take(GROUP_MAX * JOBS_OF_EVENT * JOB_BYTES)
export const PARTS: usize = take(GROUP_MAX * PARTS_BYTES)
export const MESSAGES: usize = take(MESSAGES_BYTES)

/** The request; a zero follows it, which is no byte of JSON. */
export const REQUEST: usize = next
export let entries: usize = 0
export let bodies: usize = 0

/** Items that so many bytes can hold. */
export function itemsIn(length: u32): u32 {
  return min(ITEMS_MAX, length / ITEM_BYTES_MIN + 1)
}

/** Make room for a request of so many bytes; false if it is too large. Memory never shrinks. */
export function makeRoom(length: u32): bool {
  if (length > REQUEST_BYTES_MAX) return false
  const items = itemsIn(length)
  next = REQUEST
  take(length)
  entries = take(items * ENTRY_BYTES)
  bodies = take(length + items * ADDED_BYTES_MAX)
  const pages = <i32>((next + PAGE_BYTES - 1) / PAGE_BYTES)
  if (pages > memory.size() && memory.grow(pages - memory.size()) < 0) return false
  memory.fill(REQUEST + length, 0, SLACK_BYTES)
  return true
}
