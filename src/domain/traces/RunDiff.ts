/**
 * What differs between two executions: their trees of spans laid upon each other, and what each pair
 * of spans says differently. Of what one span has below it, the first of a type and name belongs to
 * the first of that type and name below the other, the second to the second, and so on; what is left
 * over is paired by type alone. Pure.
 */
import { Schema } from "effect"
import { defined } from "../Defined.ts"
import { natural } from "../Forms.ts"
import { sha256Hex } from "../Identifiers.ts"
import { canonicalize, quote } from "../json/CanonicalJson.ts"
import { isObject, type JsonObject, type JsonValue } from "../json/Json.ts"
import type { Sliced } from "../Slices.ts"
import { microsOf } from "../Timestamp.ts"
import { callTypes } from "./ExecutionSummary.ts"
import { type SpanSummary, summaryOf } from "./SpanSummary.ts"
import type { Span } from "./TraceResources.ts"

const optional = Schema.optionalKey

/** Characters of a value that are shown. */
const SHOWN_LENGTH = 200
/** Of these, how many before the first one that differs. */
const SHOWN_BEFORE = 40
/** Differences of one pair that are shown. */
const DIFFERENCES_MAX = 50

/** Names that differ between any two runs, whatever they have done. */
const IDS: ReadonlySet<string> = new Set([
  "gen_ai.response.id",
  "gen_ai.tool.call.id",
  "tool_call.id",
  "ai.response.id",
  "ai.response.timestamp",
  "ai.toolCall.id"
])

const DiffedSpan = Schema.Struct({
  span_id: Schema.String,
  status: Schema.String,
  duration_us: optional(natural("Microseconds from start to end; absent while it runs."))
}).annotate({ identifier: "DiffedSpan" })

const Difference = Schema.Struct({
  field: Schema.String.annotate({
    description:
      "`name`, `status`, `error`, or `metadata.` and the path, with dots between nested keys."
  }),
  a: optional(Schema.String),
  b: optional(Schema.String)
}).annotate({
  identifier: "SpanDifference",
  description:
    `What the spans say, as JSON; of long values ${SHOWN_LENGTH} characters around the first that `
    + "differs, with … where something is cut off. The side that has no such value is absent."
})
type Difference = typeof Difference.Type

export const SpanDiff = Schema.Struct({
  change: Schema.Literals(["same", "changed", "added", "removed"]).annotate({
    description: "`added` is only in the second execution, `removed` only in the first."
  }),
  type: Schema.String,
  name: Schema.String.annotate({ description: "In the first execution, if it is there." }),
  depth: natural("Spans above it."),
  a: optional(DiffedSpan),
  b: optional(DiffedSpan),
  differences: Schema.Array(Difference),
  differences_omitted: optional(natural(`Differences beyond ${DIFFERENCES_MAX}.`))
}).annotate({ identifier: "SpanDiff" })
export type SpanDiff = typeof SpanDiff.Type

export const RunTotals = Schema.Struct({
  spans: natural("All of its spans."),
  errors: natural("Spans that have failed."),
  calls: natural("Spans of type LLM_CALL or EMBEDDING."),
  input_tokens: natural(
    "Tokens that these have read; where none says it, the most that a span says."
  ),
  output_tokens: natural("Tokens that these have written, in the same way."),
  cost: optional(
    Schema.Finite.annotate({
      description: "What these have cost, as the client said, in the same way."
    })
  ),
  duration_us: optional(natural("Microseconds from start to end; absent while it runs."))
}).annotate({ identifier: "RunTotals", description: "Sums end at 9007199254740991." })
export type RunTotals = typeof RunTotals.Type

/** A span as far as it is compared. */
export interface ComparedSpan {
  readonly id: string
  readonly parentId: string | undefined
  readonly type: string
  readonly name: string
  readonly status: string
  readonly durationMicros: number | undefined
  readonly summary: SpanSummary
  /** JSON texts by field: `error`, and `metadata.` with paths. */
  readonly values: ReadonlyMap<string, string>
}

const durationOf = (from: string, to: string | undefined): number | undefined =>
  to === undefined ? undefined : Math.max(0, microsOf(to) - microsOf(from))

/** Characters of a key in a path; nested as deep as metadata may be, paths stay short of 16,383. */
const PART_LENGTH_MAX = 224
const PART_HASH_LENGTH = 16

/**
 * A key as a part of a path. V8 hashes texts of more than 16,383 characters by their length alone:
 * as keys of one map, thousands of them would be compared with one another.
 */
const partOf = (key: string): string =>
  key.length > PART_LENGTH_MAX
    ? `${key.slice(0, PART_LENGTH_MAX)}…${sha256Hex(key).slice(0, PART_HASH_LENGTH)}`
    : key

