/**
 * What caused what in one execution: spans as nodes in topological order, parents and causes as
 * edges. Pure; knows no store, and takes the spans as they are.
 */
import { hash } from "node:crypto"
import { canonicalize } from "./CanonicalJson.ts"
import type { JsonObject } from "./StrictJson.ts"
import { microsOf } from "./Timestamp.ts"
import type { TraceStatus } from "./TraceFact.ts"
import type { Span } from "./TraceView.ts"

export interface GraphNode {
  readonly id: string
  readonly name: string
  readonly type: string
  readonly status: TraceStatus
  readonly started_at: string
  readonly ended_at?: string
  readonly duration_us?: number
  readonly depth: number
  readonly event_count: number
  readonly error?: string | JsonObject
  /** Named by another span, but never sent. */
  readonly missing?: true
}

export interface GraphEdge {
  readonly id: string
  readonly source: string
  readonly target: string
  readonly type: "parent" | "caused_by"
}

export interface ExecutionGraph {
  readonly nodes: ReadonlyArray<GraphNode>
  readonly edges: ReadonlyArray<GraphEdge>
  /** Span ids from the root to the span that ended last. */
  readonly critical_path: ReadonlyArray<string>
  /** SHA-256 of the RFC 8785 text of `{nodes, edges}`. */
  readonly digest: string
}

export interface GraphInput {
  readonly rootSpanId: string
  readonly spans: ReadonlyArray<Span>
  /** Number of events by span id; spans without any are absent. */
  readonly eventCounts: ReadonlyMap<string, number>
}

const edgeOf = (type: GraphEdge["type"], source: string, target: string): GraphEdge => ({
  id: `${type}:${source}:${target}`,
  source,
  target,
  type
})

/** Spans that others name, but that were never sent, stand below the root. */
const withMissing = ({ rootSpanId, spans }: GraphInput) => {
  const known = new Map(spans.map((span) => [span.id, span]))
  const missing = new Map<string, Span>()
  for (const span of spans) {
    for (const id of [span.parent_span_id, ...span.caused_by_span_ids]) {
      if (id === undefined || known.has(id) || id === rootSpanId) continue
      const earlier = missing.get(id)
      if (earlier !== undefined && earlier.started_at <= span.started_at) continue
      missing.set(id, {
        id,
        execution_id: span.execution_id,
        parent_span_id: rootSpanId,
        caused_by_span_ids: [],
        span_type: "CUSTOM",
        name: id,
        status: "RUNNING",
        started_at: span.started_at,
        metadata: {}
      })
    }
  }
  return { all: new Map([...known, ...missing]), missing }
}

const edgesOf = (spans: ReadonlyMap<string, Span>): ReadonlyArray<GraphEdge> => {
  const edges: Array<GraphEdge> = []
  for (const { caused_by_span_ids, id, parent_span_id } of spans.values()) {
    if (parent_span_id !== undefined && spans.has(parent_span_id)) {
      edges.push(edgeOf("parent", parent_span_id, id))
    }
    for (const cause of caused_by_span_ids) edges.push(edgeOf("caused_by", cause, id))
  }
  return edges
}

const before = (left: Span, right: Span): boolean =>
  left.started_at === right.started_at ? left.id < right.id : left.started_at < right.started_at

const insert = (ready: Array<Span>, span: Span): void => {
  let low = 0
  let high = ready.length
  while (low < high) {
    const middle = (low + high) >>> 1
    // The next one stands at the end, where taking it costs nothing.
    if (before(ready[middle]!, span)) high = middle
    else low = middle + 1
  }
  ready.splice(low, 0, span)
}

/** Sources before targets, ties by start, then id. */
const ordered = (
  spans: ReadonlyMap<string, Span>,
  edges: ReadonlyArray<GraphEdge>
): ReadonlyArray<Span> => {
  const waiting = new Map([...spans.keys()].map((id) => [id, 0]))
  const targets = new Map<string, Array<string>>()
  for (const { source, target } of edges) {
    waiting.set(target, waiting.get(target)! + 1)
    const known = targets.get(source)
    if (known === undefined) targets.set(source, [target])
    else known.push(target)
  }
  const ready: Array<Span> = []
  for (const span of spans.values()) if (waiting.get(span.id) === 0) insert(ready, span)
  const order: Array<Span> = []
  for (let next = ready.pop(); next !== undefined; next = ready.pop()) {
    order.push(next)
    for (const target of targets.get(next.id) ?? []) {
      const left = waiting.get(target)! - 1
      waiting.set(target, left)
      if (left === 0) insert(ready, spans.get(target)!)
    }
  }
  return order
}

/** From the span that ended last back along whatever ended last before it. */
const criticalPath = (
  order: ReadonlyArray<Span>,
  edges: ReadonlyArray<GraphEdge>
): ReadonlyArray<string> => {
  const sources = new Map<string, Array<string>>()
  for (const { source, target } of edges) sources.set(target, [...(sources.get(target) ?? []), source])
  const byId = new Map(order.map((span) => [span.id, span]))
  const endOf = ({ ended_at, started_at }: Span) => ended_at ?? started_at
  const last = (spans: ReadonlyArray<Span>) =>
    spans.reduce<Span | undefined>(
      (found, span) => (found === undefined || endOf(span) >= endOf(found) ? span : found),
      undefined
    )
  const path: Array<string> = []
  for (let span = last(order); span !== undefined; ) {
    path.push(span.id)
    span = last((sources.get(span.id) ?? []).flatMap((id) => byId.get(id) ?? []))
  }
  return path.reverse()
}

/** The graph of an execution's spans. */
export const graphOf = (input: GraphInput): ExecutionGraph => {
  const { all, missing } = withMissing(input)
  const edges = edgesOf(all)
  const order = ordered(all, edges)
  const depths = new Map<string, number>()
  const nodes = order.map((span): GraphNode => {
    const { ended_at, error, id, name, parent_span_id, span_type, started_at, status } = span
    const depth =
      parent_span_id === undefined ? 0 : (depths.get(parent_span_id) ?? 0) + 1
    depths.set(id, depth)
    return {
      id,
      name,
      type: span_type,
      status,
      started_at,
      ...(ended_at === undefined
        ? {}
        : { ended_at, duration_us: Math.max(0, microsOf(ended_at) - microsOf(started_at)) }),
      depth,
      event_count: input.eventCounts.get(id) ?? 0,
      ...(error === undefined ? {} : { error }),
      ...(missing.has(id) ? { missing: true } : {})
    }
  })
  const digest = hash("sha256", canonicalize({ nodes, edges } as unknown as JsonObject), "hex")
  return { nodes, edges, critical_path: criticalPath(order, edges), digest }
}
