/** The Chromium of npm, unpacked into an empty cache folder. */
import { readdirSync, statSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { candidatesOf } from "../../../src/adapters/chromium/FindChromium.ts"
import { npmChromium } from "../../../src/adapters/chromium/NpmChromium.ts"

describe("npmChromium", () => {
  let cacheFolder = ""
  beforeAll(async () => {
    cacheFolder = await mkdtemp(join(tmpdir(), "alk-chromium-"))
  })
  afterAll(() => rm(cacheFolder, { recursive: true, force: true }))

  it("is unpacked once, whole, though two ask for it at once", async () => {
    const [one, other] = await Promise.all([npmChromium(cacheFolder), npmChromium(cacheFolder)])
    assert.deepStrictEqual(one, other)
    const entries = readdirSync(cacheFolder)
    assert.strictEqual(entries.length, 1)
    assert.match(entries[0]!, /^chromium-\d+\.\d+\.\d+$/)
    const { mtimeMs } = statSync(one.path)
    await npmChromium(cacheFolder)
    assert.strictEqual(statSync(one.path).mtimeMs, mtimeMs)
  })

  it("comes last, and not at all when another is named", async () => {
    const names = async (path: string | undefined) =>
      (await candidatesOf({ path, cacheFolder })).map(({ name }) => name)
    assert.strictEqual((await names(undefined)).at(-1), "the one of @sparticuz/chromium")
    assert.deepStrictEqual(await names("/opt/chromium"), ["/opt/chromium"])
  })
})
