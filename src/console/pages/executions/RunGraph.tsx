/** The graph of an execution: as it ran, or gathered by name where it is large. */
import { signal } from "@preact/signals"
import { useEffect, useMemo, useRef, useState } from "preact/hooks"
import type { AggregatedDag, Dag } from "../../../client/gen/Api.d.ts"
import { useAnswer } from "../../api/Answer.ts"
import { Empty, Failure, Loading } from "../../parts/Basics.tsx"
import { count } from "../../parts/Format.ts"
import {
  type DrawnEdge,
  type DrawnNode,
  type LayoutAnswer,
  type Picture,
  pictureOfAggregated,
  pictureOfDag
} from "../../parts/GraphPicture.ts"
import { typeClass } from "./Timeline.tsx"

const WIDTH = 176
const HEIGHT = 44
/** Spans that are drawn one by one; more are gathered first. */
const SINGLE_MAX = 150
/** Nodes that a page of pictures moves smoothly. */
const NODES_MAX = 2_500
/** Pixels of a graph that are seen at first at least, so that a small one is not enlarged. */
const SEEN_WIDTH = 1_100
/** Pixels that are seen at first at most: of a larger graph its beginning. */
const SEEN_HEIGHT = 1_200
const LABEL_MAX = 24

const workerUrl = (): string =>
  document.querySelector<HTMLMetaElement>('meta[name="layout-worker"]')?.content ?? ""

interface PlacedPicture {
  readonly picture: Picture
  readonly layout: LayoutAnswer
}

/** A placed picture, the span that is looked at, and what opens another one. */
interface DrawnPicture extends PlacedPicture {
  readonly chosen: string | undefined
  readonly open: (id: string) => void
}

type Placed =
  | { readonly is: "busy" }
  | { readonly is: "failed"; readonly message: string }
  | ({ readonly is: "done" } & PlacedPicture)

/** Where the nodes are, found beside the page; a picture stays until the next one is placed. */
const useLayout = (picture: Picture): Placed => {
  const [placed, setPlaced] = useState<Placed>({ is: "busy" })
  useEffect(() => {
    const worker = new Worker(workerUrl(), { type: "module" })
    worker.onmessage = ({ data }: MessageEvent<LayoutAnswer>) => {
      setPlaced({ is: "done", picture, layout: data })
      worker.terminate()
    }
    worker.onerror = ({ message }) => {
      setPlaced({ is: "failed", message: message ?? "the graph can't be placed" })
      worker.terminate()
    }
    worker.postMessage({
      nodes: picture.nodes.map(({ id }) => id),
      edges: picture.edges.map(({ id, source, target }) => ({ id, source, target })),
      width: WIDTH,
      height: HEIGHT
    })
    return () => worker.terminate()
  }, [picture])
  return placed
}

const short = (text: string): string =>
  text.length <= LABEL_MAX ? text : `${text.slice(0, LABEL_MAX - 1)}…`

const noteOf = ({ note, type }: DrawnNode): string => short(note === "" ? type : note)

const Node = ({
  isChosen,
  node,
  open,
  x,
  y
}: {
  readonly node: DrawnNode
  readonly x: number
  readonly y: number
  readonly isChosen: boolean
  readonly open: (id: string) => void
}) => (
  // biome-ignore lint/a11y/useSemanticElements: there are no buttons inside of a picture
  <g
    class={`graph-node ${typeClass(node.type)}${node.hasFailed ? " failed" : ""}${node.isCritical ? " on-path" : ""}${isChosen ? " chosen" : ""}`}
    transform={`translate(${x - WIDTH / 2} ${y - HEIGHT / 2})`}
    role="button"
    // In SVG, names of attributes are case-sensitive.
    tabindex={0}
    aria-label={`${short(node.name)} ${noteOf(node)}, ${node.type}${node.hasFailed ? ", failed" : ""}`}
    onClick={() => open(node.id)}
    onKeyDown={(event) => {
      if (event.key !== "Enter" && event.key !== " ") return
      event.preventDefault()
      open(node.id)
    }}
  >
    <title>{`${node.name}\n${node.type}\n${node.note}`}</title>
    <rect width={WIDTH} height={HEIGHT} rx={7} />
    <text x={10} y={18}>
      {`${short(node.name)} `}
    </text>
    <text class="note" x={10} y={35}>
      {noteOf(node)}
    </text>
  </g>
)

