/** What the data folder takes: all files below it, also while they come and go. */
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { folderSize, measureSpace } from "../../../src/adapters/embedded/FolderSpace.ts"
import { temporaryFolder } from "./fixtures.ts"

const KIB = 1_024

const write = (path: string, kib: number): void => writeFileSync(path, Buffer.alloc(kib * KIB, 1))

describe("folderSize", () => {
  it("counts the files of all folders below, and no file twice", async () => {
    const folder = temporaryFolder()
    const below = join(folder, "a", "b")
    mkdirSync(below, { recursive: true })
    const before = await folderSize(folder)
    write(join(folder, "one"), 64)
    write(join(below, "two"), 128)
    symlinkSync(join(folder, "one"), join(below, "link"))
    const grown = (await folderSize(folder)) - before
    assert.isAtLeast(grown, 192 * KIB)
    assert.isBelow(grown, 192 * KIB + 64 * KIB)
    rmSync(join(folder, "a"), { recursive: true })
    assert.isBelow(await folderSize(folder), before + 128 * KIB)
  })

  it("is 0 where there is nothing", async () => {
    assert.strictEqual(await folderSize(join(temporaryFolder(), "gone")), 0)
  })
})

describe("measureSpace", () => {
  it.effect("shows the folder, what is free, and the disk", () =>
    Effect.gen(function* () {
      const folder = temporaryFolder()
      write(join(folder, "one"), 64)
      yield* measureSpace(folder)
      const text = yield* PrometheusMetrics.format()
      const shown = (name: string): number =>
        Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1])
      assert.isAtLeast(shown("alk_data_folder_bytes"), 64 * KIB)
      assert.isAbove(shown("alk_data_free_bytes"), 0)
      assert.isAbove(shown("alk_data_disk_bytes"), shown("alk_data_free_bytes"))
    })
  )
})
