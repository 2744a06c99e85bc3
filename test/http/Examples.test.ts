/**
 * The examples of the reference page run as they stand: every body and every parameter that the
 * document shows is sent to a fresh service, in an order in which what they name exists.
 */
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { sha256Hex } from "../../src/domain/Identifiers.ts"
import type { RegistryChange } from "../../src/domain/registry/RegistryEntry.ts"
import { openApiDocument } from "../../src/http/Api.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { bodiesOf, operationsOf, queriesOf } from "../support/ExampleRequests.ts"
import { quarantined } from "../support/Quarantined.ts"
import { ADMIN_TOKEN, OTHER_KEY, World } from "./support/Doubles.ts"
import { item } from "./support/Events.ts"
import { ExportWorld, startExports } from "./support/ExportDoubles.ts"
import type { TestApi } from "./support/TestApi.ts"

const document: any = openApiDocument()

const STREAMS = ["/v1/events/stream", "/api/v1/executions/{id}/stream"]

/** Keys that work are in no document. */
const signsIn = (path: string): boolean => path === "/v1/session"

/** Waits until the file of an export job is there. */
const fileOf = async (api: TestApi, id: string): Promise<void> => {
  const job = await eventuallyAsync(
    "the export has ended",
    async () => (await api.call(`/v1/exports/${id}`, { key: OTHER_KEY })).body,
    ({ status }) => status !== "queued" && status !== "running"
  )
  assert.strictEqual(job.status, "done")
}

/**
 * What the document does to a tenant stays: a deleted one is there again after each such example, and
 * gone while what is left of it is shown. Comes back with what has to be taken afterwards.
 */
const deletedMeanwhile = (world: World, path: string): ReadonlyArray<RegistryChange> => {
  const { registry } = world.state
  const tenant = registry.tenant("initech")
  if (tenant === undefined) return []
  const gone: RegistryChange = { kind: "removed", key: "tombstone/initech" }
  if (path.endsWith("/tombstone")) {
    const tombstone = { tenant_id: tenant.id, deleted_at: tenant.created_at, deleted_by: "admin" }
    registry.take([{ kind: "tombstone", tombstone }])
    return [gone]
  }
  if (!path.endsWith("/deletion/confirm")) return []
  const retention = registry.retention(tenant.id)
  return [
    gone,
    { kind: "tenant", tenant },
    ...[...registry.keysOf(tenant.id)].map((key): RegistryChange => ({ kind: "key", key })),
    ...(retention === undefined ? [] : [{ kind: "retention" as const, retention }])
  ]
}

describe("the examples of the document", () => {
  let api: TestApi
  const world = new World()
  beforeAll(async () => {
    api = await startExports(world, new ExportWorld())
  })
  afterAll(() => api.stop())

  it("are answered with 2xx, each as it stands", async () => {
    const known: Record<string, string> = { chain: "events", level: "0", index: "000.p/1" }
    const operations = operationsOf(document).filter(({ path }) => !STREAMS.includes(path))
    // Something to prove: two checkpoints need a chain.
    await api.call("/v1/events?sync=true", { key: OTHER_KEY, json: item(1, { id: "first" }) })
    await api.call("/v1/chain/checkpoints/latest", { key: OTHER_KEY })
    const text = "A long prompt. ".repeat(5_000)
    await api.call("/api/v1/executions", {
      key: OTHER_KEY,
      json: { agent_id: "writer", metadata: { text } }
    })
    known["sha256"] = sha256Hex(text)
    const aside = quarantined(0, 17)
    world.quarantined.push(aside)
    known["/v1/admin/quarantine/:id"] = aside.id
    const odd: Array<string> = []
    let sent = 0
    for (const { method, operation, path } of operations) {
      const bodies = bodiesOf(document, operation)
      assert.isNotEmpty(bodies, `${method} ${path} has no example of its body`)
      for (const body of bodies) {
        for (const query of queriesOf(operation)) {
          const target = path.replace(/\{(\w+)\}/g, (_, name: string) =>
            encodeURIComponent(
              known[`${path.split("{")[0]}:${name === "other" ? "id" : name}`]
                ?? known[name]
                ?? "missing"
            )
          )
          const restored = deletedMeanwhile(world, path)
          const answer = await api.call(query === "" ? target : `${target}?${query}`, {
            method: method.toUpperCase(),
            key: path.includes("/admin/")
              ? ADMIN_TOKEN
              : operation.security?.[0]?.share_token !== undefined
                ? known["token"]!
                : OTHER_KEY,
            ...(body === undefined ? {} : { json: signsIn(path) ? { key: OTHER_KEY } : body })
          })
          sent += 1
          world.state.registry.take(restored)
          if (answer.status >= 300) {
            odd.push(`${method} ${target}?${query}: ${answer.status} ${answer.text.slice(0, 200)}`)
          }
          const { body: made } = answer
          if (method !== "post" || made === undefined) continue
          if (path === "/v1/events") known["/v1/events/:id"] = made.id
          if (path === "/v1/events") known["/v1/verify/events/:id"] = made.id
          if (path === "/v1/events") known["/v1/receipts/:id"] = made.receipt_id
          if (path === "/api/v1/executions") known["/api/v1/executions/:id"] ??= made.id
          if (path === "/api/v1/executions/{id}/spans") known["/api/v1/spans/:id"] ??= made.id
          if (path === "/v1/share/links") known["/v1/share/links/:id"] = made.id
          if (path === "/v1/share/links") known["token"] = made.token
          if (path === "/v1/exports") {
            known["/v1/exports/:id"] = made.id
            await fileOf(api, made.id)
          }
          if (path === "/v1/admin/tenants") known["tenant"] = made.id
          if (path.startsWith("/v1/admin/quarantine/")) {
            const key = `quarantine_act/${aside.id}`
            world.state.registry.take([{ kind: "removed", key }])
          }
          if (path.endsWith("/keys")) known["key"] = made.id
        }
      }
    }
    assert.deepStrictEqual(odd, [])
    assert.isAbove(sent, operations.length)
  })
})
