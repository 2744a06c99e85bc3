/**
 * The message authentication code of internal records: HMAC-SHA256 (RFC 2104) with a key derived
 * from `ALK_SECRET`, over everything that readers use. A record without a valid one was not written
 * by this service. What only transactions write is bound to its offset as well: a copy of a genuine
 * record, of one that was aborted too, is not genuine anywhere else.
 */
import { createHmac, hash, hkdfSync, timingSafeEqual } from "node:crypto"
import { MAC_HEADER } from "./RecordHeaders.ts"
import type { TopicKind } from "./Topics.ts"

/** Topics of which every record counts only with a MAC: nothing but this service writes them. */
const authenticatedTopics: ReadonlySet<TopicKind> = new Set([
  "registry",
  "commands",
  "state",
  "progress",
  "receipts",
  "quarantine"
])

/** Those of them whose records are bound to their offsets: one writer at a time has them. */
export const placedTopics: ReadonlySet<TopicKind> = new Set(["registry", "state", "receipts"])

/** True for topics whose records carry a MAC. */
export const isAuthenticated = (topic: TopicKind): boolean => authenticatedTopics.has(topic)

const KEY_LABEL = "alk-record-mac-key-v1"
const TEXT_LABEL = "alk-record-mac-v2"
const KEY_BYTES = 32
/** Bytes of a SHA-256 block. */
const BLOCK_BYTES = 64
/** Written as the length of what is absent. */
const ABSENT = 0xffff_ffff
const LENGTH_BYTES = 4
/** Up to this size two one-shot hashes are faster than one HMAC object. */
const ONE_SHOT_BYTES_MAX = 16_384

/** What a MAC covers. */
export interface MacInput {
  /** Full name, `alk.state` with the default prefix. */
  readonly topic: string
  readonly partition: number
  /** Of a record that is bound to it. */
  readonly offset?: number | undefined
  readonly key: string | Buffer | null
  readonly value: string | Buffer | null
  /** All but that of the MAC count, in their order. */
  readonly headers: Readonly<Record<string, string | Buffer>>
}

const padded = (key: Buffer, byte: number): Buffer => {
  const block = Buffer.alloc(BLOCK_BYTES, byte)
  for (const [at, own] of key.entries()) block[at] = own ^ byte
  return block
}

const lengthOf = (part: string | Buffer | null | undefined): number =>
  part === null || part === undefined
    ? 0
    : typeof part === "string"
      ? Buffer.byteLength(part)
      : part.length

/** Writes parts one after the other, each with its length before it. */
class LengthPrefixedWriter {
  readonly bytes: Buffer
  at: number

  constructor(size: number, at: number) {
    this.bytes = Buffer.allocUnsafe(size)
    this.at = at
  }

  number(value: number): void {
    this.at = this.bytes.writeUInt32BE(value, this.at)
  }

  part(part: string | Buffer | null | undefined): void {
    if (part === null || part === undefined) return this.number(ABSENT)
    const length = lengthOf(part)
    this.number(length)
    if (typeof part === "string") this.bytes.write(part, this.at)
    else part.copy(this.bytes, this.at)
    this.at += length
  }
}

export class RecordMac {
  readonly #key: Buffer
  readonly #inner: Buffer
  readonly #outer: Buffer

  /** `secret` is `ALK_SECRET`. */
  constructor(secret: string) {
    this.#key = Buffer.from(hkdfSync("sha256", secret, "", KEY_LABEL, KEY_BYTES))
    this.#inner = padded(this.#key, 0x36)
    this.#outer = padded(this.#key, 0x5c)
  }

  /** 64 hex digits. */
  of({ headers, key, offset, partition, topic, value }: MacInput): string {
    const names = Object.keys(headers)
    const parts = [TEXT_LABEL, topic, offset === undefined ? null : String(offset), key]
    for (const name of names) if (name !== MAC_HEADER) parts.push(name, headers[name]!)
    const frame = parts.reduce<number>((sum, part) => sum + LENGTH_BYTES + lengthOf(part), 0)
    const size = BLOCK_BYTES + frame + 3 * LENGTH_BYTES
    const bytes = lengthOf(value)
    const isSmall = bytes <= ONE_SHOT_BYTES_MAX
    const framed = new LengthPrefixedWriter(isSmall ? size + bytes : size, BLOCK_BYTES)
    framed.number(partition)
    framed.number(parts.length)
    for (const part of parts) framed.part(part)
    if (!isSmall) {
      framed.number(bytes)
      return createHmac("sha256", this.#key)
        .update(framed.bytes.subarray(BLOCK_BYTES))
        .update(value!)
        .digest("hex")
    }
    framed.part(value)
    this.#inner.copy(framed.bytes)
    const inner = hash("sha256", framed.bytes, "buffer")
    return hash("sha256", Buffer.concat([this.#outer, inner]), "hex")
  }

  /** Why this record was not written by this service; undefined if it was. */
  refusal(record: MacInput): string | undefined {
    const given = record.headers[MAC_HEADER]
    if (given === undefined) return NO_MAC
    const expected = Buffer.from(this.of(record))
    const actual = Buffer.from(given)
    return expected.length === actual.length && timingSafeEqual(expected, actual)
      ? undefined
      : WRONG_MAC
  }
}

/** Reasons of a refusal. */
export const NO_MAC = "it has no MAC of this service"
export const WRONG_MAC = "its MAC is not that of this service"
