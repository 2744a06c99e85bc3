/** Events as bytes: what goes in comes out again, and bytes that are torn are refused. */
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { quote } from "../../../src/domain/json/CanonicalJson.ts"
import {
  BatchUnreadable,
  batchBytes,
  dedupKeyAt,
  EMPTY_BATCH,
  EntryAt,
  EVENT_ENTRY_BYTES,
  type EventBatch,
  EventBatchBuilder,
  eventsOf,
  fingerprintAt,
  idsOf,
  idTextAt,
  indexAt,
  mergeBatches,
  type PreparedEvent,
  readEventBatch,
  toBatch
} from "../../../src/domain/records/EventBatch.ts"

const hex = (bytes: number): fc.Arbitrary<string> =>
  fc
    .uint8Array({ minLength: bytes, maxLength: bytes })
    .map((array) => Buffer.from(array).toString("hex"))

/** Texts of one, two, three and four bytes, with what JSON escapes. */
const text = fc.string({
  unit: fc.oneof(fc.constantFrom('"', "\\", "é", "漢", "🎉", "/"), fc.string({ maxLength: 1 })),
  minLength: 1,
  maxLength: 40
})

const event: fc.Arbitrary<PreparedEvent> = fc
  .record({
    index: fc.nat(),
    id: text,
    note: text,
    contentHash: hex(32),
    details: fc.option(fc.record({ detailsSalt: hex(16), detailsHash: hex(32) })),
    named: fc.option(fc.record({ dedupKey: hex(16), fingerprint: hex(16) }))
  })
  .map(({ contentHash, details, id, index, named, note }) => ({
    index,
    id,
    body: `{"id":${quote(id)},"note":${quote(note)}`,
    contentHash,
    ...details,
    ...named
  }))

const events = fc.array(event, { maxLength: 20 })

const bytesOf = ({ bodies, entries }: EventBatch): Buffer => Buffer.concat([entries, bodies])

const sample: PreparedEvent = {
  index: 7,
  id: 'a "b" é',
  body: String.raw`{"id":"a \"b\" é","action":"a.b"`,
  contentHash: "ab".repeat(32)
}
const details = { detailsSalt: "cd".repeat(16), detailsHash: "ef".repeat(32) }
const named = { dedupKey: "12".repeat(16), fingerprint: "34".repeat(16) }

/** `reason` is a part of the message. */
const refuses = (count: number, bytes: Buffer, reason = ""): void =>
  assert.throws(() => readEventBatch(count, bytes), BatchUnreadable, reason)

describe("a batch of events", () => {
  it("gives back every event that was added, after a way through bytes", () => {
    fc.assert(
      fc.property(events, (added) => {
        const batch = toBatch(added)
        const read = readEventBatch(added.length, bytesOf(batch))
        assert.strictEqual(batchBytes(batch), bytesOf(batch).length)
        assert.deepStrictEqual(eventsOf(read), added)
        for (const [at, { dedupKey, fingerprint, id, index }] of added.entries()) {
          assert.strictEqual(idTextAt(read, at), quote(id))
          assert.strictEqual(indexAt(read, at), index)
          if (dedupKey !== undefined) assert.strictEqual(dedupKeyAt(read, at), dedupKey)
          if (fingerprint !== undefined) assert.strictEqual(fingerprintAt(read, at), fingerprint)
        }
      })
    )
  })

  it("put together of batches and of events is the batch of all of them", () => {
    fc.assert(
      fc.property(events, events, events, (first, second, third) => {
        const builder = new EventBatchBuilder()
        builder.addBatch(toBatch(first))
        for (const one of second) builder.add(one)
        builder.addBatch(toBatch(third))
        assert.strictEqual(builder.count, first.length + second.length + third.length)
        const all = toBatch([...first, ...second, ...third])
        assert.deepStrictEqual(bytesOf(builder.build()), bytesOf(all))
      })
    )
  })

  it("merged of two parts of a request is in the order of the request", () => {
    fc.assert(
      fc.property(events, fc.infiniteStream(fc.boolean()), (given, sides) => {
        const all = given.map((one, index) => ({ ...one, index }))
        const isFirst = all.map(() => sides.next().value)
        const [first, second] = [true, false].map((side) =>
          toBatch(all.filter(({ index }) => isFirst[index] === side))
        )
        const merged = mergeBatches(first!, second!)
        assert.deepStrictEqual(eventsOf(readEventBatch(all.length, bytesOf(merged))), all)
        assert.deepStrictEqual(
          idsOf(merged),
          all.map(({ id }) => id)
        )
      })
    )
  })

  it("has the layout that is documented", () => {
    const batch = toBatch([sample, { ...sample, index: 8, ...details, ...named }])
    const [first, second] = [batch.entries.subarray(0, 128), batch.entries.subarray(128)]
    const bodyBytes = Buffer.byteLength(sample.body)
    assert.strictEqual(batch.entries.length, 2 * 128)
    assert.strictEqual(batch.bodies.toString(), sample.body + sample.body)
    const numbers = (entry: Buffer) => [
      entry.readUInt32LE(0),
      entry.readUInt32LE(4),
      entry.readUInt32LE(8),
      entry.readUInt16LE(12),
      entry[14],
      entry[15]
    ]
    const idBytes = Buffer.byteLength(String.raw`a \"b\" é`)
    assert.deepStrictEqual(numbers(first), [0, bodyBytes, 7, idBytes, 0, 0])
    assert.deepStrictEqual(numbers(second), [bodyBytes, bodyBytes, 8, idBytes, 3, 0])
    const { contentHash } = sample
    assert.strictEqual(first.toString("hex", 16), "00".repeat(48) + contentHash + "00".repeat(32))
    assert.strictEqual(
      second.toString("hex", 16),
      details.detailsSalt + details.detailsHash + contentHash + named.dedupKey + named.fingerprint
    )
  })

  it("may be empty", () => {
    assert.deepStrictEqual(eventsOf(readEventBatch(0, Buffer.alloc(0))), [])
    assert.deepStrictEqual(toBatch([]), EMPTY_BATCH)
    refuses(0, Buffer.alloc(1), "bytes after the last body")
  })
})

