/** What a view shows of a span that was amended again and again is what all amendments add up to. */
import { assert, describe, it } from "@effect/vitest"
import { type SaidFact, spanOf } from "../../../src/domain/traces/ShownSpans.ts"
import { TraceView } from "../../../src/domain/traces/TraceView.ts"

type Amended = Extract<SaidFact, { readonly type: "span.amended" }>

const started = (fact_number: number): Extract<SaidFact, { readonly type: "span.started" }> => ({
  type: "span.started",
  fact_number,
  execution_id: "run",
  span_id: "s",
  caused_by_span_ids: [],
  span_type: "A",
  started_at: "2026-11-21T10:00:00.000000Z",
  started_at_given: true
})

const kinds: ReadonlyArray<Partial<Amended>> = [
  {},
  { details: { payload: { name: "other" } } },
  { parent_span_id: "p1" },
  { parent_span_id: "p2" },
  { shared_span_id: "t" },
  { parent_span_id: "p3", shared_span_id: "t" }
]

describe("a span that was amended", () => {
  const lists = kinds.flatMap((first) =>
    kinds.flatMap((second) => kinds.map((third) => [first, second, third, first, second]))
  )
  for (const restartedAt of [2, 4]) {
    it(`is shown as by all of its amendments, those before its start ${restartedAt} too`, () => {
      for (const list of lists) {
        const view = new TraceView()
        view.take(started(1))
        const amendments = list.map((said, at): Amended => {
          const fact = { fact_number: at + 2, execution_id: "run", span_id: "s", ...said }
          return { type: "span.amended", ...fact }
        })
        for (const fact of amendments) {
          if (fact.fact_number === restartedAt + 1) view.take(started(restartedAt))
          view.take(fact)
        }
        const all = spanOf({ started: started(restartedAt), amendments }, undefined, undefined)
        assert.deepStrictEqual(view.span("s"), all)
      }
    })
  }
})
