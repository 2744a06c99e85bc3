/** A batch that is rewritten says what it said of everything but the records that were meant. */
import { createRequire } from "node:module"
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { crc32c } from "../../../../src/adapters/kafka/protocol/Crc32c.ts"
import { readRecordSet } from "../../../../src/adapters/kafka/protocol/FetchResponse.ts"
import { placedBatch } from "../../../../src/adapters/kafka/protocol/PlacedBatch.ts"
import { toRecordBatch } from "../../../../src/adapters/kafka/protocol/RecordBatch.ts"
import {
  readBatch,
  recordsOf,
  rewriteBatch
} from "../../../../src/adapters/kafka/segments/BatchRewrite.ts"
import type { RecordFate } from "../../../../src/domain/records/RecordFate.ts"
// Makes kafkajs's decoder understand zstd.
import "../../../../src/adapters/kafka/protocol/KafkaClient.ts"

const require = createRequire(import.meta.url)
const Decoder = require("kafkajs/src/protocol/decoder") as new (bytes: Buffer) => object
const decodeBatch = require("kafkajs/src/protocol/recordBatch/v0/decoder") as (
  decoder: object
) => Promise<{
  readonly firstOffset: string
  readonly producerId: string
  readonly producerEpoch: number
  readonly firstSequence: number
  readonly lastOffsetDelta: number
  readonly maxTimestamp: string
  readonly inTransaction: boolean
  readonly records: ReadonlyArray<{
    readonly offset: string
    readonly timestamp: string
    readonly key: Buffer | null
    readonly value: Buffer | null
    readonly headers: Readonly<Record<string, Buffer>>
  }>
}>

const BASE_OFFSET = 70_000_000_001
const CHECKSUM_AT = 17
const ATTRIBUTES_AT = 21

const bytes = (maxLength: number) => fc.uint8Array({ maxLength }).map((array) => Buffer.from(array))

const record = fc.record({
  timestamp: fc.integer({ min: 1_500_000_000_000, max: 1_900_000_000_000 }),
  key: fc.option(bytes(20)),
  value: fc.option(bytes(3_000)),
  headers: fc.dictionary(fc.stringMatching(/^h[a-z_-]{1,12}$/), bytes(30))
})

const fate: fc.Arbitrary<RecordFate> = fc.oneof(
  fc.constant<RecordFate>("keep"),
  fc.constant<RecordFate>("drop"),
  bytes(3_000).map((value) => ({ value }))
)

const batchOf = fc
  .record({
    records: fc.array(fc.tuple(record, fate), { minLength: 1, maxLength: 40 }),
    producerId: fc.bigInt({ min: -1n, max: 2n ** 62n }),
    producerEpoch: fc.integer({ min: 0, max: 32_767 }),
    sequence: fc.integer({ min: 0, max: 2_147_483_647 }),
    transactional: fc.boolean(),
    compression: fc.constantFrom("zstd" as const, "gzip" as const, "none" as const),
    leaderEpoch: fc.integer({ min: -1, max: 1_000 })
  })
  .map(({ leaderEpoch, records, ...frame }) => ({
    leaderEpoch,
    frame,
    fates: records.map(([, one]) => one),
    records: records.map(([one], index) => ({ ...one, offset: index }))
  }))

type Generated = typeof batchOf extends fc.Arbitrary<infer T> ? T : never

const encoded = async ({ frame, leaderEpoch, records }: Generated): Promise<Buffer> => {
  const placed = placedBatch(records)
  const batch = await toRecordBatch(placed.records, placed.count, {
    ...frame,
    timestamp: placed.times.first,
    lastTimestamp: placed.times.last
  })
  batch.writeBigInt64BE(BigInt(BASE_OFFSET), 0)
  batch.writeInt32BE(leaderEpoch, 12)
  return batch
}

const decoded = (batch: Buffer) => decodeBatch(new Decoder(Buffer.from(batch)))

const fateIn =
  ({ fates }: Generated) =>
  ({ offset }: { readonly offset: number }): RecordFate =>
    fates[offset - BASE_OFFSET]!

const plain = (record: {
  readonly offset: string | number
  readonly timestamp: string | number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: Readonly<Record<string, Buffer>>
}) => ({
  offset: Number(record.offset),
  timestamp: Number(record.timestamp),
  key: record.key?.toString("hex") ?? null,
  value: record.value?.toString("hex") ?? null,
  headers: Object.fromEntries(
    Object.entries(record.headers).map(([name, value]) => [name, value.toString("hex")])
  )
})

