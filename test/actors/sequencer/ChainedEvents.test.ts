/**
 * Events written as records at once are what the functions that define them say: the link, the end
 * of the stored JSON, the headers, the encoding of records. Whatever runs are dropped in between.
 */
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { ChainedEvents } from "../../../src/actors/sequencer/ChainedEvents.ts"
import {
  type BatchFrame,
  encodeRecordBatch
} from "../../../src/adapters/kafka/protocol/RecordBatch.ts"
import { GENESIS_HASH, type Head } from "../../../src/domain/chain/Chains.ts"
import { appendSuffix, linkHash } from "../../../src/domain/events/HashChain.ts"
import { quote } from "../../../src/domain/json/CanonicalJson.ts"
import { auditEventHeaders } from "../../../src/domain/records/CloudEvent.ts"
import { type PreparedEvent, toBatch } from "../../../src/domain/records/EventBatch.ts"
import { PACKED_BYTES_MAX, PACKED_RECORDS_MAX } from "../../../src/domain/records/Topics.ts"
import { readPacked } from "../../support/PackedEvents.ts"

const NOW = "2026-11-21T12:00:00.000000Z"
const LATER = "2026-11-21T12:00:01.000000Z"

const hex = (bytes: number): fc.Arbitrary<string> =>
  fc
    .uint8Array({ minLength: bytes, maxLength: bytes })
    .map((array) => Buffer.from(array).toString("hex"))

const event: fc.Arbitrary<PreparedEvent> = fc
  .record({
    id: fc.string({ unit: "grapheme", minLength: 1, maxLength: 8 }),
    note: fc.oneof(fc.string({ unit: "grapheme", maxLength: 90 }), fc.constant("x".repeat(9_000))),
    contentHash: hex(32),
    details: fc.option(fc.record({ detailsSalt: hex(16), detailsHash: hex(32) }))
  })
  .map(({ contentHash, details, id, note }) => ({
    index: 0,
    id,
    body: `{"id":${quote(id)},"note":${quote(note)}`,
    contentHash,
    ...details
  }))

interface Run {
  readonly tenantId: string
  readonly isKept: boolean
  readonly now: string
  readonly events: ReadonlyArray<PreparedEvent>
}

const run: fc.Arbitrary<Run> = fc.record({
  tenantId: fc.constantFrom("acme", "a".repeat(63), "_system"),
  isKept: fc.boolean(),
  now: fc.constantFrom(NOW, LATER),
  events: fc.array(event, { maxLength: 12 })
})

/** The record of an event by the functions that define it, and the head after it. */
const expectedOf = (tenantId: string, head: Head | undefined, now: string, one: PreparedEvent) => {
  const sequenceNumber = (head?.sequence_number ?? 0) + 1
  const createdAt = head !== undefined && head.created_at > now ? head.created_at : now
  const { contentHash, detailsHash, detailsSalt } = one
  const link = {
    tenantId,
    sequenceNumber,
    createdAt,
    contentHash,
    prevHash: head?.hash ?? GENESIS_HASH
  }
  const hash = linkHash(link)
  const suffix = appendSuffix({ ...link, hash, detailsHash, detailsSalt })
  return {
    record: {
      key: tenantId,
      value: one.body + suffix,
      headers: auditEventHeaders("a service", { tenantId, sequenceNumber, createdAt })
    },
    head: { sequence_number: sequenceNumber, hash, created_at: createdAt }
  }
}

const frame: BatchFrame = {
  producerId: 1n,
  producerEpoch: 0,
  sequence: 0,
  transactional: true,
  timestamp: 1_795_000_000_123,
  compression: "zstd"
}
const RECORDS_AT = 61

