/** What a check keeps of facts without details until it finds the erasure that they name. */
import { assert, describe, it } from "@effect/vitest"
import type { TraceFact } from "../../src/domain/traces/TraceFact.ts"
import { UndetailedFacts } from "../../src/verify/FactSource.ts"

const BODY = "x".repeat(100_000)

/** A fact of a span whose details were erased, with a text of any size beside them. */
const erased = (sequence: number, erasedAt: string): TraceFact => ({
  type: "span.started",
  tenant_id: "acme",
  execution_id: "run",
  fact_number: sequence,
  span_id: BODY,
  caused_by_span_ids: [],
  span_type: "A",
  started_at: "2026-11-21T10:00:00.000000Z",
  started_at_given: true,
  chain_sequence: sequence,
  created_at: "2026-11-21T10:00:00.000000Z",
  content_hash: "c",
  prev_hash: "p",
  hash: "h",
  details_hash: "d",
  erased_at: erasedAt
})

describe("facts without details", () => {
  it("are a few words for each erasure, whatever they say", () => {
    const undetailed = new UndetailedFacts()
    const times = ["first", "second"]
    for (let n = 1; n <= 100; n++) {
      undetailed.take(n, erased(n, times[n % 2]!))
    }
    assert.deepStrictEqual(
      undetailed.open.map(({ erasedAt, last, sequence }) => [erasedAt, sequence, last]),
      [
        ["second", 1, 99],
        ["first", 2, 100]
      ]
    )
    assert.isBelow(JSON.stringify(undetailed.open).length, 500)
    undetailed.close({ ...erased(101, ""), created_at: "second" })
    undetailed.close({ ...erased(99, ""), created_at: "first" })
    assert.deepStrictEqual(
      undetailed.open.map(({ erasedAt }) => erasedAt),
      ["first"]
    )
  })
})
