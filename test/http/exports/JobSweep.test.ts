/** What is swept: of a deleted tenant everything at once, of others nothing that is kept. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { emptyFilter } from "../../../src/domain/events/EventFilter.ts"
import { currentTime, formatMicros, nowMicros } from "../../../src/domain/Timestamp.ts"
import { sweep } from "../../../src/http/exports/jobs/JobSweep.ts"
import { ExportFolder } from "../../../src/ports/ExportFolder.ts"
import type { ExportJob } from "../../../src/ports/ExportJob.ts"

const HOUR_MICROS = 3_600_000_000

const job = (tenantId: string, status: "done" | "running"): ExportJob => {
  const now = currentTime()
  return {
    id: `job-of-${tenantId}-${status}`,
    tenant_id: tenantId,
    kind: "csv",
    pdf: false,
    filter: emptyFilter,
    created_by: "key_1",
    created_at: now,
    status,
    stage: "writing",
    alive_at: now,
    ...(status === "done"
      ? { finished_at: now, expires_at: formatMicros(nowMicros() + HOUR_MICROS) }
      : {})
  }
}

describe("the sweep of exports", () => {
  it.effect("stops and removes all there is of a deleted tenant, and nothing else", () => {
    const done: Array<string> = []
    const jobs = (["done", "running"] as const).flatMap((status) => [
      job("acme", status),
      job("gone", status)
    ])
    const note = (what: string) => (name: { readonly id: string }) =>
      Effect.sync(() => void done.push(`${what} ${name.id}`))
    return Effect.gen(function* () {
      yield* sweep(yield* ExportFolder, (tenantId) => tenantId === "gone")
      assert.deepStrictEqual(done, [
        "stop job-of-gone-done",
        "remove job-of-gone-done",
        "stop job-of-gone-running",
        "remove job-of-gone-running"
      ])
    }).pipe(
      Effect.provide(
        Layer.mock(ExportFolder, {
          all: Effect.succeed(jobs.map((one) => ({ job: one, isStopped: false }))),
          stop: note("stop"),
          remove: note("remove")
        })
      )
    )
  })
})
