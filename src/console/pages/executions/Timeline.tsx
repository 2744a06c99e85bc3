/**
 * Spans by time: as many rows as there are, a window of time that can be narrowed with keys or by
 * dragging over all of it, and what the execution waited for.
 */
import { useSignal } from "@preact/signals"
import { useEffect, useMemo, useRef, useState } from "preact/hooks"
import type { Dag, Span } from "../../../client/gen/Api.d.ts"
import { count, duration } from "../../parts/Format.ts"
import { Mark } from "../../parts/Mark.tsx"
import { microsOf, type SpanRow, type SpanTree } from "../../parts/SpanTree.ts"
import { useRows } from "../../parts/Virtual.ts"
import { usePageKeys } from "../../state/PageKeys.ts"

const ROW_HEIGHT = 28

/** A part of the timeline, in microseconds from its start. */
interface Window {
  readonly from: number
  readonly to: number
}

interface Section {
  readonly from: number
  readonly to: number
}

/** The sections of the critical path by span. */
const sectionsOf = (dag: Dag | undefined, startedAt: number) => {
  const bySpan = new Map<string, Array<Section>>()
  for (const { from, span_id, to } of dag?.critical_path ?? []) {
    const section = { from: microsOf(from) - startedAt, to: microsOf(to) - startedAt }
    const own = bySpan.get(span_id)
    if (own === undefined) bySpan.set(span_id, [section])
    else own.push(section)
  }
  return bySpan
}

/** Rows of which no span above is folded. */
const visibleRows = (
  rows: ReadonlyArray<SpanRow>,
  folded: ReadonlySet<string>
): ReadonlyArray<SpanRow> => {
  const visible: Array<SpanRow> = []
  for (let at = 0; at < rows.length; at++) {
    const row = rows[at]!
    visible.push(row)
    if (folded.has(row.span.id)) at += row.below
  }
  return visible
}

/** The colours of types; others have the one of CUSTOM. */
export const typeClass = (type: string): string =>
  /^(?:AGENT|LLM_CALL|TOOL_CALL|RETRIEVAL|EMBEDDING|RERANK|WORKFLOW|HANDOFF|GUARDRAIL|PLANNING|MEMORY)$/.test(
    type
  )
    ? `type-${type.toLowerCase().replaceAll("_", "-")}`
    : "type-custom"

const tokensOf = ({ summary }: Span): string =>
  summary?.input_tokens === undefined && summary?.output_tokens === undefined
    ? ""
    : `${count(summary.input_tokens ?? 0)} tokens in, ${count(summary.output_tokens ?? 0)} out`

const percent = (value: number): string => `${(100 * value).toFixed(3)}%`

const Bar = ({
  row,
  sections,
  window
}: {
  readonly row: SpanRow
  readonly sections: ReadonlyArray<Section>
  readonly window: Window
}) => {
  const length = window.to - window.from
  const place = ({ from, to }: Section) => {
    const left = Math.max(0, (from - window.from) / length)
    const right = Math.min(1, (to - window.from) / length)
    return right < 0 || left > 1
      ? undefined
      : { left: percent(left), width: `max(2px, ${percent(Math.max(0, right - left))})` }
  }
  const own = place(row)
  const isRunning = row.span.status === "RUNNING"
  return (
    <span class="track">
      {own === undefined ? undefined : (
        <span
          class={`span-bar ${typeClass(row.span.span_type)}${row.span.status === "FAILED" ? " failed" : ""}${isRunning ? " running" : ""}`}
          style={own}
        />
      )}
      {sections.map((section) => {
        const style = place(section)
        return style === undefined ? undefined : (
          <span key={section.from} class="critical" style={style} />
        )
      })}
    </span>
  )
}

