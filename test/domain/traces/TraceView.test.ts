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

describe("an execution that was erased again and again", () => {
  const erasures = 1_000
  it("shows each span by few looks at its erasures", () => {
    const view = new TraceView()
    let looks = 0
    for (let n = 1; n <= erasures; n++) {
      view.take({ ...started(3 * n), span_id: `s${n}`, details: { name: "secret" } })
      view.take({
        type: "execution.erased",
        execution_id: "run",
        created_at: `time ${n}`,
        get fact_number() {
          looks += 1
          return 3 * n + 1
        }
      } as Extract<SaidFact, { readonly type: "execution.erased" }>)
    }
    view.take({ ...started(3 * erasures + 3), span_id: "last", details: { name: "shown" } })
    const { spans } = view
    assert.deepStrictEqual(
      spans.map(({ erased_at, name }) => [erased_at, name === "secret"]),
      [...Array.from({ length: erasures }, (_, n) => [`time ${n + 1}`, false]), [undefined, false]]
    )
    assert.strictEqual(spans.at(-1)?.name, "shown")
    assert.isAtMost(looks, 10 * spans.length)
  })
})

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
