/**
 * A store that says something else than the log is mended while it answers: what was changed or
 * removed is back, what was added is set aside, and what was erased stays erased.
 */
import { rmSync } from "node:fs"
import { type ClickHouseClient, createClient } from "@clickhouse/client"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { begin, type Ended, endCommands } from "../cli/CommandRuns.ts"
import { Client, type Json } from "../support/Client.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { freshFolder, type Started, start, testKey } from "../support/Program.ts"

const folder = freshFolder("rebuild-view")
const keys = { acme: testKey("rebuild-acme"), other: testKey("rebuild-other") }
/** Of each tenant. */
const EVENTS = 1_200
const ERASED = 700
const REMOVED = 600
const CHANGED = 800
/** Their rows say that they were erased. */
const CLAIMED = 810
/** A copy of their rows wins over them. */
const COPIED = 820
const RUN = "run-1"
/** Milliseconds: every look is a program that starts. */
const PATIENCE_MS = 240_000

const eventsOf = (tenant: string): ReadonlyArray<Json> =>
  Array.from({ length: EVENTS }, (_, n) => ({
    id: `${tenant}-${n + 1}`,
    actor: { id: `u_${n}`, type: "human", email: `${tenant}-${n + 1}@example.com` },
    action: "document.read",
    resource: { id: `doc-${n}`, type: "document", name: `Document ${n}` },
    outcome: "success"
  }))

const operations: ReadonlyArray<Json> = [
  { op: "execution.start", id: RUN, agent_id: "agent", agent_name: "Agent of Alice" },
  { op: "span.start", execution_id: RUN, id: "plan", span_type: "PLANNING", name: "Secret plan" },
  { op: "span.end", id: "plan", execution_id: RUN, status: "COMPLETED" },
  { op: "execution.start", id: "run-2", agent_id: "agent", agent_name: "Other agent" },
  { op: "execution.end", execution_id: "run-2", status: "COMPLETED" }
]

let running: Started
let store: ClickHouseClient
const apis = (): Readonly<Record<"acme" | "other", Client>> => ({
  acme: new Client(running.url, keys.acme),
  other: new Client(running.url, keys.other)
})

const variables = {
  ALK_DATA_DIR: folder,
  ALK_ROLES: "api,sequencer,projection,store",
  ALK_EMBEDDED_OPEN: "true",
  ALK_PARTITIONS: "2",
  ALK_BOOTSTRAP_KEYS: `${keys.acme}=acme:read+write,${keys.other}=other:read+write`
}

const own = (): Record<string, string> => {
  const { HOME, JAVA_HOME } = process.env
  return {
    ...(HOME && { HOME }),
    ...(JAVA_HOME && { JAVA_HOME }),
    LOG_LEVEL: "error",
    ...variables
  }
}

const alk = (...args: ReadonlyArray<string>): Promise<Ended> => begin(args, own()).ended

const rebuild = async (...args: ReadonlyArray<string>) => {
  const { end, errors, output } = await alk("rebuild-view", "--json", "--quiet", ...args)
  assert.deepStrictEqual([end, errors], [0, ""])
  return JSON.parse(output)
}

/** Everything that a list says of a tenant, each page from where the last one ended. */
const listed = async (api: Client): Promise<ReadonlyArray<Json>> => {
  const found: Array<Json> = []
  for (let after = 0; ; ) {
    const query = `page_size=500&order=asc&after_sequence=${after}`
    const { body, status, text } = await api.call(`/v1/events?${query}`)
    assert.strictEqual(status, 200, text)
    found.push(...body.events)
    if (body.events.length < 500) return found
    after = body.events.at(-1).sequence_number
  }
}

const executionOf = async (api: Client, id: string) => {
  const [execution, spans] = await Promise.all([
    api.call(`/api/v1/executions/${id}`),
    api.call(`/api/v1/executions/${id}/spans`)
  ])
  return [execution.status, execution.body, spans.status, spans.body]
}

