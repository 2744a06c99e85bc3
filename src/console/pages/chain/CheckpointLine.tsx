/**
 * Checkpoints as a line: the size of the tree by time. One point has the focus, and the arrow keys go
 * from one to the next.
 */
import { useRef } from "preact/hooks"
import type { Checkpoint } from "../../../client/gen/Api.d.ts"
import { count, shortTime } from "../../parts/Format.ts"
import { zone } from "../../state/Preferences.ts"

/** Of the picture, in units of its own. */
const WIDTH = 1_000
const HEIGHT = 160
const MARGIN = 14
const RADIUS = 5

interface Point {
  readonly x: number
  readonly y: number
  readonly checkpoint: Checkpoint
}

const placed = (value: number, least: number, most: number, length: number): number =>
  most === least ? length / 2 : MARGIN + ((value - least) / (most - least)) * (length - 2 * MARGIN)

/** Oldest first. */
const pointsOf = (checkpoints: ReadonlyArray<Checkpoint>): ReadonlyArray<Point> => {
  const times = checkpoints.map(({ created_at }) => Date.parse(created_at))
  const sizes = checkpoints.map(({ tree_size }) => tree_size)
  const [first, last] = [Math.min(...times), Math.max(...times)]
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)]
  return checkpoints
    .map((checkpoint, at) => ({
      checkpoint,
      x: placed(times[at]!, first, last, WIDTH),
      y: HEIGHT - placed(checkpoint.tree_size, least, most, HEIGHT)
    }))
    .toReversed()
}

export const checkpointLabel = ({ created_at, tree_size }: Checkpoint): string =>
  `#${count(tree_size)}, signed ${shortTime(created_at, zone.value)}`

/** The place that a key leads to; undefined for keys without a meaning on the line. */
const placeAfter = (key: string, at: number, last: number): number | undefined => {
  switch (key) {
    case "ArrowRight":
    case "ArrowUp":
      return Math.min(last, at + 1)
    case "ArrowLeft":
    case "ArrowDown":
      return Math.max(0, at - 1)
    case "Home":
      return 0
    case "End":
      return last
  }
  return undefined
}

export const CheckpointLine = ({
  addressOf,
  checkpoints,
  chosen,
  open
}: {
  readonly checkpoints: ReadonlyArray<Checkpoint>
  readonly chosen: number | undefined
  readonly addressOf: (size: number) => string
  readonly open: (size: number) => void
}) => {
  const svg = useRef<SVGSVGElement>(null)
  const points = pointsOf(checkpoints)
  const chosenAt = points.findIndex(({ checkpoint }) => checkpoint.tree_size === chosen)
  const focusable = chosenAt === -1 ? points.length - 1 : chosenAt
  const onKey = (event: KeyboardEvent, at: number) => {
    const next = placeAfter(event.key, at, points.length - 1)
    if (next === undefined) return
    event.preventDefault()
    open(points[next]!.checkpoint.tree_size)
    svg.current?.querySelectorAll("a")[next]?.focus()
  }
  return (
    <svg ref={svg} class="checkpoint-line" viewBox={`0 0 ${WIDTH} ${HEIGHT}`}>
      <title>Size of the signed tree by time</title>
      <polyline points={points.map(({ x, y }) => `${x},${y}`).join(" ")} />
      {points.map(({ checkpoint, x, y }, at) => (
        <a
          key={checkpoint.tree_size}
          href={addressOf(checkpoint.tree_size)}
          aria-label={`Checkpoint ${checkpointLabel(checkpoint)}`}
          aria-current={at === chosenAt ? "true" : undefined}
          tabIndex={at === focusable ? 0 : -1}
          onKeyDown={(event) => onKey(event, at)}
        >
          <title>{checkpointLabel(checkpoint)}</title>
          <circle class="touch" cx={x} cy={y} r={3 * RADIUS} />
          <circle cx={x} cy={y} r={at === chosenAt ? 1.6 * RADIUS : RADIUS} />
        </a>
      ))}
    </svg>
  )
}