const Edge = ({
  edge,
  points
}: {
  readonly edge: DrawnEdge
  readonly points: LayoutAnswer["edges"][number]["points"]
}) => (
  <path
    class={`graph-edge ${edge.kind}`}
    d={points.map(({ x, y }, at) => `${at === 0 ? "M" : "L"}${x} ${y}`).join("")}
    marker-end="url(#arrow)"
  >
    <title>{edge.title}</title>
  </path>
)

interface View {
  readonly x: number
  readonly y: number
  readonly scale: number
}

/** Times that the whole of a graph can be enlarged. */
const CLOSEST = 200
const FURTHEST = 0.1

/** The nodes and edges. */
const Drawing = ({ chosen, layout, open, picture }: DrawnPicture) => {
  const nodes = new Map(picture.nodes.map((node) => [node.id, node]))
  const edges = new Map(picture.edges.map((edge) => [edge.id, edge]))
  return (
    <g>
      {layout.edges.map(({ id, points }) => (
        <Edge key={id} edge={edges.get(id)!} points={points} />
      ))}
      {layout.nodes.map(({ id, x, y }) => (
        <Node key={id} node={nodes.get(id)!} x={x} y={y} isChosen={id === chosen} open={open} />
      ))}
    </g>
  )
}

/** All of it, in the middle. */
const whole = ({ height, width }: LayoutAnswer): View => {
  const scale = Math.min(1, width / SEEN_WIDTH)
  return { scale, x: (width - width / scale) / 2, y: (height - height / scale) / 2 }
}

const beginning = (layout: LayoutAnswer): View => {
  const scale = layout.height / SEEN_HEIGHT
  if (scale <= 1) return whole(layout)
  const first = layout.nodes[0]?.y ?? 0
  return { scale, x: 0, y: Math.max(0, first - layout.height / scale / 2) }
}

const Canvas = ({ chosen, layout, open, picture }: DrawnPicture) => {
  const view = useMemo(() => signal(beginning(layout)), [layout])
  const grabbed = useRef<{ readonly x: number; readonly y: number } | undefined>(undefined)
  const svg = useRef<SVGSVGElement>(null)
  // The same element while the graph is explored: thousands of nodes are not looked at again.
  const drawing = useMemo(
    () => <Drawing picture={picture} layout={layout} chosen={chosen} open={open} />,
    [picture, layout, chosen, open]
  )
  const { scale, x, y } = view.value
  const [width, height] = [layout.width / scale, layout.height / scale]
  const zoom = (by: number): void => {
    const next = Math.min(CLOSEST, Math.max(FURTHEST, scale * by))
    const [wider, higher] = [width - layout.width / next, height - layout.height / next]
    view.value = { scale: next, x: x + wider / 2, y: y + higher / 2 }
  }
  const move = (event: PointerEvent): void => {
    if (grabbed.current === undefined) return
    const box = svg.current!.getBoundingClientRect()
    const perPixel = Math.max(width / box.width, height / box.height)
    view.value = {
      scale,
      x: x - (event.clientX - grabbed.current.x) * perPixel,
      y: y - (event.clientY - grabbed.current.y) * perPixel
    }
    grabbed.current = { x: event.clientX, y: event.clientY }
  }
  return (
    <>
      <p class="actions">
        <button type="button" class="quiet" onClick={() => zoom(1.5)}>
          Closer
        </button>
        <button type="button" class="quiet" onClick={() => zoom(1 / 1.5)}>
          Further away
        </button>
        <button type="button" class="quiet" onClick={() => (view.value = whole(layout))}>
          All
        </button>
      </p>
      {/* biome-ignore lint/a11y/useSemanticElements: a picture with buttons in it is no fieldset */}
      <svg
        ref={svg}
        class="graph"
        role="group"
        aria-label="Graph of the execution"
        viewBox={`${x} ${y} ${width} ${height}`}
        onPointerDown={(event) => {
          if ((event.target as Element).closest(".graph-node") !== null) return
          svg.current?.setPointerCapture(event.pointerId)
          grabbed.current = { x: event.clientX, y: event.clientY }
        }}
        onPointerMove={move}
        onPointerUp={() => (grabbed.current = undefined)}
      >
        <defs>
          <marker
            id="arrow"
            viewBox="0 0 8 8"
            refX="8"
            refY="4"
            markerWidth="7"
            markerHeight="7"
            orient="auto-start-reverse"
          >
            <path class="arrow" d="M0 0L8 4L0 8z" />
          </marker>
        </defs>
        {drawing}
      </svg>
    </>
  )
}

