/**
 * Two executions compared, as an answer: reads the spans of both, as far as there is room for what
 * they say. What differs, the domain says.
 */
import { Effect, Stream } from "effect"
import { ProjectionProgress } from "../../actors/log/ProjectionProgress.ts"
import { jsonInSteps } from "../../domain/json/JsonText.ts"
import { oneInTurn } from "../../domain/TenantTurns.ts"
import {
  type ComparedSpan,
  comparedSpan,
  spanDiffs,
  totalsOf
} from "../../domain/traces/RunDiff.ts"
import type { Execution } from "../../domain/traces/TraceResources.ts"
import { TraceStore } from "../../ports/TraceStore.ts"
import type { RequestOf } from "../contract/Requests.ts"
import { jsonBytes } from "../messages/Answer.ts"
import { ApiError, notFound } from "../messages/ApiError.ts"
import { inSlices } from "../messages/InSlices.ts"
import { readableView } from "../messages/StoreView.ts"
import { CurrentPrincipal } from "../server/Authorization.ts"
import {
  DAG_SPANS_MAX,
  DIFF_TEXT_MAX,
  DIFF_VALUES_MAX,
  type diffExecutions
} from "./TraceContract.ts"
import { type TraceReads, traceReads } from "./TraceReads.ts"

const tooLarge = (id: string, count: number): ApiError =>
  new ApiError({
    code: "payload_too_large",
    message:
      `the execution ${JSON.stringify(id)} has ${count} spans, and more than ${DAG_SPANS_MAX} are not `
      + "compared; compare their aggregated graphs instead, or read their spans as NDJSON"
  })

const lengthOf = ({ name, values }: ComparedSpan): number => {
  let length = name.length
  for (const [field, text] of values) length += field.length + text.length
  return length
}

interface ComparedExecution {
  readonly execution: Execution
  readonly spans: ReadonlyArray<ComparedSpan>
  /** More metadata than there is room for: what was beyond was left out. */
  readonly isPartial: boolean
}

/** What is wanted of a comparison. */
interface DiffOf {
  readonly tenantId: string
  readonly a: string
  readonly b: string
  readonly showsSame: boolean
  readonly limit: number
}

/** Compares executions, one pair after the other: each may need some 100 MB for a moment. */
const traceDiffs = (store: TraceStore["Service"], reads: TraceReads) => {
  const inTurn = oneInTurn()

  const runOf = Effect.fnUntraced(function* (tenantId: string, id: string) {
    const execution = yield* reads.execution(tenantId, id)
    const found = yield* reads.allSpans(tenantId, id, undefined)
    if (execution === undefined || found === undefined) return yield* notFound("execution")
    const count = yield* store.spanCount(tenantId, id)
    if (count > DAG_SPANS_MAX) return yield* tooLarge(id, count)
    const spans: Array<ComparedSpan> = []
    let [length, values] = [0, 0]
    const isFull = () => length > DIFF_TEXT_MAX || values > DIFF_VALUES_MAX
    yield* Stream.runForEach(found, (some) =>
      inSlices(function* () {
        for (const span of some) {
          yield
          const compared = comparedSpan(span, !isFull())
          length += lengthOf(compared)
          values += compared.values.size
          spans.push(compared)
        }
      })
    )
    const run: ComparedExecution = { execution, spans, isPartial: isFull() }
    return run
  })

  const sideOf = ({ execution, spans }: ComparedExecution) => {
    const { agent_name, ended_at, id, started_at, status } = execution
    const totals = totalsOf({ spans, startedAt: started_at, endedAt: ended_at })
    return { execution_id: id, agent_name, status, started_at, ...totals }
  }

  return ({ a, b, limit, showsSame, tenantId }: DiffOf) =>
    Effect.gen(function* () {
      const first = yield* runOf(tenantId, a)
      const second = yield* runOf(tenantId, b)
      const all = yield* inSlices(() => spanDiffs(first.spans, second.spans))
      const counts = { same: 0, changed: 0, added: 0, removed: 0 }
      for (const { change } of all) counts[change] += 1
      const shown = showsSame ? all : all.filter(({ change }) => change !== "same")
      return {
        a: sideOf(first),
        b: sideOf(second),
        counts,
        spans: shown.slice(0, limit),
        spans_omitted: Math.max(0, shown.length - limit),
        ...(first.isPartial || second.isPartial ? { metadata_incomplete: true as const } : {})
      }
    }).pipe((diff) => inTurn(tenantId, diff))
}

/** The handler of the route that compares. */
export const makeDiffHandlers = Effect.gen(function* () {
  const store = yield* TraceStore
  const projection = yield* ProjectionProgress
  const diffOf = traceDiffs(store, traceReads(store, projection))

  return {
    diffExecutions: Effect.fnUntraced(function* (input: RequestOf<typeof diffExecutions>) {
      const { id, other } = input.params
      const { tenantId } = yield* CurrentPrincipal
      yield* readableView(projection, tenantId)
      const diff = yield* diffOf({ tenantId, a: id, b: other, ...input.query })
      return jsonBytes(yield* inSlices(() => jsonInSteps(diff)))
    })
  }
})
