/** The command line as a user has it, one command after the other. */
import { spawn } from "node:child_process"
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { createClient } from "../../src/client/index.ts"
import { signerOf } from "../../src/domain/chain/Checkpoint.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { testKey } from "../support/Program.ts"
import { alkWorld, SEND } from "./AlkWorld.ts"
import { TERMINAL } from "./CommandRuns.ts"

const world = alkWorld("commandline")
const { alk, alkWith, begin, home, key, rows } = world

describe("alk", () => {
  it("keeps a key that it has tried, where only its owner can read it", async () => {
    const without = await alk("events")
    assert.strictEqual(without.code, 3)
    assert.match(without.errors, /there is no key for .*\nnext: alk login/)
    const wrong = await alkWith({ input: testKey("wrong") }, "login", "--url", world.running.url)
    assert.strictEqual(wrong.code, 3, wrong.errors)
    assert.isFalse(existsSync(join(home, "alk")))
    const { code, errors } = await alkWith(
      { input: `${key}\n` },
      "login",
      "--url",
      world.running.url
    )
    assert.strictEqual(code, 0, errors)
    assert.strictEqual(statSync(join(home, "alk/contexts.json")).mode & 0o777, 0o600)
    const [me] = await rows("login", "--show")
    assert.deepInclude(me, { tenant_id: "commandline", url: world.running.url })
  })

  it("sends, lists, shows and follows events", async () => {
    const tailing = begin(["tail", "--after", "0", "--limit", "2"])
    const tailed = new Promise<string>((resolve) => {
      let text = ""
      tailing.stdout!.on("data", (chunk) => {
        text += chunk
      })
      tailing.once("close", () => resolve(text))
    })
    const [first] = await rows(...SEND, "--actor", "alice", "--metadata", '{"pages":3}')
    assert.deepInclude(first, { sequence_number: 1, tenant_id: "commandline" })
    const event = { actor: { id: "bob", type: "human" }, action: "document.read", id: "own" }
    const input = JSON.stringify({ ...event, resource: { id: "d1", type: "document" } })
    for (const _ of ["sent", "sent again, which changes nothing"]) {
      const { code, errors, output } = await alkWith({ input }, "send", "-")
      assert.strictEqual(code, 0, errors)
      assert.deepInclude(JSON.parse(output), { id: "own", sequence_number: 2 })
    }
    const other = await alk(...SEND, "--actor", "eve", "--id", "own")
    assert.strictEqual(other.code, 1)
    assert.match(other.errors, /id_conflict/)
    const [found] = await rows("get", first.id)
    assert.strictEqual(found.hash, first.hash)
    const listed = await rows("events", "--actor", "alice", "--filter", "metadata.pages>=2")
    assert.deepStrictEqual(
      listed.map(({ id }) => id),
      [first.id]
    )
    assert.strictEqual((await tailed).split("\n").length, 3)
  })

  it("says what is wrong, and ends with the code for it", async () => {
    const cases: ReadonlyArray<readonly [number, RegExp, ReadonlyArray<string>]> = [
      [2, /a key can't be an argument[^]*next: alk login/, ["events", `--key=${key}`]],
      [2, /--actor: required/, SEND],
      [2, /unknown command 'evnts'\n\(Did you mean events\?\)/, ["evnts"]],
      [2, /--limit: must be a whole number/, ["events", "--limit", "many"]],
      [2, /action/, ["events", "--action", ""]],
      [1, /\[not_found\][^]*next: check the id/, ["get", "unknown"]],
      [3, /can't be reached[^]*next: start it/, ["login", "--show", "--url", "http://127.0.0.1:1"]]
    ]
    for (const [code, words, args] of cases) {
      const environment = args.includes("http://127.0.0.1:1") ? { ALK_API_KEY: key } : {}
      const ended = await alkWith({ environment }, ...args)
      assert.strictEqual(ended.code, code, `${args.join(" ")}: ${ended.errors}`)
      assert.match(ended.errors, words)
      assert.notMatch(ended.errors, /\n {4}at /)
    }
  })

  it("shows runs with their spans", async () => {
    const client = createClient({ url: world.running.url, key })
    client.run("researcher", { id: "run-1" }, () => client.tool("search", () => 3))
    await client.flush()
    const listed = await eventuallyAsync(
      "the run is listed",
      () => rows("runs", "--agent", "researcher"),
      ({ length }) => length > 0
    )
    assert.strictEqual(listed[0].id, "run-1")
    const [run, ...spans] = await rows("show", "run-1")
    assert.strictEqual(run.status, "COMPLETED")
    assert.includeMembers(
      spans.map(({ name }) => name),
      ["search"]
    )
  })

  it("asks by SQL, and writes files that are there once they are whole", async () => {
    assert.deepStrictEqual(await rows("sql", "SELECT count() AS n FROM events"), [{ n: 2 }])
    const file = join(home, "events.csv")
    const written = await alk("export", "csv", "-o", file)
    assert.strictEqual(written.code, 0, written.errors)
    assert.strictEqual(readFileSync(file, "utf8").trim().split("\n").length, 3)
    const forSiem = await rows("export", "ocsf")
    assert.deepStrictEqual(
      forSiem.map(({ metadata }) => metadata.sequence),
      [2, 1]
    )
    const pack = join(home, "pack.zip")
    assert.strictEqual((await alk("export", "pack", "--no-pdf", "-o", pack)).code, 0)
    const checked = await alk("verify", pack)
    assert.match(checked.output, /consistent/i)
    assert.strictEqual(checked.code, 0)
    const refused = await alk("export", "csv", "--action", "", "-o", join(home, "none.csv"))
    assert.notStrictEqual(refused.code, 0)
    assert.isFalse(existsSync(join(home, "none.csv")))
  })

  it("verifies the chains, and keeps what was signed of them", async () => {
    const service = await alk("verify", "--service")
    assert.strictEqual(service.code, 0, service.errors)
    assert.match(service.errors, /^events: valid, 2 events .*\ntraces: valid, /)
    const witness = join(home, "witness")
    const first = await rows("chain", "keep", witness)
    assert.deepInclude(first[0], { chain: "events", tree_size: 2 })
    await rows(...SEND, "--actor", "carol")
    const next = await rows("chain", "keep", witness)
    assert.strictEqual(next[0].tree_size, 3)
    const log = join(witness, "events.ndjson")
    const kept = readFileSync(log, "utf8").trim().split("\n")
    const forged = { ...JSON.parse(kept.at(-1)!), root_hash: "ab".repeat(32) }
    writeFileSync(log, `${JSON.stringify(forged)}\n`)
    const broken = await alk("chain", "keep", witness)
    assert.strictEqual(broken.code, 1)
    assert.match(broken.errors, /the history was rewritten[^]*next: keep the folder/)
    writeFileSync(log, `${kept.join("\n")}\n`)
    const { vkey } = signerOf("another", Buffer.alloc(32, 7))
    writeFileSync(join(witness, "keys.json"), JSON.stringify([vkey]))
    const replaced = await alk("chain", "keep", witness)
    assert.strictEqual(replaced.code, 1)
    assert.match(replaced.errors, /none of the known keys signed it/)
  })

  it("ingests CSV by a mapping, and lists what is refused by its line", async () => {
    const file = join(home, "accesses.csv")
    writeFileSync(file, 'user,verb,page,note\nann,page.read,/a,"one, two"\nbea,nonsense,/b,\n')
    const maps = ["actor_id=user", "action=verb", "resource_id=page"].flatMap((one) => [
      "--map",
      one
    ])
    const sets = ["actor_type=human", "resource_type=page", "outcome=success"].flatMap((one) => [
      "--set",
      one
    ])
    const { code, output } = await alk("ingest", file, ...maps, ...sets)
    assert.strictEqual(code, 1)
    assert.deepStrictEqual(JSON.parse(output), { stored: 1, rejected: 1 })
    const reject = JSON.parse(readFileSync(`${file}.alk-rejects.ndjson`, "utf8"))
    assert.deepInclude(reject, { line: 3 })
    const [event] = await rows("events", "--actor", "ann")
    assert.deepStrictEqual(event.metadata, { note: "one, two" })
    const again = await alk("ingest", file, ...maps, ...sets)
    assert.deepStrictEqual(JSON.parse(again.output), { stored: 1, rejected: 1 })
  })

  it("records a demonstration", async () => {
    const context = ["--context", "default"]
    const made = await rows("demo", "--events", "20", ...context)
    assert.deepStrictEqual(made, [{ events: 20, runs: 1 }])
    const runs = await eventuallyAsync(
      "its run is listed",
      () => rows("runs", "--agent", "support-agent", ...context),
      ({ length }) => length > 0
    )
    assert.strictEqual(runs[0].status, "COMPLETED")
  })
})

/** A command at a terminal, which answers each question as soon as it is asked. */
const atTerminal = (
  answers: ReadonlyArray<readonly [question: string, answer: string]>,
  ...args: ReadonlyArray<string>
): Promise<string> =>
  new Promise((resolve) => {
    const command = ["-c", TERMINAL, process.execPath, "src/cli/alk.mjs", ...args]
    const child = spawn("python3", command, {
      env: { PATH: process.env["PATH"], HOME: home, XDG_CONFIG_HOME: home, TERM: "dumb" }
    })
    let shown = ""
    const waiting = [...answers]
    child.stdout.on("data", (chunk) => {
      shown += chunk
      if (waiting[0] === undefined || !shown.includes(waiting[0][0])) return
      child.stdin.write(`${waiting.shift()![1]}\r`)
    })
    child.once("close", () => resolve(shown))
  })

describe("alk at a terminal", () => {
  it("asks for the key, and does not show it", async () => {
    const shown = await atTerminal(
      [
        ["Address of the service", world.running.url],
        ["API key", key]
      ],
      ...["login", "--context", "typed"]
    )
    assert.include(shown, `tenant commandline (read, write) of ${world.running.url} is kept in `)
    assert.notInclude(shown, key)
  })

  it("shows tables and waterfalls", async () => {
    const events = await atTerminal([], "events", "--limit", "2")
    assert.match(
      events,
      /SEQ +TIME +ACTOR +ACTION[^]*\n +\d+ +\d{4}-[^]*2 of \d+ events; --limit 0/
    )
    assert.match(await atTerminal([], "show", "run-1"), /execution +run-1[^]*search[^]*█/)
  })
})
