import { randomBytes } from "node:crypto"
import zlib from "node:zlib"
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { CODECS } from "../../../../src/adapters/kafka/protocol/BatchLayout.ts"
import { contentSizeOf, decompress } from "../../../../src/adapters/kafka/protocol/RecordCodecs.ts"

const zstdDecompress = (bytes: Buffer) => decompress(CODECS.zstd, bytes)

const streamed = (content: Buffer): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const stream = zlib.createZstdCompress()
    const pieces: Array<Buffer> = []
    stream.on("data", (piece: Buffer) => pieces.push(piece))
    stream.on("end", () => resolve(Buffer.concat(pieces)))
    stream.on("error", reject)
    stream.write(content.subarray(0, 1))
    stream.end(content.subarray(1))
  })

/** Where the header of a frame of 65,792 bytes of content and more says their number. */
const sizeAtOf = (frame: Buffer): number => ((frame[4]! & 0x20) === 0 ? 6 : 5)

/** A frame whose header claims another size of its content. */
const claiming = (frame: Buffer, size: number): Buffer => {
  const copy = Buffer.from(frame)
  copy.writeUInt32LE(size, sizeAtOf(frame))
  return copy
}

describe("zstd", () => {
  it("reads content of any size, whether its header says the size or not", async () => {
    const sizes = fc.oneof(
      fc.integer({ min: 0, max: 70_000 }),
      fc.constantFrom(255, 256, 257, 65_535, 65_536, 65_791, 65_792, 300_000, 2_000_000)
    )
    await fc.assert(
      fc.asyncProperty(sizes, fc.boolean(), async (size, isRandom) => {
        const content = isRandom ? randomBytes(size) : Buffer.alloc(size, "alk ")
        const sized = zlib.zstdCompressSync(content, { pledgedSrcSize: size })
        // Of a frame of a few bytes nobody asks.
        if (size > 16) assert.strictEqual(contentSizeOf(sized), size)
        assert.isTrue(content.equals(await zstdDecompress(sized)))
        assert.isTrue(content.equals(await zstdDecompress(await streamed(content))))
      }),
      { numRuns: 60 }
    )
  })

  it("does not know the size where the header does not say it", async () => {
    assert.isUndefined(contentSizeOf(await streamed(Buffer.alloc(300_000, "x"))))
    assert.isUndefined(contentSizeOf(Buffer.from("no zstd at all")))
    assert.isUndefined(contentSizeOf(Buffer.alloc(0)))
  })

  it("refuses a frame that is not as large as it claims", async () => {
    const content = randomBytes(100_000)
    const frame = zlib.zstdCompressSync(content, { pledgedSrcSize: content.length })
    for (const size of [7, 99_999, 100_001, 4_000_000_000]) {
      const wrong = claiming(frame, size)
      assert.strictEqual(contentSizeOf(wrong), size)
      const read = await Promise.resolve()
        .then(() => zstdDecompress(wrong))
        .catch((error: unknown) => error)
      assert.instanceOf(read, Error)
    }
  })
})
