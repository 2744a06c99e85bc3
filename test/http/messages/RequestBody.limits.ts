/** What a body that inflates to far over the limit takes of the memory. */
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from "node:zlib"
import { afterAll, assert, beforeAll, it } from "vitest"
import { settings, WRITE_KEY } from "../support/Doubles.ts"
import { TestApi } from "../support/TestApi.ts"

/** What a bomb inflates to. */
const BOMB_BYTES = 128 * 1_048_576

let api: TestApi
beforeAll(async () => {
  api = await TestApi.start()
})
afterAll(() => api.stop())

it.each([
  ["gzip", gzipSync],
  [
    "br",
    (bytes: Buffer) =>
      brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } })
  ],
  ["zstd", zstdCompressSync],
  ["deflate", deflateSync]
] as const)("a bomb takes no memory that its size decides: %s", async (coding, compress) => {
  const bomb = compress(Buffer.alloc(BOMB_BYTES, 0x20))
  assert.isBelow(bomb.length, settings.limits.bodyBytesMax)
  const before = process.memoryUsage().rss
  const answer = await api.call("/v1/events/batch?sync=true", {
    key: WRITE_KEY,
    raw: bomb,
    headers: { "content-encoding": coding, "content-type": "application/json" }
  })
  assert.strictEqual(answer.status, 413, answer.text)
  assert.isBelow(process.memoryUsage().rss - before, BOMB_BYTES / 2)
})