const Drawn = ({
  chosen,
  open,
  picture
}: {
  readonly picture: Picture
  readonly chosen: string | undefined
  readonly open: (id: string) => void
}) => {
  const placed = useLayout(picture)
  if (placed.is === "busy")
    return <Loading what={`a graph of ${count(picture.nodes.length)} nodes`} />
  if (placed.is === "failed") {
    return (
      <p class="failure" role="alert">
        {placed.message}
      </p>
    )
  }
  return <Canvas picture={placed.picture} layout={placed.layout} chosen={chosen} open={open} />
}

const Gathered = ({
  chosen,
  id,
  open,
  withInferred
}: {
  readonly id: string
  readonly withInferred: boolean
  readonly chosen: string | undefined
  readonly open: (id: string) => void
}) => {
  const answer = useAnswer<AggregatedDag>(
    `/api/v1/executions/${encodeURIComponent(id)}/dag/aggregated`
  )
  const picture = useMemo(
    () => (answer.data === undefined ? undefined : pictureOfAggregated(answer.data, withInferred)),
    [answer.data, withInferred]
  )
  if (picture === undefined) {
    return answer.failure === undefined ? (
      <Loading what="the graph" />
    ) : (
      <Failure failure={answer.failure} retry={answer.reload} />
    )
  }
  return picture.nodes.length > NODES_MAX ? (
    <Empty title="Too many nodes to draw">
      <p>
        {count(picture.nodes.length)} names of spans below each other: the timeline shows all of
        them.
      </p>
    </Empty>
  ) : (
    <Drawn picture={picture} chosen={chosen} open={open} />
  )
}

export const RunGraph = ({
  chosen,
  dag,
  id,
  open
}: {
  readonly id: string
  readonly dag: Dag | undefined
  readonly chosen: string | undefined
  readonly open: (id: string) => void
}) => {
  const [withInferred, setInferred] = useState(true)
  const size = dag?.nodes.length ?? Infinity
  const [isGathered, setGathered] = useState(size > SINGLE_MAX)
  const canBeSingle = size <= NODES_MAX
  const picture = useMemo(
    () => (dag === undefined || !canBeSingle ? undefined : pictureOfDag(dag, withInferred)),
    [dag, withInferred, canBeSingle]
  )
  return (
    <section class="card" aria-label="Graph">
      <div class="chips">
        <label>
          <input
            type="checkbox"
            checked={withInferred}
            onChange={() => setInferred(!withInferred)}
          />
          inferred edges
        </label>
        <label>
          <input
            type="checkbox"
            checked={isGathered || !canBeSingle}
            disabled={!canBeSingle}
            onChange={() => setGathered(!isGathered)}
          />
          gathered by name
        </label>
        <span class="faint">
          <span class="edge-key" aria-hidden="true" /> recorded{" "}
          <span class="edge-key inferred" aria-hidden="true" /> inferred from metadata and times, no
          part of the chain
        </span>
      </div>
      {isGathered || picture === undefined ? (
        <Gathered id={id} withInferred={withInferred} chosen={chosen} open={open} />
      ) : (
        <Drawn picture={picture} chosen={chosen} open={open} />
      )}
    </section>
  )
}
