/** Batches of a restore are read back as any other batch is. */
import { assert, describe, it } from "vitest"
import { readRecordSet } from "../../../../src/adapters/kafka/protocol/FetchResponse.ts"
import {
  fillerBatch,
  type PlacedBatch,
  placedBatch
} from "../../../../src/adapters/kafka/protocol/PlacedBatch.ts"
import { toRecordBatch } from "../../../../src/adapters/kafka/protocol/RecordBatch.ts"

const read = async ({ count, records, times }: PlacedBatch) => {
  const bytes = await toRecordBatch(records, count, {
    producerId: 1n,
    producerEpoch: 0,
    sequence: 0,
    transactional: false,
    timestamp: times.first,
    lastTimestamp: times.last,
    compression: "zstd"
  })
  return (await readRecordSet(bytes, [], 0)).records
}

const record = (offset: number, timestamp: number, value: string | null) => ({
  offset,
  timestamp,
  key: Buffer.from("acme"),
  value: value === null ? null : Buffer.from(value),
  headers: { "alk-format": Buffer.from("1"), empty: Buffer.alloc(0) }
})

describe("a batch of placed records", () => {
  it("gives each record its own time, also across years and out of order", async () => {
    const records = [
      record(0, 1_800_000_000_000, "x".repeat(900)),
      record(1, 1_600_000_000_000, null),
      record(2, 1_600_000_000_001, "")
    ]
    const found = await read(placedBatch(records))
    assert.deepStrictEqual(
      found.map((one) => ({ ...one, headers: { ...one.headers } })),
      records
    )
  })

  it("of fillers has as many offsets as it takes up", async () => {
    const found = await read(fillerBatch(20_000, 1_700_000_000_000))
    assert.strictEqual(found.length, 20_000)
    assert.strictEqual(found.at(-1)?.offset, 19_999)
    assert.isTrue(found.every(({ timestamp, value }) => value === null && timestamp > 0))
  })
})
