/** What others have put into the folder of exports is neither written to nor read. */
import fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Stream } from "effect"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { layerExportFolder } from "../../../src/adapters/exports/ExportFolderFiles.ts"
import { emptyFilter } from "../../../src/domain/events/EventFilter.ts"
import { sha256Hex } from "../../../src/domain/Identifiers.ts"
import { ExportFolder } from "../../../src/ports/ExportFolder.ts"
import type { ExportJob } from "../../../src/ports/ExportJob.ts"

const time = "2026-11-21T10:00:00.000000Z"
const job: ExportJob = {
  id: "exp_01940000-0000-7000-8000-000000000000",
  tenant_id: "acme",
  kind: "csv",
  pdf: false,
  filter: emptyFilter,
  created_by: "key_1",
  created_at: time,
  status: "running",
  stage: "writing",
  alive_at: time
}

describe("links in the folder of exports", () => {
  let root: string
  /** A file of others that a link leads to. */
  let victim: string
  const own = () => join(root, "exports", sha256Hex(job.tenant_id).slice(0, 32))
  const link = (suffix: string) => fs.symlinkSync(victim, join(own(), `${job.id}${suffix}`))
  const using = <A, E>(work: (folder: ExportFolder["Service"]) => Effect.Effect<A, E>) =>
    Effect.runPromise(
      ExportFolder.use(work).pipe(
        Effect.provide(layerExportFolder({ path: join(root, "exports"), freeBytesMin: 0 }))
      )
    )

  beforeEach(() => {
    root = fs.mkdtempSync(join(tmpdir(), "alk-exports-"))
    victim = join(root, "victim")
    fs.writeFileSync(victim, "secret", { mode: 0o640 })
    fs.mkdirSync(own(), { recursive: true })
  })
  afterEach(() => {
    // Whatever was done, this was not touched.
    assert.strictEqual(fs.readFileSync(victim, "utf8"), "secret")
    fs.rmSync(root, { recursive: true, force: true })
  })

  it("are replaced by what is written in their place", async () => {
    for (const suffix of [".json", ".data", ".data.partial", ".stop"]) link(suffix)
    const content = Stream.make(Buffer.from("a,b\n"))
    const options = { bytesMax: 100, onBytes: () => Effect.void }
    await using((folder) => folder.save(job))
    await using((folder) => folder.stop(job))
    const written = await using((folder) => folder.write(job, content, options))
    assert.strictEqual(written.bytes, 4)
    for (const name of fs.readdirSync(own())) {
      const found = fs.lstatSync(join(own(), name))
      assert.isTrue(found.isFile(), name)
      assert.strictEqual(found.mode & 0o777, 0o600, name)
    }
    assert.deepStrictEqual(await using((folder) => folder.job(job)), { job, isStopped: true })
    const read = await using((folder) =>
      Effect.flatMap(folder.read(job), (file) => Stream.runCollect(file!.content))
    )
    assert.strictEqual(Buffer.concat(read).toString(), "a,b\n")
  })

  it("are not read", async () => {
    link(".data")
    assert.isUndefined(await using((folder) => folder.read(job)))
    link(".json")
    const failed = await using((folder) => Effect.flip(folder.job(job)))
    assert.strictEqual(failed.reason, "unusable")
  })

  it("in place of the folder of a tenant are refused, by name", async () => {
    fs.rmdirSync(own())
    fs.symlinkSync(root, own())
    const failed = await using((folder) => Effect.flip(folder.save(job)))
    assert.include(failed.message, `${own()} is a link`)
    assert.deepStrictEqual(fs.readdirSync(root).sort(), ["exports", "victim"])
  })
})
