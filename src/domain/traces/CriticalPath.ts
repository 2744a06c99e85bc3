/**
 * What an execution has waited for at each moment, found by walking backwards from its end: from a
 * span into the child that ended last before the moment, and when that began, on to the child that
 * ended last before. What no child explains is the span's own time. Pure.
 */
import { Schema } from "effect"
import { time } from "../Forms.ts"
import { childrenOf, type SpanGraph } from "./SpanGraph.ts"
import type { Span } from "./TraceResources.ts"

export const PathSection = Schema.Struct({
  span_id: Schema.String,
  from: time("When the execution began to wait for it."),
  to: time("When it no longer did.")
}).annotate({ identifier: "CriticalPathSection" })
export type PathSection = typeof PathSection.Type

/** The time of a span; texts in canonical form compare as times do. */
interface Extent {
  readonly id: string
  readonly start: string
  readonly end: string
}

type Children = ReadonlyMap<string, ReadonlyArray<Span>>

const later = (left: string, right: string): string => (left > right ? left : right)
const earlier = (left: string, right: string): string => (left < right ? left : right)

/** The latest time that any span tells of. */
const lastKnownOf = (spans: ReadonlyArray<Span>): string =>
  spans.reduce(
    (last, { ended_at = "", started_at }) => later(later(last, started_at), ended_at),
    ""
  )

/**
 * What runs goes on until the last known time; a span that was never sent lasts as long as what is
 * below it, unless it is the root.
 */
const extentsOf = (
  { missing, order }: SpanGraph,
  children: Children,
  rootId: string
): ReadonlyMap<string, Extent> => {
  const lastKnown = lastKnownOf(order)
  const extents = new Map<string, Extent>()
  const endOf = (span: Span): string => {
    if (span.ended_at !== undefined) return later(span.ended_at, span.started_at)
    if (span.id === rootId || !missing.has(span.id)) return lastKnown
    const below = (children.get(span.id) ?? []).map(({ id }) => extents.get(id)?.end ?? "")
    return below.reduce(later, span.started_at)
  }
  for (const span of order.toReversed()) {
    extents.set(span.id, { id: span.id, start: span.started_at, end: endOf(span) })
  }
  return extents
}

/** The child of a span, as far as it is within the span's time. */
interface Part extends Extent {
  /** It goes on after the span, which therefore has hardly waited for its end. */
  readonly isOver: boolean
}

/** The latest end first; of equals what is not over, then the earliest start, then by id. */
const isTakenFirst = (left: Part, right: Part): boolean => {
  if (left.end !== right.end) return left.end > right.end
  if (left.isOver !== right.isOver) return right.isOver
  return left.start === right.start ? left.id < right.id : left.start < right.start
}

/** One span on the way back. */
class Step {
  readonly id: string
  readonly from: string
  /** Everything after it is explained. */
  at: string
  readonly #parts: ReadonlyArray<Part>
  #next = 0

  constructor(id: string, from: string, to: string, children: ReadonlyArray<Extent>) {
    this.id = id
    this.from = from
    this.at = to
    this.#parts = children
      .filter(({ end, start }) => start < to && end > from)
      .map(({ end, id, start }) => ({ id, start, end: earlier(end, to), isOver: end > to }))
      .sort((left, right) => (isTakenFirst(left, right) ? -1 : 1))
  }

  /** The child that ended last before the moment; each is asked about once. */
  take(): Part | undefined {
    for (;;) {
      const part = this.#parts[this.#next]
      if (part === undefined) return undefined
      this.#next += 1
      if (part.end <= this.at && part.start < this.at) return part
    }
  }
}

/** Sections from the root's start to its end, without gaps. */
export const criticalPathOf = (graph: SpanGraph): ReadonlyArray<PathSection> => {
  const root = graph.spans.get(graph.rootSpanId) ?? graph.order[0]
  if (root === undefined) return []
  const children = childrenOf(graph.order)
  const extents = extentsOf(graph, children, root.id)
  const stepOf = (id: string, from: string, to: string): Step => {
    const below = (children.get(id) ?? []).flatMap((child) =>
      child.id === root.id ? [] : (extents.get(child.id) ?? [])
    )
    return new Step(id, from, to, below)
  }
  const { end, start } = extents.get(root.id)!
  /** The last one first. */
  const sections: Array<PathSection> = []
  const add = (span_id: string, from: string, to: string): void => {
    if (from >= to) return
    const after = sections.at(-1)
    if (after?.span_id === span_id) sections[sections.length - 1] = { ...after, from }
    else sections.push({ span_id, from, to })
  }
  const steps = [stepOf(root.id, start, end)]
  for (let step = steps.at(-1); step !== undefined; step = steps.at(-1)) {
    const part = step.take()
    if (part === undefined) {
      add(step.id, step.from, step.at)
      steps.pop()
      continue
    }
    add(step.id, part.end, step.at)
    const from = later(part.start, step.from)
    step.at = from
    steps.push(stepOf(part.id, from, part.end))
  }
  return sections.length === 0 ? [{ span_id: root.id, from: start, to: end }] : sections.reverse()
}
