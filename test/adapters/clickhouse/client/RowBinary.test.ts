import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { RowBinary, readRows } from "../../../../src/adapters/clickhouse/client/RowBinary.ts"
import { finish } from "../../../../src/domain/Slices.ts"

const lengthOf = (length: number): ReadonlyArray<number> =>
  length < 128 ? [length] : [(length % 128) + 128, ...lengthOf(Math.floor(length / 128))]

const uint64 = (value: number) => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt(value))
  return bytes
}

describe("RowBinary", () => {
  it("reads numbers and bytes of any length", () => {
    const row = fc.tuple(fc.maxSafeNat(), fc.uint8Array({ maxLength: 20_000 }))
    fc.assert(
      fc.property(fc.array(row, { maxLength: 5 }), (rows) => {
        const bytes = Buffer.concat(
          rows.flatMap(([number, body]) => [
            uint64(number),
            Buffer.from(lengthOf(body.length)),
            body
          ])
        )
        const read = finish(readRows(bytes, (reader) => [reader.uint64(), reader.bytes()] as const))
        const expected = rows.map(([number, body]) => [number, Buffer.from(body)] as const)
        assert.deepStrictEqual(read, expected)
      })
    )
  })

  it("reads lists", () => {
    const reader = new RowBinary(Buffer.from([2, 1, 97, 0, 7]))
    assert.deepStrictEqual(
      reader.list(() => reader.string()),
      ["a", ""]
    )
    assert.strictEqual(reader.uint8(), 7)
    assert.isTrue(reader.done)
  })

  it("doesn't take half a row for a whole one", () => {
    assert.throws(() => new RowBinary(Buffer.from([5, 1, 2])).bytes(), RangeError)
    assert.throws(() => new RowBinary(Buffer.from([5, 1, 2])).uint64(), RangeError)
  })
})
