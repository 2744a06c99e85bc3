/** The events that match, newest first: as many rows as there are. */
import { useEffect, useRef } from "preact/hooks"
import type { AuditEvent } from "../../../client/gen/Api.d.ts"
import { Empty, Failure, Loading } from "../../parts/Basics.tsx"
import { count, counted } from "../../parts/Format.ts"
import { rowsMax, useRows } from "../../parts/Virtual.ts"
import type { EventPages } from "../../state/EventPages.ts"
import { EventRows, ROW_HEIGHT } from "./EventRows.tsx"

export const EventTable = ({
  addressOf,
  chosen,
  columns,
  open,
  pages
}: {
  readonly pages: EventPages
  readonly columns: ReadonlyArray<string>
  /** Sequence number of the event that is looked at. */
  readonly chosen: number | undefined
  readonly addressOf: (event: AuditEvent) => string
  readonly open: (event: AuditEvent) => void
}) => {
  const scroller = useRef<HTMLElement>(null)
  const total = pages.total.value
  const shown = Math.min(total ?? 0, rowsMax(ROW_HEIGHT))
  const rows = useRows(shown, ROW_HEIGHT, scroller)
  const { items, scrollTo } = rows
  const [first, last] = [items[0]?.index ?? 0, items.at(-1)?.index ?? 0]
  pages.version.value
  useEffect(() => {
    if (shown > 0) pages.want(first, last)
  }, [pages, first, last, shown, pages.failure.value])
  useEffect(() => {
    const index = chosen === undefined ? undefined : pages.indexOf(chosen)
    if (index !== undefined) scrollTo(index)
  }, [chosen])

  if (total === undefined) {
    return pages.failure.value === undefined ? (
      <Loading what="events" />
    ) : (
      <Failure failure={pages.failure.value} retry={() => pages.retry()} />
    )
  }
  if (total === 0) {
    return (
      <Empty title="No event matches">
        <p>
          Take a condition away, or choose a longer time. <a href="/start">How to send events</a>
        </p>
      </Empty>
    )
  }
  return (
    <>
      {pages.failure.value === undefined ? undefined : (
        <Failure failure={pages.failure.value} retry={() => pages.retry()} />
      )}
      <EventRows
        rows={rows}
        scroller={scroller}
        total={total}
        at={(index) => pages.at(index)}
        columns={columns}
        chosen={chosen}
        addressOf={addressOf}
        open={open}
      />
      <p class="faint">
        {counted(total, "event")}
        {pages.tookMs.value === undefined
          ? ""
          : `, the first of them after ${Math.round(pages.tookMs.value)} ms`}
        {total > shown ? `. The newest ${count(shown)} are listed: narrow the search.` : "."}
      </p>
    </>
  )
}
