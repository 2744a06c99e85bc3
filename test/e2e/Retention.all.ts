/**
 * Retention with the program as it is started: what was recorded three days ago is removed, the rest
 * verifies from the signed checkpoint on, nothing brings it back, and what is changed in the rest, or
 * removed without a pruned point, is found all the same.
 */
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { createClient } from "@clickhouse/client"
import { afterAll, assert, describe, it } from "vitest"
import { Client, type Json } from "../support/Client.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import {
  ADMIN_TOKEN,
  freshFolder,
  START_COMMAND,
  type Started,
  start,
  testKey
} from "../support/Program.ts"
import { fires, rules, seriesOf } from "../support/promql/Alerts.ts"

const DAY_MS = 86_400_000
/** Events before the checkpoint, after it, and days later. Neither is a multiple of 256. */
const [OLD, UNSIGNED, NEW] = [700, 9, 30]
/** Text that an event has no room for. */
const LARGE = "large ".repeat(10_000)
const keys = { acme: testKey("acme"), held: testKey("held"), whole: testKey("whole") }
const folder = freshFolder("retention")

const [node = "", ...rest] = START_COMMAND
const SHIFTED = [node, "--import", "./test/support/ShiftedClock.mjs", ...rest]

const eventsOf = (count: number, name: string) =>
  Array.from({ length: count }, (_, index) => ({
    id: `${name}-${index}`,
    actor: { id: `u_${index % 7}`, type: "human" },
    action: "document.read",
    resource: { id: `doc-${index}`, type: "document" },
    outcome: "success",
    metadata: { note: `${name} ${index}`, ...(index === 3 ? { large: LARGE + name } : {}) }
  }))

let running: Started | undefined
afterAll(async () => {
  await running?.stop()
  rmSync(folder, { recursive: true, force: true })
})

const begin = async (shiftMs = 0, variables: Readonly<Record<string, string>> = {}) => {
  await running?.stop()
  running = await start(
    {
      ALK_DATA_DIR: folder,
      ALK_ADMIN_TOKEN: ADMIN_TOKEN,
      ALK_ROLES: "api,sequencer,projection,store",
      ALK_EMBEDDED_OPEN: "true",
      ALK_BOOTSTRAP_KEYS: Object.entries(keys)
        .map(([tenant, key]) => `${key}=${tenant}:read+write`)
        .join(","),
      TEST_CLOCK_SHIFT_MS: String(shiftMs),
      ...variables
    },
    SHIFTED
  )
  return running
}

const clientOf = (tenant: keyof typeof keys) => new Client(running!.url, keys[tenant], true, 60)
const admin = () => new Client(running!.url, ADMIN_TOKEN)

const ingest = async (tenant: keyof typeof keys, count: number, name: string) => {
  const { body, status } = await clientOf(tenant).call("/v1/events/batch?sync=true", {
    body: { events: eventsOf(count, name) }
  })
  assert.strictEqual(status, 200, JSON.stringify(body).slice(0, 300))
}

const signed = async (tenant: keyof typeof keys): Promise<Json> =>
  (await clientOf(tenant).call("/v1/chain/checkpoints/latest")).body

const verify = async (tenant: keyof typeof keys): Promise<Json> =>
  (await clientOf(tenant).call("/v1/verify")).body

const firstOf = async (tenant: keyof typeof keys): Promise<number> =>
  (await clientOf(tenant).call("/v1/events?order=asc")).body.events[0].sequence_number

/** Lines of the log that a failure shows. */
const LINES_SHOWN = 10

const retentionPath = (tenant: string) => `/v1/admin/tenants/${tenant}/retention`

/** What the program has said last, beside what was asked of it. */
const said = (): ReadonlyArray<string> =>
  running!
    .output()
    .split("\n")
    .filter((line) => !line.includes('"message":"request"'))
    .slice(-LINES_SHOWN)

/** Waits until the beginning of the chain is gone; the pruned point. */
const pruned = async (tenant: string): Promise<Json> => {
  const found = await eventuallyAsync(
    `the beginning of the chain of ${tenant} is gone`,
    async () => {
      const { body } = await admin().call(retentionPath(tenant))
      return { point: body.pruned[0], said: said() }
    },
    ({ point }) => Boolean(point?.removed_at)
  )
  return found.point
}

