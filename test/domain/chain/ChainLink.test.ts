import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { linkOf } from "../../../src/domain/chain/ChainLink.ts"

const hash = fc
  .array(fc.constantFrom(..."0123456789abcdef"), { minLength: 64, maxLength: 64 })
  .map((digits) => digits.join(""))
const tenant = fc.oneof(
  fc.constantFrom("acme", "a b", "", ',"tenant_id":"x', "büro", '"', "\\", "x".repeat(700)),
  fc.string({ unit: "binary" })
)
const link = fc.record({
  tenantId: tenant,
  sequenceNumber: fc.oneof(fc.nat(), fc.constantFrom(0, 999_999_999_999_999, 2 ** 53 - 1)),
  createdAt: fc.constantFrom("2026-11-21T10:00:00.123456Z", "yesterday", ""),
  prevHash: hash,
  contentHash: hash,
  hash
})
const ends = fc.record({
  link,
  salt: fc.boolean(),
  erased: fc.boolean(),
  chain: fc.constantFrom("events" as const, "traces" as const),
  before: fc.constantFrom("", '{"metadata":{"n":1}', '{"metadata":"a,\\"tenant_id\\":\\"x\\""')
})

const bytesOf = ({
  before,
  chain,
  erased,
  link: own,
  salt
}: typeof ends extends fc.Arbitrary<infer A> ? A : never) =>
  Buffer.from(
    `${before},"tenant_id":${JSON.stringify(own.tenantId)}`
      + `,"${chain === "events" ? "sequence_number" : "chain_sequence"}":${own.sequenceNumber}`
      + `,"created_at":"${own.createdAt}","prev_hash":"${own.prevHash}"`
      + (salt ? `,"details_salt":"${"0a".repeat(16)}","details_hash":"${own.hash}"` : "")
      + `,"content_hash":"${own.contentHash}","hash":"${own.hash}"`
      + (erased ? ',"erased_at":"2026-11-21T10:00:00.123456Z"}' : "}")
  )

describe("the link of a record", () => {
  it("is read from any end that a sequencer writes", () => {
    fc.assert(
      fc.property(ends, (end) => {
        assert.deepStrictEqual(linkOf(bytesOf(end), end.chain), {
          ...end.link,
          // What UTF-8 can't say is replaced on the way.
          tenantId: Buffer.from(end.link.tenantId).toString()
        })
      }),
      { numRuns: 2_000 }
    )
  })

  it("is none of the other chain", () => {
    fc.assert(
      fc.property(ends, (end) => {
        const other = end.chain === "events" ? "traces" : "events"
        assert.isUndefined(linkOf(bytesOf(end), other))
      })
    )
  })

  it("is none of bytes that end otherwise, and never half of one", () => {
    fc.assert(
      fc.property(ends, fc.nat(), fc.nat(255), (end, at, byte) => {
        const bytes = bytesOf({ ...end, link: { ...end.link, tenantId: "acme" } })
        const cut = bytes.subarray(0, at % bytes.length)
        assert.isUndefined(linkOf(cut, end.chain))
        const changed = Buffer.from(bytes)
        changed[at % bytes.length] = byte
        const found = linkOf(changed, end.chain)
        const whole = Buffer.concat([changed.subarray(0, -1), Buffer.from(',"more":1}')])
        // With a member more no pattern fits: the JSON says what the link is.
        assert.deepStrictEqual(
          found,
          changed.at(-1) === 0x7d ? linkOf(whole, end.chain) : undefined
        )
      }),
      { numRuns: 2_000 }
    )
  })
})
