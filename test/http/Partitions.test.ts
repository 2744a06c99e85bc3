/**
 * The routes of the number of partitions, over a sequencer that is the real step: what is refused, what
 * a growth writes down, and that it is repeated from wherever it was interrupted.
 */
import { Duration } from "effect"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import type { GrowthStep } from "../../src/domain/registry/RegistryEntry.ts"
import { PROBE_TIMEOUT } from "../../src/services/commands/Probe.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { ADMIN_TOKEN, READ_KEY, World, WRITE_KEY } from "./support/Doubles.ts"
import { item } from "./support/Events.ts"
import { TestApi } from "./support/TestApi.ts"

const NOW = "2026-11-21T12:00:00.000000Z"

describe("the number of partitions", () => {
  let world: World
  let api: TestApi
  beforeEach(async () => {
    world = new World()
    api = await TestApi.start({}, world)
  })
  afterEach(() => api.stop())

  const ask = (json?: unknown, key = ADMIN_TOKEN) =>
    api.call("/v1/admin/partitions", { key, ...(json === undefined ? {} : { json }) })
  const acts = () =>
    world.bodies
      .map((body) => JSON.parse(body))
      .filter(({ action }) => action.startsWith("partitions."))
      .map(({ action, actor, metadata }) => [action, actor.id, metadata.from, metadata.to])
  const kinds = ["commands", "events", "traces", "checkpoints", "receipts", "state"]
  const topics = (partitions: number) =>
    [...kinds, "progress", "quarantine"].map((topic) => ({ topic, partitions }))

  it("is shown to the administrator alone", async () => {
    const { body, status } = await ask()
    assert.strictEqual(status, 200)
    assert.deepStrictEqual(body, { partitions: 1, counts: [1], topics: topics(1) })
    assert.strictEqual((await ask(undefined, READ_KEY)).status, 401)
    assert.strictEqual((await ask({ to: 4 }, READ_KEY)).status, 401)
    assert.strictEqual(world.counted, 1)
  })

  it("grows, which is in the log, and holds for tenants that are made after it", async () => {
    const tenant = async (id: string) =>
      (await api.call("/v1/admin/tenants", { key: ADMIN_TOKEN, json: { id } })).body
    assert.notProperty(await tenant("before"), "partitions")
    const planned = await ask({ to: 4, dry_run: true })
    assert.deepInclude(planned.body, { state: "planned", partitions: 1 })
    assert.deepStrictEqual(acts(), [])
    const { body, status } = await ask({ to: 4 })
    assert.strictEqual(status, 200, JSON.stringify(body))
    const grown = { partitions: 4, counts: [1, 4], topics: topics(4) }
    assert.deepStrictEqual(body, { state: "done", ...grown, waiting_for: [] })
    assert.deepStrictEqual((await ask()).body, grown)
    assert.deepStrictEqual(acts(), [
      ["partitions.growth_begun", "admin", 1, 4],
      ["partitions.added", "admin", 1, 4],
      ["partitions.growth_completed", "admin", 1, 4]
    ])
    assert.strictEqual(world.state.registry.dataVersion()?.version, 2)
    assert.strictEqual((await tenant("after")).partitions, 4)
    const countsOf = (id: string) => world.state.registry.tenant(id)?.partitions
    assert.deepStrictEqual(["before", "after"].map(countsOf), [undefined, 4])
    // It has records, so it stays where they are.
    const { status: sent } = await api.call("/v1/events?sync=true", {
      key: WRITE_KEY,
      json: item(1)
    })
    assert.strictEqual(sent, 201)
    assert.notProperty(await tenant("acme"), "partitions")
    // Asked for once more it is done already.
    assert.deepInclude((await ask({ to: 4 })).body, { state: "done", partitions: 4 })
    assert.strictEqual(acts().length, 3)
  })

  it("goes on where a growth was interrupted, with what the registry knows of it", async () => {
    const write = (...steps: ReadonlyArray<GrowthStep>) => {
      const counts = [1]
      const step = steps.at(-1)
      const partitions = {
        id: "topics" as const,
        counts,
        topics: step === "begin" ? 1 : 4,
        ...(step === "begin" ? { growing_to: 4 } : {}),
        changed_at: NOW
      }
      world.state.registry.take([{ kind: "partitions", partitions }])
    }
    write("begin")
    assert.deepInclude((await ask()).body, { partitions: 1, counts: [1], growing_to: 4 })
    // Some topics had grown when it ended; another number would leave them torn.
    assert.deepInclude((await ask({ to: 8 })).body.error, { code: "invalid_request", field: "to" })
    assert.deepInclude((await ask({ to: 4 })).body, { state: "done", counts: [1, 4] })
    assert.deepStrictEqual(
      acts().map(([action]) => action),
      ["partitions.added", "partitions.growth_completed"]
    )
  })

  it("is told what it waits for while nobody works on a new partition", async () => {
    world.probesStuck = true
    const waitedFor = async () => {
      await eventuallyAsync(
        "the new partition is probed",
        () => world.commands.map(({ kind }) => kind),
        (kinds) => kinds.includes("probe")
      )
      world.clock.forward(Duration.toMillis(PROBE_TIMEOUT))
    }
    const [waiting] = await Promise.all([ask({ to: 2 }), waitedFor()])
    assert.deepInclude(waiting.body, { state: "waiting", partitions: 2, waiting_for: [1] })
    assert.deepInclude((await ask()).body, { counts: [1], growing_to: 2 })
    world.probesStuck = false
    assert.deepInclude((await ask({ to: 2 })).body, { state: "done", counts: [1, 2] })
  })

  it("never shrinks, has an end, and is not what somebody has changed by hand", async () => {
    await ask({ to: 4 })
    const refused = async (to: unknown) => {
      const { body, status } = await ask({ to })
      assert.strictEqual(status, 400)
      return body.error.message
    }
    assert.strictEqual(
      await refused(3),
      "to: must not be less than 4: topics never lose partitions"
    )
    assert.strictEqual(await refused(1_025), "to: must be an integer from 1 to 1024")
    assert.strictEqual(await refused("8"), "to: must be an integer from 1 to 1024")
    world.counted = 6
    assert.strictEqual(
      await refused(8),
      "to: the topics have to be of 4 partitions, but commands has 6: it was changed by hand"
    )
  })
})
