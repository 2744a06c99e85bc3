/**
 * Hot path: measured in test/bench/Sequencing.ts. The events that a chunk appends, written as the
 * records of `alk.events` at once: body, the end of the stored JSON, headers. Of an event nothing
 * is made but these bytes and its hash. What the bytes are is said by `linkText`, `appendSuffix` and
 * `auditEventHeaders`: they make the templates whose places are filled in here.
 */
import { hash as digest } from "node:crypto"
import { GENESIS_HASH, type Head, linkText } from "../../domain/chain/Chains.ts"
import { HASH_BYTES } from "../../domain/chain/MerkleTree.ts"
import { appendSuffix, SCHEME } from "../../domain/events/HashChain.ts"
import { auditEventHeaders } from "../../domain/records/CloudEvent.ts"
import {
  EntryAt,
  EVENT_ENTRY_BYTES,
  type EventBatch,
  HAS_DETAILS
} from "../../domain/records/EventBatch.ts"
import {
  encodeHeaders,
  VARINT_BYTES_MAX,
  varintSize,
  withLength,
  writeVarint
} from "../../domain/records/RecordFormat.ts"
import { PACKED_BYTES_MAX, PACKED_RECORDS_MAX } from "../../domain/records/Topics.ts"
import type { PackedRecords } from "../../ports/EventLog.ts"

const SALT_BYTES = 16
/** Digits of the largest sequence number. */
const DIGITS_MAX = 16
const ZERO = 0x30
const NINE = 0x39
/** Attributes and the difference to the batch's time, both zero. */
const FRAME_BYTES = 2

const HIGH = new Uint8Array(256)
const LOW = new Uint8Array(256)
for (let byte = 0; byte < 256; byte++) {
  const digits = byte.toString(16).padStart(2, "0")
  HIGH[byte] = digits.charCodeAt(0)
  LOW[byte] = digits.charCodeAt(1)
}

/** Write `count` bytes as hex digits. */
const writeHex = (
  from: Uint8Array,
  start: number,
  count: number,
  to: Uint8Array,
  target: number
): void => {
  let at = target
  for (let index = start; index < start + count; index++) {
    const byte = from[index]!
    to[at] = HIGH[byte]!
    to[at + 1] = LOW[byte]!
    at += 2
  }
}

/** Texts of the length of what belongs in their place, found in a template again. */
const PLACE = {
  contentHash: "C".repeat(64),
  prevHash: "P".repeat(64),
  hash: "H".repeat(64),
  detailsSalt: "S".repeat(32),
  detailsHash: "D".repeat(64)
} as const

/** Whose chain it is, and what all events of a run have in common. */
interface TenantBatch {
  readonly serviceName: string
  readonly tenantId: string
  readonly createdAt: string
}

/** What follows the body in a record, with the places that are filled in event by event. */
interface Tail {
  readonly bytes: Buffer
  /** Bytes of it that belong to the stored JSON; the headers follow. */
  readonly suffixBytes: number
  readonly sequenceAt: number
  readonly prevHashAt: number
  readonly saltAt: number
  readonly detailsHashAt: number
  readonly contentHashAt: number
  readonly hashAt: number
  readonly eventIdAt: number
}

/** ASCII without what could be taken for a place of a template; every tenant id is of this form. */
const PLAIN_TENANT = /^[a-z0-9_-]{1,63}$/

const SEQUENCE_MEMBER = ',"sequence_number":'

const tailOf = (run: TenantBatch, sequenceNumber: number, hasDetails: boolean): Tail => {
  const { createdAt, serviceName, tenantId } = run
  const { contentHash, detailsHash, detailsSalt, hash, prevHash } = PLACE
  const suffix = appendSuffix({
    tenantId,
    sequenceNumber,
    createdAt,
    prevHash,
    contentHash,
    hash,
    ...(hasDetails ? { detailsSalt, detailsHash } : {})
  })
  const headers = encodeHeaders(auditEventHeaders(serviceName, { ...run, sequenceNumber }))
  // Of tenant ids and times only, so ASCII: places in the text are places in the bytes.
  const suffixBytes = suffix.length
  const bytes = Buffer.allocUnsafe(suffixBytes + headers.bytes.length)
  bytes.write(suffix, 0, "latin1")
  bytes.set(headers.bytes, suffixBytes)
  return {
    bytes,
    suffixBytes,
    sequenceAt: suffix.indexOf(SEQUENCE_MEMBER) + SEQUENCE_MEMBER.length,
    prevHashAt: suffix.indexOf(prevHash),
    saltAt: suffix.indexOf(detailsSalt),
    detailsHashAt: suffix.indexOf(detailsHash),
    contentHashAt: suffix.indexOf(contentHash),
    hashAt: suffix.indexOf(hash),
    eventIdAt: suffixBytes + headers.valueAt["ce_id"]!
  }
}

