/**
 * What was erased is taken out of the topics themselves: the program with its own broker, erasures, a
 * stop, `alk forget apply`, and a search of the broker's files; then everything goes on. Files are read,
 * and chains checked, by programs that share no code with it.
 */
import { execFileSync } from "node:child_process"
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "vitest"
import { begin, type Ended, endCommands } from "../cli/CommandRuns.ts"
import { checkChain, readTopic } from "../support/BlackBox.ts"
import { Client } from "../support/Client.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { freshFolder, type Started, start, testKey } from "../support/Program.ts"

const key = testKey("forgetting")
const root = freshFolder("forgetting")
const dataDir = join(root, "data")
const logDir = join(dataDir, "kafka/data")
const JOURNAL = "alk-forgotten.json"

/** What is erased, and what is like it and stays. */
const ERASED = ["wort-der-aerztin", "name-der-akte", "e-post-der-aerztin", "frage-an-das-modell"]
const KEPT = ["wort-des-pfoertners", "name-der-liste", "frage-die-bleibt"]

let variables: Record<string, string>
let running: Started | undefined

afterAll(async () => {
  endCommands()
  await running?.stop()
  rmSync(root, { recursive: true, force: true })
})

const begun = async (more: Record<string, string> = {}): Promise<Client> => {
  running = await start({ ...variables, ...more })
  // A view that is built again answers 503 until it is whole.
  return new Client(running.url, key, true, 60)
}

const stopped = async (): Promise<void> => {
  assert.strictEqual(await running?.stop(), 0)
  running = undefined
}

const environment = (): Record<string, string> => {
  const { HOME, JAVA_HOME } = process.env
  const own = { ...(HOME && { HOME }), ...(JAVA_HOME && { JAVA_HOME }), LOG_LEVEL: "error" }
  return { ...own, ...variables }
}

const alk = async (...args: ReadonlyArray<string>): Promise<Ended> =>
  begin(args, environment()).ended

const forget = async (action: string, ...args: ReadonlyArray<string>) => {
  const { end, errors, output } = await alk("forget", action, "--json", ...args)
  assert.strictEqual(end, 0, errors)
  return JSON.parse(output)
}

/** The files of the broker that hold the words, as `<file> <word>`. */
const found = (folder: string, words: ReadonlyArray<string>): ReadonlyArray<string> =>
  execFileSync(process.execPath, ["test/independent/segment_words.mjs", folder, ...words], {
    encoding: "utf8",
    maxBuffer: 64 * 1_048_576
  })
    .split("\n")
    .slice(0, -2)

const event = (id: string, words: readonly [email: string, name: string, note: string]) => ({
  id,
  actor: { id: "anna", type: "human", email: `${words[0]}@example.com` },
  action: "record.read",
  resource: { id: `record-of-${id}`, type: "record", name: words[1] },
  outcome: "success",
  metadata: { note: words[2] }
})

const others = Array.from({ length: 200 }, (_, index) =>
  event(`other-${index}`, [`pforte-${index}`, "name-der-liste", "wort-des-pfoertners"])
)

const run = (id: string, question: string) => [
  { op: "execution.start", id, agent_id: "agent", metadata: { question } },
  {
    op: "span.start",
    execution_id: id,
    id: `${id}-call`,
    span_type: "LLM_CALL",
    name: "call",
    // Stored apart, in pieces.
    metadata: { prompt: `${question} `.repeat(20_000) }
  },
  {
    op: "span.event",
    span_id: `${id}-call`,
    id: `${id}-event`,
    event_type: "llm.request",
    payload: { question }
  },
  { op: "span.end", span_id: `${id}-call`, status: "COMPLETED", metadata: { question } },
  { op: "execution.end", execution_id: id, status: "COMPLETED" }
]

/** What the log says of rewritings. */
const acts = async (): Promise<ReadonlyArray<any>> =>
  (await readTopic(running!.topics, "alk.events", "_system"))
    .map(({ value }) => JSON.parse(value))
    .filter(({ action }) => action === "topics.forgotten")

const erase = async (api: Client, path: string): Promise<void> => {
  const { body, status } = await api.call(path, { body: { reason: "asked for" } })
  assert.strictEqual(status, 200, JSON.stringify(body))
}

const isValid = async (api: Client): Promise<void> => {
  for (const path of [
    "/v1/verify",
    "/v1/verify?chain=traces",
    "/api/v1/executions/secret-run/verify"
  ]) {
    const { body } = await api.call(path)
    assert.strictEqual(body.valid, true, JSON.stringify(body))
  }
}

const committed = async (api: Client, events: ReadonlyArray<object>): Promise<void> => {
  const { body } = await api.call("/v1/events/batch?sync=true", { body: { events } })
  assert.strictEqual(body.status, "committed", JSON.stringify(body))
}

