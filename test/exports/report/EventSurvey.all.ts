import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { matcherOf } from "../../../src/exports/report/ActionPattern.ts"
import { collectEvidence } from "../../../src/exports/report/Evidence.ts"
import { verificationOf } from "./support/Inputs.ts"
import { plausible, syntheticStore } from "./support/SyntheticStore.ts"
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
