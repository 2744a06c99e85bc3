/** Events by time and outcome. Dragging over it chooses a span of time, as the bounds above it do. */
import { useSignal } from "@preact/signals"
import { useEffect, useRef, useState } from "preact/hooks"
import type { EventStats } from "../../../client/gen/Api.d.ts"
import { useAnswer } from "../../api/Answer.ts"
import { Failure, Loading, Stale } from "../../parts/Basics.tsx"
import { count, counted } from "../../parts/Format.ts"
import { BinTable, binLabel, HEIGHT, OutcomeBar, WIDTH } from "../../parts/TimeBars.tsx"
import { type Bin, binsOf, type Unit, unitOf } from "../../parts/TimeBins.ts"
import { pathWith } from "../../state/EventsView.ts"

/** Bounds as the page has fixed them, milliseconds since 1970. */
export interface TimeSpan {
  readonly from: number | undefined
  readonly to: number | undefined
}

/** The bars, and the ones that are dragged over. */
const Bars = ({
  bins,
  choose,
  unit
}: {
  readonly bins: ReadonlyArray<Bin>
  readonly unit: Unit
  readonly choose: (from: number, to: number) => void
}) => {
  const dragged = useSignal<readonly [number, number] | undefined>(undefined)
  const svg = useRef<SVGSVGElement>(null)
  const most = Math.max(1, ...bins.map(({ total }) => total))
  const binAt = (event: PointerEvent): number => {
    const { left, width } = svg.current!.getBoundingClientRect()
    const at = Math.floor(((event.clientX - left) / width) * bins.length)
    return Math.min(bins.length - 1, Math.max(0, at))
  }
  const begin = (event: PointerEvent) => {
    svg.current?.setPointerCapture(event.pointerId)
    dragged.value = [binAt(event), binAt(event)]
  }
  const move = (event: PointerEvent) => {
    if (dragged.value !== undefined) dragged.value = [dragged.value[0], binAt(event)]
  }
  const end = () => {
    if (dragged.value === undefined) return
    const [first, last] = dragged.value.toSorted((left, right) => left - right) as [number, number]
    dragged.value = undefined
    choose(bins[first]!.from, bins[last]!.to)
  }
  const width = WIDTH / bins.length
  const marks = dragged.value?.toSorted((left, right) => left - right)
  return (
    <svg
      ref={svg}
      class="bars histogram draggable"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      aria-hidden="true"
      onPointerDown={begin}
      onPointerMove={move}
      onPointerUp={end}
      onPointerCancel={() => (dragged.value = undefined)}
    >
      {bins.map((bin, at) => (
        <g key={bin.from}>
          <title>
            {binLabel(bin.from, unit)}: {count(bin.total)}
          </title>
          <rect class="room" x={at * width} y={0} width={width} height={HEIGHT} />
          <OutcomeBar bin={bin} at={at} of={bins.length} most={most} />
        </g>
      ))}
      {marks === undefined ? undefined : (
        <rect
          class="dragged"
          x={marks[0]! * width}
          y={0}
          width={(marks[1]! - marks[0]! + 1) * width}
          height={HEIGHT}
        />
      )}
    </svg>
  )
}

export const Histogram = ({
  choose,
  filter,
  span
}: {
  readonly filter: string
  readonly span: TimeSpan
  /** Milliseconds since 1970. */
  readonly choose: (from: number, to: number) => void
}) => {
  const isKnown = span.from !== undefined
  const wanted = isKnown ? unitOf((span.to ?? Date.now()) - span.from) : "day"
  const [finer, setFiner] = useState<{ readonly filter: string; readonly unit: Unit }>()
  const unit = !isKnown && finer?.filter === filter ? finer.unit : wanted
  const stats = useAnswer<EventStats>(
    pathWith("/v1/events/stats", filter, `group_by=outcome&interval=${unit}`)
  )
  const buckets = stats.data?.buckets ?? []
  const starts = buckets.map(({ start }) => Date.parse(start))
  const fitting =
    isKnown || starts.length === 0 ? unit : unitOf(Math.max(...starts) - Math.min(...starts))
  // How long the events span is known once they are counted; days that are too coarse aren't shown.
  const isCoarse = unit === "day" && fitting !== "day"
  useEffect(() => {
    if (isCoarse) setFiner({ filter, unit: "hour" })
  }, [isCoarse, filter])
  if (stats.data === undefined || isCoarse) {
    return stats.failure === undefined ? (
      <div class="histogram-room">
        <Loading what="the counts" />
      </div>
    ) : (
      <Failure failure={stats.failure} retry={stats.reload} />
    )
  }
  const bins = binsOf(buckets, unit, span)
  const of = (key: string) => stats.data?.groups.find((group) => group.key === key)?.count ?? 0
  return (
    <section aria-label="Events by time">
      <Stale answer={stats} />
      {bins.length === 0 ? (
        <div class="histogram-room" />
      ) : (
        <>
          <Bars bins={bins} unit={unit} choose={choose} />
          <div class="axis number">
            <span>{binLabel(bins[0]!.from, unit)}</span>
            <span>{binLabel(bins.at(-1)!.to, unit)}</span>
          </div>
        </>
      )}
      <div class="histogram-foot">
        <p class="faint">
          <strong>{counted(stats.data.total, "event")}</strong>, {counted(of("failure"), "failure")}
          , {counted(of("error"), "error")}
          {bins.length > 1 ? ". Drag over the bars to zoom." : "."}
        </p>
        {bins.length === 0 ? undefined : <BinTable bins={bins} unit={unit} />}
      </div>
    </section>
  )
}