const verified = async (api: Client): Promise<ReadonlyArray<string>> => {
  const chains = ["/v1/verify", `/api/v1/executions/${RUN}/verify`].map(async (path) => {
    const { body, text } = await api.call(path)
    assert.isString(body.status, text)
    return body.status
  })
  return Promise.all(chains)
}

const change = (query: string) =>
  store.command({ query, clickhouse_settings: { mutations_sync: "1" } })

/** Which execution each span of a tenant is said to be of. */
const spansOf = async (tenant: string): Promise<ReadonlyArray<unknown>> => {
  const asked = await store.query({
    query: `SELECT DISTINCT span_id, execution_id FROM alk.span_ids WHERE tenant_id = '${tenant}' ORDER BY 2, 1`,
    format: "JSONEachRow"
  })
  return asked.json()
}

beforeAll(async () => {
  running = await start(variables)
  store = createClient({ url: running.store })
  for (const [tenant, api] of Object.entries(apis())) {
    const events = eventsOf(tenant)
    for (let at = 0; at < events.length; at += 1_000) {
      const body = { events: events.slice(at, at + 1_000) }
      const sent = await api.call("/v1/events/batch?sync=true", { body })
      assert.strictEqual(sent.body.status, "committed", sent.text)
    }
    const traces = await api.call("/api/v1/traces/batch?sync=true", { body: { operations } })
    assert.strictEqual(traces.body.status, "committed", traces.text)
  }
  const { acme } = apis()
  const reason = { body: { reason: "asked for" } }
  for (const path of [`/v1/events/acme-${ERASED}/erase`, `/api/v1/executions/${RUN}/erase`]) {
    const erased = await acme.call(path, reason)
    assert.isBelow(erased.status, 300, erased.text)
  }
})

afterAll(async () => {
  endCommands()
  await store.close()
  await running.stop()
  rmSync(folder, { recursive: true, force: true })
})