describe("events written as records", () => {
  it("are what the functions say that define them, whatever runs are dropped", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(run, { maxLength: 8 }),
        fc.constantFrom(0, 8, 98, 999_999_999, Number.MAX_SAFE_INTEGER - 200),
        async (runs, first) => {
          const heads = new Map<string, Head>()
          if (first > 0) {
            const head = { sequence_number: first, hash: "5a".repeat(32), created_at: NOW }
            heads.set("acme", head)
          }
          const chained = new ChainedEvents()
          const expected: Array<ReturnType<typeof expectedOf>["record"]> = []
          for (const { events, isKept, now, tenantId } of runs) {
            const batch = toBatch(events)
            let head = heads.get(tenantId)
            chained.begin("a service", tenantId, head, now)
            const hashes: Array<string> = []
            for (const [at, one] of events.entries()) {
              chained.append(batch, at)
              const wanted = expectedOf(tenantId, head, now, one)
              head = wanted.head
              hashes.push(head.hash)
              if (isKept) expected.push(wanted.record)
            }
            assert.strictEqual(chained.runCount, events.length)
            assert.strictEqual(chained.sequenceNumber, head?.sequence_number ?? 0)
            assert.deepStrictEqual(chained.runHead, events.length === 0 ? undefined : head)
            assert.strictEqual(chained.runHashes.toString("hex"), hashes.join(""))
            if (isKept) chained.keep()
            if (isKept && head !== undefined) heads.set(tenantId, head)
          }
          assert.strictEqual(chained.count, expected.length)
          const packed = chained.packed(3)
          if (expected.length === 0) return assert.isEmpty(packed)
          const [only] = packed
          assert.deepStrictEqual(packed, [
            { topic: "events", partition: 3, count: expected.length, records: only!.records }
          ])
          assert.deepStrictEqual(
            readPacked(only!),
            expected.map((record, offsetDelta) => ({ offsetDelta, ...record }))
          )
          // The same bytes as of records that are objects.
          const small = expected.slice(0, 1)
          const batch = await encodeRecordBatch(small, frame)
          const bytes = only!.records.subarray(0, batch.length - RECORDS_AT)
          if (Buffer.byteLength(small[0]!.value) < 300) {
            assert.deepStrictEqual(batch.subarray(RECORDS_AT), bytes)
          }
          chained.release()
        }
      ),
      { numRuns: 300 }
    )
  })

  const sample = (bytes: number): PreparedEvent => ({
    index: 0,
    id: "e",
    body: `{"id":"e","note":"${"n".repeat(bytes)}"`,
    contentHash: "ab".repeat(32)
  })

  it("are cut into batches at the number of records and at their bytes", () => {
    const many = toBatch(Array.from({ length: 2_500 }, () => sample(1)))
    const large = toBatch(Array.from({ length: 5 }, () => sample(PACKED_BYTES_MAX / 3)))
    const chained = new ChainedEvents()
    let head: Head | undefined
    for (const batch of [many, many, many, many, many, large]) {
      chained.begin("alk", "acme", head, NOW)
      for (let at = 0; at < batch.count; at++) chained.append(batch, at)
      head = chained.runHead
      chained.keep()
    }
    const packed = chained.packed(0)
    assert.deepStrictEqual(
      packed.map(({ count }) => count),
      [PACKED_RECORDS_MAX, 2_502, 2, 1]
    )
    for (const { records } of packed) assert.isAtMost(records.length, PACKED_BYTES_MAX)
    let sequenceNumber = 0
    for (const part of packed) {
      for (const [at, { headers, offsetDelta }] of readPacked(part).entries()) {
        assert.strictEqual(offsetDelta, at)
        assert.strictEqual(headers["ce_id"], String(++sequenceNumber))
      }
    }
    assert.strictEqual(sequenceNumber, 12_505)
  })

  it("are not written for a tenant that can't be one", () => {
    const chained = new ChainedEvents()
    for (const tenantId of ["é", "P".repeat(64), "", 'a"', "a".repeat(64)]) {
      assert.throws(() => chained.begin("alk", tenantId, undefined, NOW), /tenant id/)
    }
    assert.isEmpty(chained.packed(0))
  })

  it("are dropped with the batches that they have begun", () => {
    const chained = new ChainedEvents()
    const few = toBatch([sample(1)])
    const many = toBatch(Array.from({ length: PACKED_RECORDS_MAX + 7 }, () => sample(1)))
    chained.begin("alk", "acme", undefined, NOW)
    chained.append(few, 0)
    const head = chained.runHead
    chained.keep()
    chained.begin("alk", "acme", head, NOW)
    for (let at = 0; at < many.count; at++) chained.append(many, at)
    const [only, ...others] = chained.packed(0)
    assert.isEmpty(others)
    assert.strictEqual(readPacked(only!).length, 1)
    assert.strictEqual(chained.count, 1)
  })

  it("have one batch for themselves if one is larger than a batch may be", () => {
    const chained = new ChainedEvents()
    const batch = toBatch([sample(1), sample(PACKED_BYTES_MAX), sample(1)])
    chained.begin("alk", "acme", undefined, NOW)
    for (let at = 0; at < batch.count; at++) chained.append(batch, at)
    chained.keep()
    assert.deepStrictEqual(
      chained.packed(0).map(({ count }) => count),
      [1, 1, 1]
    )
  })
})
