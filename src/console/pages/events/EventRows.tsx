/** Rows of events, those in view in the document. */
import type { RefObject } from "preact"
import type { AuditEvent } from "../../../client/gen/Api.d.ts"
import { Outcome, Time } from "../../parts/Basics.tsx"
import { count, shortId } from "../../parts/Format.ts"
import type { Rows } from "../../parts/Virtual.ts"
import { fieldTitles } from "./Facets.tsx"

export const ROW_HEIGHT = 32

/** The value at a path of metadata: the whole path as one key first, as the API has it. */
const metadataAt = (metadata: unknown, path: string): unknown => {
  if (typeof metadata !== "object" || metadata === null) return undefined
  const own = metadata as Readonly<Record<string, unknown>>
  if (Object.hasOwn(own, path)) return own[path]
  for (let dot = path.indexOf("."); dot !== -1; dot = path.indexOf(".", dot + 1)) {
    const key = path.slice(0, dot)
    const found = Object.hasOwn(own, key) ? metadataAt(own[key], path.slice(dot + 1)) : undefined
    if (found !== undefined) return found
  }
  return undefined
}

/** What a column shows of an event. */
const cellOf = (event: AuditEvent, column: string) => {
  switch (column) {
    case "timestamp":
      return <Time at={event.timestamp} />
    case "created_at":
      return <Time at={event.created_at} />
    case "sequence_number":
      return <span class="number">{count(event.sequence_number)}</span>
    case "outcome":
      return <Outcome value={event.outcome} />
    case "action":
      return <strong>{event.action}</strong>
    case "id":
      return <code>{shortId(event.id, 24)}</code>
    case "actor_id":
      return (
        <>
          {event.actor.id} <span class="faint">{event.actor.email}</span>
        </>
      )
    case "actor_type":
      return event.actor.type
    case "actor_email":
      return event.actor.email
    case "resource_id":
      return (
        <>
          {event.resource.id} <span class="faint">{event.resource.type}</span>
        </>
      )
    case "resource_type":
      return event.resource.type
    case "resource_name":
      return event.resource.name
    default: {
      const value = metadataAt(event.metadata, column.slice("metadata.".length))
      return value === undefined || typeof value === "string" ? value : JSON.stringify(value)
    }
  }
}

/** A line across the table, where something is to be said of what is above and below. */
export interface Divider {
  readonly says: string
}

export const titleOf = (column: string): string => fieldTitles[column] ?? column

/** Of columns whose values are all about as long. */
const widths: Readonly<Record<string, string>> = {
  timestamp: "10rem",
  created_at: "10rem",
  sequence_number: "6rem",
  actor_type: "6rem",
  outcome: "6.5rem"
}

const Row = ({
  addressOf,
  columns,
  line,
  index,
  isChosen,
  open
}: {
  readonly line: AuditEvent | Divider | undefined
  readonly index: number
  readonly columns: ReadonlyArray<string>
  readonly isChosen: boolean
  readonly addressOf: (event: AuditEvent) => string
  readonly open: (event: AuditEvent) => void
}) => {
  const [first, ...rest] = columns
  if (line === undefined || "says" in line) {
    return (
      <tr aria-rowindex={index + 2} class={line === undefined ? undefined : "divider"}>
        <td colSpan={columns.length} class="faint">
          {line?.says ?? "…"}
        </td>
      </tr>
    )
  }
  const event = line
  return (
    // The first cell is a link for the keyboard; the row is for the mouse.
    <tr
      class={isChosen ? "chosen" : undefined}
      aria-rowindex={index + 2}
      aria-current={isChosen ? "true" : undefined}
      onClick={() => open(event)}
    >
      <td>
        <a href={addressOf(event)}>{cellOf(event, first!)}</a>
      </td>
      {rest.map((column) => (
        <td key={column}>{cellOf(event, column)}</td>
      ))}
    </tr>
  )
}

/** Room of rows that are not in the document. */
const Room = ({ columns, height }: { readonly columns: number; readonly height: number }) =>
  height <= 0 ? null : (
    <tr class="room-row">
      <td colSpan={columns} style={{ height: `${height}px` }} />
    </tr>
  )

export const EventRows = ({
  addressOf,
  at,
  chosen,
  columns,
  open,
  rows: { height, items },
  scroller,
  total
}: {
  readonly rows: Rows
  readonly scroller: RefObject<HTMLElement | null>
  readonly total: number
  /** What is in a row, from 0; undefined while it is on its way. */
  readonly at: (index: number) => AuditEvent | Divider | undefined
  readonly columns: ReadonlyArray<string>
  /** Sequence number of the event that is looked at. */
  readonly chosen: number | undefined
  readonly addressOf: (event: AuditEvent) => string
  readonly open: (event: AuditEvent) => void
}) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: without it only a mouse could scroll
  <section class="rows-scroller" ref={scroller} tabIndex={0} aria-label="Events, as a table">
    <table class="events" aria-rowcount={total + 1}>
      <colgroup>
        {columns.map((column) => (
          <col key={column} style={{ width: widths[column] ?? "auto" }} />
        ))}
      </colgroup>
      <thead>
        <tr aria-rowindex={1}>
          {columns.map((column) => (
            <th key={column} scope="col" title={column}>
              {titleOf(column)}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        <Room columns={columns.length} height={items[0]?.start ?? 0} />
        {items.map(({ index }) => {
          const line = at(index)
          const isEvent = line !== undefined && !("says" in line)
          return (
            <Row
              key={index}
              line={line}
              index={index}
              columns={columns}
              isChosen={isEvent && line.sequence_number === chosen}
              addressOf={addressOf}
              open={open}
            />
          )
        })}
        <Room columns={columns.length} height={height - (items.at(-1)?.end ?? 0)} />
      </tbody>
    </table>
  </section>
)
