import * as fs from "node:fs"
import { delimiter, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { afterEach, vi } from "vitest"
import { kafkaJars } from "../../../../src/adapters/embedded/broker/KafkaJars.ts"
import { identityOf } from "../../../../src/adapters/embedded/ProcessIdentity.ts"
import { eventually } from "../../../support/Eventually.ts"
import { temporaryFolder } from "../fixtures.ts"

const quiet = () => undefined

/** Puts a program of that name before all others on the PATH. */
const onPath = (name: string, script: string): string => {
  const folder = temporaryFolder()
  fs.writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  vi.stubEnv("PATH", `${folder}${delimiter}${process.env["PATH"]}`)
  return folder
}

/** A Maven that delivers three tiny jars and keeps count of its runs. */
const fakeMaven = () => {
  const folder = onPath(
    "mvn",
    `for argument; do
       case "$argument" in -DoutputDirectory=*) out=\${argument#*=} ;; esac
     done
     echo run >> "\${0%/*}/runs"
     echo "[INFO] Downloaded from there: a/b.jar (9.9 MB at 1.0 MB/s)"
     for jar in a b kafka_2.13-4.3.1; do echo "content of $jar" > "$out/$jar.jar"; done`
  )
  const runs = join(folder, "runs")
  return () => (fs.existsSync(runs) ? fs.readFileSync(runs, "utf8").split("\n").length - 1 : 0)
}

const withoutMaven = () => vi.stubEnv("PATH", temporaryFolder())

const processIdIn = (file: string) => Number(fs.readFileSync(file, "utf8"))

describe("kafkaJars", () => {
  afterEach(() => {
    vi.unstubAllEnvs()
  })

  it.live("fetches once, says what it does, and needs no Maven afterwards", () =>
    Effect.gen(function* () {
      const cache = join(temporaryFolder(), "not", "there")
      const runs = fakeMaven()
      const lines: Array<string> = []
      const folder = yield* kafkaJars(cache, (line) => lines.push(line))
      assert.deepStrictEqual(fs.readdirSync(folder).sort(), [
        "a.jar",
        "b.jar",
        "kafka_2.13-4.3.1.jar",
        "manifest.json",
        "pom.xml"
      ])
      assert.deepStrictEqual(fs.readdirSync(cache), ["kafka-4.3.1"])
      assert.strictEqual(runs(), 1)
      assert.match(lines.join("\n"), /fetching 43 MB[^]*1 files fetched, 9.9 MB[^]*3 jars/)
      withoutMaven()
      assert.strictEqual(yield* kafkaJars(cache, quiet), folder)
    })
  )

  const damages: ReadonlyArray<readonly [string, (folder: string) => void]> = [
    ["a truncated jar", (folder) => fs.truncateSync(join(folder, "b.jar"), 3)],
    ["a missing jar", (folder) => fs.rmSync(join(folder, "a.jar"))],
    ["a foreign jar", (folder) => fs.writeFileSync(join(folder, "z.jar"), "x")],
    ["no manifest", (folder) => fs.rmSync(join(folder, "manifest.json"))],
    ["half a manifest", (folder) => fs.truncateSync(join(folder, "manifest.json"), 20)]
  ]
  it.live.each(damages)("repairs a cache with %s", ([, damage]) =>
    Effect.gen(function* () {
      const cache = temporaryFolder()
      const runs = fakeMaven()
      const folder = yield* kafkaJars(cache, quiet)
      damage(folder)
      assert.strictEqual(yield* kafkaJars(cache, quiet), folder)
      assert.strictEqual(runs(), 2)
      assert.strictEqual(fs.readFileSync(join(folder, "b.jar"), "utf8"), "content of b\n")
      assert.isFalse(fs.existsSync(join(folder, "z.jar")))
      assert.deepStrictEqual(fs.readdirSync(cache), ["kafka-4.3.1"])
    })
  )

  it.live("survives several first starts at once", () =>
    Effect.gen(function* () {
      const cache = temporaryFolder()
      fakeMaven()
      const starts = Array.from({ length: 6 }, () => kafkaJars(cache, quiet))
      const folders = yield* Effect.all(starts, { concurrency: "unbounded" })
      assert.deepStrictEqual([...new Set(folders)], [join(cache, "kafka-4.3.1")])
      assert.deepStrictEqual(fs.readdirSync(cache), ["kafka-4.3.1"])
      withoutMaven()
      yield* kafkaJars(cache, quiet)
    })
  )

  it.live("leaves nothing behind when it is stopped", () =>
    Effect.gen(function* () {
      const cache = temporaryFolder()
      const maven = join(onPath("mvn", 'echo $$ > "${0%/*}/pid"; exec sleep 600'), "pid")
      const fiber = yield* Effect.forkChild(kafkaJars(cache, quiet))
      yield* eventually(
        "Maven runs, and has said who it is",
        Effect.sync(() => (fs.existsSync(maven) ? fs.readFileSync(maven, "utf8") : "")),
        (text) => text.endsWith("\n")
      )
      yield* Fiber.interrupt(fiber)
      assert.isUndefined(identityOf(processIdIn(maven)))
      assert.deepStrictEqual(fs.readdirSync(cache), [])
    })
  )

  it.live("says in one line that Maven is missing, or what it said", () =>
    Effect.gen(function* () {
      const cache = temporaryFolder()
      withoutMaven()
      const missing = yield* Effect.flip(kafkaJars(cache, quiet))
      assert.strictEqual(missing._tag, "MavenMissing")
      assert.include(missing.message, "install Maven")
      onPath("mvn", "echo '[ERROR] Could not transfer artifact x: unknown host'; exit 1")
      const failed = yield* Effect.flip(kafkaJars(cache, quiet))
      assert.strictEqual(failed._tag, "KafkaJarsUnavailable")
      assert.include(failed.message, "Could not transfer artifact x: unknown host")
      onPath("mvn", "exit 0")
      const empty = yield* Effect.flip(kafkaJars(cache, quiet))
      assert.strictEqual(empty._tag, "KafkaJarsUnavailable")
      for (const { message } of [missing, failed, empty]) assert.notInclude(message, "\n")
      assert.deepStrictEqual(fs.readdirSync(cache), [])
    })
  )

  it.live("says in one line that the cache folder can't be written", () =>
    Effect.gen(function* () {
      const file = join(temporaryFolder(), "file")
      fs.writeFileSync(file, "")
      const { _tag, message } = yield* Effect.flip(kafkaJars(file, quiet))
      assert.strictEqual(_tag, "KafkaJarsUnavailable")
      assert.include(message, file)
      assert.include(message, "ALK_CACHE_DIR")
    })
  )

  it.live(
    "gets the real jars through the real Maven",
    () =>
      Effect.gen(function* () {
        const folder = yield* kafkaJars(temporaryFolder(), quiet)
        const jars = fs.readdirSync(folder).filter((name) => name.endsWith(".jar"))
        assert.include(jars, "kafka_2.13-4.3.1.jar")
        assert.include(jars, "kafka-clients-4.3.1.jar")
        assert.include(jars, "log4j-slf4j-impl-2.25.4.jar")
      }),
    300_000
  )
})
