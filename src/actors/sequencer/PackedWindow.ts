/**
 * Hot path: measured in test/bench/Sequencing.ts. The last N entries of the form key, fingerprint, number,
 * in the order of their arrival: what the sequencer remembers of client ids and of idempotency
 * keys. Typed arrays, because a million small objects would cost ten times the memory; what the
 * fields mean, the owner decides.
 */
import { ENTRY_BYTES, type WindowEntry } from "../../domain/records/StateRecords.ts"

const WORDS = ENTRY_BYTES / 4
const CAPACITY_MIN = 1_024

export interface WindowHit {
  /** Arrival number of the entry, from 0 for the first entry ever. */
  readonly ordinal: number
  readonly fingerprint: string
  readonly number: number
}

/** Entries in their packed form, big-endian, as they are written to `alk.state`. */
export const packEntries = (entries: ReadonlyArray<WindowEntry>): Buffer => {
  const packed = Buffer.alloc(entries.length * ENTRY_BYTES)
  for (let index = 0; index < entries.length; index++) {
    const { key, fingerprint, number } = entries[index]!
    const at = index * ENTRY_BYTES
    for (let part = 0; part < 4; part++) {
      packed.writeUInt32BE(word(key, part), at + 4 * part)
      packed.writeUInt32BE(word(fingerprint, part), at + 16 + 4 * part)
    }
    packed.writeUInt32BE(Math.floor(number / 0x1_0000_0000), at + 32)
    packed.writeUInt32BE(number >>> 0, at + 36)
  }
  return packed
}

export const unpackEntries = (packed: Buffer): ReadonlyArray<WindowEntry> => {
  const entries: Array<WindowEntry> = []
  for (let at = 0; at + ENTRY_BYTES <= packed.length; at += ENTRY_BYTES) {
    entries.push({
      key: packed.toString("hex", at, at + 16),
      fingerprint: packed.toString("hex", at + 16, at + 32),
      number: Number(packed.readBigUInt64BE(at + 32))
    })
  }
  return entries
}

const WORD_DIGITS = 8
const DIGIT_MASK = 0xf
/** The values of hex digits by their character codes. */
const DIGITS = new Int8Array(128).fill(DIGIT_MASK)
for (const [value, digit] of [..."0123456789abcdef"].entries()) {
  DIGITS[digit.charCodeAt(0)] = value
}

/** Eight hex digits as a number; what is not a digit counts as f. */
const word = (hex: string, index: number): number => {
  let value = 0
  for (let at = index * WORD_DIGITS; at < (index + 1) * WORD_DIGITS; at++) {
    value = (value << 4) | (DIGITS[hex.charCodeAt(at) & 0x7f]! & DIGIT_MASK)
  }
  return value >>> 0
}

const hexWord = (value: number): string => value.toString(16).padStart(8, "0")

export class PackedWindow {
  readonly capacity: number
  /** Ring of entries; entry with ordinal n is at slot n modulo the ring's size. */
  #ring: Uint32Array
  #slots: number
  /** Open addressing with linear probing: slot + 1, or 0 where nothing is. */
  #table: Int32Array
  #first: number
  #next: number

  constructor(capacity: number, firstOrdinal = 0) {
    this.capacity = capacity
    this.#slots = Math.min(CAPACITY_MIN, capacity)
    this.#ring = new Uint32Array(this.#slots * WORDS)
    this.#table = new Int32Array(tableSize(this.#slots))
    this.#first = firstOrdinal
    this.#next = firstOrdinal
  }

  /** Ordinal of the oldest entry held. */
  get first(): number {
    return this.#first
  }

  /** Ordinal that the next entry will get. */
  get next(): number {
    return this.#next
  }

  /** The newest entry with this key, if it is among the last `capacity` before ordinal `next`. */
  find(key: string, next: number = this.#next): WindowHit | undefined {
    const slot = this.#slotOf(word(key, 0), word(key, 1), word(key, 2), word(key, 3))
    if (slot === undefined) return undefined
    const ordinal = this.#ordinalAt(slot)
    if (ordinal < next - this.capacity) return undefined
    return this.#hitAt(ordinal, slot)
  }

