/**
 * The order in which the spans of one command are started: what a span follows from comes
 * before it, and else the order of the request stays. Looks at ids only; spans that follow from
 * each other are named, not refused.
 */
import type { StartSpan } from "../../../domain/traces/TraceOperation.ts"

export interface SpanOrder {
  readonly ordered: ReadonlyArray<StartSpan>
  /** Ids of the spans that are on a cycle. */
  readonly cyclic: ReadonlySet<string>
}

/** A span on its way through Tarjan's algorithm. */
interface Node {
  readonly id: string
  readonly sources: ReadonlyArray<string>
  readonly index: number
  low: number
  next: number
  onStack: boolean
}

/** A span's first request decides what it follows from; a repeated one has nothing to say. */
const firstById = (starts: ReadonlyArray<StartSpan>): Map<string, Array<StartSpan>> => {
  const byId = new Map<string, Array<StartSpan>>()
  for (const start of starts) {
    const same = byId.get(start.spanId)
    if (same === undefined) byId.set(start.spanId, [start])
    else same.push(start)
  }
  return byId
}

/**
 * Strongly connected components (Tarjan, 1972), which come out in the order that is needed here:
 * sources first. Written without recursion, since a command may be one long chain.
 */
class Walk {
  readonly ordered: Array<StartSpan> = []
  readonly cyclic = new Set<string>()
  readonly #starts: ReadonlyMap<string, ReadonlyArray<StartSpan>>
  readonly #exists: (spanId: string) => boolean
  readonly #nodes = new Map<string, Node>()
  readonly #stack: Array<Node> = []

  constructor(
    starts: ReadonlyMap<string, ReadonlyArray<StartSpan>>,
    exists: (spanId: string) => boolean
  ) {
    this.#starts = starts
    this.#exists = exists
  }

  from(id: string): void {
    if (this.#nodes.has(id)) return
    const path = [this.#enter(id)]
    for (let node = path.at(-1); node !== undefined; node = path.at(-1)) {
      const source = node.sources[node.next]
      if (source === undefined) {
        path.pop()
        const before = path.at(-1)
        if (before !== undefined) before.low = Math.min(before.low, node.low)
        if (node.low === node.index) this.#leave(node)
        continue
      }
      node.next += 1
      const known = this.#nodes.get(source)
      if (known === undefined) path.push(this.#enter(source))
      else if (known.onStack) node.low = Math.min(node.low, known.index)
    }
  }

  #enter(id: string): Node {
    const index = this.#nodes.size
    const node: Node = {
      id,
      sources: this.#sourcesOf(id),
      index,
      low: index,
      next: 0,
      onStack: true
    }
    this.#nodes.set(id, node)
    this.#stack.push(node)
    return node
  }

  /** The sources that this command starts itself; a span that exists follows from nothing here. */
  #sourcesOf(id: string): ReadonlyArray<string> {
    const { causedBy, parentSpanId } = this.#starts.get(id)![0]!
    if (this.#exists(id)) return []
    const sources = parentSpanId === undefined ? causedBy : [parentSpanId, ...causedBy]
    return sources.filter((source) => this.#starts.has(source))
  }

  #leave(root: Node): void {
    const component: Array<Node> = []
    for (;;) {
      const node = this.#stack.pop()!
      node.onStack = false
      component.push(node)
      if (node === root) break
    }
    const isCycle = component.length > 1 || root.sources.includes(root.id)
    for (const { id } of component) {
      if (isCycle) this.cyclic.add(id)
      this.ordered.push(...this.#starts.get(id)!)
    }
  }
}

/** `exists` is true for spans that were there before the command. */
export const orderSpans = (
  starts: ReadonlyArray<StartSpan>,
  exists: (spanId: string) => boolean
): SpanOrder => {
  const byId = firstById(starts)
  const walk = new Walk(byId, exists)
  for (const id of byId.keys()) walk.from(id)
  return walk
}
