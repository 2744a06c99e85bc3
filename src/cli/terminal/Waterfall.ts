/** Spans of a run as a tree with bars of their times, for a terminal. */
import { duration } from "../../domain/Duration.ts"
import { cut, pad, plain, widthOf } from "./Table.ts"

export interface WaterfallSpan {
  readonly id: string
  readonly parentId: string | undefined
  readonly type: string
  readonly name: string
  readonly status: string
  /** Microseconds since 1970. */
  readonly start: number
  /** Undefined while it runs. */
  readonly end: number | undefined
}

interface Row {
  readonly span: WaterfallSpan
  readonly label: string
}

/** Columns of names at most, and of durations at least. */
const LABEL_MAX = 48
const DURATION_MIN = 9
const BAR_MIN = 10

const SIGNS: Readonly<Record<string, string>> = { FAILED: "✗", CANCELLED: "⊘", RUNNING: "…" }

const byStart = (left: WaterfallSpan, right: WaterfallSpan): number =>
  left.start - right.start || (left.id < right.id ? -1 : 1)

/** Each span after its parent, with branches; one whose parent is missing is a root. */
const rowsOf = (spans: ReadonlyArray<WaterfallSpan>): ReadonlyArray<Row> => {
  const ids = new Set(spans.map(({ id }) => id))
  const children = new Map<string | undefined, Array<WaterfallSpan>>()
  for (const span of [...spans].sort(byStart)) {
    const parent = span.parentId !== undefined && ids.has(span.parentId) ? span.parentId : undefined
    children.set(parent, [...(children.get(parent) ?? []), span])
  }
  const rows: Array<Row> = []
  const add = (parent: string | undefined, indent: string): void => {
    const below = children.get(parent) ?? []
    for (const [at, span] of below.entries()) {
      const isLast = at === below.length - 1
      const branch = parent === undefined ? "" : isLast ? "└ " : "├ "
      const sign = SIGNS[span.status]
      const label = plain(`${span.name}${sign === undefined ? "" : ` ${sign}`}`)
      rows.push({ span, label: indent + branch + label })
      children.delete(parent)
      add(span.id, parent === undefined ? "" : indent + (isLast ? "  " : "│ "))
    }
  }
  add(undefined, "")
  return rows
}

const bar = (span: WaterfallSpan, from: number, to: number, width: number): string => {
  const scale = (time: number): number => ((time - from) / Math.max(to - from, 1)) * width
  const start = Math.min(width - 1, Math.max(0, Math.floor(scale(span.start))))
  const end = Math.min(width, Math.max(start + 1, Math.ceil(scale(span.end ?? to))))
  return " ".repeat(start) + "█".repeat(end - start)
}

/** The lines of a waterfall; `now`, in microseconds since 1970, ends what still runs. */
export const waterfall = (
  spans: ReadonlyArray<WaterfallSpan>,
  width: number,
  now: number
): string => {
  if (spans.length === 0) return "no spans\n"
  const rows = rowsOf(spans)
  const from = Math.min(...spans.map(({ start }) => start))
  const to = Math.max(...spans.map(({ end }) => end ?? now))
  const labels = Math.min(LABEL_MAX, Math.max(...rows.map(({ label }) => widthOf(label))))
  const lengths = rows.map(({ span }) => duration((span.end ?? now) - span.start))
  const durations = Math.max(DURATION_MIN, ...lengths.map(widthOf))
  const bars = Math.max(BAR_MIN, width - labels - durations - 4)
  return rows
    .map(({ label, span }, at) => {
      const name = pad(cut(label, labels), labels)
      return `${name}  ${pad(lengths[at]!, durations, true)}  ${bar(span, from, to, bars)}\n`
    })
    .join("")
}
