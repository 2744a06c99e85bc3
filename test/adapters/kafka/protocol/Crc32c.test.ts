/** CRC-32C against published check values and against kafkajs's implementation. */
import { createRequire } from "node:module"
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { crc32c } from "../../../../src/adapters/kafka/protocol/Crc32c.ts"

const kafkajsCrc32c = createRequire(import.meta.url)("kafkajs/src/protocol/recordBatch/crc32C") as (
  bytes: Buffer
) => number

const ascending = Buffer.from(Array.from({ length: 32 }, (_, index) => index))

/** RFC 3720, appendix B.4, and the check value of the catalogue of parametrised CRC algorithms. */
const vectors: ReadonlyArray<readonly [string, Buffer, number]> = [
  ["nothing", Buffer.alloc(0), 0],
  ["the digits 1 to 9", Buffer.from("123456789"), 0xe3069283],
  ["32 bytes of zeroes", Buffer.alloc(32), 0x8a9136aa],
  ["32 bytes of ones", Buffer.alloc(32, 0xff), 0x62a8ab43],
  ["32 bytes that increment", ascending, 0x46dd794e],
  ["32 bytes that decrement", Buffer.from(ascending).reverse(), 0x113fdb5c]
]

describe("crc32c", () => {
  it.each(vectors)("of %s", (_, bytes, checksum) => {
    assert.strictEqual(crc32c(bytes), checksum)
  })

  it("is that of kafkajs for any part of any buffer", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 400 }),
        fc.nat({ max: 40 }),
        fc.nat({ max: 40 }),
        (bytes, before, after) => {
          const start = Math.min(before, bytes.length)
          const end = Math.max(start, bytes.length - after)
          const wanted = kafkajsCrc32c(Buffer.from(bytes.slice(start, end))) >>> 0
          assert.strictEqual(crc32c(bytes, start, end), wanted)
        }
      )
    )
  })
})