const keepFor = async (tenant: string, days: number | null) => {
  const { status, text } = await admin().call(retentionPath(tenant), {
    method: "PUT",
    body: { days }
  })
  assert.strictEqual(status, 200, text)
}

const change = async (...statements: ReadonlyArray<string>) => {
  const intruder = createClient({ url: running!.store })
  for (const query of statements) {
    await intruder.command({ query, clickhouse_settings: { mutations_sync: "2" } })
  }
  await intruder.close()
}

describe("retention", () => {
  it("removes what is old up to a signed checkpoint, and what is left verifies", async () => {
    await begin(-3 * DAY_MS)
    for (const tenant of ["acme", "held", "whole"] as const) {
      await ingest(tenant, OLD, "old")
      assert.strictEqual((await signed(tenant))["tree_size"], OLD)
    }
    await ingest("acme", UNSIGNED, "unsigned")
    await begin()
    for (const tenant of ["acme", "held", "whole"] as const) await ingest(tenant, NEW, "new")
    const hold = "/v1/admin/tenants/held/hold"
    assert.strictEqual((await admin().call(hold, { body: { reason: "case 7" } })).status, 200)
    await keepFor("held", 1)
    await keepFor("acme", 1)
    const point = await pruned("acme")
    const size = point["up_to_sequence"]
    assert.isAtLeast(size, OLD)
    assert.isAtMost(size, OLD + UNSIGNED)
    assert.strictEqual(await firstOf("acme"), size + 1)
    await signed("acme")
    const report = await verify("acme")
    assert.strictEqual(report["status"], "valid", JSON.stringify(report["breaks"]))
    assert.strictEqual(report["pruned"].up_to_sequence, size)
    assert.strictEqual(report["pruned"].root_hash, point["root_hash"])
    assert.strictEqual(report["first_sequence_number"], size + 1)
    assert.strictEqual(report["assurance"], "signed")
  })

  it("erases what was kept apart of metadata with its event", async () => {
    const statusOf = async (tenant: keyof typeof keys, name: string) => {
      const hash = createHash("sha256")
        .update(LARGE + name)
        .digest("hex")
      return (await clientOf(tenant).call(`/api/v1/payloads/${hash}`)).status
    }
    assert.strictEqual(await statusOf("acme", "old"), 404)
    assert.strictEqual(await statusOf("acme", "new"), 200)
    assert.strictEqual(await statusOf("held", "old"), 200)
  })

  it("says so in the tenant's own chain, and in that of the service", async () => {
    const own = await clientOf("acme").call("/v1/events?action=alk.chain.pruned")
    assert.strictEqual(own.body.events.length, 1)
    const acts = (await admin().all()).map(({ action }) => action)
    for (const action of ["data.version_raised", "retention.set", "retention.held"])
      assert.include(acts, action)
    assert.includeMembers(acts, ["retention.pruned", "retention.removed"])
  })

  it("removes nothing under a hold, and verification of others goes on from 1", async () => {
    const { body } = await admin().call(retentionPath("held"))
    assert.deepStrictEqual(body.pruned, [])
    assert.strictEqual(body.hold.reason, "case 7")
    assert.strictEqual(await firstOf("held"), 1)
    const report = await verify("held")
    assert.strictEqual(report["status"], "valid")
    assert.isUndefined(report["pruned"])
  })

  it("still proves what is left, and says of what is gone that it is", async () => {
    const point = await pruned("acme")
    const size = point["up_to_sequence"]
    const newest = await signed("acme")
    const api = clientOf("acme")
    const inclusion = (sequence: number) =>
      api.call(`/v1/chain/proofs/inclusion?sequence_number=${sequence}`)
    for (const sequence of [size + 1, size + 2, newest["tree_size"]]) {
      assert.strictEqual((await inclusion(sequence)).status, 200, String(sequence))
    }
    for (const sequence of [1, size - 1, size]) {
      const { body, status } = await inclusion(sequence)
      assert.deepStrictEqual([status, body.error.code], [410, "pruned"])
    }
    const consistency = await api.call(`/v1/chain/proofs/consistency?first=${size}`)
    assert.strictEqual(consistency.status, 200, consistency.text)
    const tile = await api.call("/v1/tlog/events/tile/0/000")
    assert.strictEqual(tile.status, 410, tile.text)
  })

  it("leaves packs that verify offline", async () => {
    const answer = await fetch(`${running!.url}/v1/export/evidence-pack`, {
      headers: { authorization: `Bearer ${keys.acme}` }
    })
    assert.strictEqual(answer.status, 200)
    const pack = join(folder, "pack.zip")
    writeFileSync(pack, new Uint8Array(await answer.arrayBuffer()))
    const ran = spawnSync(node, ["src/main.ts", "verify", pack, "--json"], { encoding: "utf8" })
    assert.strictEqual(ran.status, 0, ran.stdout + ran.stderr)
    const { events, problems, verdict } = JSON.parse(ran.stdout)
    assert.deepStrictEqual(problems, [])
    assert.strictEqual(verdict, "consistent")
    assert.isAbove(events, NEW)
  })

  it("stays as it is after a restart, and when the view is built again from the topics", async () => {
    const { up_to_sequence: size } = await pruned("acme")
    for (const variables of [{}, { CLICKHOUSE_DATABASE: "alk_again" }]) {
      await begin(0, variables)
      assert.strictEqual(await firstOf("acme"), size + 1)
      assert.strictEqual((await verify("acme"))["status"], "valid")
      assert.strictEqual(await firstOf("whole"), 1)
    }
    await begin()
  })

  it("keeps what does not verify, and an alert fires", async () => {
    const swap = (from: string, to: string) =>
      change(
        `ALTER TABLE alk.events UPDATE resource_id = replaceOne(resource_id, '${from}', '${to}')`
          + " WHERE tenant_id = 'whole' AND sequence_number = 3"
      )
    await swap("doc-2", "doc-9")
    await keepFor("whole", 1)
    const rule = rules.find(({ alert }) => alert === "AlkRetentionKept")!
    const firing = async (): Promise<boolean> => {
      const text = await (await fetch(`${running!.url}/metrics`)).text()
      const scrapes = [0, 60, 120].map((at) => ({ at, text }))
      return fires(rule, seriesOf(scrapes), { from: 0, to: 120 })
    }
    const becomes = (wanted: boolean) =>
      eventuallyAsync(
        wanted ? "the alert fires" : "the alert fires no more",
        async () => ({ fires: await firing(), said: said() }),
        (found) => found.fires === wanted
      )
    await becomes(true)
    assert.strictEqual(await firstOf("whole"), 1)
    await keepFor("whole", null)
    await swap("doc-9", "doc-2")
    await becomes(false)
    assert.strictEqual((await verify("whole"))["status"], "valid")
  })

  it("goes on when a hold is released", async () => {
    const path = "/v1/admin/tenants/held/release"
    assert.strictEqual((await admin().call(path, { body: {} })).status, 200)
    assert.strictEqual((await pruned("held"))["up_to_sequence"], OLD)
    assert.strictEqual((await verify("held"))["status"], "valid")
  })

  it("hides nothing: what is changed, removed or comes back is found", async () => {
    const { up_to_sequence: size } = await pruned("acme")
    const reasons = async (tenant: keyof typeof keys) => {
      const { breaks } = await verify(tenant)
      return (breaks as ReadonlyArray<Json>).map(({ reason, sequence_number }) => [
        sequence_number,
        reason
      ])
    }
    await change(
      `ALTER TABLE alk.events DELETE WHERE tenant_id = 'acme' AND sequence_number = ${size + 1}`,
      `ALTER TABLE alk.events DELETE WHERE tenant_id = 'whole' AND sequence_number <= ${OLD}`,
      `ALTER TABLE alk.events UPDATE outcome = 'failure'`
        + ` WHERE tenant_id = 'held' AND sequence_number = ${OLD + 2}`
    )
    assert.deepStrictEqual((await reasons("acme"))[0], [size + 1, "sequence_gap"])
    // Without a pruned point the beginning is missing.
    assert.deepStrictEqual((await reasons("whole"))[0], [1, "sequence_gap"])
    assert.strictEqual((await verify("held"))["status"], "broken")
    await change(
      "INSERT INTO alk.events SELECT * REPLACE (0 AS kafka_offset, 5 AS sequence_number)"
        + " FROM (SELECT * FROM alk.events"
        + ` WHERE tenant_id = 'acme' AND sequence_number = ${size + 3})`
    )
    const returned = (await reasons("acme")).filter(([sequence]) => sequence === 5)
    assert.deepStrictEqual(returned, [[5, "duplicate_sequence"]])
  })
})

