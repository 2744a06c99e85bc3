/**
 * Executions added up from what the facts of their spans say, see SummaryColumn.ts. Spans are grouped
 * first: of what both facts of a span say the later one counts, and rows that are in the store twice
 * change nothing.
 */
import { Effect } from "effect"
import { defined } from "../../../domain/Defined.ts"
import {
  type ExecutionSummary,
  SUMMARY_MODELS_MAX
} from "../../../domain/traces/ExecutionSummary.ts"
import type { TraceStore } from "../../../ports/TraceStore.ts"
import type { Parameters } from "../client/Parameters.ts"
import type { RowBinary } from "../client/RowBinary.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { Scope } from "./TraceColumns.ts"
import { ofExecutions, STRUCTURE } from "./TraceSql.ts"

type Store = TraceStore["Service"]

/** Bytes that grouping spans may take in memory; the rest waits on disk. */
const GROUPING = "max_bytes_before_external_group_by = 536870912"

const NUMBERS = ["input_tokens", "output_tokens", "cost"] as const

const numbersOfSpan = NUMBERS.map((name) => {
  // The facts of an execution stand with those of its root.
  const says = `scope = ${Scope.span} AND summary.${name} >= 0`
  return (
    `if(countIf(${says}) = 0, -1, argMaxIf(summary.${name}, fact_number, ${says}))`
    + ` AS span_${name}`
  )
})

/** Of a span: whether it is a call, and its numbers, -1 where no fact says one. */
const ofSpan = ["max(summary.is_call) AS is_call", ...numbersOfSpan]

/** Of a group of facts of a span, what its summary says: `span_` and the name; -1 or empty without. */
export const spanSummary: ReadonlyArray<string> = [
  ...numbersOfSpan,
  ...(["model", "session_id", "user_id"] as const).map(
    (name) => `argMaxIf(summary.${name}, fact_number, summary.${name} != '') AS span_${name}`
  )
]

type NumberName = (typeof NUMBERS)[number]

/** How many spans of an execution say it. */
const saidOf = (name: NumberName): string => `countIf(span_${name} >= 0)`

/**
 * A sum over calls as a double: exact as far as numbers are in JSON, and it never overflows. Where no
 * call says it, the most that a span says.
 */
const sumOf = (name: NumberName): string => {
  const isSaid = `is_call = 1 AND span_${name} >= 0`
  const [value, most] = [`toFloat64(span_${name})`, `greatest(toFloat64(max(span_${name})), 0)`]
  return `if(countIf(${isSaid}) = 0, ${most}, sumIf(${value}, ${isSaid}))`
}

/** By execution, as `id`: tokens, cost, and how many spans say a cost. Those that say none are absent. */
export const callTotals = (store: StoreClient, tenantId: string, bind: Parameters): string => {
  const says = NUMBERS.map((name) => `summary.${name} >= 0`).join(" OR ")
  return (
    `SELECT execution_id AS id, ${sumOf("input_tokens")} + ${sumOf("output_tokens")} AS tokens,`
    + ` ${sumOf("cost")} AS cost, ${saidOf("cost")} AS priced`
    + ` FROM (SELECT execution_id, ${ofSpan.join(", ")} FROM ${store.facts}`
    + ` WHERE ${bind.tenant(tenantId)} AND scope = ${Scope.span}`
    + ` AND (summary.is_call = 1 OR ${says}) GROUP BY execution_id, span_id) GROUP BY execution_id`
  )
}

const FAILED = "type = 'span.ended' AND status = 'FAILED'"

/** The first text that a fact says. */
const firstSaid = (name: "session_id" | "user_id") => ({
  ofGroup:
    `argMinIf(summary.${name}, fact_number, summary.${name} != '') AS ${name},`
    + ` minIf(fact_number, summary.${name} != '') AS ${name}_at`,
  ofAll: `argMinIf(${name}, ${name}_at, ${name} != '')`
})

const session = firstSaid("session_id")
const user = firstSaid("user_id")

/** Members of a summary, in the order that they are read in. */
const ofExecution = [
  "countIf(is_span)",
  "countIf(has_failed)",
  "countIf(is_call = 1)",
  ...NUMBERS.flatMap((name) => [saidOf(name), sumOf(name)]),
  `arraySlice(arraySort(groupUniqArrayArray(models)), 1, ${SUMMARY_MODELS_MAX})`,
  session.ofAll,
  user.ofAll
]

const statementOf = (
  store: StoreClient,
  tenantId: string,
  ids: ReadonlyArray<string>,
  bind: Parameters
): string => {
  // A root that has not arrived is named by its execution alone: it is none of the spans.
  const group = [
    "execution_id",
    "countIf(type = 'span.started') > 0 AS is_span",
    `countIf(${FAILED}) > 0 AS has_failed`,
    ...ofSpan,
    "groupUniqArrayIf(summary.model, summary.model != '') AS models",
    session.ofGroup,
    user.ofGroup
  ]
  return (
    `SELECT execution_id, ${ofExecution.join(", ")} FROM (SELECT ${group.join(", ")}`
    + ` FROM ${store.facts} WHERE ${ofExecutions(tenantId, ids, bind, STRUCTURE)}`
    + " GROUP BY execution_id, span_id) GROUP BY execution_id"
  )
}

/** Sums of doubles differ in their last digits by the order that they are added in. */
const PRECISION = 12

const readSummary = (row: RowBinary): readonly [id: string, ExecutionSummary] => {
  const id = row.string()
  const [spans, errors, calls] = [row.uint64(), row.uint64(), row.uint64()]
  const said = () => {
    const [count, sum] = [row.uint64(), row.float64()]
    return count === 0 ? undefined : sum
  }
  const tokens = () => {
    const sum = said()
    return sum === undefined ? undefined : Math.min(sum, Number.MAX_SAFE_INTEGER)
  }
  const [input_tokens, output_tokens, cost] = [tokens(), tokens(), said()]
  const models = row.list(() => row.string())
  const [session_id, user_id] = [row.string(), row.string()]
  const summary = defined({
    spans,
    errors,
    calls,
    input_tokens,
    output_tokens,
    cost:
      cost === undefined
        ? undefined
        : Number(Math.min(cost, Number.MAX_VALUE).toPrecision(PRECISION)),
    models: models.length === 0 ? undefined : models,
    session_id: session_id === "" ? undefined : session_id,
    user_id: user_id === "" ? undefined : user_id
  })
  return [id, summary]
}

export const summariesOf = (
  store: StoreClient,
  tenantId: string,
  ids: ReadonlyArray<string>
): ReturnType<Store["summaries"]> => {
  if (ids.length === 0) return Effect.succeed(new Map())
  return store
    .read("summaries", (bind) => statementOf(store, tenantId, ids, bind), readSummary, {
      settings: GROUPING
    })
    .pipe(Effect.map((found) => new Map(found)))
}