const Row = ({
  fold,
  isChosen,
  isFolded,
  open,
  row,
  sections,
  window
}: {
  readonly row: SpanRow
  readonly isChosen: boolean
  readonly isFolded: boolean
  readonly sections: ReadonlyArray<Section>
  readonly window: Window
  readonly fold: () => void
  readonly open: () => void
}) => {
  const { below, depth, from, span, to } = row
  const took = span.ended_at === undefined ? "runs" : duration(to - from)
  return (
    <div class={`span-row${isChosen ? " chosen" : ""}`}>
      <span class="span-name" style={{ paddingLeft: `${Math.min(depth, 20) * 0.9}rem` }}>
        {below > 0 ? (
          <button
            type="button"
            class="fold"
            aria-expanded={!isFolded}
            aria-label={`${isFolded ? "Unfold" : "Fold"} ${span.name}`}
            onClick={fold}
          >
            {isFolded ? "+" : "-"}
          </button>
        ) : (
          <span class="fold" />
        )}
        <button type="button" class="open-span" aria-pressed={isChosen} onClick={open}>
          <span class={`swatch ${typeClass(span.span_type)}`} aria-hidden="true" />
          <span class="hidden">{span.span_type} </span>
          {span.name}
          {span.status === "FAILED" ? (
            <span class="state bad">
              {" "}
              <Mark tone="bad" />
              <span class="hidden">failed</span>
            </span>
          ) : undefined}
          <span class="faint"> {tokensOf(span)}</span>
        </button>
      </span>
      <Bar row={row} sections={sections} window={window} />
      <span class="number took">{took}</span>
    </div>
  )
}

const MINIMAP_HEIGHT = 36
/** Bars of the minimap; of more rows those between are left out. */
const MINIMAP_MAX = 600

/** All of the timeline, small. Dragging over it chooses the window. */
const Minimap = ({
  choose,
  tree,
  window
}: {
  readonly tree: SpanTree
  readonly window: Window
  readonly choose: (window: Window) => void
}) => {
  const svg = useRef<SVGSVGElement>(null)
  const dragged = useSignal<readonly [number, number] | undefined>(undefined)
  const at = (event: PointerEvent): number => {
    const { left, width } = svg.current!.getBoundingClientRect()
    return Math.min(1, Math.max(0, (event.clientX - left) / width)) * tree.length
  }
  const step = Math.ceil(tree.rows.length / MINIMAP_MAX)
  const rows = tree.rows.filter((_, index) => index % step === 0)
  const height = MINIMAP_HEIGHT / rows.length
  const shown = dragged.value === undefined ? window : windowOf(dragged.value, tree.length)
  const x = (micros: number): number => (1_000 * micros) / tree.length
  return (
    <svg
      ref={svg}
      class="minimap"
      viewBox={`0 0 1000 ${MINIMAP_HEIGHT}`}
      preserveAspectRatio="none"
      aria-hidden="true"
      onPointerDown={(event) => {
        svg.current?.setPointerCapture(event.pointerId)
        dragged.value = [at(event), at(event)]
      }}
      onPointerMove={(event) => {
        if (dragged.value !== undefined) dragged.value = [dragged.value[0], at(event)]
      }}
      onPointerUp={() => {
        if (dragged.value !== undefined) choose(windowOf(dragged.value, tree.length))
        dragged.value = undefined
      }}
    >
      {rows.map(({ from, span, to }, index) => (
        <rect
          key={span.id}
          class={`span-bar ${typeClass(span.span_type)}${span.status === "FAILED" ? " failed" : ""}`}
          x={x(from)}
          y={index * height}
          width={Math.max(1, x(to - from))}
          height={Math.max(0.5, height * 0.8)}
        />
      ))}
      <rect class="beyond" x={0} y={0} width={x(shown.from)} height={MINIMAP_HEIGHT} />
      <rect
        class="beyond"
        x={x(shown.to)}
        y={0}
        width={1_000 - x(shown.to)}
        height={MINIMAP_HEIGHT}
      />
    </svg>
  )
}

/** The least that a window shows. */
const LEAST_MICROS = 10

/** What was dragged over; a click is all of it. */
const windowOf = ([one, other]: readonly [number, number], length: number): Window => {
  const [from, to] = one < other ? [one, other] : [other, one]
  return to - from < Math.max(LEAST_MICROS, length / 200) ? { from: 0, to: length } : { from, to }
}

