/**
 * Opening the embedded engine: what it must not read, and what it says where it can't start. Each
 * case is a process of its own.
 */
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import * as fs from "node:fs"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { ChdbEngine } from "../../../../src/adapters/clickhouse/client/ChdbEngine.ts"
import { ClickHouseConnection } from "../../../../src/adapters/clickhouse/client/ClickHouseConnection.ts"
import { layerClickHouse } from "../../../../src/adapters/clickhouse/EventStoreClickHouse.ts"
import { migrationsFolder } from "../../../../src/adapters/clickhouse/Migrations.ts"
import { EventStore } from "../../../../src/ports/EventStore.ts"
import { eventually } from "../../../support/Eventually.ts"
import { endless, killed, RUNNING } from "../support/Endless.ts"
import { type Said, startStore, temporaryFolder } from "../support/StoreProcesses.ts"

const inserting = fileURLToPath(new URL("../support/InsertingProcess.ts", import.meta.url))

const engineModule = fileURLToPath(
  new URL("../../../../src/adapters/clickhouse/client/ChdbEngine.ts", import.meta.url)
)

/** A process that opens the engine, asks it and runs the line; ended by force after a while. */
const runOpened = (folder: string, line: string) =>
  spawnSync(
    process.execPath,
    [
      "--input-type=module",
      "-e",
      `
    import { Effect } from ${JSON.stringify(import.meta.resolve("effect"))}
    import { ChdbEngine } from ${JSON.stringify(engineModule)}
    const asked = Effect.gen(function* () {
      const engine = yield* ChdbEngine.open(${JSON.stringify(folder)})
      yield* Effect.promise(() => engine.run({ sql: "SELECT 1" }))
      ${line}
    })
    await Effect.runPromise(Effect.scoped(asked))
  `
    ],
    { timeout: 30_000, killSignal: "SIGKILL", encoding: "utf8" }
  )

const GARBAGE = '0\x0177\x01{"garbage":1}\n77\t1\tGARBAGE\n'.repeat(1_000)

const runWithInput = async (folder: string, input: string | "closed") => {
  const child = spawn(
    "sh",
    input === "closed"
      ? ["-c", 'exec "$0" "$1" "$2" <&-', process.execPath, inserting, folder]
      : ["-c", 'exec "$0" "$1" "$2"', process.execPath, inserting, folder],
    { stdio: ["pipe", "pipe", "pipe"] }
  )
  child.stdin.on("error", () => {})
  child.stdin.end(input)
  const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr)])
  if (child.exitCode === null) await once(child, "exit")
  assert.strictEqual(child.exitCode, 0, errors)
  return JSON.parse(output) as unknown
}

/** What a process says that tries to open the folder; it must fail. */
const refusal = (folder: string) =>
  Effect.promise(async (): Promise<Said> => {
    const { ended, said } = await startStore(folder)
    assert.strictEqual(await ended, 1)
    assert.isDefined(said.message)
    assert.notInclude(said.message, "\n")
    return said
  })

/** What the engine answers, or why it does not. */
const askOf =
  (engine: ChdbEngine["Service"]) =>
  (sql: string, settings = {}): Effect.Effect<string> =>
    Effect.promise(() =>
      engine.run({ sql, settings }).then(({ bytes }) => bytes.toString(), String)
    )

