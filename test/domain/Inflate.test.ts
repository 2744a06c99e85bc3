/**
 * Compressed input as people join, cut and pad it: all of what was sent comes out, or nothing does. The
 * frames of zstd that are skipped are those of pzstd and of appended files.
 */
import {
  brotliCompressSync,
  constants,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync
} from "node:zlib"
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import {
  type Coding,
  InflateFailed,
  inflate,
  inflatePieces,
  inflateSync
} from "../../src/domain/Inflate.ts"
import { runs } from "../support/Runs.ts"

const LIMIT = 1_048_576

const compress = {
  gzip: (content: Buffer) => gzipSync(content, { level: 1 }),
  zstd: (content: Buffer) => zstdCompressSync(content),
  br: (content: Buffer) =>
    brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
  zlib: (content: Buffer) => deflateSync(content),
  deflate: (content: Buffer) => deflateSync(content),
  "raw deflate": (content: Buffer) => deflateRawSync(content)
}

const encodings = Object.keys(compress) as ReadonlyArray<keyof typeof compress>

const SKIPPABLE = Buffer.from("502a4d18030000000a0b0c", "hex")

/** The content, or the reason that there is none; from each of the three ways to ask for it. */
const outcomes = async (coding: Coding, bytes: Buffer, limit = LIMIT) => {
  const reasonOf = (error: unknown): string => {
    assert.instanceOf(error, InflateFailed)
    return error.reason
  }
  let atOnce: string
  try {
    atOnce = inflateSync(coding, bytes, limit).toString()
  } catch (error) {
    atOnce = reasonOf(error)
  }
  const pooled = inflate(coding, bytes, limit).then((all) => all.toString(), reasonOf)
  const inPieces = new Promise<string>((resolve) => {
    let content = ""
    let size = 0
    const stop = inflatePieces(
      coding,
      bytes,
      (piece) => {
        content += piece
        size += piece.length
        if (size <= limit) return
        stop()
        resolve("too_large")
      },
      (failed) => resolve(failed?.reason ?? content)
    )
  })
  return [atOnce, await pooled, await inPieces]
}

const same = async (coding: Coding, bytes: Buffer, expected: string, limit = LIMIT) => {
  for (const outcome of await outcomes(coding, bytes, limit)) {
    assert.strictEqual(outcome, expected)
  }
}

/** Lines as records are, few or as many as fill several pieces of output. */
const content = fc
  .tuple(fc.integer({ min: 1, max: 9 }), fc.constantFrom(1, 10, 3_000))
  .map(([digit, lines]) => `{"a":${digit}}\n`.repeat(lines))

const parts = fc.array(content, { minLength: 1, maxLength: 4 })

describe.each(encodings)("%s", (encoding) => {
  const coding: Coding = encoding === "raw deflate" ? "deflate" : encoding
  const framesOf = (contents: ReadonlyArray<string>) =>
    contents.map((text) => compress[encoding](Buffer.from(text)))

  it("gives all frames, or refuses them", async () => {
    await fc.assert(
      fc.asyncProperty(parts, async (contents) => {
        const isOne = contents.length === 1 || coding !== "br"
        const expected = isOne ? contents.join("") : "invalid"
        await same(coding, Buffer.concat(framesOf(contents)), expected)
      }),
      { numRuns: runs(100) }
    )
  })

  it("refuses what is cut anywhere but between two frames", async () => {
    await fc.assert(
      fc.asyncProperty(parts, fc.nat(), async (contents, place) => {
        const frames = coding === "br" ? framesOf(contents).slice(0, 1) : framesOf(contents)
        const all = Buffer.concat(frames)
        const cut = place % all.length
        let end = 0
        const count = frames.findIndex((frame) => {
          if (end >= cut) return true
          end += frame.length
          return false
        })
        const isBetween = cut > 0 && end === cut
        const whole = contents.slice(0, count === -1 ? contents.length : count).join("")
        await same(coding, all.subarray(0, cut), isBetween ? whole : "invalid")
      }),
      { numRuns: runs(300) }
    )
  })

  it("refuses what follows that is none of its frames", async () => {
    const tail = fc.uint8Array({ minLength: 1, maxLength: 40 })
    await fc.assert(
      fc.asyncProperty(parts, tail, async (contents, junk) => {
        const frames = coding === "br" ? framesOf(contents).slice(0, 1) : framesOf(contents)
        const all = Buffer.concat([...frames, junk])
        const isPadding = coding === "gzip" && junk.every((byte) => byte === 0)
        if (encoding !== "raw deflate") {
          return same(coding, all, isPadding ? contents.join("") : "invalid")
        }
        // It has no mark and no sum: some bytes are one more stream of it, which only adds.
        const [outcome] = await outcomes(coding, all)
        if (outcome !== "invalid") assert.isTrue(outcome!.startsWith(contents.join("")))
        await same(coding, all, outcome!)
      }),
      { numRuns: runs(300) }
    )
  })

  it("takes no member behind padding for padding", async () => {
    const frame = compress[encoding](Buffer.from("{}\n"))
    await same(coding, Buffer.concat([frame, Buffer.alloc(20), frame]), "invalid")
  })

  it.each([1, 3])("stops at the limit, in whichever of %i frames it is", async (count) => {
    const frames = coding === "br" ? 1 : count
    const frame = compress[encoding](Buffer.alloc(LIMIT / frames))
    const all = Buffer.concat(Array.from({ length: frames }, () => frame))
    const size = frames * Math.floor(LIMIT / frames)
    await same(coding, all, "too_large", size - 1)
    await same(coding, all, "\0".repeat(size), size)
  })
})

describe("zstd", () => {
  it("passes over frames that say nothing", async () => {
    const [first, second] = ["one\n", "two\n"].map((text) => compress.zstd(Buffer.from(text)))
    const all = [SKIPPABLE, first!, SKIPPABLE, second!, SKIPPABLE]
    await same("zstd", Buffer.concat(all), "one\ntwo\n")
    await same("zstd", Buffer.concat(all).subarray(0, -1), "invalid")
  })
})

it.each(["zstd", "zlib", "deflate"] as const)("reads so many frames of %s", async (coding) => {
  const frame = compress[coding](Buffer.alloc(0))
  await same(coding, Buffer.concat(Array.from({ length: 256 }, () => frame)), "")
  await same(coding, Buffer.concat(Array.from({ length: 257 }, () => frame)), "invalid")
})

it("takes zlib by its own name for nothing else", async () => {
  await same("zlib", compress["raw deflate"](Buffer.from("{}")), "invalid")
})
