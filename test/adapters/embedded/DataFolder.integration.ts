import { once } from "node:events"
import * as fs from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { DataFolder } from "../../../src/adapters/embedded/DataFolder.ts"
import { hold, temporaryFolder } from "./fixtures.ts"

describe("DataFolder", () => {
  it.live("is made with all folders above it, for its owner only", () =>
    Effect.gen(function* () {
      const path = join(temporaryFolder(), "ä b", "data")
      const folder = yield* DataFolder.open(path)
      assert.strictEqual(folder.path, fs.realpathSync(path))
      assert.strictEqual(fs.statSync(path).mode & 0o777, 0o700)
      assert.isTrue(fs.statSync(folder.kafka).isDirectory())
      assert.isTrue(fs.statSync(folder.clickhouse).isDirectory())
    })
  )

  it.live("keeps the secret that the first use made, readable by its owner only", () =>
    Effect.gen(function* () {
      const path = temporaryFolder()
      const secretOf = Effect.scoped(
        Effect.flatMap(DataFolder.open(path), ({ secret }) => Effect.map(secret, Redacted.value))
      )
      const first = yield* secretOf
      assert.match(first, /^[0-9a-f]{64}$/)
      assert.strictEqual(yield* secretOf, first)
      assert.strictEqual(fs.statSync(join(path, "secret")).mode & 0o777, 0o600)
      assert.deepStrictEqual(
        fs.readdirSync(path).filter((name) => name.endsWith(".partial")),
        []
      )
    })
  )

  it.live("is refused while it holds a part of a backup only", () =>
    Effect.gen(function* () {
      const path = temporaryFolder()
      fs.writeFileSync(join(path, "restoring"), "")
      const { message } = yield* Effect.flip(DataFolder.open(path))
      assert.include(message, "holds a part of a backup, whose restore did not end")
    })
  )

  it.live("does not make a secret that nobody asks for", () =>
    Effect.gen(function* () {
      const path = temporaryFolder()
      yield* DataFolder.open(path)
      assert.deepStrictEqual(fs.readdirSync(path).sort(), [
        "clickhouse",
        "kafka",
        "lock",
        "owner.json"
      ])
    })
  )

  it.live("refuses a damaged secret instead of replacing it", () =>
    Effect.gen(function* () {
      const path = temporaryFolder()
      fs.writeFileSync(join(path, "secret"), "")
      const { secret } = yield* DataFolder.open(path)
      const { message } = yield* Effect.flip(secret)
      assert.include(message, join(path, "secret"))
      assert.include(message, "ALK_SECRET")
      assert.strictEqual(fs.readFileSync(join(path, "secret"), "utf8"), "")
    })
  )

  it.live("is refused while another process owns it, and free once that one was killed", () =>
    Effect.gen(function* () {
      const path = temporaryFolder()
      const owner = yield* Effect.promise(() => hold("holdDataFolder.ts", [path]))
      const refused = yield* Effect.flip(Effect.scoped(DataFolder.open(path)))
      assert.strictEqual(refused._tag, "DataFolderInUse")
      assert.include(refused.message, path)
      assert.include(refused.message, `process id ${owner.pid}`)
      assert.notInclude(refused.message, "\n")
      owner.child.kill("SIGKILL")
      yield* Effect.promise(() => once(owner.child, "exit"))
      yield* DataFolder.open(path)
      assert.strictEqual(
        JSON.parse(fs.readFileSync(join(path, "owner.json"), "utf8")).pid,
        process.pid
      )
    })
  )

  it.live("is refused twice in one process, and the refusal does not free it", () =>
    Effect.gen(function* () {
      const path = temporaryFolder()
      yield* DataFolder.open(path)
      for (const _ of [1, 2]) {
        const refused = yield* Effect.flip(Effect.scoped(DataFolder.open(path)))
        assert.strictEqual(refused._tag, "DataFolderInUse")
      }
      const other = yield* Effect.promise(() => hold("holdDataFolder.ts", [path]))
      assert.include(other.line, "DataFolderInUse")
    })
  )

  it.live("is free again when its scope has closed", () =>
    Effect.gen(function* () {
      const path = temporaryFolder()
      yield* Effect.scoped(DataFolder.open(path))
      yield* Effect.scoped(DataFolder.open(path))
    })
  )

  it.live("says in one line that a file stands in its way", () =>
    Effect.gen(function* () {
      const path = join(temporaryFolder(), "file")
      fs.writeFileSync(path, "")
      const { _tag, message } = yield* Effect.flip(DataFolder.open(path))
      assert.strictEqual(_tag, "DataFolderUnusable")
      assert.include(message, `${path} is not a folder`)
      const below = yield* Effect.flip(DataFolder.open(join(path, "data")))
      assert.include(below.message, "is not a folder")
      assert.notInclude(below.message, "\n")
    })
  )
})