describe("opening the embedded engine", () => {
  it.live("is not loaded for a ClickHouse server", () =>
    Effect.gen(function* () {
      const maps = () => fs.readFileSync("/proc/self/maps", "utf8")
      yield* ClickHouseConnection.toServer({ url: "http://127.0.0.1:1", database: "alk" })
      assert.notInclude(maps(), "libchdb")
      const folder = yield* temporaryFolder
      yield* Layer.build(ChdbEngine.layer(folder))
      assert.include(maps(), "libchdb")
    })
  )

  for (const input of [GARBAGE, "", "closed"]) {
    it.live(`stores nothing that stands on standard input (${input.length} bytes)`, () =>
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const said = yield* Effect.promise(() => runWithInput(folder, input))
        const migrations = fs.readdirSync(migrationsFolder).length
        assert.deepStrictEqual(said, { counts: [[1, 1, migrations]], null: true })
      })
    )
  }

  for (const [line, ending] of [
    ["process.abort()", "SIGABRT"],
    ['process.kill(process.pid, "SIGSEGV"); yield* Effect.never', "SIGSEGV"],
    ["", null]
  ] as const) {
    it.live(`ends at once by ${ending ?? "itself"}`, () =>
      Effect.gen(function* () {
        const { signal, status, stderr } = runOpened(yield* temporaryFolder, line)
        assert.deepStrictEqual([signal, status], [ending, ending === null ? 0 : null], stderr)
      })
    )
  }

  it.live("names the process that uses the folder", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const first = yield* Effect.acquireRelease(
        Effect.promise(() => startStore(folder)),
        (started) => Effect.promise(started.stop)
      )
      const { error, message } = yield* refusal(folder)
      assert.strictEqual(error, "StoreFolderUnusable")
      assert.include(message, `in use by process ${first.child.pid}`)
      assert.include(message, "CLICKHOUSE_URL")
    })
  )

  it.live("opens a folder again whose process was killed", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const first = yield* Effect.promise(() => startStore(folder))
      first.child.kill("SIGKILL")
      yield* Effect.promise(first.stop)
      const second = yield* Effect.promise(() => startStore(folder))
      assert.isDefined(second.said.url)
      assert.strictEqual(yield* Effect.promise(second.stop), 0)
    })
  )

  it.live("says what is wrong with a folder that can't be one", () =>
    Effect.gen(function* () {
      const parent = yield* temporaryFolder
      const file = join(parent, "file")
      fs.writeFileSync(file, "")
      assert.include((yield* refusal(file)).message, "is not writable")
      const strange = join(parent, "strange")
      fs.mkdirSync(strange)
      fs.writeFileSync(join(strange, "holiday.jpg"), "")
      assert.include((yield* refusal(strange)).message, "holds holiday.jpg")
      const newer = join(parent, "newer")
      fs.mkdirSync(newer)
      fs.writeFileSync(join(newer, "alk-format.json"), '{"format":2}')
      assert.include((yield* refusal(newer)).message, "its format is 2, known is 1")
      fs.writeFileSync(join(newer, "alk-format.json"), "{")
      assert.include((yield* refusal(newer)).message, "alk-format.json is damaged")
    })
  )

  it.live("refuses a folder that the engine can't read, and leaves it as it is", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      yield* Effect.promise(() => runWithInput(folder, ""))
      const definition = join(folder, "metadata", "alk.sql")
      fs.writeFileSync(definition, "junk")
      const { error, message } = yield* refusal(folder)
      assert.strictEqual(error, "StoreFolderUnusable")
      assert.include(message, "can't be read")
      assert.include(message, "builds it again from the topics")
      assert.strictEqual(fs.readFileSync(definition, "utf8"), "junk")
    })
  )

  it.live("does not answer without the rows of a part that it can't read", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      yield* Effect.promise(() => runWithInput(folder, ""))
      const [part = ""] = fs.globSync(join(folder, "data/alk/events/all_*"))
      fs.writeFileSync(join(part, "columns.txt"), "junk")
      const store = layerClickHouse.pipe(
        Layer.provide(ClickHouseConnection.layerEmbedded({ database: "alk" })),
        Layer.provide(ChdbEngine.layer(folder))
      )
      const migrated = EventStore.use(({ migrate }) => migrate)
      const error = yield* Effect.flip(migrated.pipe(Effect.provide(store)))
      assert.strictEqual(error._tag, "StoreUnavailable")
      assert.match(String(error.cause), /^StoreDamaged: .* the part [\w-]+ of alk\.events:/)
    })
  )

  it.live("lets no setting of a statement reach the next one", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const engine = yield* ChdbEngine.open(folder)
      const ask = (sql: string, more: object = {}) =>
        Effect.promise(() =>
          engine.run({ sql, ...more }).then(({ bytes }) => bytes.toString().trim())
        )
      const sql = "SELECT getSetting('max_execution_time'), currentDatabase() FORMAT TSV"
      const own = { settings: { max_execution_time: 77, wait_end_of_query: 1 }, database: "system" }
      for (let round = 0; round < 4; round++) {
        assert.strictEqual(yield* ask(sql, own), "77\tsystem")
        assert.strictEqual(yield* ask(sql), "0\tdefault")
      }
      const fails = yield* Effect.promise(() =>
        engine.run({ sql: "SELECT nonsense", settings: { max_execution_time: 77 } }).then(
          () => false,
          () => true
        )
      )
      assert.isTrue(fails)
      for (let round = 0; round < 4; round++) assert.strictEqual(yield* ask(sql), "0\tdefault")
    })
  )

  it.live("answers short questions while a long one runs", () =>
    Effect.gen(function* () {
      const engine = yield* ChdbEngine.open(yield* temporaryFolder)
      const ask = askOf(engine)
      const long = yield* Effect.forkChild(ask(endless("long")))
      // Its answer names what runs besides it.
      yield* eventually("the long one runs", ask(RUNNING), (running) => running === "long\n")
      const short = { sql: "SELECT {x:UInt8} FORMAT TSV", parameters: new Map([["x", "1"]]) }
      const answer = yield* Effect.promise(() => engine.run(short))
      assert.strictEqual(answer.bytes.toString(), "1\n")
      yield* ask(killed("long"))
      assert.include(yield* Fiber.join(long), "QUERY_WAS_CANCELLED")
    })
  )

  it.live("answers short questions at once while any number of bulk reads wait", () =>
    Effect.gen(function* () {
      const engine = yield* ChdbEngine.open(yield* temporaryFolder)
      const ask = askOf(engine)
      const names = ["first", "second", "third"]
      const bulk = yield* Effect.forEach(names, (name) =>
        Effect.forkChild(ask(endless(name), { priority: "10" }), { startImmediately: true })
      )
      for (const [index, name] of names.entries()) {
        // One of them runs, in their order; the question waits for none.
        yield* eventually(`${name} runs alone`, ask(RUNNING), (running) => running === `${name}\n`)
        assert.strictEqual(yield* ask("SELECT 1 FORMAT TSV"), "1\n")
        yield* ask(killed(name))
        assert.include(yield* Fiber.join(bulk[index]!), "QUERY_WAS_CANCELLED")
      }
    })
  )

  it.live("tells bulk reads at once that one which was given up still runs", () =>
    Effect.gen(function* () {
      const engine = yield* ChdbEngine.open(yield* temporaryFolder)
      const ask = askOf(engine)
      const client = new AbortController()
      const bulk = { priority: "10" }
      const sql = endless("abandoned")
      const given = yield* Effect.forkChild(
        Effect.promise(() =>
          engine.run({ sql, settings: bulk, signal: client.signal }).catch(String)
        ),
        { startImmediately: true }
      )
      yield* eventually("it runs", ask(RUNNING), (running) => running === "abandoned\n")
      const waits = yield* Effect.forkChild(ask("SELECT 2", bulk), { startImmediately: true })
      client.abort()
      assert.include(yield* Fiber.join(waits), "still runs")
      assert.include(yield* ask("SELECT 3", bulk), "still runs")
      assert.strictEqual(yield* ask("SELECT 1 FORMAT TSV"), "1\n")
      yield* ask(killed("abandoned"))
      assert.include(String(yield* Fiber.join(given)), "QUERY_WAS_CANCELLED")
      assert.strictEqual(yield* ask("SELECT 4 FORMAT TSV", bulk), "4\n")
      const late = { sql: "SELECT 5", signal: client.signal }
      assert.include(yield* Effect.promise(() => engine.run(late).then(String, String)), "abort")
    })
  )

  it.live("lets what runs end before it closes", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const outcome = yield* Effect.scoped(
        Effect.gen(function* () {
          const engine = yield* ChdbEngine.open(folder)
          return engine
            .run({ sql: "SELECT sleep(1), 'done' FORMAT TSV" })
            .then(({ bytes }) => bytes.toString())
        }).pipe(Effect.map((running) => ({ running })))
      )
      assert.include(yield* Effect.promise(() => outcome.running), "done")
    })
  )
})