/** What is hashed to link an event, with the places that are filled in event by event. */
interface LinkTemplate {
  readonly bytes: Buffer
  readonly sequenceAt: number
  readonly contentHashAt: number
  readonly prevHashAt: number
}

const linkOf = ({ createdAt, tenantId }: TenantBatch, sequenceNumber: number): LinkTemplate => {
  const { contentHash, prevHash } = PLACE
  const link = { tenantId, sequenceNumber, createdAt, contentHash, prevHash }
  const text = linkText(SCHEME, link)
  return {
    bytes: Buffer.from(text, "latin1"),
    sequenceAt: SCHEME.length + tenantId.length + 2,
    contentHashAt: text.indexOf(contentHash),
    prevHashAt: text.indexOf(prevHash)
  }
}

/** The templates of a tenant's chain, as long as sequence numbers of so many digits need them. */
interface Templates {
  readonly run: TenantBatch
  readonly key: Buffer
  digitCount: number
  link: LinkTemplate | undefined
  plain: Tail | undefined
  detailed: Tail | undefined
}

/** Records that make one batch: from where in the bytes, and how many. */
interface Pack {
  readonly start: number
  end: number
  count: number
}

const BYTES_AT_FIRST = 65_536
/** Buffers up to this size are used again: fresh memory costs more than what is written into it. */
const SPARE_BYTES_MAX = 32 * 1_048_576
const SPARES_MAX = 2
const spares: Array<Buffer> = []

const NOTHING = Buffer.alloc(0)

/**
 * Records of `alk.events`, appended run by run: a run is what one command appends to its tenant's
 * chain. `begin` drops the run before unless it was taken over by `keep`.
 */
export class ChainedEvents {
  #bytes: Buffer = NOTHING
  #packs: Array<Pack> = []
  /** Of what is kept: bytes, records, packs and the records of the last pack. */
  #kept = { end: 0, count: 0, packs: 0, lastCount: 0 }
  #end = 0
  #count = 0
  /** Hashes of the events of the run, 32 bytes each. */
  #hashes: Buffer = Buffer.allocUnsafe(HASH_BYTES)
  /** Of the chains that this chunk has appended to, by tenant. */
  readonly #chains = new Map<string, Templates>()
  #templates: Templates | undefined
  #runCount = 0
  /** The sequence number of the event before, in decimal digits. */
  readonly #digits = new Uint8Array(DIGITS_MAX)
  #digitCount = 0
  #sequenceNumber = 0

  /** Events kept. */
  get count(): number {
    return this.#kept.count
  }

  /** Events of the run. */
  get runCount(): number {
    return this.#runCount
  }

  /** Hashes of the events of the run, 32 bytes each; valid until the next event. */
  get runHashes(): Buffer {
    return this.#hashes.subarray(0, this.#runCount * HASH_BYTES)
  }

