/** What a view is made of beside its query: time, columns, and the name that it is kept under. */
import type { ComponentChildren, TargetedSubmitEvent } from "preact"
import {
  addressOf,
  columnNames,
  defaultColumns,
  dropView,
  type EventsView,
  savedViews,
  saveView
} from "../../state/EventsView.ts"
import { titleOf } from "./EventRows.tsx"

/** Choices behind a word; one is open at a time. */
const Menu = ({
  children,
  title
}: {
  readonly title: string
  readonly children: ComponentChildren
}) => (
  <details class="menu" name="menu">
    <summary>{title}</summary>
    <div class="panel">{children}</div>
  </details>
)

type Change = (change: Partial<EventsView>) => void

const ranges = [
  ["", "All time"],
  ["-15m", "Last 15 minutes"],
  ["-1h", "Last hour"],
  ["-24h", "Last 24 hours"],
  ["-7d", "Last 7 days"],
  ["-30d", "Last 30 days"],
  ["-90d", "Last 90 days"]
] as const

/** The text of a field of a form, without the spaces around it. */
const textOf = (form: HTMLFormElement, name: string): string =>
  String(new FormData(form).get(name) ?? "").trim()

const submitted =
  (run: (form: HTMLFormElement) => void) =>
  (event: TargetedSubmitEvent<HTMLFormElement>): void => {
    event.preventDefault()
    run(event.currentTarget)
  }

export const TimeChoice = ({ change, view }: { view: EventsView; change: Change }) => {
  const { from, to } = view
  const isListed = to === undefined && ranges.some(([value]) => value === (from ?? ""))
  return (
    <>
      <label>
        <span class="hidden">Time range</span>
        <select
          value={isListed ? (from ?? "") : "own"}
          onChange={({ currentTarget: { value } }) => {
            if (value !== "own") change({ from: value === "" ? undefined : value, to: undefined })
          }}
        >
          {ranges.map(([value, title]) => (
            <option key={value} value={value}>
              {title}
            </option>
          ))}
          <option value="own" disabled={isListed}>
            {isListed ? "From … to …" : `${from ?? "…"} to ${to ?? "now"}`}
          </option>
        </select>
      </label>
      <Menu title="From … to …">
        <form
          key={`${from} ${to}`}
          onSubmit={submitted((form) =>
            change({
              from: textOf(form, "from") || undefined,
              to: textOf(form, "to") || undefined
            })
          )}
        >
          <label class="pair">
            From
            <input name="from" defaultValue={from ?? ""} placeholder="2026-11-01 or -24h" />
          </label>
          <label class="pair">
            To
            <input name="to" defaultValue={to ?? ""} placeholder="now" />
          </label>
          <p class="faint">A day, an RFC 3339 time, or so long from now: s, m, h, d, w.</p>
          <button type="submit">Show</button>
        </form>
      </Menu>
    </>
  )
}

export const ColumnChoice = ({ change, view }: { view: EventsView; change: Change }) => {
  const { columns } = view
  const own = columns.filter((column) => column.startsWith("metadata."))
  const toggle = (column: string): void =>
    change({
      columns: columns.includes(column)
        ? columns.filter((one) => one !== column)
        : [...columns, column]
    })
  return (
    <Menu title="Columns">
      <fieldset>
        <legend class="hidden">Columns</legend>
        {[...columnNames, ...own].map((column) => (
          <label key={column}>
            <input
              type="checkbox"
              checked={columns.includes(column)}
              disabled={columns.length === 1 && columns[0] === column}
              onChange={() => toggle(column)}
            />
            {titleOf(column)}
          </label>
        ))}
      </fieldset>
      <form
        onSubmit={submitted((form) => {
          const path = textOf(form, "path").replace(/^metadata\./, "")
          if (path !== "" && !path.includes(",") && !columns.includes(`metadata.${path}`)) {
            toggle(`metadata.${path}`)
          }
          form.reset()
        })}
      >
        <label class="pair">
          metadata.
          <input name="path" placeholder="request.ip" required />
        </label>
        <button type="submit">Add</button>
        <button type="button" class="quiet" onClick={() => change({ columns: defaultColumns })}>
          As at first
        </button>
      </form>
    </Menu>
  )
}

/** The views that this browser keeps. */
export const ViewList = () => (
  <ul class="rows">
    {savedViews.value.map(({ address, name }) => (
      <li key={name}>
        <a href={address}>{name}</a>{" "}
        <button
          type="button"
          class="quiet"
          aria-label={`Forget ${name}`}
          onClick={() => dropView(name)}
        >
          Forget
        </button>
      </li>
    ))}
  </ul>
)

export const Views = ({ view }: { readonly view: EventsView }) => (
  <Menu title="Saved views">
    {savedViews.value.length === 0 ? (
      <p class="faint">None yet. They are kept in this browser.</p>
    ) : (
      <ViewList />
    )}
    <form
      onSubmit={submitted((form) => {
        saveView({
          name: textOf(form, "name"),
          address: addressOf({ ...view, event: undefined })
        })
        form.reset()
      })}
    >
      <label class="pair">
        Name
        <input name="name" required pattern=".*\S.*" maxLength={60} />
      </label>
      <button type="submit">Save this view</button>
    </form>
  </Menu>
)
