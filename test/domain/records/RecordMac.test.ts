/** MACs of internal records: what they cover, and that they are HMAC-SHA256 (RFC 2104) of it. */
import { createHmac, hkdfSync } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { MAC_HEADER } from "../../../src/domain/records/RecordHeaders.ts"
import { type MacInput, RecordMac } from "../../../src/domain/records/RecordMac.ts"

const SECRET = "a secret of the tests"
const mac = new RecordMac(SECRET)

/** The definition once more, part by part. */
const expected = (secret: string, record: MacInput): string => {
  const { headers, key, offset, partition, topic, value } = record
  const number = (count: number) => {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32BE(count)
    return bytes
  }
  const framed = (part: string | Buffer | null | undefined) => {
    if (part === null || part === undefined) return number(0xffff_ffff)
    const bytes = Buffer.from(part as string)
    return Buffer.concat([number(bytes.length), bytes])
  }
  const names = Object.keys(headers).filter((name) => name !== MAC_HEADER)
  const place = offset === undefined ? null : String(offset)
  const parts = [
    ...["alk-record-mac-v2", topic, place, key],
    ...names.flatMap((name) => [name, headers[name]])
  ]
  const hmac = createHmac(
    "sha256",
    Buffer.from(hkdfSync("sha256", secret, "", "alk-record-mac-key-v1", 32))
  )
  hmac.update(number(partition)).update(number(parts.length))
  for (const part of [...parts, value]) hmac.update(framed(part))
  return hmac.digest("hex")
}

const part = fc.oneof(fc.constant(null), fc.string({ unit: "binary", maxLength: 12 }))
const header = fc.string({ unit: "binary", maxLength: 6 })
const input: fc.Arbitrary<MacInput> = fc.record({
  topic: fc.constantFrom("alk.state", "alk.stat", "alk.registry"),
  partition: fc.nat(3),
  offset: fc.option(fc.nat(11), { nil: undefined }),
  key: part,
  value: part,
  headers: fc.record(
    { "alk-format": header, "alk-receipt": header, "alk-tenant": header, "alk-writer": header },
    { requiredKeys: [] }
  ) as fc.Arbitrary<Record<string, string>>
})

describe("the MAC of a record", () => {
  it("is the HMAC of its parts with their lengths", () => {
    fc.assert(
      fc.property(input, fc.string({ maxLength: 20 }), (record, secret) => {
        assert.strictEqual(new RecordMac(secret).of(record), expected(secret, record))
      })
    )
    for (const length of [16_383, 16_384, 16_385, 1_000_000]) {
      const value = "é".repeat(length / 2)
      const record = { topic: "alk.commands", partition: 1, key: "k", value, headers: {} }
      assert.strictEqual(mac.of(record), expected(SECRET, record))
      const bytes = Buffer.from(record.value)
      assert.strictEqual(mac.of({ ...record, value: bytes }), expected(SECRET, record))
    }
  })

  it("differs for records that differ in what a reader goes by", () => {
    fc.assert(
      fc.property(input, input, (one, other) => {
        const isSame = JSON.stringify(normal(one)) === JSON.stringify(normal(other))
        assert.strictEqual(mac.of(one) === mac.of(other), isSame)
      })
    )
  })

  it("is the same for text and its bytes, and covers each header but its own", () => {
    fc.assert(
      fc.property(input, (record) => {
        const bytes = (value: string | Buffer | null) =>
          value === null ? null : Buffer.from(value as string)
        const headers = Object.fromEntries(
          Object.entries(record.headers).map(([name, value]) => [name, bytes(value)!])
        )
        const read = { ...record, key: bytes(record.key), value: bytes(record.value) }
        const own = { ...headers, [MAC_HEADER]: "of before" }
        assert.strictEqual(mac.of({ ...read, headers: own }), mac.of(record))
        assert.notStrictEqual(
          mac.of({ ...read, headers: { ...headers, other: "x" } }),
          mac.of(record)
        )
      })
    )
  })

  it("is missed, refused with one digit changed, and refused under another secret", () => {
    fc.assert(
      fc.property(input, fc.nat(63), (record, at) => {
        assert.strictEqual(mac.refusal(record), "it has no MAC of this service")
        const code = mac.of(record)
        const withCode = (given: string) => ({
          ...record,
          headers: { ...record.headers, [MAC_HEADER]: Buffer.from(given) }
        })
        assert.isUndefined(mac.refusal(withCode(code)))
        const changed = code.slice(0, at) + (code[at] === "0" ? "1" : "0") + code.slice(at + 1)
        for (const wrong of [changed, "", code.slice(1), `${code}0`, code.toUpperCase() + " "]) {
          assert.strictEqual(mac.refusal(withCode(wrong)), "its MAC is not that of this service")
        }
        assert.isDefined(new RecordMac("another secret").refusal(withCode(code)))
      })
    )
  })
})

const normal = ({ headers, key, offset, partition, topic, value }: MacInput) => [
  topic,
  partition,
  offset ?? null,
  key,
  value,
  Object.entries(headers)
]