  /** The end of the chain after the run; undefined for a run without events. */
  get runHead(): Head | undefined {
    if (this.#runCount === 0) return undefined
    return {
      sequence_number: this.#sequenceNumber,
      hash: this.#hashes.toString(
        "hex",
        (this.#runCount - 1) * HASH_BYTES,
        this.#runCount * HASH_BYTES
      ),
      created_at: this.#templates!.run.createdAt
    }
  }

  /** Sequence number of the run's last event; of the chain's, before the first. */
  get sequenceNumber(): number {
    return this.#sequenceNumber
  }

  /** Begin a run after this head; `now` is the canonical time. */
  begin(serviceName: string, tenantId: string, head: Head | undefined, now: string): void {
    this.#dropRun()
    const createdAt = head !== undefined && head.created_at > now ? head.created_at : now
    let templates = this.#chains.get(tenantId)
    if (templates?.run.createdAt !== createdAt || templates.run.serviceName !== serviceName) {
      if (!PLAIN_TENANT.test(tenantId)) throw new Error("a tenant id that no tenant can have")
      const run = { serviceName, tenantId, createdAt }
      const key = withLength(tenantId)
      templates = {
        run,
        key,
        digitCount: 0,
        link: undefined,
        plain: undefined,
        detailed: undefined
      }
      this.#chains.set(tenantId, templates)
    }
    this.#templates = templates
    this.#setDigits(head?.sequence_number ?? 0)
    const link = this.#linkTemplate()
    link.bytes.write(head?.hash ?? GENESIS_HASH, link.prevHashAt, "latin1")
  }

  /** Append an event of a batch to the run. */
  append({ bodies, entries }: EventBatch, event: number): void {
    const entry = event * EVENT_ENTRY_BYTES
    this.#nextNumber()
    const link = this.#linkTemplate()
    const hasDetails = (entries[entry + EntryAt.flags]! & HAS_DETAILS) !== 0
    const tail = this.#tail(hasDetails)
    const bodyAt = entries.readUInt32LE(entry + EntryAt.bodyOffset)
    const bodyBytes = entries.readUInt32LE(entry + EntryAt.bodyLength)
    const tailAt = this.#writeStart(bodyBytes, tail)
    const bytes = this.#bytes
    bodies.copy(bytes, tailAt - bodyBytes, bodyAt, bodyAt + bodyBytes)
    bytes.set(tail.bytes, tailAt)

    const linkBytes = link.bytes
    for (let index = 0; index < this.#digitCount; index++) {
      const digit = this.#digits[index]!
      bytes[tailAt + tail.sequenceAt + index] = digit
      bytes[tailAt + tail.eventIdAt + index] = digit
      linkBytes[link.sequenceAt + index] = digit
    }
    const contentHash = entry + EntryAt.contentHash
    writeHex(entries, contentHash, HASH_BYTES, linkBytes, link.contentHashAt)
    writeHex(entries, contentHash, HASH_BYTES, bytes, tailAt + tail.contentHashAt)
    if (hasDetails) {
      writeHex(entries, entry + EntryAt.salt, SALT_BYTES, bytes, tailAt + tail.saltAt)
      const detailsHashAt = tailAt + tail.detailsHashAt
      writeHex(entries, entry + EntryAt.detailsHash, HASH_BYTES, bytes, detailsHashAt)
    }
    const prevHashAt = tailAt + tail.prevHashAt
    for (let index = 0; index < 2 * HASH_BYTES; index++) {
      bytes[prevHashAt + index] = linkBytes[link.prevHashAt + index]!
    }
    this.#writeHash(link, tailAt + tail.hashAt)
    this.#end = tailAt + tail.bytes.length
    const pack = this.#packs.at(-1)!
    pack.end = this.#end
    pack.count += 1
    this.#count += 1
    this.#runCount += 1
  }

  /** Keep the run, which `begin` would drop. */
  keep(): void {
    const lastCount = this.#packs.at(-1)?.count ?? 0
    this.#kept = { end: this.#end, count: this.#count, packs: this.#packs.length, lastCount }
    this.#runCount = 0
  }

  /** What is kept, in as few pieces as batches may have. They share the bytes of this object. */
  packed(partition: number): ReadonlyArray<PackedRecords> {
    this.#dropRun()
    return this.#packs.map(({ count, end, start }) => ({
      topic: "events",
      partition,
      count,
      records: this.#bytes.subarray(start, end)
    }))
  }

  /** Give the memory to another chunk: nothing here, or made of it, may be used any more. */
  release(): void {
    const bytes = this.#bytes
    this.#bytes = NOTHING
    const isSpare = bytes.length > 0 && bytes.length <= SPARE_BYTES_MAX
    if (isSpare && spares.length < SPARES_MAX) spares.push(bytes)
  }

  #dropRun(): void {
    const { count, end, lastCount, packs } = this.#kept
    this.#packs.length = packs
    const last = this.#packs.at(-1)
    if (last !== undefined) {
      last.end = end
      last.count = lastCount
    }
    this.#end = end
    this.#count = count
    this.#runCount = 0
  }

  /** The template of the link, the hash of the event before filled in. */
  #linkTemplate(): LinkTemplate {
    const templates = this.#templates!
    return (templates.link ??= linkOf(templates.run, this.#sequenceNumber))
  }

  #tail(hasDetails: boolean): Tail {
    const templates = this.#templates!
    return hasDetails
      ? (templates.detailed ??= tailOf(templates.run, this.#sequenceNumber, true))
      : (templates.plain ??= tailOf(templates.run, this.#sequenceNumber, false))
  }

  /** The event before has this number. Templates are as long as the next number. */
  #setDigits(sequenceNumber: number): void {
    const digits = String(sequenceNumber)
    const templates = this.#templates!
    if (digits.length !== templates.digitCount) {
      templates.digitCount = digits.length
      templates.link = undefined
      templates.plain = undefined
      templates.detailed = undefined
    }
    this.#digitCount = digits.length
    for (let index = 0; index < digits.length; index++) {
      this.#digits[index] = digits.charCodeAt(index)
    }
    this.#sequenceNumber = sequenceNumber
  }

  #nextNumber(): void {
    this.#sequenceNumber += 1
    const digits = this.#digits
    let at = this.#digitCount - 1
    while (at >= 0 && digits[at] === NINE) digits[at--] = ZERO
    if (at >= 0) {
      digits[at] = digits[at]! + 1
      return
    }
    // One digit more: the templates have no room for it. The hash before moves on to the new one.
    const before = this.#linkTemplate()
    const prevHash = before.bytes.toString("latin1", before.prevHashAt)
    this.#setDigits(this.#sequenceNumber)
    const link = this.#linkTemplate()
    link.bytes.write(prevHash, link.prevHashAt, "latin1")
  }

  /** Write the record up to its body, and make room for all of it; where the tail begins. */
  #writeStart(bodyBytes: number, tail: Tail): number {
    const { key } = this.#templates!
    const valueBytes = bodyBytes + tail.suffixBytes
    const bytesMax = 3 * VARINT_BYTES_MAX + FRAME_BYTES + key.length + bodyBytes + tail.bytes.length
    this.#ensure(bytesMax)
    const delta = this.#packFor(bytesMax).count
    const length =
      FRAME_BYTES
      + varintSize(delta)
      + key.length
      + varintSize(valueBytes)
      + bodyBytes
      + tail.bytes.length
    const bytes = this.#bytes
    let at = writeVarint(bytes, this.#end, length)
    bytes[at] = 0
    bytes[at + 1] = 0
    at = writeVarint(bytes, at + FRAME_BYTES, delta)
    for (let index = 0; index < key.length; index++) bytes[at + index] = key[index]!
    return writeVarint(bytes, at + key.length, valueBytes) + bodyBytes
  }

  /** The pack that takes a record of so many bytes. */
  #packFor(bytes: number): Pack {
    const last = this.#packs.at(-1)
    const isFull =
      last === undefined
      || last.count >= PACKED_RECORDS_MAX
      || last.end - last.start + bytes > PACKED_BYTES_MAX
    if (!isFull) return last
    const pack = { start: this.#end, end: this.#end, count: 0 }
    this.#packs.push(pack)
    return pack
  }

  /** Hash the link, and write the hash to the record, to the link of the next event and aside. */
  #writeHash(link: LinkTemplate, hashAt: number): void {
    const hashes = this.#hashesFor(this.#runCount + 1)
    const own = this.#runCount * HASH_BYTES
    const { bytes: linkBytes, prevHashAt } = link
    const bytes = this.#bytes
    // Bytes as the characters of a text: cheaper than a Buffer for each.
    const hash = digest("sha256", linkBytes, "binary")
    for (let index = 0; index < HASH_BYTES; index++) {
      const byte = hash.charCodeAt(index)
      const high = HIGH[byte]!
      const low = LOW[byte]!
      hashes[own + index] = byte
      bytes[hashAt + 2 * index] = high
      bytes[hashAt + 2 * index + 1] = low
      linkBytes[prevHashAt + 2 * index] = high
      linkBytes[prevHashAt + 2 * index + 1] = low
    }
  }

  #hashesFor(count: number): Buffer {
    if (count * HASH_BYTES > this.#hashes.length) {
      const larger = Buffer.allocUnsafe(2 * this.#hashes.length)
      this.#hashes.copy(larger)
      this.#hashes = larger
    }
    return this.#hashes
  }

  #ensure(more: number): void {
    const needed = this.#end + more
    if (needed <= this.#bytes.length) return
    const spare = this.#bytes.length === 0 ? spares.pop() : undefined
    if (spare !== undefined && spare.length >= needed) {
      this.#bytes = spare
      return
    }
    const size = Math.max(needed, this.#bytes.length * 2, BYTES_AT_FIRST)
    const larger = Buffer.allocUnsafeSlow(size)
    this.#bytes.copy(larger, 0, 0, this.#end)
    this.#bytes = larger
  }
}