const flatten = (value: JsonValue, path: string, into: Map<string, string>): void => {
  const members = isObject(value) ? Object.entries(value) : []
  if (members.length === 0) {
    // Keys with dots may spell the path of another value.
    const field = into.has(path) ? `${path} (${into.size})` : path
    into.set(field, canonicalize(value))
    return
  }
  for (const [key, member] of members) {
    if (!IDS.has(key)) flatten(member as JsonValue, `${path}.${partOf(key)}`, into)
  }
}

/** What is compared of a span; without its metadata where there is no room for it. */
export const comparedSpan = (span: Span, withMetadata: boolean): ComparedSpan => {
  const values = new Map<string, string>()
  if (span.error !== undefined) values.set("error", canonicalize(span.error as JsonValue))
  if (withMetadata && Object.keys(span.metadata).length > 0) {
    flatten(span.metadata as JsonObject, "metadata", values)
  }
  return {
    id: span.id,
    parentId: span.parent_span_id,
    type: span.span_type,
    name: span.name,
    status: span.status,
    durationMicros: durationOf(span.started_at, span.ended_at),
    summary: summaryOf(span) ?? {},
    values
  }
}

/** Spans of an execution, in the order of their starts. */
export interface ComparedRun {
  readonly spans: ReadonlyArray<ComparedSpan>
  readonly startedAt: string
  readonly endedAt: string | undefined
}

const sum = (left: number, right = 0): number => Math.min(left + right, Number.MAX_SAFE_INTEGER)

const isCall = ({ type }: ComparedSpan): boolean => callTypes.includes(type)

export const totalsOf = ({ endedAt, spans, startedAt }: ComparedRun): RunTotals => {
  const calls = spans.filter(isCall)
  const said = (name: "input_tokens" | "output_tokens" | "cost"): ReadonlyArray<number> => {
    const byCalls = calls.flatMap(({ summary }) => summary[name] ?? [])
    if (byCalls.length > 0) return byCalls
    const bySpans = spans.flatMap(({ summary }) => summary[name] ?? [])
    return bySpans.length === 0 ? [] : [bySpans.reduce((most, one) => Math.max(most, one))]
  }
  const tokens = (name: "input_tokens" | "output_tokens") =>
    said(name).reduce((total, one) => sum(total, one), 0)
  const costs = said("cost")
  return defined({
    spans: spans.length,
    errors: spans.filter(({ status }) => status === "FAILED").length,
    calls: calls.length,
    input_tokens: tokens("input_tokens"),
    output_tokens: tokens("output_tokens"),
    cost: costs.length === 0 ? undefined : costs.reduce((total, cost) => total + cost, 0),
    duration_us: durationOf(startedAt, endedAt)
  })
}

/** The spans of a run by the span above them; what is above no known span is at the top. */
class Tree {
  readonly #children = new Map<string | undefined, Array<ComparedSpan>>()
  readonly #left = new Map<string, ComparedSpan>()

  constructor(spans: ReadonlyArray<ComparedSpan>) {
    const known = new Set(spans.map(({ id }) => id))
    for (const span of spans) {
      const { id, parentId } = span
      const above = parentId !== undefined && known.has(parentId) ? parentId : undefined
      const siblings = this.#children.get(above)
      if (siblings === undefined) this.#children.set(above, [span])
      else siblings.push(span)
      this.#left.set(id, span)
    }
  }

  get top(): ReadonlyArray<ComparedSpan> {
    return this.#children.get(undefined) ?? []
  }

