/**
 * The spans of one execution and the edges that they record: parents and causes, with a placeholder
 * for each span that others or events name, but that was never sent. Every view of the graph is made of it.
 */

import { Schema } from "effect"
import { addTo } from "../Lists.ts"
import type { Sliced } from "../Slices.ts"
import { missingSpanOf } from "./ShownSpans.ts"
import type { Span } from "./TraceResources.ts"

export const GraphEdge = Schema.Struct({
  id: Schema.String,
  source: Schema.String,
  target: Schema.String,
  type: Schema.Literals(["parent", "caused_by"])
}).annotate({ identifier: "DagEdge" })
export type GraphEdge = typeof GraphEdge.Type

export interface GraphInput {
  readonly rootSpanId: string
  readonly spans: ReadonlyArray<Span>
  /** Number of events by span id; spans without any are absent. */
  readonly eventCounts: ReadonlyMap<string, number>
}

/** What an edge leads from, and to. */
export interface Pair {
  readonly source: string
  readonly target: string
}

/** Ids may hold colons themselves, and no two edges may share one. */
export const edgeIdOf = (type: string, { source, target }: Pair): string =>
  `${type}:${encodeURIComponent(source)}:${encodeURIComponent(target)}`

/** Characters of an id as it is, and as the id of an edge has it. */
export const idLength = (id: string): number => id.length + encodeURIComponent(id).length

/** Characters of the ids of an edge. */
export const pairLength = ({ source, target }: Pair): number => idLength(source) + idLength(target)

const edgeOf = (type: GraphEdge["type"], source: string, target: string): GraphEdge => ({
  id: edgeIdOf(type, { source, target }),
  source,
  target,
  type
})

/** By start, then id. */
export const isBefore = (left: Span, right: Span): boolean =>
  left.started_at === right.started_at ? left.id < right.id : left.started_at < right.started_at

/** A heap ordered by start, then id. */
class Waiting {
  readonly #spans: Array<Span> = []

  put(span: Span): void {
    const spans = this.#spans
    let at = spans.length
    spans.push(span)
    while (at > 0) {
      const above = (at - 1) >>> 1
      if (!isBefore(span, spans[above]!)) break
      spans[at] = spans[above]!
      at = above
    }
    spans[at] = span
  }

  take(): Span | undefined {
    const spans = this.#spans
    const first = spans[0]
    const last = spans.pop()
    if (first === undefined || last === undefined || spans.length === 0) return first
    let at = 0
    for (;;) {
      const left = 2 * at + 1
      const right = left + 1
      if (left >= spans.length) break
      const next = right < spans.length && isBefore(spans[right]!, spans[left]!) ? right : left
      if (!isBefore(spans[next]!, last)) break
      spans[at] = spans[next]!
      at = next
    }
    spans[at] = last
    return first
  }
}

const sourcesOf = ({ caused_by_span_ids, parent_span_id }: Span): ReadonlyArray<string> =>
  parent_span_id === undefined ? caused_by_span_ids : [parent_span_id, ...caused_by_span_ids]

/** The spans that the root follows from, directly or not. */
const ancestorsOf = (rootSpanId: string, spans: ReadonlyMap<string, Span>): ReadonlySet<string> => {
  const found = new Set<string>()
  const pending = [rootSpanId]
  for (let id = pending.pop(); id !== undefined; id = pending.pop()) {
    const span = spans.get(id)
    for (const source of span === undefined ? [] : sourcesOf(span)) {
      if (found.has(source)) continue
      found.add(source)
      pending.push(source)
    }
  }
  return found
}

/**
 * Spans that others name, or events, but that were never sent. Their parent is the root, except for
 * those that the root itself follows from.
 */
const placeholders = (
  { eventCounts, rootSpanId }: GraphInput,
  known: ReadonlyMap<string, Span>,
  aboveRoot: ReadonlySet<string>
): ReadonlyMap<string, Span> => {
  const missing = new Map<string, Span>()
  for (const span of known.values()) {
    for (const id of sourcesOf(span)) {
      if (known.has(id)) continue
      const earlier = missing.get(id)
      if (earlier !== undefined && earlier.started_at <= span.started_at) continue
      const parentId = id === rootSpanId || aboveRoot.has(id) ? undefined : rootSpanId
      missing.set(id, missingSpanOf(id, parentId, span))
    }
  }
  const [first] = known.values()
  const root = known.get(rootSpanId) ?? first
  if (root === undefined) return missing
  for (const id of eventCounts.keys()) {
    if (known.has(id) || missing.has(id)) continue
    missing.set(id, missingSpanOf(id, id === rootSpanId ? undefined : rootSpanId, root))
  }
  return missing
}