const zoomed = ({ from, to }: Window, by: number, length: number): Window => {
  const half = Math.min(length, Math.max(LEAST_MICROS, (to - from) * by)) / 2
  const middle = Math.min(length - half, Math.max(half, (from + to) / 2))
  return { from: middle - half, to: middle + half }
}

const moved = ({ from, to }: Window, by: number, length: number): Window => {
  const step = Math.min(length - to, Math.max(-from, (to - from) * by))
  return { from: from + step, to: to + step }
}

export const Timeline = ({
  chosen,
  dag,
  open,
  tree
}: {
  readonly tree: SpanTree
  readonly dag: Dag | undefined
  readonly chosen: string | undefined
  readonly open: (id: string) => void
}) => {
  const { length } = tree
  const [chosenWindow, setWindow] = useState<Window | undefined>(undefined)
  const window = chosenWindow ?? { from: 0, to: length }
  const [folded, setFolded] = useState<ReadonlySet<string>>(new Set())
  const scroller = useRef<HTMLElement>(null)
  const shown = useMemo(() => visibleRows(tree.rows, folded), [tree, folded])
  const sections = useMemo(() => sectionsOf(dag, tree.startedAt), [dag, tree])
  const { height, items, scrollTo } = useRows(shown.length, ROW_HEIGHT, scroller)
  const change = (next: Window) => setWindow(next.from <= 0 && next.to >= length ? undefined : next)
  const latest = useRef({ change, window })
  latest.current = { change, window }
  const keys = useMemo(() => {
    const run = (next: (window: Window) => Window) => () =>
      latest.current.change(next(latest.current.window))
    return [
      { key: "w", what: "closer", run: run((one) => zoomed(one, 0.5, length)) },
      { key: "s", what: "further away", run: run((one) => zoomed(one, 2, length)) },
      { key: "a", what: "earlier", run: run((one) => moved(one, -0.25, length)) },
      { key: "d", what: "later", run: run((one) => moved(one, 0.25, length)) }
    ]
  }, [length])
  usePageKeys(keys)
  useEffect(() => {
    const at = shown.findIndex(({ span }) => span.id === chosen)
    if (at !== -1) scrollTo(at)
  }, [chosen])
  const fold = (id: string) => {
    const next = new Set(folded)
    if (!next.delete(id)) next.add(id)
    setFolded(next)
  }
  return (
    <section class="card timeline" aria-label="Timeline">
      <Minimap tree={tree} window={window} choose={change} />
      <div class="axis number">
        <span>+{duration(window.from)}</span>
        <span class="actions">
          <button type="button" class="quiet" onClick={() => change(zoomed(window, 0.5, length))}>
            Closer
          </button>
          <button type="button" class="quiet" onClick={() => change(zoomed(window, 2, length))}>
            Further away
          </button>
          <button type="button" class="quiet" onClick={() => setWindow(undefined)}>
            All
          </button>
        </span>
        <span>+{duration(window.to)}</span>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: without it only a mouse could scroll */}
      <section class="span-rows" ref={scroller} tabIndex={0} aria-label="Spans by time">
        <div style={{ height: `${height}px`, position: "relative" }}>
          <div style={{ transform: `translateY(${items[0]?.start ?? 0}px)` }}>
            {items.map(({ index }) => {
              const row = shown[index]!
              const { id } = row.span
              return (
                <Row
                  key={id}
                  row={row}
                  window={window}
                  sections={sections.get(id) ?? []}
                  isChosen={id === chosen}
                  isFolded={folded.has(id)}
                  fold={() => fold(id)}
                  open={() => open(id)}
                />
              )
            })}
          </div>
        </div>
      </section>
      <p class="faint">
        {dag === undefined ? undefined : (
          <>
            <span class="critical-key" aria-hidden="true" /> critical path: what the execution
            waited for at each moment.{" "}
          </>
        )}
        Drag over the small picture to zoom.
      </p>
    </section>
  )
}