describe("torn bytes of a batch", () => {
  it("are refused wherever they are cut, and with bytes after them", () => {
    fc.assert(
      fc.property(fc.array(event, { minLength: 1, maxLength: 4 }), fc.nat(), (added, cut) => {
        const bytes = bytesOf(toBatch(added))
        refuses(added.length, bytes.subarray(0, cut % bytes.length))
        refuses(added.length, Buffer.concat([bytes, Buffer.from("}")]))
        refuses(added.length - 1, bytes)
        refuses(added.length + 1, bytes)
      })
    )
  })

  const plain = bytesOf(toBatch([sample, sample]))
  const second = EVENT_ENTRY_BYTES
  const changes: ReadonlyArray<readonly [what: string, at: number, reason: string]> = [
    ["an offset", second + EntryAt.bodyOffset, "event 1 of the batch: its body is not after"],
    ["a length", EntryAt.bodyLength, "event 0 of the batch: its body is cut off"],
    ["the length of an id", EntryAt.idLength, "cut off"],
    ["unknown flags", EntryAt.flags, "its flags"],
    ["the byte that is zero", second + EntryAt.zero, "event 1 of the batch: its flags"],
    ["a salt without the flag of details", EntryAt.salt + 15, "details without their flag"],
    ["a hash without the flag of details", EntryAt.detailsHash + 31, "details without their flag"],
    ["a dedup key without its flag", second + EntryAt.dedupKey, "a dedup key without its flag"],
    ["a fingerprint without its flag", EntryAt.fingerprint + 15, "a dedup key without its flag"],
    ["the start of a body", 2 * EVENT_ENTRY_BYTES + 1, "does not begin with its id"],
    ["the colon of a body", 2 * EVENT_ENTRY_BYTES + 5, "does not begin with its id"]
  ]
  for (const [what, at, reason] of changes) {
    it(`are refused with another byte in ${what}`, () => {
      const bytes = Buffer.from(plain)
      bytes[at] = bytes[at]! ^ 0x84
      refuses(2, bytes, reason)
    })
  }

  it("are refused where a body is not UTF-8", () => {
    const bytes = Buffer.from(plain)
    bytes[bytes.indexOf("é")] = 0x41
    refuses(2, bytes, "not UTF-8")
  })
})

describe("a builder of batches", () => {
  const wrong: ReadonlyArray<readonly [string, PreparedEvent]> = [
    ["another id than its body", { ...sample, id: "a" }],
    ["a hash that is none", { ...sample, contentHash: "ab".repeat(31) }],
    ["a hash with other letters", { ...sample, contentHash: "xy".repeat(32) }],
    ["a salt only", { ...sample, detailsSalt: details.detailsSalt }],
    ["a hash of details only", { ...sample, detailsHash: details.detailsHash }],
    ["a dedup key only", { ...sample, dedupKey: named.dedupKey }],
    ["a fingerprint only", { ...sample, fingerprint: named.fingerprint }],
    ["an id of 70,000 bytes", { ...sample, id: "i".repeat(70_000) }]
  ]
  for (const [what, one] of wrong) {
    it(`refuses an event with ${what} and adds nothing`, () => {
      const builder = new EventBatchBuilder()
      builder.add(sample)
      assert.throws(() => builder.add(one), BatchUnreadable)
      builder.add({ ...sample, ...details })
      assert.deepStrictEqual(eventsOf(builder.build()), [sample, { ...sample, ...details }])
    })
  }
})
