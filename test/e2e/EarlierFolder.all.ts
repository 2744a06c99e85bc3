/** A data folder that a version before the first release has left is refused in one clear line. */
import { spawnSync } from "node:child_process"
import { mkdirSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { zstdDecompressSync } from "node:zlib"
import { assert, it } from "vitest"
import { freshFolder, start, testKey } from "../support/Program.ts"

const BYTES_MAX = 1_073_741_824
const PACKED = join(import.meta.dirname, "fixture/earlier-data.tar.zst")

it("is refused, and says what to do", async () => {
  const folder = freshFolder("earlier")
  mkdirSync(folder, { recursive: true })
  const input = zstdDecompressSync(readFileSync(PACKED))
  const tar = spawnSync("tar", ["-C", folder, "-xf", "-"], { input, maxBuffer: BYTES_MAX })
  assert.strictEqual(tar.status, 0, String(tar.stderr))
  try {
    const outcome = await start({
      ALK_PARTITIONS: "2",
      ALK_DATA_DIR: folder,
      ALK_BOOTSTRAP_KEYS: `${testKey("acme")}=acme:read+write`
    }).catch((error: Error) => error)
    assert.instanceOf(outcome, Error, "it has started")
    const { message } = outcome as Error
    assert.include(message, "before the first release, which this one does not read")
    assert.include(message, "start with a new data folder")
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
