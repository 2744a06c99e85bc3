/** Spans of an execution as rows of a timeline: below their parents, in the order of their starts. Pure. */
import type { Span } from "../../client/gen/Api.d.ts"

export interface SpanRow {
  readonly span: Span
  readonly depth: number
  /** Spans below it, at any depth. */
  readonly below: number
  /** Microseconds from the start of the execution. */
  readonly from: number
  /** The end, or the last time that anything of the execution tells of while it runs. */
  readonly to: number
}

/** Microseconds since 1970 of an RFC 3339 time in UTC. */
export const microsOf = (time: string): number => {
  const fraction = /\.(\d{1,6})/.exec(time)?.[1] ?? ""
  return Math.floor(Date.parse(time) / 1_000) * 1_000_000 + Number(fraction.padEnd(6, "0"))
}

export interface SpanTree {
  /** In the order of a timeline, all of them. */
  readonly rows: ReadonlyArray<SpanRow>
  /** Microseconds since 1970. */
  readonly startedAt: number
  /** Microseconds that the timeline spans. */
  readonly length: number
}

/** Spans whose parent has not arrived are at the top, as those of a cycle are. */
export const spanTreeOf = (spans: ReadonlyArray<Span>): SpanTree => {
  const times = spans.map(({ ended_at, started_at }) => ({
    from: microsOf(started_at),
    to: ended_at === undefined ? undefined : microsOf(ended_at)
  }))
  const startedAt = Math.min(...times.map(({ from }) => from))
  const latest = Math.max(...times.map(({ from, to }) => to ?? from))
  const byId = new Map(spans.map((span, index) => [span.id, index]))
  const children = new Map<number | undefined, Array<number>>()
  spans.forEach(({ id, parent_span_id }, index) => {
    const parent = parent_span_id === id ? undefined : byId.get(parent_span_id ?? "")
    const siblings = children.get(parent)
    if (siblings === undefined) children.set(parent, [index])
    else siblings.push(index)
  })
  for (const siblings of children.values()) {
    siblings.sort((left, right) => times[left]!.from - times[right]!.from || left - right)
  }
  const rows: Array<SpanRow & { below: number }> = []
  const seen = new Set<number>()
  /** Without recursion: runs of agents may nest deep. */
  const walk = (top: number): void => {
    const open: Array<number> = []
    const close = (depth: number): void => {
      while (open.length > depth) {
        const row = open.pop()!
        rows[row]!.below = rows.length - 1 - row
      }
    }
    const waiting = [{ index: top, depth: 0 }]
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const { depth, index } = next
      if (seen.has(index)) continue
      seen.add(index)
      close(depth)
      const { from, to } = times[index]!
      open.push(rows.length)
      rows.push({
        span: spans[index]!,
        depth,
        below: 0,
        from: from - startedAt,
        to: (to ?? latest) - startedAt
      })
      const own = children.get(index) ?? []
      for (const child of own.toReversed()) waiting.push({ index: child, depth: depth + 1 })
    }
    close(0)
  }
  for (const top of children.get(undefined) ?? []) walk(top)
  spans.forEach((_, index) => {
    if (!seen.has(index)) walk(index)
  })
  return { rows, startedAt, length: Math.max(1, latest - startedAt) }
}