/** Segments in the making. */
const unfinished = (): ReadonlyArray<string> =>
  readdirSync(logDir, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".log.cleaned")
  )

/** Calls between two at which a rewriting is killed; KILL_STEP=1 tries each, which takes minutes. */
const KILL_STEP = Number(process.env["KILL_STEP"] ?? 5)

describe("what was erased", () => {
  it("is on the topics until they are rewritten", async () => {
    variables = {
      ALK_DATA_DIR: dataDir,
      ALK_KAFKA_PORT: "0",
      ALK_PARTITIONS: "2",
      ALK_BOOTSTRAP_KEYS: `${key}=acme:read+write`
    }
    const api = await begun()
    const secretEvents = [1, 2, 3].map((index) =>
      event(`secret-${index}`, ["e-post-der-aerztin", "name-der-akte", "wort-der-aerztin"])
    )
    const events = [...others.slice(0, 100), ...secretEvents, ...others.slice(100)]
    await committed(api, events)
    // The same again: a command that brings nothing new, and holds it all.
    await api.call("/v1/events/batch?sync=true", { body: { events } })
    const traces = [...run("secret-run", "frage-an-das-modell"), ...run("run", "frage-die-bleibt")]
    const traced = await api.call("/api/v1/traces/batch?sync=true", {
      body: { operations: traces }
    })
    assert.strictEqual(traced.body.status, "committed", JSON.stringify(traced.body))
    for (const id of ["secret-1", "secret-2", "secret-3"]) {
      await erase(api, `/v1/events/${id}/erase`)
    }
    await erase(api, "/api/v1/executions/secret-run/erase")
    const plan = await forget("plan")
    assert.strictEqual(plan.erasures, 4)
    assert.isFalse(plan.applied)
    const refused = await alk("forget", "apply")
    assert.strictEqual(refused.end, 1)
    assert.match(refused.errors, /The data folder .* is in use by the alk with process id/)
    const unproven = await alk("forget", "apply", "--log-dir", logDir)
    assert.strictEqual(unproven.end, 1)
    assert.match(unproven.errors, /set ALK_SECRET to that of the service/)
    const secret = { ALK_SECRET: readFileSync(join(dataDir, "secret"), "utf8").trim() }
    const byFolder = await begin(["forget", "apply", "--log-dir", logDir], {
      ...environment(),
      ...secret
    }).ended
    assert.strictEqual(byFolder.end, 1)
    assert.match(byFolder.errors, /a broker runs on .*: stop it first/)
    await stopped()
    const files = found(logDir, ERASED)
    for (const word of ERASED) {
      assert.isTrue(
        files.some((line) => line.endsWith(word)),
        word
      )
    }
  })

  it("is nowhere in the broker's files afterwards, and the rest is", async () => {
    const report = await forget("apply")
    const did = report.partitions.map((one: any) => [
      one.topic,
      one.records_replaced,
      one.records_removed
    ])
    // Two batches of events, and one of traces.
    assert.deepStrictEqual(did, [
      ["alk.events", 3, 0],
      ["alk.traces", 8, 0],
      ["alk.commands", 0, 3]
    ])
    assert.deepStrictEqual(found(logDir, ERASED), [])
    for (const word of KEPT) assert.isNotEmpty(found(logDir, [word]), word)
    const again = await forget("apply")
    assert.deepStrictEqual(again.partitions, [])
  })

  it("is missed by nobody: the chain holds, and goes on", async () => {
    const api = await begun()
    await isValid(api)
    const { body } = await api.call("/v1/events/secret-2")
    const onTopic = (await readTopic(running!.topics, "alk.events", "acme")).map(
      ({ value }) => value
    )
    assert.strictEqual(onTopic.filter((value) => value.includes('"erased_at":')).length, 3)
    assert.deepInclude(
      onTopic.map((value) => JSON.parse(value)),
      body
    )
    await checkChain(onTopic)
    await committed(api, [event("new", ["neu", "name-der-liste", "wort-des-pfoertners"])])
    await isValid(api)
    assert.deepStrictEqual(
      (await acts()).map(({ metadata }) =>
        metadata.topics.map((one: any) => [one.topic, one.records_replaced, one.records_removed])
      ),
      [
        [
          ["alk.commands", 0, 3],
          ["alk.events", 3, 0],
          ["alk.traces", 8, 0]
        ]
      ]
    )
    assert.notInclude(readdirSync(logDir), JOURNAL)
    await stopped()
  })

  it("is said to have been rewritten on a broker elsewhere, once", async () => {
    await begun()
    const passwords = JSON.parse(readFileSync(join(dataDir, "kafka/users.json"), "utf8"))
    const { ALK_DATA_DIR: _, ALK_KAFKA_PORT: __, ...others } = environment()
    const elsewhere = {
      ...others,
      KAFKA_BROKERS: running!.kafka,
      KAFKA_SASL_MECHANISM: "scram-sha-256",
      KAFKA_SASL_USERNAME: "alk",
      KAFKA_SASL_PASSWORD: passwords.alk,
      CLICKHOUSE_URL: "http://127.0.0.1:1",
      ALK_SECRET: readFileSync(join(dataDir, "secret"), "utf8").trim()
    }
    const run = (id: string, ended_at: string | null) => ({
      id,
      started_at: "2026-11-21T12:00:00.000000Z",
      ended_at,
      segments: []
    })
    const notEnded = run("not-ended", null)
    const file = join(root, JOURNAL)
    // As after a kill between the log and the file: what is logged again is there once.
    for (const id of ["ended", "ended", "after-it"]) {
      const runs = [run(id, "2026-11-21T12:00:01.000000Z"), notEnded]
      writeFileSync(file, JSON.stringify({ runs }))
      const { end, errors, output } = await begin(["forget", "record", file], elsewhere).ended
      assert.strictEqual(end, 0, errors)
      assert.deepStrictEqual(JSON.parse(output), { logged: 1 })
      assert.deepStrictEqual(JSON.parse(readFileSync(file, "utf8")), { runs: [notEnded] })
    }
    const ids = await eventuallyAsync(
      "all of them are in the log",
      async () => (await acts()).map(({ resource }) => resource.id as string),
      (logged) => logged.includes("after-it")
    )
    assert.deepStrictEqual(ids.slice(1), ["ended", "after-it"])
    await stopped()
  })

  it("is not missed by a store that is built again from the topics either", async () => {
    rmSync(join(dataDir, "clickhouse"), { recursive: true })
    const api = await begun()
    await isValid(api)
    const { body } = await api.call("/v1/events/secret-2")
    assert.isString(body.erased_at)
    await stopped()
  })

  it("is erased by a store, too, that had not done so when the topic forgot it", async () => {
    const words = ["spaete-post", "spaeter-name", "spaetes-wort"] as const
    const api = await begun()
    await committed(api, [event("late", words)])
    await stopped()
    const behind = join(root, "behind")
    cpSync(join(dataDir, "clickhouse"), behind, { recursive: true })
    await erase(await begun(), "/v1/events/late/erase")
    await stopped()
    await forget("apply")
    rmSync(join(dataDir, "clickhouse"), { recursive: true })
    cpSync(behind, join(dataDir, "clickhouse"), { recursive: true })
    const again = await begun()
    await isValid(again)
    const { body } = await again.call("/v1/events/late")
    assert.isString(body.erased_at)
    assert.isUndefined(body.metadata)
    assert.notInclude(running!.output(), "set aside")
    await stopped()
  })

  it("is not needed by a sequencer that has lost its state", async () => {
    for (const partition of [0, 1]) {
      const folder = join(logDir, `alk.state-${partition}`)
      const files = readdirSync(folder).filter((name) => /\.(?:log|snapshot|.*index)$/.test(name))
      assert.isAbove(files.length, 0)
      for (const name of files) rmSync(join(folder, name))
    }
    const api = await begun()
    await committed(api, [event("after-loss", ["neu", "name-der-liste", "wort-des-pfoertners"])])
    // The same again is known by its id, although the commands that brought it are gone.
    const before = (await api.call("/v1/events?limit=1")).body.total
    await api.call("/v1/events/batch?sync=true", { body: { events: others.slice(0, 3) } })
    assert.strictEqual((await api.call("/v1/events?limit=1")).body.total, before)
    await isValid(api)
    await stopped()
  })

  it("goes in the end, wherever the rewriting is killed on the way", async () => {
    const words = ["letzte-post", "letzter-name", "letztes-wort"] as const
    const api = await begun()
    await committed(api, [event("last", words)])
    await erase(api, "/v1/events/last/erase")
    await stopped()
    let kills = 0
    for (;;) {
      const { end } = await begin(["forget", "apply"], {
        ...environment(),
        NODE_OPTIONS: "--import=./test/e2e/killAtFileCall.mjs",
        KILL_BELOW: logDir,
        KILL_AT: String(kills * KILL_STEP + 1)
      }).ended
      if (end === 0) break
      kills += 1
      // Whole segments are there at each point, and a broker takes them.
      found(logDir, words)
      if ((kills * KILL_STEP) % 10 === 0) {
        await isValid(await begun())
        await stopped()
      }
    }
    // More than one segment takes: each place was met in the first.
    assert.isAtLeast(kills * KILL_STEP, 20)
    assert.deepStrictEqual(found(logDir, words), [])
    assert.deepStrictEqual(unfinished(), [])
    await isValid(await begun())
    await stopped()
  }, 1_800_000)
})
