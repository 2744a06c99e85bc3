/**
 * What caused what in one execution: spans as nodes in topological order, parents and causes as
 * edges. Pure.
 */
import { hash } from "node:crypto"
import { Schema } from "effect"
import { sha256 } from "../Forms.ts"
import { canonicalize } from "../json/CanonicalJson.ts"
import type { JsonObject } from "../json/StrictJson.ts"
import { GraphNode, missingSpanOf, nodeOf, type Span } from "./TraceResources.ts"

export const GraphEdge = Schema.Struct({
  id: Schema.String,
  source: Schema.String,
  target: Schema.String,
  type: Schema.Literals(["parent", "caused_by"])
}).annotate({ identifier: "DagEdge" })
export type GraphEdge = typeof GraphEdge.Type

export const ExecutionGraph = Schema.Struct({
  nodes: Schema.Array(GraphNode).annotate({
    description: "In topological order, ties by start, then id."
  }),
  edges: Schema.Array(GraphEdge),
  critical_path: Schema.Array(Schema.String).annotate({
    description:
      "Span ids from the root on: each time the follower (child, or span that it caused) through "
      + "which the latest end is reached, of equals the one that started first. What has not ended "
      + "counts with its start."
  }),
  digest: sha256("SHA-256 of the RFC 8785 text of `{nodes, edges}`.")
}).annotate({ identifier: "Dag" })
export type ExecutionGraph = typeof ExecutionGraph.Type

export interface GraphInput {
  readonly rootSpanId: string
  readonly spans: ReadonlyArray<Span>
  /** Number of events by span id; spans without any are absent. */
  readonly eventCounts: ReadonlyMap<string, number>
}

/** Ids may hold colons themselves, and no two edges may share one. */
const edgeOf = (type: GraphEdge["type"], source: string, target: string): GraphEdge => ({
  id: `${type}:${encodeURIComponent(source)}:${encodeURIComponent(target)}`,
  source,
  target,
  type
})

/** By start, then id. */
const isBefore = (left: Span, right: Span): boolean =>
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
 * Spans that others name, but that were never sent. Their parent is the root, except for those that
 * the root itself follows from.
 */
const placeholders = ({ rootSpanId, spans }: GraphInput): ReadonlyMap<string, Span> => {
  const known = new Map(spans.map((span) => [span.id, span]))
  const aboveRoot = ancestorsOf(rootSpanId, known)
  const missing = new Map<string, Span>()
  for (const span of spans) {
    for (const id of sourcesOf(span)) {
      if (known.has(id)) continue
      const earlier = missing.get(id)
      if (earlier !== undefined && earlier.started_at <= span.started_at) continue
      const parentId = id === rootSpanId || aboveRoot.has(id) ? undefined : rootSpanId
      missing.set(id, missingSpanOf(id, parentId, span))
    }
  }
  return missing
}

const edgesOf = (spans: ReadonlyMap<string, Span>): ReadonlyArray<GraphEdge> => {
  const edges: Array<GraphEdge> = []
  for (const { caused_by_span_ids, id, parent_span_id } of spans.values()) {
    if (parent_span_id !== undefined && spans.has(parent_span_id)) {
      edges.push(edgeOf("parent", parent_span_id, id))
    }
    for (const cause of new Set(caused_by_span_ids)) edges.push(edgeOf("caused_by", cause, id))
  }
  return edges
}

const followersOf = (
  edges: ReadonlyArray<GraphEdge>
): ReadonlyMap<string, ReadonlyArray<string>> => {
  const followers = new Map<string, Array<string>>()
  for (const { source, target } of edges) {
    const known = followers.get(source)
    if (known === undefined) followers.set(source, [target])
    else known.push(target)
  }
  return followers
}

/**
 * Sources before targets, ties by start, then id. Spans on a cycle, which the sequencer refuses, or
 * after one come last, by start and id.
 */
const ordered = (
  spans: ReadonlyMap<string, Span>,
  edges: ReadonlyArray<GraphEdge>,
  followers: ReadonlyMap<string, ReadonlyArray<string>>
): ReadonlyArray<Span> => {
  const open = new Map([...spans.keys()].map((id) => [id, 0]))
  for (const { target } of edges) open.set(target, open.get(target)! + 1)
  const waiting = new Waiting()
  for (const span of spans.values()) if (open.get(span.id) === 0) waiting.put(span)
  const order: Array<Span> = []
  for (let next = waiting.take(); next !== undefined; next = waiting.take()) {
    order.push(next)
    open.delete(next.id)
    for (const target of followers.get(next.id) ?? []) {
      const left = open.get(target)! - 1
      open.set(target, left)
      if (left === 0) waiting.put(spans.get(target)!)
    }
  }
  const rest = [...open.keys()].map((id) => spans.get(id)!)
  return [...order, ...rest.sort((left, right) => (isBefore(left, right) ? -1 : 1))]
}

/** See ExecutionGraph. */
const criticalPath = (
  rootSpanId: string,
  order: ReadonlyArray<Span>,
  followers: ReadonlyMap<string, ReadonlyArray<string>>
): ReadonlyArray<string> => {
  const spans = new Map(order.map((span) => [span.id, span]))
  /** The latest end that is reached through each span, and the follower that leads to it. */
  const reached = new Map<string, { readonly end: string; readonly next: Span | undefined }>()
  for (const span of order.toReversed()) {
    let end = span.ended_at ?? span.started_at
    let next: Span | undefined
    let nextEnd = ""
    for (const id of followers.get(span.id) ?? []) {
      const follower = spans.get(id)!
      const followed = reached.get(id)
      // Only on a cycle, which the sequencer refuses.
      if (followed === undefined) continue
      const isLater =
        next === undefined
        || followed.end > nextEnd
        || (followed.end === nextEnd && isBefore(follower, next))
      if (!isLater) continue
      next = follower
      nextEnd = followed.end
    }
    if (nextEnd > end) end = nextEnd
    reached.set(span.id, { end, next })
  }
  const path: Array<string> = []
  for (let span = spans.get(rootSpanId) ?? order[0]; span !== undefined; ) {
    path.push(span.id)
    span = reached.get(span.id)?.next
  }
  return path
}

/** The graph of an execution's spans. */
export const graphOf = (input: GraphInput): ExecutionGraph => {
  const missing = placeholders(input)
  const all = new Map([...input.spans.map((span) => [span.id, span] as const), ...missing])
  const edges = edgesOf(all)
  const followers = followersOf(edges)
  const order = ordered(all, edges, followers)
  const depths = new Map<string, number>()
  const nodes = order.map((span): GraphNode => {
    const { id, parent_span_id } = span
    const depth = parent_span_id === undefined ? 0 : (depths.get(parent_span_id) ?? 0) + 1
    depths.set(id, depth)
    return nodeOf(span, depth, input.eventCounts.get(id) ?? 0, missing.has(id))
  })
  const digest = hash("sha256", canonicalize({ edges, nodes } as unknown as JsonObject), "hex")
  return { nodes, edges, critical_path: criticalPath(input.rootSpanId, order, followers), digest }
}