/** What a reader has to find afterwards. */
const expected = (generated: Generated) =>
  generated.records.flatMap((one) => {
    const record = { ...one, offset: BASE_OFFSET + one.offset }
    const fate = fateIn(generated)(record)
    if (fate === "drop") return []
    return [plain(fate === "keep" ? record : { ...record, value: fate.value })]
  })

describe("a batch that is rewritten", () => {
  it("is the same bytes if everything is kept", () =>
    fc.assert(
      fc.asyncProperty(batchOf, async (generated) => {
        const bytes = await encoded(generated)
        const result = await rewriteBatch(readBatch(bytes), () => "keep")
        assert.strictEqual(result.bytes, bytes)
        assert.deepStrictEqual([result.replaced, result.dropped], [0, 0])
      })
    ))

  it("keeps offsets, times, keys, headers and what was kept, for our reader and for kafkajs", () =>
    fc.assert(
      fc.asyncProperty(batchOf, async (generated) => {
        const before = await encoded(generated)
        const { bytes, dropped, replaced } = await rewriteBatch(
          readBatch(before),
          fateIn(generated)
        )
        const left = expected(generated)
        assert.strictEqual(dropped, generated.records.length - left.length)
        assert.isAtMost(replaced, left.length)
        const records = await recordsOf(readBatch(bytes))
        assert.deepStrictEqual(typeof records === "string" ? records : records.map(plain), left)
        const read = await readRecordSet(bytes, [], 0)
        assert.deepStrictEqual(read.records.map(plain), left)
        assert.strictEqual(read.nextOffset, BASE_OFFSET + generated.records.length)
        const other = await decoded(bytes)
        assert.deepStrictEqual(other.records.map(plain), left)
      })
    ))

  it("keeps everything of its head but codec, count, length and checksum, which holds", () =>
    fc.assert(
      fc.asyncProperty(batchOf, async (generated) => {
        const before = await encoded(generated)
        const { bytes } = await rewriteBatch(readBatch(before), fateIn(generated))
        assert.strictEqual(bytes.readInt32BE(8), bytes.length - 12)
        assert.strictEqual(bytes.readUInt32BE(CHECKSUM_AT), crc32c(bytes, ATTRIBUTES_AT))
        assert.strictEqual(bytes.readInt32BE(57), expected(generated).length)
        const rest = (batch: Buffer) => {
          const head = Buffer.from(batch.subarray(0, 61))
          head.fill(0, 8, 12)
          head.fill(0, CHECKSUM_AT, ATTRIBUTES_AT)
          head.writeInt16BE(head.readInt16BE(ATTRIBUTES_AT) & ~7, ATTRIBUTES_AT)
          head.fill(0, 57)
          return head
        }
        assert.deepStrictEqual(rest(bytes), rest(before))
      })
    ))

  it("is refused with one flipped bit anywhere after its length", () =>
    fc.assert(
      fc.asyncProperty(batchOf, fc.nat(), async (generated, place) => {
        const bytes = await encoded(generated)
        const at = 16 + (place % (bytes.length - 16))
        bytes[at] = bytes[at]! ^ 1
        assert.throws(() => readBatch(bytes), /record batch/)
      })
    ))

  it("that ends a transaction is left alone, and says what it came to", async () => {
    // As brokers write them: version, type, and the epoch of the coordinator.
    const marker = async (type: number) => {
      const key = Buffer.from([0, 0, 0, type])
      const one = {
        offset: 0,
        timestamp: 1_700_000_000_000,
        key,
        value: Buffer.alloc(6),
        headers: {}
      }
      const placed = placedBatch([one])
      const bytes = await toRecordBatch(placed.records, 1, {
        producerId: 9n,
        producerEpoch: 1,
        sequence: -1,
        transactional: true,
        timestamp: placed.times.first,
        compression: "none"
      })
      bytes.writeInt16BE(0x30, ATTRIBUTES_AT)
      bytes.writeUInt32BE(crc32c(bytes, ATTRIBUTES_AT), CHECKSUM_AT)
      return readBatch(bytes)
    }
    const [aborts, commits] = [await marker(0), await marker(1)]
    assert.deepStrictEqual([aborts.ends, commits.ends], ["aborted", "committed"])
    assert.deepStrictEqual(await recordsOf(commits), [])
    const result = await rewriteBatch(commits, () => "drop")
    assert.strictEqual(result.bytes, commits.bytes)
  })
})
