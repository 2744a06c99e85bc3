/**
 * A running service as other people's log: `fsck` of transparency-dev/tessera goes over the trees
 * of several tenants, and finds what was changed in the database.
 */
import { rmSync } from "node:fs"
import { createClient } from "@clickhouse/client"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { Client } from "../support/Client.ts"
import { type Fsck, fsck, hasGo, installFsck } from "../support/Fsck.ts"
import { populate } from "../support/Population.ts"
import { freshFolder, type Started, start, testKey } from "../support/Program.ts"
import { fillSpan, openSpan } from "../support/TraceLoad.ts"

const sizes = {
  mixed: 3_333,
  exact: 256,
  wide: 65_536,
  one: 1,
  growing: 5_000,
  tampered: 1_500
} as const
type Tenant = keyof typeof sizes
const tenants = Object.keys(sizes) as ReadonlyArray<Tenant>

const TRACE_EVENTS = 2_000

const folder = freshFolder("fsck-data")
let running: Started
let program: string
let vkey: string

const client = (tenant: Tenant) => new Client(running.url, testKey(tenant))

const lengthOf = async (tenant: Tenant, chain: "events" | "traces"): Promise<number> =>
  (await client(tenant).call(`/v1/chain?chain=${chain}`)).body.length

const check = (tenant: Tenant, chain: "events" | "traces"): Promise<Fsck> =>
  fsck(program, {
    url: `${running.url}/v1/tlog/${chain}/`,
    key: testKey(tenant),
    origin: chain === "events" ? `alk/${tenant}` : `alk/${tenant}/traces`,
    vkey
  })

/** Puts a copy with another hash in the place of a row. */
const changeHash = async (table: string, row: string): Promise<void> => {
  const intruder = createClient({ url: running.store })
  const hash = "lower(hex(SHA256('changed')))"
  const statements = [
    `INSERT INTO ${table} SELECT * REPLACE (${hash} AS hash) FROM ${table} WHERE ${row}`,
    `ALTER TABLE ${table} DELETE WHERE ${row} AND hash != ${hash}`
  ]
  for (const query of statements) {
    await intruder.command({ query, clickhouse_settings: { mutations_sync: "1" } })
  }
  await intruder.close()
}

describe.skipIf(!hasGo)("fsck of tessera (skipped where Go is not installed)", () => {
  beforeAll(async () => {
    program = await installFsck()
    running = await start({
      ALK_DATA_DIR: folder,
      LOG_LEVEL: "warn",
      // The store of this process also answers others: the intruder of these tests.
      ALK_ROLES: "api,sequencer,projection,store",
      ALK_EMBEDDED_OPEN: "true",
      ALK_BOOTSTRAP_KEYS: tenants.map((name) => `${testKey(name)}=${name}:read+write`).join(",")
    })
    const { body } = await new Client(running.url, "").call("/.well-known/alk-keys.json")
    vkey = body.vkeys[0]
    for (const tenant of tenants) await populate(client(tenant), sizes[tenant])
    for (const tenant of ["mixed", "tampered"] as const) {
      await openSpan(client(tenant), tenant)
      await fillSpan(client(tenant), `${tenant}-span`, TRACE_EVENTS, 20)
    }
  }, 900_000)

  afterAll(async () => {
    await running.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  it.each(tenants)("finds the events of %s in order", async (tenant) => {
    const { output, size } = await check(tenant, "events")
    assert.strictEqual(size, sizes[tenant], output)
  })

  it("finds trace facts in order, and the log as it has grown", async () => {
    const length = await lengthOf("mixed", "traces")
    assert.isAbove(length, TRACE_EVENTS)
    const first = await check("mixed", "traces")
    assert.strictEqual(first.size, length, first.output)
    await openSpan(client("mixed"), "later")
    await fillSpan(client("mixed"), "later-span", 300, 20)
    const grown = await lengthOf("mixed", "traces")
    assert.isAtLeast(grown, length + 300)
    await populate(client("mixed"), 400)
    const [traces, events] = [await check("mixed", "traces"), await check("mixed", "events")]
    assert.strictEqual(traces.size, grown, traces.output)
    assert.strictEqual(events.size, sizes.mixed + 400, events.output)
  })

  it("finds a log in order that grows all the time", async () => {
    let isChecked = false
    const grow = async () => {
      for (let round = 0; !isChecked || round < 5; round++) await populate(client("growing"), 1_000)
    }
    const growing = grow()
    const found: Array<number | undefined> = []
    for (let times = 0; times < 5; times++) {
      const { output, size } = await check("growing", "events")
      assert.isDefined(size, output)
      found.push(size)
    }
    isChecked = true
    await growing
    assert.isAbove(found.at(-1)!, sizes.growing)
    assert.deepStrictEqual(
      found,
      found.toSorted((left, right) => left! - right!)
    )
    assert.strictEqual((await check("growing", "events")).size, await lengthOf("growing", "events"))
  })

  it("finds the log of another tenant or service to be another one", async () => {
    const asked = { url: `${running.url}/v1/tlog/events/`, key: testKey("one"), vkey }
    const { output, size } = await fsck(program, { ...asked, origin: "alk/mixed" })
    assert.isUndefined(size)
    assert.include(output, "failed to fetch and verify checkpoint")
  })

  it("fails where one hash was changed in the database", async () => {
    for (const chain of ["events", "traces"] as const) {
      assert.strictEqual((await check("tampered", chain)).size, await lengthOf("tampered", chain))
    }
    await changeHash("alk.events", "tenant_id = 'tampered' AND sequence_number = 700")
    await changeHash("alk.facts", "tenant_id = 'tampered' AND chain_sequence = 1999")
    for (const chain of ["events", "traces"] as const) {
      const { output, size } = await check("tampered", chain)
      assert.isUndefined(size, chain)
      assert.include(output, "503", chain)
    }
    assert.strictEqual((await check("exact", "events")).size, sizes.exact)
  })
})