describe("the deletion of a tenant", () => {
  const path = "/v1/admin/tenants/leaver"
  const tables = ["events", "facts", "receipts", "conflicts", "span_ids", "set_aside"]

  const rowsOf = async (tenant: string, database = "alk"): Promise<number> => {
    const reader = createClient({ url: running!.store })
    const counts = tables.map(
      (table) => `SELECT count() AS n FROM ${database}.${table} WHERE tenant_id = '${tenant}'`
    )
    const query = `SELECT sum(n) AS rows FROM (${counts.join(" UNION ALL ")})`
    const answer = await reader.query({ query, format: "JSONEachRow" })
    const [first] = await answer.json<{ readonly rows: string }>()
    await reader.close()
    return Number(first!.rows)
  }

  /** Waits until everything is gone. */
  const tombstone = async (): Promise<Json> =>
    eventuallyAsync(
      "the tenant is gone",
      async () => (await admin().call(`${path}/tombstone`)).body,
      (body) => Boolean(body.removed_at)
    )

  it("takes two steps and no hold, and leaves what proves what there was", async () => {
    const post = async (to: string, body: Json) => {
      const answer = await admin().call(to, { body })
      return [answer.status, answer.body.error?.code]
    }
    await admin().call("/v1/admin/tenants", { body: { id: "leaver" } })
    const made = await admin().call(`${path}/keys`, { body: { scopes: ["read", "write"] } })
    const api = new Client(running!.url, made.body.key)
    await api.call("/v1/events/batch?sync=true", { body: { events: eventsOf(20, "leaving") } })
    await api.call("/api/v1/executions", { body: { agent_id: "invoice-triage" } })
    const { body: checkpoint } = await api.call("/v1/chain/checkpoints/latest")
    assert.isAbove(await rowsOf("leaver"), 20)
    assert.deepStrictEqual(await post(`${path}/deletion/confirm`, { tenant: "leaver" }), [
      404,
      "not_found"
    ])
    await post(`${path}/hold`, { reason: "case 8" })
    assert.deepStrictEqual(await post(`${path}/deletion`, {}), [409, "legal_hold"])
    await post(`${path}/release`, {})
    assert.deepStrictEqual(await post(`${path}/deletion`, {}), [200, undefined])
    assert.deepStrictEqual(await post(`${path}/deletion/confirm`, { tenant: "acme" }), [
      400,
      "invalid_request"
    ])
    assert.deepStrictEqual(await post(`${path}/deletion/confirm`, { tenant: "leaver" }), [
      202,
      undefined
    ])
    const left = await tombstone()
    assert.strictEqual(left["events"].size, 20)
    assert.strictEqual(left["events"].root_hash, checkpoint["root_hash"])
    assert.isAbove(left["traces"].size, 0)
    assert.strictEqual(await rowsOf("leaver"), 0)
    assert.strictEqual((await api.call("/v1/events")).status, 401)
    assert.deepStrictEqual(await post("/v1/admin/tenants", { id: "leaver" }), [
      410,
      "tenant_deleted"
    ])
    assert.strictEqual((await admin().call(path)).status, 410)
    const acts = (await admin().all()).map(({ action }) => action)
    assert.includeMembers(acts, ["tenant.deletion_requested", "tenant.deleted", "tenant.removed"])
  })

  it("stays, whatever is started again and built again, and no key of it works", async () => {
    await begin(0, { CLICKHOUSE_DATABASE: "alk_third" })
    // Answered once the view is built again.
    assert.strictEqual(await firstOf("whole"), 1)
    assert.isAbove(await rowsOf("whole", "alk_third"), OLD)
    assert.strictEqual(await rowsOf("leaver", "alk_third"), 0)
    const deletion = "/v1/admin/tenants/whole/deletion"
    await admin().call(deletion, { body: {} })
    await admin().call(`${deletion}/confirm`, { body: { tenant: "whole" } })
    // A key of the configuration, which no deletion takes away.
    const { body, status } = await clientOf("whole").call("/v1/events")
    assert.strictEqual(status, 401)
    assert.include(body.error.message, "tenant whole was deleted")
  })
})