function* edgesOf(spans: ReadonlyMap<string, Span>): Sliced<ReadonlyArray<GraphEdge>> {
  const edges: Array<GraphEdge> = []
  for (const { caused_by_span_ids, id, parent_span_id } of spans.values()) {
    yield
    if (parent_span_id !== undefined && spans.has(parent_span_id)) {
      edges.push(edgeOf("parent", parent_span_id, id))
    }
    for (const cause of new Set(caused_by_span_ids)) edges.push(edgeOf("caused_by", cause, id))
  }
  return edges
}

const followersOf = (edges: ReadonlyArray<Pair>): ReadonlyMap<string, ReadonlyArray<string>> => {
  const followers = new Map<string, Array<string>>()
  for (const { source, target } of edges) addTo(followers, source, target)
  return followers
}

/**
 * Sources before targets, ties by start, then id. Spans on a cycle, which the sequencer refuses, or
 * after one come last, by start and id unless another order is given.
 */
export function* ordered(
  spans: ReadonlyMap<string, Span>,
  edges: ReadonlyArray<Pair>,
  followers: ReadonlyMap<string, ReadonlyArray<string>> = followersOf(edges),
  isRestBefore = isBefore
): Sliced<ReadonlyArray<Span>> {
  yield
  const open = new Map([...spans.keys()].map((id) => [id, 0]))
  for (const { target } of edges) open.set(target, open.get(target)! + 1)
  const waiting = new Waiting()
  for (const span of spans.values()) if (open.get(span.id) === 0) waiting.put(span)
  const order: Array<Span> = []
  for (let next = waiting.take(); next !== undefined; next = waiting.take()) {
    yield
    order.push(next)
    open.delete(next.id)
    for (const target of followers.get(next.id) ?? []) {
      const left = open.get(target)! - 1
      open.set(target, left)
      if (left === 0) waiting.put(spans.get(target)!)
    }
  }
  const rest = [...open.keys()].map((id) => spans.get(id)!)
  return [...order, ...rest.sort((left, right) => (isRestBefore(left, right) ? -1 : 1))]
}

/** What is recorded of an execution, arranged. */
export interface SpanGraph {
  readonly rootSpanId: string
  readonly spans: ReadonlyMap<string, Span>
  /** Of the spans those that were never sent. */
  readonly missing: ReadonlyMap<string, Span>
  readonly edges: ReadonlyArray<GraphEdge>
  /** Targets of the edges, by their source. */
  readonly followers: ReadonlyMap<string, ReadonlyArray<string>>
  /** In topological order. */
  readonly order: ReadonlyArray<Span>
  readonly eventCounts: ReadonlyMap<string, number>
}

const withoutParent = ({ parent_span_id, ...span }: Span): Span => span

/** A part of one span in a step. */
export function* spanGraphOf(input: GraphInput): Sliced<SpanGraph> {
  const { eventCounts, rootSpanId } = input
  const known = new Map(input.spans.map((span) => [span.id, span]))
  const aboveRoot = ancestorsOf(rootSpanId, known)
  for (const id of aboveRoot) {
    const span = known.get(id)
    // Of spans that were sent without a parent, one that the root follows from is not below it.
    if (span?.parent_span_id === rootSpanId) known.set(id, withoutParent(span))
  }
  yield
  const missing = placeholders(input, known, aboveRoot)
  const spans = new Map([...known, ...missing])
  const edges = yield* edgesOf(spans)
  const followers = followersOf(edges)
  const order = yield* ordered(spans, edges, followers)
  return { rootSpanId, spans, missing, edges, followers, order, eventCounts }
}

/** Parents above each span. */
export const depthsOf = (order: ReadonlyArray<Span>): ReadonlyMap<string, number> => {
  const depths = new Map<string, number>()
  for (const { id, parent_span_id } of order) {
    depths.set(id, parent_span_id === undefined ? 0 : (depths.get(parent_span_id) ?? 0) + 1)
  }
  return depths
}

/** By the span above them, in the order of the spans. */
export const childrenOf = (
  order: ReadonlyArray<Span>
): ReadonlyMap<string, ReadonlyArray<Span>> => {
  const children = new Map<string, Array<Span>>()
  for (const span of order) {
    if (span.parent_span_id !== undefined) addTo(children, span.parent_span_id, span)
  }
  return children
}
