/** Events: a query, their values and times, a list of any length, and one of them with its proof. */
import { useEffect, useMemo, useState } from "preact/hooks"
import { useLocation } from "preact-iso/router"
import type { AuditEvent, EventListResponse } from "../../../client/gen/Api.d.ts"
import { useAnswer } from "../../api/Answer.ts"
import { Copy } from "../../parts/Basics.tsx"
import { counted } from "../../parts/Format.ts"
import { copyLink, copyText, curlOf } from "../../state/Copying.ts"
import { EventPages } from "../../state/EventPages.ts"
import {
  addressOf,
  type EventsView,
  endOf,
  filterOf,
  filterOfNews,
  fixedBound,
  pathWith,
  viewOf
} from "../../state/EventsView.ts"
import { evidenceLink } from "../../state/EvidenceView.ts"
import { usePageKeys } from "../../state/PageKeys.ts"
import { EventDrawer, eventPath } from "./EventDrawer.tsx"
import { EventTable } from "./EventTable.tsx"
import { Facets } from "./Facets.tsx"
import { Histogram } from "./Histogram.tsx"
import { QueryBox } from "./QueryBox.tsx"
import { ColumnChoice, TimeChoice, Views } from "./ViewChoices.tsx"

const EVERY_SECONDS = 10

/** How many events have come since the list was asked for. */
const News = ({ filter, newest, show }: { filter: string; newest: number; show: () => void }) => {
  const path = pathWith("/v1/events", filter, `from_sequence=${newest + 1}&page_size=1`)
  const { data } = useAnswer<EventListResponse>(path, EVERY_SECONDS)
  return (
    <p class="news" role="status">
      {data === undefined || data.total === 0 ? undefined : (
        <button type="button" onClick={show}>
          Show {counted(data.total, "new event")}
        </button>
      )}
    </p>
  )
}

const timeOf = (text: string | undefined): number | undefined => {
  const at = Date.parse(text ?? "")
  return Number.isNaN(at) ? undefined : at
}

/** A table that is opened with a double click begins with a mark, or Excel takes it for no UTF-8. */
const exportPath = (filter: string, format: string): string =>
  pathWith("/v1/events", filter, `format=${format}`)

/** What the API is asked for the first events of a view with. */
const searchPath = (view: EventsView, now: number): string =>
  pathWith("/v1/events", filterOf(view, now), "page_size=50")

/** The list of a filter, begun anew with the filter and with `now`. */
const usePages = (filter: string, now: number): EventPages => {
  const pages = useMemo(() => new EventPages(filter), [filter, now])
  useEffect(() => () => pages.end(), [pages])
  return pages
}

/** The view of the address, which is ahead of what is drawn while keys are pressed quickly. */
const currentView = (): EventsView =>
  viewOf(Object.fromEntries(new URLSearchParams(location.search)))

/** Moves through the list and opens what is there. */
const useKeys = (pages: EventPages, route: (url: string, replace?: boolean) => void): void => {
  const keys = useMemo(() => {
    const open = (event: number | undefined) => {
      const view = currentView()
      route(addressOf({ ...view, event }), view.event !== undefined && event !== undefined)
    }
    const step = (by: number) => () => {
      const { event } = currentView()
      const at = event === undefined ? undefined : pages.indexOf(event)
      const next = pages.at(at === undefined ? 0 : at + by)
      if (next !== undefined) open(next.sequence_number)
    }
    const withEvent = (run: (event: number) => void) => () => {
      const { event } = currentView()
      if (event !== undefined) run(event)
    }
    const copyView = () => {
      const { event } = currentView()
      const path = event === undefined ? searchPath(currentView(), Date.now()) : eventPath(event)
      void copyText(curlOf(path), event === undefined ? "the search as curl" : "the event as curl")
    }
    return [
      { key: "/", what: "go to the query", run: () => document.getElementById("where")?.focus() },
      { key: "j", what: "next event", run: step(1) },
      { key: "k", what: "event before", run: step(-1) },
      { key: "Enter", what: "open the first event", run: step(0) },
      { key: "Escape", what: "close the event", run: withEvent(() => open(undefined)) },
      {
        key: "l",
        what: "follow what matches live",
        run: () => {
          const { where } = currentView()
          route(where === "" ? "/live" : `/live?${new URLSearchParams({ where })}`)
        }
      },
      { key: "c", what: "copy the event or the search as curl", run: copyView },
      { key: "y", what: "copy the link", run: copyLink }
    ]
  }, [pages, route])
  usePageKeys(keys)
}

export const Events = () => {
  const { query, route } = useLocation()
  const view = viewOf(query)
  const [now, setNow] = useState(Date.now)
  const change = (changed: Partial<EventsView>) => route(addressOf({ ...view, ...changed }))
  const filter = filterOf(view, now)
  const pages = usePages(filter, now)
  const addressOfEvent = ({ sequence_number }: AuditEvent) =>
    addressOf({ ...view, event: sequence_number })
  const open = (event: AuditEvent) => route(addressOfEvent(event), view.event !== undefined)
  const close = () => change({ event: undefined })
  useKeys(pages, route)
  const refused = pages.failure.value?.field === "where" ? pages.failure.value : undefined
  const span = {
    from: timeOf(fixedBound(view.from, now)),
    to: timeOf(fixedBound(endOf(view), now)) ?? (view.from === undefined ? undefined : now)
  }
  return (
    <>
      <header class="page-head">
        <h1>Events</h1>
        <p>
          <a href={exportPath(filter, "csv&bom=true")} download="events.csv">
            CSV
          </a>{" "}
          <a href={exportPath(filter, "ndjson")} download="events.ndjson">
            NDJSON
          </a>{" "}
          <a href={exportPath(filter, "parquet")} download="events.parquet">
            Parquet
          </a>{" "}
          <a href={evidenceLink(view)}>Export…</a>
        </p>
      </header>
      <div class="controls">
        <QueryBox
          text={view.where}
          apply={(where) => change({ where })}
          failure={refused}
          filterOf={(where) => filterOf({ ...view, where }, Date.now())}
        />
        <TimeChoice view={view} change={change} />
        <ColumnChoice view={view} change={change} />
        <Views view={view} />
      </div>
      {refused !== undefined ? undefined : (
        <>
          <section class="card" aria-label="Time">
            <Histogram
              filter={filter}
              span={span}
              choose={(from, to) =>
                change({
                  from: new Date(from).toISOString(),
                  to: new Date(to - 1).toISOString(),
                  event: undefined
                })
              }
            />
          </section>
          <div class={view.event === undefined ? "found" : "found with-drawer"}>
            <Facets view={view} now={now} change={(where) => change({ where })} />
            <section class="list" aria-label="Matching events">
              {pages.total.value === undefined ? undefined : (
                <News
                  filter={filterOfNews(view, now)}
                  newest={pages.newest}
                  show={() => setNow(Math.max(Date.now(), now + 1))}
                />
              )}
              <EventTable
                pages={pages}
                columns={view.columns}
                chosen={view.event}
                addressOf={addressOfEvent}
                open={open}
              />
              <p class="actions">
                <Copy label="Copy the search as curl" text={curlOf(searchPath(view, now))} />
              </p>
            </section>
            {view.event === undefined ? undefined : (
              <EventDrawer key={view.event} sequence={view.event} view={view} close={close} />
            )}
          </div>
        </>
      )}
    </>
  )
}