  append(entry: WindowEntry): void {
    if (this.#next - this.#first === this.#slots) {
      if (this.#slots < this.capacity) this.#grow()
      else this.dropBefore(this.#first + 1)
    }
    const slot = this.#next % this.#slots
    const at = slot * WORDS
    for (let index = 0; index < 4; index++) {
      this.#ring[at + index] = word(entry.key, index)
      this.#ring[at + 4 + index] = word(entry.fingerprint, index)
    }
    this.#ring[at + 8] = Math.floor(entry.number / 0x1_0000_0000)
    this.#ring[at + 9] = entry.number >>> 0
    this.#forgetKeyAt(slot)
    this.#insert(slot)
    this.#next += 1
  }

  /** Forget every entry with an ordinal below `ordinal`. */
  dropBefore(ordinal: number): void {
    while (this.#first < ordinal && this.#first < this.#next) {
      const slot = this.#first % this.#slots
      const found = this.#slotOfKeyAt(slot)
      if (found === slot) this.#remove(slot)
      this.#first += 1
    }
    if (this.#first === this.#next && ordinal > this.#next) {
      this.#first = ordinal
      this.#next = ordinal
    }
  }

  /** Every entry held, oldest first. */
  *entries(): Generator<WindowEntry & { readonly ordinal: number }> {
    for (let ordinal = this.#first; ordinal < this.#next; ordinal++) {
      const slot = ordinal % this.#slots
      yield { key: this.#keyAt(slot), ...this.#hitAt(ordinal, slot) }
    }
  }

  #hitAt(ordinal: number, slot: number): WindowHit {
    const at = slot * WORDS
    return {
      ordinal,
      fingerprint: [4, 5, 6, 7].map((offset) => hexWord(this.#ring[at + offset]!)).join(""),
      number: this.#ring[at + 8]! * 0x1_0000_0000 + this.#ring[at + 9]!
    }
  }

  #ordinalAt(slot: number): number {
    const base = this.#first % this.#slots
    return this.#first + ((slot - base + this.#slots) % this.#slots)
  }

  #keyAt(slot: number): string {
    const at = slot * WORDS
    return [0, 1, 2, 3].map((offset) => hexWord(this.#ring[at + offset]!)).join("")
  }

  /** The slot in the table of a key of four words. */
  #slotOf(first: number, second: number, third: number, fourth: number): number | undefined {
    const mask = this.#table.length - 1
    const ring = this.#ring
    for (let at = first & mask; this.#table[at] !== 0; at = (at + 1) & mask) {
      const slot = this.#table[at]! - 1
      const key = slot * WORDS
      const isSame =
        ring[key] === first
        && ring[key + 1] === second
        && ring[key + 2] === third
        && ring[key + 3] === fourth
      if (isSame) return slot
    }
    return undefined
  }

  #slotOfKeyAt(slot: number): number | undefined {
    const at = slot * WORDS
    const ring = this.#ring
    return this.#slotOf(ring[at]!, ring[at + 1]!, ring[at + 2]!, ring[at + 3]!)
  }

  /** Removes an older entry with the same key from the table: `find` returns the newest. */
  #forgetKeyAt(slot: number): void {
    const older = this.#slotOfKeyAt(slot)
    if (older !== undefined) this.#remove(older)
  }

  #insert(slot: number): void {
    const mask = this.#table.length - 1
    let at = this.#ring[slot * WORDS]! & mask
    while (this.#table[at] !== 0) at = (at + 1) & mask
    this.#table[at] = slot + 1
  }

  /** Remove a slot from the table and close the gap that it leaves in its probe sequence. */
  #remove(slot: number): void {
    const mask = this.#table.length - 1
    let gap = this.#ring[slot * WORDS]! & mask
    while (this.#table[gap] !== slot + 1) gap = (gap + 1) & mask
    for (let at = (gap + 1) & mask; this.#table[at] !== 0; at = (at + 1) & mask) {
      const home = this.#ring[(this.#table[at]! - 1) * WORDS]! & mask
      if (((at - home) & mask) >= ((at - gap) & mask)) {
        this.#table[gap] = this.#table[at]!
        gap = at
      }
    }
    this.#table[gap] = 0
  }

  #grow(): void {
    const held = this.#ring
    const heldSlots = this.#slots
    this.#slots = Math.min(heldSlots * 4, this.capacity)
    this.#ring = new Uint32Array(this.#slots * WORDS)
    this.#table = new Int32Array(tableSize(this.#slots))
    for (let ordinal = this.#first; ordinal < this.#next; ordinal++) {
      const from = (ordinal % heldSlots) * WORDS
      const slot = ordinal % this.#slots
      const to = slot * WORDS
      for (let index = 0; index < WORDS; index++) this.#ring[to + index] = held[from + index]!
      this.#forgetKeyAt(slot)
      this.#insert(slot)
    }
  }
}

/** A power of two, at most half full. */
const tableSize = (slots: number): number => 2 ** Math.ceil(Math.log2(slots * 2))
