/**
 * The graph of an execution folded, for runs of thousands of spans: spans of the same name and type
 * below the same folded span are one node. Loops of an agent become edges that lead back. Pure.
 */
import { Schema } from "effect"
import { defined } from "../Defined.ts"
import { natural } from "../Forms.ts"
import type { Sliced } from "../Slices.ts"
import { microsOf } from "../Timestamp.ts"
import { type GraphRequest, InferredIncomplete } from "./ExecutionGraph.ts"
import { InferenceRule, inferEdges } from "./InferredEdges.ts"
import { edgeIdOf, type Pair, spanGraphOf } from "./SpanGraph.ts"
import { summaryOf } from "./SpanSummary.ts"
import type { Span } from "./TraceResources.ts"

const optional = Schema.optionalKey

export const AggregatedNode = Schema.Struct({
  id: Schema.String.annotate({ description: "Id of the first of its spans." }),
  parent_id: optional(Schema.String.annotate({ description: "The node above it." })),
  name: Schema.String,
  type: Schema.String,
  depth: natural("Nodes above it."),
  count: natural("Its spans."),
  errors: natural("Those that have failed."),
  running: natural("Those that have not ended, or were never sent."),
  event_count: natural("Trace events of its spans."),
  total_duration_us: natural("Microseconds of those that have ended, one by one added up."),
  mean_duration_us: optional(natural("The same by their number, rounded; absent if none has.")),
  max_duration_us: optional(natural("The longest of them.")),
  input_tokens: optional(natural("Sum of the tokens in the summaries of its spans.")),
  output_tokens: optional(natural("Sum of the tokens in the summaries of its spans."))
}).annotate({
  identifier: "AggregatedDagNode",
  description: "Spans of one name and type below one node. Sums end at 9007199254740991."
})
export type AggregatedNode = typeof AggregatedNode.Type

export const AggregatedEdge = Schema.Struct({
  id: Schema.String,
  source: Schema.String,
  target: Schema.String,
  type: Schema.Literals(["parent", "caused_by", "inferred"]),
  rule: optional(InferenceRule),
  count: natural("Edges between spans of the two nodes.")
}).annotate({ identifier: "AggregatedDagEdge" })
export type AggregatedEdge = typeof AggregatedEdge.Type

export const AggregatedGraph = Schema.Struct({
  nodes: Schema.Array(AggregatedNode).annotate({
    description: "Parents before children; of the rest in the order of their first spans."
  }),
  edges: Schema.Array(AggregatedEdge).annotate({
    description:
      "Edges of the graph by source, target, type and rule. They may lead back, and from a node to "
      + "itself."
  }),
  span_count: natural("Spans in all nodes."),
  inferred_incomplete: InferredIncomplete
}).annotate({ identifier: "AggregatedDag" })
export type AggregatedGraph = typeof AggregatedGraph.Type

/** Sums are integers that a double holds. */
const sum = (left: number, right: number): number => Math.min(left + right, Number.MAX_SAFE_INTEGER)

/** A node while it is counted. */
class Group {
  readonly id: string
  readonly #first: Span
  readonly #above: Group | undefined
  readonly #depth: number
  #count = 0
  #errors = 0
  #events = 0
  #ended = 0
  #total = 0
  #max = 0
  #inputTokens: number | undefined
  #outputTokens: number | undefined

  constructor(first: Span, above: Group | undefined) {
    this.id = first.id
    this.#first = first
    this.#above = above
    this.#depth = above === undefined ? 0 : above.#depth + 1
  }

  add(span: Span, events: number): void {
    const { ended_at, started_at, status } = span
    this.#count += 1
    if (status === "FAILED") this.#errors += 1
    this.#events = sum(this.#events, events)
    if (ended_at !== undefined) {
      const duration = Math.max(0, microsOf(ended_at) - microsOf(started_at))
      this.#ended += 1
      this.#total = sum(this.#total, duration)
      this.#max = Math.max(this.#max, duration)
    }
    const { input_tokens, output_tokens } = summaryOf(span) ?? {}
    if (input_tokens !== undefined) this.#inputTokens = sum(this.#inputTokens ?? 0, input_tokens)
    if (output_tokens !== undefined) {
      this.#outputTokens = sum(this.#outputTokens ?? 0, output_tokens)
    }
  }

  get node(): AggregatedNode {
    const hasEnded = this.#ended > 0
    return defined({
      id: this.id,
      parent_id: this.#above?.id,
      name: this.#first.name,
      type: this.#first.span_type,
      depth: this.#depth,
      count: this.#count,
      errors: this.#errors,
      running: this.#count - this.#ended,
      event_count: this.#events,
      total_duration_us: this.#total,
      mean_duration_us: hasEnded ? Math.round(this.#total / this.#ended) : undefined,
      max_duration_us: hasEnded ? this.#max : undefined,
      input_tokens: this.#inputTokens,
      output_tokens: this.#outputTokens
    })
  }
}

type Edge = Pair & Pick<AggregatedEdge, "type" | "rule">

function* foldEdges(
  edges: ReadonlyArray<Edge>,
  groupOf: (spanId: string) => Group
): Sliced<ReadonlyArray<AggregatedEdge>> {
  const counts = new Map<string, Edge & { count: number }>()
  for (const { rule, source: from, target: to, type } of edges) {
    yield
    const source = groupOf(from).id
    const target = groupOf(to).id
    // Ids hold no U+0000.
    const key = `${rule ?? type}\0${source}\0${target}`
    const known = counts.get(key)
    if (known === undefined)
      counts.set(key, { ...defined({ rule }), source, target, type, count: 1 })
    else known.count += 1
  }
  return [...counts.values()].map((edge) => {
    const { rule, type } = edge
    return { id: edgeIdOf(rule === undefined ? type : `${type}:${rule}`, edge), ...edge }
  })
}

/** The folded graph of an execution's spans, about one of them in a step. */
export function* aggregatedGraphOf(request: GraphRequest): Sliced<AggregatedGraph> {
  const graph = yield* spanGraphOf(request)
  /** By span. */
  const groups = new Map<string, Group>()
  /** By the node above, type and name. */
  const nodes = new Map<string, Group>()
  for (const span of graph.order) {
    yield
    const above = groups.get(span.parent_span_id ?? "")
    const key = JSON.stringify([above?.id, span.span_type, span.name])
    const group = nodes.get(key) ?? new Group(span, above)
    nodes.set(key, group)
    groups.set(span.id, group)
    group.add(span, graph.eventCounts.get(span.id) ?? 0)
  }
  const inferred = request.edges === "recorded" ? undefined : yield* inferEdges(graph)
  const isIncomplete = request.isPartial === true || inferred?.isComplete === false
  const edges: ReadonlyArray<Edge> = [...graph.edges, ...(inferred?.edges ?? [])]
  return {
    nodes: [...nodes.values()].map(({ node }) => node),
    edges: yield* foldEdges(edges, (id) => groups.get(id)!),
    span_count: graph.order.length,
    ...(isIncomplete ? { inferred_incomplete: true } : {})
  }
}
