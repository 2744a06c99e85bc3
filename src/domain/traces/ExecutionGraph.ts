/**
 * What caused what in one execution: spans as nodes in topological order, parents and causes as
 * edges, what has to be inferred apart from them, and what the execution waited for. Pure.
 */
import { createHash } from "node:crypto"
import { Schema } from "effect"
import { sha256 } from "../Forms.ts"
import { canonicalize } from "../json/CanonicalJson.ts"
import type { JsonValue } from "../json/Json.ts"
import type { Sliced } from "../Slices.ts"
import { criticalPathOf, PathSection } from "./CriticalPath.ts"
import { InferredEdge, inferEdges } from "./InferredEdges.ts"
import { nodeOf } from "./ShownSpans.ts"
import {
  depthsOf,
  GraphEdge,
  type GraphInput,
  isBefore,
  type SpanGraph,
  spanGraphOf
} from "./SpanGraph.ts"
import { GraphNode, type Span } from "./TraceResources.ts"

/** Which edges an answer shows. */
export const edgeKinds = ["recorded", "inferred"] as const
export type EdgeKind = (typeof edgeKinds)[number]

/** What a graph is made of, and how. */
export interface GraphRequest extends GraphInput {
  /** `inferred`: those too. */
  readonly edges?: EdgeKind
  /** Metadata of the spans was too much to be read whole. */
  readonly isPartial?: boolean
}

/** The member of answers by which a reader knows that there may be more. */
export const InferredIncomplete = Schema.optionalKey(
  Schema.Literal(true).annotate({
    description:
      "The metadata of the spans, or what was found in it, is more than is looked at: there may be "
      + "further inferred edges, and further tokens."
  })
)

export const ExecutionGraph = Schema.Struct({
  nodes: Schema.Array(GraphNode).annotate({
    description: "In topological order of `edges`, ties by start, then id."
  }),
  edges: Schema.Array(GraphEdge).annotate({ description: "What was recorded." }),
  inferred_edges: Schema.optionalKey(
    Schema.Array(InferredEdge).annotate({
      description:
        "What metadata and times of the spans tell of beside `edges`, found when it is read; no "
        + "part of what is hashed. Absent with `edges=recorded`."
    })
  ),
  inferred_incomplete: InferredIncomplete,
  critical_path: Schema.Array(PathSection).annotate({
    description:
      "What the execution waited for, from the start of its root to its end without gaps: found by "
      + "walking backwards, from a span into the child that ended last, and from its start to the "
      + "one that ended last before. What has not ended counts up to the last time that any span "
      + "tells of."
  }),
  latest_end_path: Schema.Array(Schema.String).annotate({
    description:
      "Span ids from the root on: each time the follower (child, or span that it caused) through "
      + "which the latest end is reached, of equals the one that started first. What has not ended "
      + "counts with its start."
  }),
  digest: sha256("SHA-256 of the RFC 8785 text of `{nodes, edges}`.")
}).annotate({ identifier: "Dag" })
export type ExecutionGraph = typeof ExecutionGraph.Type

/** See ExecutionGraph. */
const latestEndPath = ({
  followers,
  order,
  rootSpanId,
  spans
}: SpanGraph): ReadonlyArray<string> => {
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

/** SHA-256 of the canonical JSON of edges and nodes. */
function* digestOf(
  edges: ReadonlyArray<GraphEdge>,
  nodes: ReadonlyArray<GraphNode>
): Sliced<string> {
  const digest = createHash("sha256")
  for (const [member, list] of [
    ['{"edges":[', edges],
    ['],"nodes":[', nodes]
  ] as const) {
    digest.update(member)
    for (const [at, one] of list.entries()) {
      yield
      digest.update(`${at === 0 ? "" : ","}${canonicalize(one as unknown as JsonValue)}`)
    }
  }
  return digest.update("]}").digest("hex")
}

/** The graph of an execution's spans, about one of them in a step. */
export function* graphOf(request: GraphRequest): Sliced<ExecutionGraph> {
  const graph = yield* spanGraphOf(request)
  const { edges, eventCounts, missing, order } = graph
  const depths = depthsOf(order)
  const nodes: Array<GraphNode> = []
  for (const span of order) {
    yield
    const { id } = span
    nodes.push(nodeOf(span, depths.get(id)!, eventCounts.get(id) ?? 0, missing.has(id)))
  }
  const inferred = request.edges === "recorded" ? undefined : yield* inferEdges(graph)
  const isIncomplete = inferred !== undefined && (request.isPartial || !inferred.isComplete)
  const digest = yield* digestOf(edges, nodes)
  const critical_path = criticalPathOf(graph)
  yield
  return {
    nodes,
    edges,
    ...(inferred === undefined ? {} : { inferred_edges: inferred.edges }),
    ...(isIncomplete ? { inferred_incomplete: true } : {}),
    critical_path,
    latest_end_path: latestEndPath(graph),
    digest
  }
}
