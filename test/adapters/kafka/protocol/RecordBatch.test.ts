/** What is encoded is read back the same by our own reader and by the decoder of kafkajs. */
import { randomBytes } from "node:crypto"
import { createRequire } from "node:module"
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { crc32c } from "../../../../src/adapters/kafka/protocol/Crc32c.ts"
import { readRecordSet } from "../../../../src/adapters/kafka/protocol/FetchResponse.ts"
import {
  type BatchFrame,
  type BatchRecord,
  encodeRecordBatch
} from "../../../../src/adapters/kafka/protocol/RecordBatch.ts"
// Makes kafkajs's decoder understand zstd.
import "../../../../src/adapters/kafka/protocol/KafkaClient.ts"

const require = createRequire(import.meta.url)

interface DecodedRecord {
  readonly offset: string
  readonly timestamp: string
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: Readonly<Record<string, Buffer>>
}

interface DecodedBatch {
  readonly producerId: string
  readonly producerEpoch: number
  readonly firstSequence: number
  readonly lastOffsetDelta: number
  readonly inTransaction: boolean
  readonly records: ReadonlyArray<DecodedRecord>
}

const Decoder = require("kafkajs/src/protocol/decoder") as new (bytes: Buffer) => object
const decodeBatch = require("kafkajs/src/protocol/recordBatch/v0/decoder") as (
  decoder: object
) => Promise<DecodedBatch>

const frame: BatchFrame = {
  producerId: 4_294_967_299n,
  producerEpoch: 7,
  sequence: 2_147_483_000,
  transactional: false,
  timestamp: 1_795_000_000_123,
  compression: "zstd"
}

const toBuffer = (value: string | Buffer | null): Buffer | null =>
  typeof value === "string" ? Buffer.from(value) : value

/** A record as a reader sees it. */
const plain = (record: {
  readonly key: string | Buffer | null
  readonly value: string | Buffer | null
  readonly headers?: Readonly<Record<string, string | Buffer>>
}) => ({
  key: toBuffer(record.key)?.toString("hex") ?? null,
  value: toBuffer(record.value)?.toString("hex") ?? null,
  headers: Object.fromEntries(
    Object.entries(record.headers ?? {}).map(([name, value]) => [
      name,
      toBuffer(value)!.toString("hex")
    ])
  )
})

const assertReadBack = async (
  records: ReadonlyArray<BatchRecord>,
  wanted: BatchFrame = frame
): Promise<void> => {
  const bytes = await encodeRecordBatch(records, wanted)
  const expected = records.map(plain)

  const own = await readRecordSet(bytes, [], 0)
  assert.deepStrictEqual(own.records.map(plain), expected)
  assert.strictEqual(own.nextOffset, records.length)
  for (const [index, record] of own.records.entries()) {
    assert.strictEqual(record.offset, index)
    assert.strictEqual(record.timestamp, wanted.timestamp)
  }

  const other = await decodeBatch(new Decoder(bytes))
  assert.deepStrictEqual(other.records.map(plain), expected)
  assert.deepStrictEqual(
    other.records.map(({ offset, timestamp }) => [offset, timestamp]),
    records.map((_, index) => [String(index), String(wanted.timestamp)])
  )
  assert.strictEqual(other.producerId, String(wanted.producerId))
  assert.strictEqual(other.producerEpoch, wanted.producerEpoch)
  assert.strictEqual(other.firstSequence, wanted.sequence)
  assert.strictEqual(other.lastOffsetDelta, records.length - 1)
  assert.strictEqual(other.inTransaction, wanted.transactional)
  assert.strictEqual(bytes.readUInt32BE(17), crc32c(bytes, 21))
}

const bytes = fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array))
const text = fc.oneof(
  fc.string({ maxLength: 200 }),
  fc.string({ unit: "grapheme", maxLength: 100 }),
  // Around the lengths at which the varint in front grows, in one and in three bytes a letter.
  fc.integer({ min: 20, max: 70 }).map((length) => "a".repeat(length)),
  fc.integer({ min: 20, max: 70 }).map((length) => "€".repeat(length)),
  fc.integer({ min: 2_700, max: 2_760 }).map((length) => "€".repeat(length)),
  fc.integer({ min: 8_100, max: 8_200 }).map((length) => "a".repeat(length))
)
const content = fc.oneof(text, bytes)
const record: fc.Arbitrary<BatchRecord> = fc.record(
  {
    key: fc.option(content),
    value: fc.option(content),
    headers: fc.dictionary(
      fc.string({ maxLength: 30 }).map((name) => `h${name}`),
      content,
      { maxKeys: 8 }
    )
  },
  { requiredKeys: ["key", "value"] }
)

describe("a record batch", () => {
  it("is read back the same, whatever its records hold", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(record, { minLength: 1, maxLength: 20 }),
        fc.boolean(),
        (records, transactional) => assertReadBack(records, { ...frame, transactional })
      )
    )
  })

  it.each([1, 63, 64, 65, 8_191, 8_192, 8_193])("of %i records", async (count) => {
    await assertReadBack(
      Array.from({ length: count }, (_, index) => ({ key: null, value: `record ${index}` }))
    )
  })

  it("larger than what is compressed on the spot", async () => {
    const value = randomBytes(60_000).toString("hex")
    await assertReadBack([
      { key: "a", value },
      { key: "b", value: Buffer.from(value) }
    ])
  })

  it("that does not get smaller", async () => {
    await assertReadBack([{ key: null, value: randomBytes(3_000_000) }])
  })

  it("made at the same time as others", async () => {
    const values = Array.from({ length: 12 }, () => randomBytes(100_000))
    await Promise.all(values.map((value) => assertReadBack([{ key: "k", value }])))
  })

  it.each(["gzip", "none"] as const)("compressed with %s", async (compression) => {
    const wanted = { ...frame, compression }
    for (const bytes of [40, 400, 40_000, 400_000]) {
      const value = randomBytes(bytes).toString("hex")
      await assertReadBack([{ key: "a", value }], wanted)
      await assertReadBack([{ key: "a", value: "a".repeat(2 * bytes) }], wanted)
    }
  })

  it("names its codec, and has none where it is small or none is wanted", async () => {
    const codecOf = async (compression: BatchFrame["compression"], bytes: number) => {
      const value = "a".repeat(bytes)
      const batch = await encodeRecordBatch([{ key: null, value }], { ...frame, compression })
      return [batch.readInt16BE(21) & 7, batch.length < bytes]
    }
    assert.deepStrictEqual(await codecOf("zstd", 10_000), [4, true])
    assert.deepStrictEqual(await codecOf("gzip", 10_000), [1, true])
    assert.deepStrictEqual(await codecOf("none", 10_000), [0, false])
    assert.deepStrictEqual(await codecOf("gzip", 20), [0, false])
  })

  it("is compressed if that is worth it", async () => {
    const large = await encodeRecordBatch([{ key: null, value: "a".repeat(10_000) }], frame)
    assert.isBelow(large.length, 200)
    const small = await encodeRecordBatch([{ key: null, value: "a".repeat(20) }], frame)
    assert.include(small.toString("latin1"), "a".repeat(20))
  })
})
