import { rmSync } from "node:fs"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { allTenants, blackBox, event } from "../support/BlackBox.ts"
import { Client } from "../support/Client.ts"
import { ADMIN_TOKEN, freshFolder, type Started, start, testKey } from "../support/Program.ts"
import { inFiles } from "../support/SecretFiles.ts"
import { assertComplete, assertInTable } from "../support/ServedMetrics.ts"
import { allTraceTenants, traceBlackBox } from "../support/TraceBlackBox.ts"

const folder = freshFolder("embedded")
const keyOf = (tenant: string): string => testKey(tenant)
const keys = [...allTenants, ...allTraceTenants, "population"]
  .map((tenant) => `${keyOf(tenant)}=${tenant}:read+write`)
  .join(",")
const environment = {
  ALK_DATA_DIR: folder,
  ...inFiles({ ALK_ADMIN_TOKEN: ADMIN_TOKEN, ALK_BOOTSTRAP_KEYS: keys })
}

let running: Started

beforeAll(async () => {
  running = await start(environment)
})

afterAll(async () => {
  await running.stop()
  rmSync(folder, { recursive: true, force: true })
})

blackBox(() => ({
  urls: [running.url],
  bootstrap: running.topics,
  topicPrefix: "alk",
  keyOf
}))

traceBlackBox(() => ({ urls: [running.url], keyOf }))

describe("what it tells of itself", () => {
  it("counts what was accepted, rejected, deduplicated, committed, and how long it took", async () => {
    const api = new Client(running.url, keyOf("population"))
    const sync = { headers: { "x-service-sync": "true" } }
    const one = { ...event(1), id: "metrics-1" }
    await api.batch([one, one, { ...event(2), action: "nodots" }], sync)
    const metrics = await new Client(running.url, "").call("/metrics")
    assert.strictEqual(metrics.status, 200)
    const value = (name: string): number =>
      metrics.text
        .split("\n")
        .filter((line) => line.startsWith(name) && !line.startsWith("#"))
        .reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0)
    assert.isAbove(value("alk_ingest_accepted_items_total"), 1)
    assert.isAbove(value("alk_ingest_rejected_items_total"), 0)
    assert.isAbove(value("alk_events_deduplicated_total"), 0)
    assert.isAbove(value("alk_events_committed_total"), 0)
    assert.isAbove(value("alk_commit_duration_seconds_count"), 0)
    assert.isAbove(value("alk_projection_flush_rows_count"), 0)
    assert.isAbove(value("alk_projection_flush_duration_seconds_count"), 0)
    for (const name of ["alk_sequencer_lag_commands{", "alk_projection_lag_records{"]) {
      assert.include(metrics.text, name)
    }
    assert.include(metrics.text, "alk_live_subscribers")
    // Nothing of any tenant.
    assert.notInclude(metrics.text, "population")
    assert.notInclude(metrics.text, "bb-")
  })

  it("serves the metrics that the table has, and no others", async () => {
    const { text } = await new Client(running.url, "").call("/metrics")
    assertInTable(text)
    assertComplete(text)
  })

  it("says that it is ready, names every part, and logs no key", async () => {
    const { body, status } = await new Client(running.url, "").call("/readyz")
    assert.strictEqual(status, 200)
    assert.strictEqual(body.kafka.bootstrap, running.kafka)
    for (const part of ["kafka", "sequencer", "projection", "clickhouse"]) {
      assert.strictEqual(body[part].state, "ready", part)
    }
    assert.notInclude(running.output(), keyOf("population"))
    assert.notInclude(running.output(), ADMIN_TOKEN)
    // Some of these tests send items that are rejected: a warning each, and no other.
    const warnings = running
      .output()
      .split("\n")
      .filter((line) => line.includes('"level":"warn"'))
    for (const line of warnings) assert.include(line, '"items were rejected"')
  })
})
