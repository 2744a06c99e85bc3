/** Records of a backup come back byte for byte, and a file that was cut is refused. */
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import {
  type BackupRecord,
  readSegment,
  SegmentWriter
} from "../../../src/domain/backup/BackupSegment.ts"

const written = (records: ReadonlyArray<BackupRecord>): Buffer => {
  const writer = new SegmentWriter()
  for (const record of records) writer.append(record)
  return writer.finish()
}

const bytes = fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array))

const record: fc.Arbitrary<BackupRecord> = fc.record({
  offset: fc.maxSafeNat(),
  timestamp: fc.integer({ min: -1, max: 4_102_444_800_000 }),
  key: fc.option(bytes),
  value: fc.option(bytes),
  headers: fc.dictionary(fc.stringMatching(/^[a-z-]{1,12}$/), bytes, { maxKeys: 4 })
})

const plain = ({ headers, ...rest }: BackupRecord) => ({ ...rest, headers: { ...headers } })

describe("a segment of a backup", () => {
  it("holds any records byte for byte", () => {
    fc.assert(
      fc.property(fc.array(record, { maxLength: 8 }), (records) => {
        const read = readSegment(written(records))
        assert.deepStrictEqual(read.map(plain), records.map(plain))
      })
    )
  })

  it("is refused where it was cut off", () => {
    const key = Buffer.from("acme")
    const whole = written([{ offset: 7, timestamp: 1, key, value: Buffer.from("{}"), headers: {} }])
    for (let length = 0; length < whole.length; length++) {
      const isEmpty = length === "alk-backup-segment-v1\n".length
      if (isEmpty) assert.deepStrictEqual(readSegment(whole.subarray(0, length)), [])
      else assert.throws(() => readSegment(whole.subarray(0, length)), /segment/)
    }
  })
})