describe("alk rebuild-view", () => {
  it("says that nobody has asked yet", async () => {
    const { end, errors } = await alk("rebuild-view", "--status")
    assert.strictEqual(end, 1)
    assert.match(errors, /nobody has asked for it yet/)
  })

  it("finds nothing to mend in a view that is what the log says", async () => {
    const report = await rebuild()
    assert.isTrue(report.done)
    assert.deepStrictEqual([report.stored, report.set_aside], [0, 0])
    assert.isAbove(report.compared, 2 * EVENTS)
  })

  it("mends what differs, while lists answer, and leaves out what was erased", async () => {
    const { acme, other } = apis()
    const before = {
      events: await listed(acme),
      others: await listed(other),
      runs: [await executionOf(acme, RUN), await executionOf(acme, "run-2")]
    }
    assert.deepStrictEqual(await verified(acme), ["valid", "valid"])
    const spanIds = await spansOf("acme")
    assert.isAbove(spanIds.length, 2)
    const ended = () =>
      acme.call("/api/v1/executions/run-2/end", { method: "PUT", body: { status: "FAILED" } })
    assert.strictEqual((await ended()).status, 409)
    const of = (sequence: number) => `tenant_id = 'acme' AND sequence_number = ${sequence}`
    // A copy of an event under another number, at an offset that the topic has given to another one.
    await change(
      "INSERT INTO alk.events SELECT * REPLACE (9000 AS sequence_number)"
        + ` FROM (SELECT * FROM alk.events WHERE ${of(REMOVED)})`
    )
    await change(`ALTER TABLE alk.events UPDATE outcome = 'failure' WHERE ${of(CHANGED)}`)
    await change(
      "ALTER TABLE alk.events UPDATE erased_at = now64(6), actor_email = '', resource_name = '',"
        + ` details_salt = toFixedString('', 16) WHERE ${of(CLAIMED)}`
    )
    await change(`ALTER TABLE alk.events DELETE WHERE ${of(REMOVED)} OR ${of(ERASED)}`)
    await change("ALTER TABLE alk.facts DELETE WHERE tenant_id = 'acme' AND type = 'span.started'")
    // Of two rows of one key the version decides which stays.
    await change(
      "INSERT INTO alk.events SELECT * REPLACE ('failure' AS outcome, 7 AS version)"
        + ` FROM alk.events WHERE ${of(COPIED)}`
    )
    await change("ALTER TABLE alk.span_ids DELETE WHERE tenant_id = 'acme'")
    await change(
      "ALTER TABLE alk.facts UPDATE mac = 'none' WHERE tenant_id = 'acme' AND execution_id = 'run-2'"
    )
    await change("ALTER TABLE alk.events DELETE WHERE tenant_id = 'other' AND sequence_number = 77")
    // What can't be told to be this service's own is not continued.
    await eventuallyAsync("it has left memory", ended, ({ status }) => status === 503, PATIENCE_MS)
    assert.deepStrictEqual(await verified(acme), ["broken", "broken"])

    let isDone = false
    let reads = 0
    const reading = (async () => {
      const untouched = before.events.filter(
        ({ sequence_number: at }) => ![ERASED, REMOVED, CHANGED, CLAIMED, COPIED].includes(at)
      )
      while (!isDone) {
        const seen = new Map((await listed(acme)).map((event) => [event["hash"], event]))
        for (const event of untouched) assert.deepStrictEqual(seen.get(event["hash"]), event)
        for (const event of seen.values()) {
          if (event["sequence_number"] === ERASED) assert.isUndefined(event["actor"].email)
        }
        reads += 1
      }
    })()
    const report = await rebuild("--tenant", "acme")
    isDone = true
    await reading
    assert.isAbove(reads, 0)
    assert.isTrue(report.done)
    assert.isAtLeast(report.stored, 5)
    assert.isAtLeast(report.set_aside, 3)

    assert.deepStrictEqual(await listed(acme), before.events)
    assert.deepStrictEqual(
      [await executionOf(acme, RUN), await executionOf(acme, "run-2")],
      before.runs
    )
    assert.deepStrictEqual(await verified(acme), ["valid", "valid"])
    assert.strictEqual((await ended()).status, 409)
    assert.deepStrictEqual(await spansOf("acme"), spanIds)
    const aside = await store.query({
      query: "SELECT sequence_number FROM alk.set_aside WHERE source = 'events' ORDER BY 1",
      format: "JSONEachRow"
    })
    const numbers = (await aside.json<{ sequence_number: string }>()).map((row) =>
      Number(row.sequence_number)
    )
    assert.deepStrictEqual(numbers, [CHANGED, CLAIMED, COPIED, 9000])
    // The other tenant was not asked for.
    assert.strictEqual((await listed(other)).length, EVENTS - 1)
    const all = await rebuild()
    assert.strictEqual(all.stored, 1)
    assert.deepStrictEqual(await listed(other), before.others)
  })

  it("does what was asked for while no projection ran", async () => {
    await change("ALTER TABLE alk.events DELETE WHERE tenant_id = 'acme' AND sequence_number < 100")
    const restart = async (roles: string) => {
      await store.close()
      await running.stop()
      running = await start({ ...variables, ALK_ROLES: roles })
      store = createClient({ url: running.store })
    }
    await restart("api,sequencer,store")
    const asking = begin(["rebuild-view", "--json"], own())
    let said = ""
    asking.child.stderr!.on("data", (text) => {
      said += text
    })
    await eventuallyAsync(
      "it says that it waits",
      () => said,
      (text) => text.includes("no projection has begun yet"),
      PATIENCE_MS
    )
    asking.child.kill()
    await asking.ended
    assert.isFalse((await rebuild("--status")).done)
    await restart("api,sequencer,projection,store")
    await eventuallyAsync(
      "the view is built again",
      () => rebuild("--status"),
      ({ done }) => done,
      PATIENCE_MS
    )
    assert.strictEqual((await listed(apis().acme)).length, EVENTS + 1)
  })
})
