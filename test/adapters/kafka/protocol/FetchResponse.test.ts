/** What a reader makes of batches that somebody else has written: none of them stops it. */
import { createHash } from "node:crypto"
import zlib from "node:zlib"
import { assert, describe, it } from "vitest"
import {
  ATTRIBUTES_AT,
  BATCH_HEAD_BYTES,
  CHECKSUM_AT,
  CODECS,
  COUNT_AT,
  LENGTH_AT,
  RECORDS_AT
} from "../../../../src/adapters/kafka/protocol/BatchLayout.ts"
import { crc32c } from "../../../../src/adapters/kafka/protocol/Crc32c.ts"
import {
  readFetchResponse,
  readRecordSet
} from "../../../../src/adapters/kafka/protocol/FetchResponse.ts"
import { encodeRecordBatch } from "../../../../src/adapters/kafka/protocol/RecordBatch.ts"
import { INFLATED_BYTES_MAX } from "../../../../src/adapters/kafka/protocol/RecordCodecs.ts"

const SNAPPY = 2

const honest = (value: string | Buffer) =>
  encodeRecordBatch([{ key: null, value }], {
    producerId: 1n,
    producerEpoch: 0,
    sequence: 0,
    transactional: false,
    timestamp: 1_795_000_000_123,
    compression: "zstd"
  })

const at = (offset: number, batch: Buffer): Buffer => {
  const placed = Buffer.from(batch)
  placed.writeBigInt64BE(BigInt(offset))
  return placed
}

/** A batch of such bytes with a checksum that holds, as a broker takes it. */
const batchOf = async (codec: number, body: Buffer, count = 1): Promise<Buffer> => {
  const head = (await honest("")).subarray(0, RECORDS_AT)
  const batch = Buffer.concat([head, body])
  batch.writeInt32BE(batch.length - BATCH_HEAD_BYTES, LENGTH_AT)
  batch.writeInt16BE(codec, ATTRIBUTES_AT)
  batch.writeInt32BE(count, COUNT_AT)
  batch.writeUInt32BE(crc32c(batch, ATTRIBUTES_AT), CHECKSUM_AT)
  return batch
}

/** Uncompressed records with these offsets, counted from that of their batch. */
const recordsAt = (...deltas: ReadonlyArray<number>): Buffer =>
  Buffer.concat(
    deltas.map((delta) => {
      const zigzag = delta < 0 ? -2 * delta - 1 : 2 * delta
      return Buffer.from([14, 0, 0, zigzag, 1, 2, 0x78, 0])
    })
  )

const bomb = Buffer.alloc(INFLATED_BYTES_MAX + 1)
const someRecords = (await honest("x")).subarray(RECORDS_AT)

const unreadable: ReadonlyArray<readonly [string, () => Promise<Buffer>, RegExp]> = [
  [
    "a bomb of zstd",
    () => batchOf(CODECS.zstd, zlib.zstdCompressSync(bomb)),
    /over 67108864 bytes/
  ],
  ["a bomb of gzip", () => batchOf(CODECS.gzip, zlib.gzipSync(bomb)), /over 67108864 bytes/],
  [
    "a bomb in its second frame",
    () => {
      const half = zlib.zstdCompressSync(bomb.subarray(0, bomb.length / 2 + 1))
      return batchOf(CODECS.zstd, Buffer.concat([half, half]))
    },
    /over 67108864 bytes/
  ],
  ["no zstd", () => batchOf(CODECS.zstd, Buffer.from("no zstd")), /not valid zstd/],
  ["a codec that alk has not", () => batchOf(SNAPPY, someRecords), /codec 2/],
  ["records that end too soon", () => batchOf(CODECS.none, someRecords, 9), /past the end/],
  ["more records than are read", () => batchOf(CODECS.none, someRecords, 100_001), /over 100000/],
  ["a record before its batch", () => batchOf(CODECS.none, recordsAt(-3)), /at offset -2, where/],
  ["a record behind its batch", () => batchOf(CODECS.none, recordsAt(1)), /at offset 2, where/],
  [
    "two records at one offset",
    () => batchOf(CODECS.none, recordsAt(0, 0), 2),
    /at offset 1, where/
  ]
]

describe("a batch that can't be read", () => {
  it.each(unreadable)(
    "is passed over and named, with what follows: %s",
    async (_, make, reason) => {
      const hostile = at(1, await make())
      const all = Buffer.concat([await honest("before"), hostile, at(2, await honest("after"))])
      const { nextOffset, records } = await readRecordSet(all, [], 0)
      assert.strictEqual(nextOffset, 3)
      assert.deepStrictEqual(
        records.map(({ offset }) => offset),
        [0, 1, 2]
      )
      const [before, stray, after] = records
      assert.strictEqual(before!.value?.toString(), "before")
      assert.strictEqual(after!.value?.toString(), "after")
      const body = hostile.subarray(RECORDS_AT)
      assert.match(stray!.refused ?? "", reason)
      assert.include(stray!.refused, createHash("sha256").update(body).digest("hex"))
      assert.isNull(stray!.key)
      assert.isTrue(stray!.value?.equals(body.subarray(0, 1_024)))
    }
  )

  it("is asked for again if it was damaged on its way", async () => {
    const batch = await batchOf(CODECS.zstd, Buffer.from("no zstd"))
    batch[RECORDS_AT]! ^= 1
    const error = await readRecordSet(batch, [], 0).then(
      () => undefined,
      (thrown: unknown) => thrown
    )
    assert.instanceOf(error, Error)
  })
})

/** An answer with these batches of one partition each. */
const answerOf = (sets: ReadonlyArray<Buffer>): Buffer => {
  const int16 = (value: number) => Buffer.from([value >> 8, value & 0xff])
  const int32 = (value: number) => {
    const bytes = Buffer.alloc(4)
    bytes.writeInt32BE(value)
    return bytes
  }
  const parts: Array<Buffer> = [int32(0), int16(0), int32(0), int32(1), int16(1), Buffer.from("t")]
  parts.push(int32(sets.length))
  for (const [partition, set] of sets.entries()) {
    parts.push(int32(partition), int16(0), Buffer.alloc(24), int32(0), int32(-1))
    parts.push(int32(set.length), set)
  }
  return Buffer.concat(parts)
}

describe("an answer", () => {
  it("is read as far as it may grow; what is left is for the next one", async () => {
    const batch = await honest(Buffer.alloc(30 * 1_048_576))
    const set = Buffer.concat(Array.from({ length: 6 }, (_, offset) => at(offset, batch)))
    const found = await readFetchResponse(answerOf([set, set]), () => 0)
    assert.deepStrictEqual(
      found.map(({ nextOffset, records }) => [records.length, nextOffset]),
      [
        [6, 6],
        [3, 3]
      ]
    )
  })
})
