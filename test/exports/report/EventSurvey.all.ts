import { Effect, Exit, Layer } from "effect"
import { assert, describe, it } from "vitest"
import { matcherOf } from "../../../src/exports/report/ActionPattern.ts"
import { collectEvidence } from "../../../src/exports/report/Evidence.ts"
import { CheckedEvents } from "../../../src/verify/CheckedEvents.ts"
import { verificationOf } from "./support/Inputs.ts"
import { type EventAt, plausible, syntheticStore } from "./support/SyntheticStore.ts"
import { syntheticTraces, traceScope } from "./support/SyntheticTraces.ts"

describe("the evidence of 120,000 events", () => {
  const evidenceOf = (size: number) =>
    Effect.runPromise(
      collectEvidence({
        tenantId: "acme",
        filter: { metadata: [] },
        verification: verificationOf(size, plausible),
        deduplicate: false,
        isPrivileged: matcherOf(["user.role-add"]),
        traces: traceScope
      }).pipe(Effect.provide([syntheticStore({ size, eventAt: plausible }), syntheticTraces(size)]))
    )

  it("takes no more room than that of 12,000", async () => {
    const sizes: Array<number> = []
    for (const size of [12_000, 120_000]) {
      const evidence = await evidenceOf(size)
      assert.strictEqual(evidence.survey.events, size)
      assert.strictEqual(evidence.traces.spans, 2 * size)
      sizes.push(JSON.stringify(evidence).length)
    }
    assert.isBelow(sizes[1]!, 1.1 * sizes[0]!)
  })
})

describe("the evidence of a selection", () => {
  const filters = { some: { metadata: [], outcome: "failure" }, all: { metadata: [] } } as const
  const evidenceOf = (filter: (typeof filters)["some" | "all"], eventAt: EventAt) => {
    const size = 120
    // What the chain says is the same, whatever the store selects.
    const checked = Layer.effect(
      CheckedEvents,
      CheckedEvents.pipe(Effect.provide(syntheticStore({ size, eventAt: plausible })))
    )
    return collectEvidence({
      tenantId: "acme",
      filter,
      verification: verificationOf(size, plausible),
      deduplicate: false,
      isPrivileged: matcherOf([]),
      traces: undefined
    }).pipe(
      Effect.provide([syntheticStore({ size, eventAt }), checked, syntheticTraces(0)]),
      Effect.runPromiseExit
    )
  }
  const failed = Array.from({ length: 120 }, (_, at) => at + 1).find(
    (sequence) => plausible(sequence).outcome === "failure"
  )

  it("is that of the chain, or none, once the store says something else of an event", async () => {
    const hiding: EventAt = (sequence) =>
      sequence === failed ? { ...plausible(sequence), outcome: "success" } : plausible(sequence)
    for (const filter of [filters.some, filters.all]) {
      const genuine = await evidenceOf(filter, plausible)
      assert.isTrue(Exit.isSuccess(genuine))
      assert.deepStrictEqual(await evidenceOf(filter, hiding), genuine)
    }
  })
})
