/**
 * What the records of `alk.registry` add up to. The start of a topic can be deleted, and with it the
 * record that revokes a key. So the one writer says with every change, in the last record of its
 * transaction, what everything that counts adds up to then, and a process that reads the topic from
 * its start compares.
 */
import { createHash } from "node:crypto"
import { Schema } from "effect"
import { sha256 } from "../Forms.ts"
import { recordDecoder } from "../json/RecordDecoder.ts"

/** Key of the record. */
export const CONTENT_KEY = "content/registry"

/** Its value. */
export const StoredContent = Schema.Struct({
  sum: sha256("The sum, modulo 2^256, of the SHA-256 of each record that counts.")
})

const readContent = recordDecoder(StoredContent, "content")

/** A record without its place. */
export interface ContentRecord {
  readonly key: string
  readonly value: string | Buffer | null
}

const modulo = (sum: bigint): bigint => BigInt.asUintN(256, sum)

const partOf = ({ key, value }: ContentRecord): bigint => {
  if (value === null) return 0n
  const hash = createHash("sha256").update(`${key.length}:${key}`).update(value)
  return BigInt(`0x${hash.digest("hex")}`)
}

export class RegistryContent {
  /** Of the newest record of each key. */
  readonly #parts = new Map<string, bigint>()
  #sum = 0n
  #isAsSaid: boolean | undefined

  /**
   * Takes the next record of the topic.
   * @throws RecordUnreadable
   */
  take(record: ContentRecord): void {
    const { key, value } = record
    if (key === CONTENT_KEY) {
      if (value === null) return
      this.#isAsSaid = readContent(Buffer.from(value)).sum === this.#text(this.#sum)
      return
    }
    const part = partOf(record)
    this.#sum = modulo(this.#sum + part - (this.#parts.get(key) ?? 0n))
    if (value === null) this.#parts.delete(key)
    else this.#parts.set(key, part)
  }

  /** The record that follows these, which are not taken yet. */
  after(records: ReadonlyArray<ContentRecord>): ContentRecord {
    const parts = new Map<string, bigint>()
    for (const record of records) parts.set(record.key, partOf(record))
    let sum = this.#sum
    for (const [key, part] of parts) sum += part - (this.#parts.get(key) ?? 0n)
    return { key: CONTENT_KEY, value: JSON.stringify({ sum: this.#text(modulo(sum)) }) }
  }

  /** Keys of what counts. */
  get keys(): Iterable<string> {
    return this.#parts.keys()
  }

  get size(): number {
    return this.#parts.size
  }

  /** True if records are gone that count; `start`: where the topic begins. */
  isIncomplete(start: number): boolean {
    // A topic that was made short by its writer ends with what it adds up to.
    return this.#isAsSaid === undefined ? start > 0 : !this.#isAsSaid
  }

  #text(sum: bigint): string {
    return sum.toString(16).padStart(64, "0")
  }
}