  /** What is below a span and has not been taken. */
  below(span: ComparedSpan | undefined): ReadonlyArray<ComparedSpan> {
    if (span === undefined) return []
    return (this.#children.get(span.id) ?? []).filter(({ id }) => this.#left.has(id))
  }

  take(span: ComparedSpan | undefined): void {
    if (span !== undefined) this.#left.delete(span.id)
  }

  /** One that nothing at the top leads to: of spans that are above each other. */
  get rest(): ReadonlyArray<ComparedSpan> {
    const [one] = this.#left.values()
    return one === undefined ? [] : [one]
  }
}

interface Pair {
  readonly a: ComparedSpan | undefined
  readonly b: ComparedSpan | undefined
}

/** Pairs the first of a key with the first of that key, the second with the second. */
const pairBy = (
  as: ReadonlyArray<ComparedSpan>,
  bs: ReadonlyArray<ComparedSpan>,
  keyOf: (span: ComparedSpan) => string
): ReadonlyMap<ComparedSpan, ComparedSpan> => {
  const waiting = Map.groupBy(bs, keyOf)
  const next = new Map<string, number>()
  const pairs = new Map<ComparedSpan, ComparedSpan>()
  for (const a of as) {
    const key = keyOf(a)
    const at = next.get(key) ?? 0
    const b = waiting.get(key)?.[at]
    if (b === undefined) continue
    next.set(key, at + 1)
    pairs.set(a, b)
  }
  return pairs
}

/** The pairs of one level, in the order of the first run; what only the second has stands at its end. */
const pairsOf = (
  as: ReadonlyArray<ComparedSpan>,
  bs: ReadonlyArray<ComparedSpan>
): ReadonlyArray<Pair> => {
  const named = pairBy(as, bs, ({ name, type }) => `${type}\0${name}`)
  const taken = new Set(named.values())
  const typed = pairBy(
    as.filter((a) => !named.has(a)),
    bs.filter((b) => !taken.has(b)),
    ({ type }) => type
  )
  for (const b of typed.values()) taken.add(b)
  return [
    ...as.map((a) => ({ a, b: named.get(a) ?? typed.get(a) })),
    ...bs.filter((b) => !taken.has(b)).map((b) => ({ a: undefined, b }))
  ]
}

const firstDifference = (left: string, right: string): number => {
  const length = Math.min(left.length, right.length)
  let at = 0
  while (at < length && left.charCodeAt(at) === right.charCodeAt(at)) at++
  return at
}

/** A piece of a text, which cuts no character in two. */
const piece = (text: string, from: number): string => {
  const start = from > 0 && /[\udc00-\udfff]/.test(text[from] ?? "") ? from - 1 : from
  let end = Math.min(text.length, start + SHOWN_LENGTH)
  if (end < text.length && /[\udc00-\udfff]/.test(text[end]!)) end -= 1
  return `${start > 0 ? "…" : ""}${text.slice(start, end)}${end < text.length ? "…" : ""}`
}

const difference = (field: string, a: string | undefined, b: string | undefined): Difference => {
  const isLong = Math.max(a?.length ?? 0, b?.length ?? 0) > SHOWN_LENGTH
  const at = isLong ? firstDifference(a ?? "", b ?? "") : 0
  const from = Math.max(0, at - SHOWN_BEFORE)
  const shown = (text: string | undefined) => (text === undefined ? undefined : piece(text, from))
  return defined({ field, a: shown(a), b: shown(b) })
}

const differencesOf = (a: ComparedSpan, b: ComparedSpan): ReadonlyArray<Difference> => {
  const found: Array<Difference> = []
  for (const field of ["name", "status"] as const) {
    if (a[field] !== b[field]) found.push(difference(field, quote(a[field]), quote(b[field])))
  }
  for (const field of new Set([...a.values.keys(), ...b.values.keys()])) {
    const [left, right] = [a.values.get(field), b.values.get(field)]
    if (left !== right) found.push(difference(field, left, right))
  }
  return found
}

const shownSide = (span: ComparedSpan | undefined) =>
  span && defined({ span_id: span.id, status: span.status, duration_us: span.durationMicros })

const diffOf = ({ a, b }: Pair, depth: number): SpanDiff => {
  const { name, type } = (a ?? b)!
  const all = a === undefined || b === undefined ? [] : differencesOf(a, b)
  const change =
    a === undefined ? "added" : b === undefined ? "removed" : all.length > 0 ? "changed" : "same"
  const omitted = Math.max(0, all.length - DIFFERENCES_MAX)
  return defined({
    change,
    type,
    name,
    depth,
    a: shownSide(a),
    b: shownSide(b),
    differences: all.slice(0, DIFFERENCES_MAX),
    differences_omitted: omitted === 0 ? undefined : omitted
  })
}

/** All spans of both, each once, those above before those below; a pair of them in a step. */
export function* spanDiffs(
  first: ReadonlyArray<ComparedSpan>,
  second: ReadonlyArray<ComparedSpan>
): Sliced<ReadonlyArray<SpanDiff>> {
  const [as, bs] = [new Tree(first), new Tree(second)]
  const found: Array<SpanDiff> = []
  function* walk(top: ReadonlyArray<Pair>): Sliced<void> {
    const pending = top.map((pair) => ({ ...pair, depth: 0 })).toReversed()
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      const { a, b, depth } = next
      yield
      found.push(diffOf(next, depth))
      const below = pairsOf(as.below(a), bs.below(b))
      for (const pair of below) {
        as.take(pair.a)
        bs.take(pair.b)
      }
      pending.push(...below.map((pair) => ({ ...pair, depth: depth + 1 })).toReversed())
    }
  }
  function* start(
    tops: readonly [ReadonlyArray<ComparedSpan>, ReadonlyArray<ComparedSpan>]
  ): Sliced<void> {
    for (const span of tops[0]) as.take(span)
    for (const span of tops[1]) bs.take(span)
    yield* walk(pairsOf(...tops))
  }
  yield* start([as.top, bs.top])
  // In a circle each is below another: one of them stands for the top.
  for (;;) {
    const [a, b] = [as.rest, bs.rest]
    if (a.length === 0 && b.length === 0) return found
    yield* start([a, b])
  }
}
