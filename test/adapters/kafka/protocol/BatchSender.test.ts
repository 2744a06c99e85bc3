/** How records are cut into requests, and how sequence numbers go on. */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import type {
  PartitionRecords,
  Sequenced
} from "../../../../src/adapters/kafka/protocol/BatchSender.ts"
import {
  BatchSender,
  countOf,
  toRequests
} from "../../../../src/adapters/kafka/protocol/BatchSender.ts"
import type { RawCluster } from "../../../../src/adapters/kafka/protocol/KafkaClient.ts"
import { SEND_BYTES_MAX, SEND_RECORDS_MAX } from "../../../../src/domain/records/Topics.ts"
import type { NewRecord, PackedRecords } from "../../../../src/ports/EventLog.ts"

const bytesIn = (records: ReadonlyArray<NewRecord>): number =>
  records.reduce((sum, { value }) => sum + Buffer.byteLength(value ?? ""), 0)

const records: fc.Arbitrary<ReadonlyArray<NewRecord>> = fc.array(
  fc
    .record({
      topic: fc.constantFrom("events", "state"),
      partition: fc.nat({ max: 2 }),
      // Kibibytes; two of the larger ones are too much for one batch.
      size: fc.constantFrom(0, 1, 400, 600, 1_100),
      key: fc.string({ maxLength: 5 })
    })
    .map(({ key, partition, size, topic }) => ({
      topic: topic as "events" | "state",
      partition,
      key,
      value: "x".repeat(size * 1_024)
    })),
  { maxLength: 40 }
)

describe("toRequests", () => {
  it("keeps every record, its order within the partition, and every limit", () => {
    fc.assert(
      fc.property(records, (given) => {
        const seen = new Map<string, Array<NewRecord>>()
        for (const request of toRequests("alk", given)) {
          const keys = request.map(({ partition, topic }) => `${topic}/${partition}`)
          assert.strictEqual(new Set(keys).size, keys.length)
          for (const [index, part] of request.entries()) {
            assert.isNotEmpty(part.records)
            if (part.records.length > 1) assert.isAtMost(bytesIn(part.records), SEND_BYTES_MAX)
            seen.set(keys[index]!, [...(seen.get(keys[index]!) ?? []), ...part.records])
          }
        }
        const wanted = new Map<string, Array<NewRecord>>()
        for (const record of given) {
          const key = `alk.${record.topic}/${record.partition}`
          wanted.set(key, [...(wanted.get(key) ?? []), record])
        }
        assert.deepStrictEqual(new Map([...seen].sort()), new Map([...wanted].sort()))
      }),
      { numRuns: 50 }
    )
  })

  it("sends packed records as the batches that they are, in their order", () => {
    const packed = (count: number, bytes: number, partition = 0): PackedRecords => ({
      topic: "events",
      partition,
      count,
      records: Buffer.alloc(bytes)
    })
    const other = { topic: "state" as const, partition: 0, key: "k", value: "v" }
    const after = { topic: "events" as const, partition: 0, key: "k", value: "v" }
    const given = [packed(9_000, 5), packed(7, 6), after, packed(2, 7, 1), other]
    const requests = toRequests("alk", given)
    assert.deepStrictEqual(
      requests.map((request) => request.map((part) => [part.topic, part.partition, countOf(part)])),
      [
        [
          ["alk.events", 0, 9_000],
          ["alk.events", 1, 2],
          ["alk.state", 0, 1]
        ],
        [["alk.events", 0, 7]],
        [["alk.events", 0, 1]]
      ]
    )
    const large = [packed(1, 10 * 1_048_576), packed(1, 10 * 1_048_576, 1), other]
    assert.deepStrictEqual(
      toRequests("alk", large).map((request) => request.length),
      [1, 2]
    )
  })

  it("cuts at the number of records", () => {
    const given = Array.from({ length: SEND_RECORDS_MAX * 2 + 1 }, () => ({
      topic: "events" as const,
      partition: 0,
      key: "k",
      value: ""
    }))
    assert.deepStrictEqual(
      toRequests("alk", given).map((request) => request.map((part) => part.records.length)),
      [[SEND_RECORDS_MAX], [SEND_RECORDS_MAX], [1]]
    )
  })

  it("does not put more into one request than a broker takes", () => {
    const given = Array.from({ length: 5 }, (_, partition) => ({
      topic: "events" as const,
      partition,
      key: "k",
      value: "x".repeat(6 * 1_048_576)
    }))
    assert.deepStrictEqual(
      toRequests("alk", given).map((request) => request.length),
      [2, 2, 1]
    )
  })
})

describe("sequence numbers", () => {
  const SEQUENCE_AT = 53
  const part = (count: number, partition = 0): PartitionRecords => ({
    topic: "alk.events",
    partition,
    records: Array<NewRecord>(count).fill({ topic: "events", partition, key: "k", value: "v" })
  })
  const sequences = async (sender: BatchSender, ...parts: ReadonlyArray<PartitionRecords>) =>
    (await sender.sequence(parts)).map(({ bytes }) => bytes.readInt32BE(SEQUENCE_AT))
  const identity = { producerId: 1n, producerEpoch: 0 }
  const nowhere = {} as RawCluster

  it("count the records of each partition from 0", async () => {
    const sender = new BatchSender(nowhere, null, identity)
    assert.deepStrictEqual(await sequences(sender, part(3), part(5, 1)), [0, 0])
    assert.deepStrictEqual(await sequences(sender, part(1), part(1, 1)), [3, 5])
    assert.deepStrictEqual(await sequences(sender, part(1, 2), part(1)), [0, 4])
  })

  it("count packed records like those that are objects", async () => {
    const sender = new BatchSender(nowhere, null, identity)
    const packed: PackedRecords = {
      topic: "events",
      partition: 0,
      count: 70,
      records: Buffer.from([0])
    }
    const packedPart = { topic: "alk.events", partition: 0, records: [], packed }
    assert.deepStrictEqual(await sequences(sender, part(3)), [0])
    assert.deepStrictEqual(await sequences(sender, packedPart), [3])
    assert.deepStrictEqual(await sequences(sender, part(1)), [73])
    const [{ bytes, count }] = (await sender.sequence([packedPart])) as [Sequenced]
    assert.strictEqual(count, 70)
    // Offset of the last record, and the number of records.
    assert.deepStrictEqual([bytes.readInt32BE(23), bytes.readInt32BE(57)], [69, 70])
  })

  it("start over behind the largest number of 32 bits", async () => {
    const sender = new BatchSender(nowhere, null, identity, { firstSequence: 2_147_483_646 })
    assert.deepStrictEqual(await sequences(sender, part(1)), [2_147_483_646])
    assert.deepStrictEqual(await sequences(sender, part(3)), [2_147_483_647])
    assert.deepStrictEqual(await sequences(sender, part(1)), [2])
  })
})
