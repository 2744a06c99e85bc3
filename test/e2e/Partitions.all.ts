/**
 * Partitions are added to a service under load: as one program with a worker, and as separate
 * processes of each role, of which the one that adds them is killed meanwhile. Tenants stay where they
 * are, new ones get the new partitions, and an independent reader finds in the topics exactly what was
 * acknowledged, chained without a gap.
 */
import { readFileSync, rmSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { Kafka, logLevel } from "kafkajs"
import { afterAll, assert, describe, inject, it } from "vitest"
import { begin, type Ended, endCommands } from "../cli/CommandRuns.ts"
import { checkChain, readTopic } from "../support/BlackBox.ts"
import { Client, type Json } from "../support/Client.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { GrowthLoad } from "../support/GrowthLoad.ts"
import {
  ADMIN_TOKEN,
  freshFolder,
  type Started,
  start,
  TEST_SECRET,
  testKey
} from "../support/Program.ts"
import { signingKeyIn } from "../support/SigningKeyFile.ts"

const FIRST = 4
const THEN = 8
/** Tenants of the configuration, and some that are made before and after. */
const CONFIGURED = ["conf-a", "conf-b", "conf-c"]
const EARLY = ["early-1", "early-2"]
const LATE = Array.from({ length: 10 }, (_, index) => `late-${index}`)

const murmur2 = createRequire(import.meta.url)(
  "kafkajs/src/producer/partitioners/default/murmur2"
) as (text: string) => number
const placed = (tenant: string, partitions: number) => (murmur2(tenant) & 0x7fff_ffff) % partitions

const keys = CONFIGURED.map((tenant) => `${testKey(tenant)}=${tenant}:read+write`).join(",")
const root = freshFolder("partitions")

afterAll(() => {
  endCommands()
  rmSync(root, { recursive: true, force: true })
})

const run = (
  variables: Readonly<Record<string, string>>,
  ...args: ReadonlyArray<string>
): Promise<Ended> => {
  const { HOME, PATH } = process.env
  return begin(args, { ...(HOME && { HOME }), ...(PATH && { PATH }), ...variables }).ended
}

const alk = (url: string, ...args: ReadonlyArray<string>): Promise<Ended> =>
  run({ ALK_URL: url, ALK_ADMIN_TOKEN: ADMIN_TOKEN }, "partitions", ...args)

const admin = (url: string) => new Client(url, ADMIN_TOKEN, true, 60)

/** A tenant with a key, made over the API. */
const makeTenant = async (url: string, id: string): Promise<string> => {
  const made = await admin(url).call("/v1/admin/tenants", { body: { id } })
  assert.strictEqual(made.status, 201, made.text)
  const body = { scopes: ["read", "write"] }
  // Another process of the same port may hear of the tenant a moment later.
  const created = await eventuallyAsync(
    `${id} has a key`,
    () => admin(url).call(`/v1/admin/tenants/${id}/keys`, { body }),
    ({ status }) => status === 201
  )
  return created.body.key
}

interface Seen {
  readonly url: string
  readonly bootstrap: string
  readonly prefix: string
  readonly load: GrowthLoad
  readonly keyOf: (tenant: string) => string
}

/** What the topics hold of each tenant is what was acknowledged, once, in one partition, in a chain. */
const assertWhole = async ({ bootstrap, keyOf, load, prefix, url }: Seen): Promise<void> => {
  for (const [tenant, { acknowledged }] of load.tenants) {
    const records = await eventuallyAsync(
      `all ${acknowledged.size} events of ${tenant} are in the topic`,
      () => readTopic(bootstrap, `${prefix}.events`, tenant),
      ({ length }) => length >= acknowledged.size
    )
    const bodies = records.map(({ value }) => JSON.parse(value) as Json)
    assert.strictEqual(bodies.length, acknowledged.size, tenant)
    assert.deepStrictEqual(new Set(bodies.map(({ id }) => id as string)), acknowledged)
    const expected = placed(tenant, LATE.includes(tenant) ? THEN : FIRST)
    assert.deepStrictEqual([...new Set(records.map(({ partition }) => partition))], [expected])
    await checkChain(records.map(({ value }) => value))
    const verified = await new Client(url, keyOf(tenant), true, 60).call("/v1/verify")
    assert.strictEqual(verified.status, 200, verified.text)
    assert.isTrue(verified.body.valid, `${tenant}: ${verified.text}`)
    assert.strictEqual(verified.body.events_checked, acknowledged.size, verified.text)
  }
}

const acts = async (bootstrap: string, prefix: string) =>
  (await readTopic(bootstrap, `${prefix}.events`, "_system"))
    .map(({ value }) => (JSON.parse(value) as Json)["action"] as string)
    .filter((action) => action.startsWith("partitions."))

describe("a program with a worker", () => {
  it("gets partitions under load, and keeps them when it is started again", async () => {
    const variables = {
      ALK_WORKERS: "1",
      ALK_DATA_DIR: join(root, "program"),
      // The commands beside it have the same environment.
      ALK_KAFKA_PORT: "0",
      ALK_ADMIN_TOKEN: ADMIN_TOKEN,
      ALK_BOOTSTRAP_KEYS: keys,
      ALK_PARTITIONS: String(FIRST)
    }
    let running = await start(variables)
    try {
      const tenantKeys = new Map(CONFIGURED.map((tenant) => [tenant, testKey(tenant)]))
      for (const tenant of EARLY) tenantKeys.set(tenant, await makeTenant(running.url, tenant))
      const load = new GrowthLoad(() => [running.url])
      for (const [tenant, key] of tenantKeys) load.add(tenant, key)
      await load.more(50)
      const backups = join(root, "backup")
      const backup = () =>
        run({ ...variables, LOG_LEVEL: "error" }, "backup", "-o", backups, "--json")
      const first = await backup()
      assert.strictEqual(first.end, 0, first.errors)

      const planned = await alk(running.url, "add", "--to", "8", "--dry-run")
      assert.strictEqual(planned.end, 0, planned.errors)
      assert.deepInclude(JSON.parse(planned.output), { state: "planned", partitions: FIRST })
      const fewer = await alk(running.url, "add", "--to", "3")
      assert.notStrictEqual(fewer.end, 0)
      assert.include(fewer.errors, "must not be less than 4")

      const grown = await alk(running.url, "add", "--to", "8")
      assert.strictEqual(grown.end, 0, grown.errors)
      assert.deepInclude(JSON.parse(grown.output), { state: "done", counts: [FIRST, THEN] })
      for (const tenant of LATE) {
        const key = await makeTenant(running.url, tenant)
        tenantKeys.set(tenant, key)
        load.add(tenant, key)
      }
      await load.more(50)
      await load.end()
      const seen = {
        prefix: "alk",
        load,
        keyOf: (tenant: string) => tenantKeys.get(tenant)!
      }
      await assertWhole({ ...seen, url: running.url, bootstrap: running.topics })
      assert.isAtLeast(new Set(LATE.map((tenant) => placed(tenant, THEN))).size, 4)
      assert.deepStrictEqual(await acts(running.topics, "alk"), [
        "partitions.growth_begun",
        "partitions.added",
        "partitions.growth_completed"
      ])

      // ALK_PARTITIONS is that of the first start: what the registry says counts.
      await running.stop()
      running = await start({ ...variables, ALK_PARTITIONS: "2" })
      const ready = await fetch(`${running.url}/readyz`)
      assert.strictEqual(ready.status, 200)
      const again = new GrowthLoad(() => [running.url])
      for (const tenant of [...CONFIGURED, ...LATE]) {
        // Ids of before are duplicates: they are acknowledged and stored once.
        again.add(tenant, tenantKeys.get(tenant)!)
      }
      await again.more(20)
      await again.end()
      for (const [tenant, { acknowledged }] of again.tenants) {
        for (const id of acknowledged) load.tenants.get(tenant)!.acknowledged.add(id)
      }
      await assertWhole({ ...seen, url: running.url, bootstrap: running.topics })

      // The backup of before goes on, and what is restored from it is whole.
      const second = await backup()
      assert.strictEqual(second.end, 0, second.errors)
      await running.stop()
      const restored = { ...variables, ALK_DATA_DIR: join(root, "restored") }
      const narrow = await run(restored, "restore", backups)
      assert.include(narrow.errors, `set ALK_PARTITIONS=${THEN}`)
      const wide = { ...restored, ALK_PARTITIONS: String(THEN), LOG_LEVEL: "error" }
      const done = await run(wide, "restore", backups, "--json")
      assert.strictEqual(done.end, 0, done.errors)
      running = await start(restored)
      await assertWhole({ ...seen, url: running.url, bootstrap: running.topics })
    } finally {
      await running.stop()
    }
  }, 1_800_000)
})

describe("processes of each role", () => {
  const prefix = `parts${process.pid}`
  const storeFolder = join(root, "store")
  const signingKey = signingKeyIn(root)
  const tenantKeys = new Map(CONFIGURED.map((tenant) => [tenant, testKey(tenant)]))
  const processes: Array<Started> = []
  afterAll(async () => {
    for (const one of processes.toReversed()) await one.stop()
  })

  const common = (): Record<string, string> => ({
    ALK_SECRET: TEST_SECRET,
    ALK_TOPIC_PREFIX: prefix,
    ALK_PARTITIONS: String(FIRST),
    ALK_REPLICATION: "1",
    ALK_ADMIN_TOKEN: ADMIN_TOKEN,
    ALK_SIGNING_KEY_FILE: signingKey,
    KAFKA_BROKERS: inject("bootstrap"),
    ALK_BOOTSTRAP_KEYS: keys
  })
  const startRole = async (role: string, more: Record<string, string> = {}): Promise<Started> => {
    const lines = readFileSync(join(storeFolder, "processes.env"), "utf8").trim().split("\n")
    const ofStore = Object.fromEntries(lines.map((line) => line.split("=")))
    const environment = { ...common(), ...more, ALK_ROLES: role, ALK_WORKER_PORT: "0", ...ofStore }
    const one = await start(environment)
    processes.push(one)
    return one
  }
  const growths = () => readTopic(inject("bootstrap"), `${prefix}.registry`, "partitions/topics")

  it("take partitions up under load, though the process that adds them is killed", async () => {
    processes.push(await start({ ...common(), ALK_ROLES: "store", ALK_DATA_DIR: storeFolder }))
    for (const role of ["sequencer", "sequencer"]) await startRole(role)
    const projections = [await startRole("projection"), await startRole("projection")]
    const first = await startRole("api")
    const second = await startRole("api")
    for (const tenant of EARLY) tenantKeys.set(tenant, await makeTenant(second.url, tenant))
    let urls = [first.url, second.url]
    const load = new GrowthLoad(() => urls)
    for (const [tenant, key] of tenantKeys) load.add(tenant, key)
    await load.more(50)

    // It waits for them, so it is under way for certain when the process that adds them is killed.
    for (const { pid } of projections) process.kill(pid, "SIGSTOP")
    const interrupted = alk(first.url, "add", "--to", "8", "--quiet")
    try {
      await eventuallyAsync("the growth has begun", growths, ({ length }) => length > 0)
      await first.kill()
    } finally {
      for (const { pid } of projections) process.kill(pid, "SIGCONT")
    }
    urls = [second.url]
    assert.notStrictEqual((await interrupted).end, 0)
    const shown = await alk(second.url, "show")
    assert.strictEqual(JSON.parse(shown.output).growing_to, THEN, shown.output)
    const other = await alk(second.url, "add", "--to", "16")
    assert.include(other.errors, "a growth to that number is under way")
    const grown = await alk(second.url, "add", "--to", "8")
    assert.strictEqual(grown.end, 0, grown.errors)
    assert.deepInclude(JSON.parse(grown.output), { state: "done", counts: [FIRST, THEN] })

    const third = await startRole("api")
    urls = [second.url, third.url]
    for (const tenant of LATE) {
      const key = await makeTenant(third.url, tenant)
      tenantKeys.set(tenant, key)
      load.add(tenant, key)
    }
    await load.more(50)
    await load.end()
    const keyOf = (tenant: string) => tenantKeys.get(tenant)!
    for (const { url } of [second, third]) {
      await assertWhole({ bootstrap: inject("bootstrap"), prefix, load, keyOf, url })
    }
  }, 1_800_000)

  it("don't start on topics that somebody has grown by hand", async () => {
    const kafka = new Kafka({ brokers: [inject("bootstrap")], logLevel: logLevel.NOTHING })
    const byHand = kafka.admin()
    await byHand.connect()
    await byHand.createPartitions({ topicPartitions: [{ topic: `${prefix}.events`, count: 9 }] })
    await byHand.disconnect()
    const message = await startRole("sequencer").then(
      () => "it has started",
      (error: Error) => error.message
    )
    assert.include(message, `the topics don't have the 8 partitions that alk.registry says`)
    assert.include(message, `${prefix}.events has 9, not 8`)
  })
})
