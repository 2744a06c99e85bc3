/**
 * What the page of events shows, as its address says it: every view is a link. Pure but for the views
 * that this browser keeps.
 */
import { keptList } from "./KeptList.ts"

export interface EventsView {
  readonly where: string
  /** As the API takes them; undefined is open. */
  readonly from: string | undefined
  readonly to: string | undefined
  readonly columns: ReadonlyArray<string>
  /** Sequence number of the event that is looked at. */
  readonly event: number | undefined
}

/** Columns without `metadata.` paths. */
export const columnNames = [
  "timestamp",
  "created_at",
  "sequence_number",
  "id",
  "actor_id",
  "actor_type",
  "actor_email",
  "action",
  "resource_type",
  "resource_id",
  "resource_name",
  "outcome"
] as const

export const defaultColumns: ReadonlyArray<string> = [
  "timestamp",
  "actor_id",
  "action",
  "resource_id",
  "outcome"
]

/** Columns that a page has room for. */
const COLUMNS_MAX = 20

const isColumn = (name: string): boolean =>
  columnNames.some((one) => one === name) || /^metadata\../.test(name)

const readColumns = (text: string | undefined): ReadonlyArray<string> => {
  const columns = [...new Set((text ?? "").split(","))].filter(isColumn).slice(0, COLUMNS_MAX)
  return columns.length === 0 ? defaultColumns : columns
}

const readSequence = (text: string | undefined): number | undefined =>
  text !== undefined && /^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined

const given = (text: string | undefined): string | undefined => (text === "" ? undefined : text)

export const viewOf = (query: Readonly<Record<string, string>>): EventsView => ({
  where: query["where"] ?? "",
  from: given(query["from"]),
  to: given(query["to"]),
  columns: readColumns(query["columns"]),
  event: readSequence(query["event"])
})

const isDefault = (columns: ReadonlyArray<string>): boolean =>
  columns.join() === defaultColumns.join()

const queryOf = (members: ReadonlyArray<readonly [string, string | undefined]>): string => {
  const set = members.filter((one): one is readonly [string, string] => one[1] !== undefined)
  return new URLSearchParams(set.map(([name, value]): [string, string] => [name, value])).toString()
}

/** The address of a view. */
export const addressOf = ({ columns, event, from, to, where }: EventsView): string => {
  const query = queryOf([
    ["where", given(where)],
    ["from", from],
    ["to", to],
    ["columns", isDefault(columns) ? undefined : columns.join(",")],
    ["event", event?.toString()]
  ])
  return query === "" ? "/events" : `/events?${query}`
}

const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

/**
 * A bound on times as all requests of a page send it: so long from now is one moment for all of them,
 * or pages of a list would not fit together.
 */
export const fixedBound = (text: string | undefined, now: number): string | undefined => {
  if (text === "now") return new Date(now).toISOString()
  const [, sign, amount, unit] = /^([-+])(\d{1,6})([smhdw])$/.exec(text ?? "") ?? []
  if (amount === undefined) return text
  const milliseconds = Number(amount) * UNIT_MS[unit as keyof typeof UNIT_MS]
  return new Date(now + (sign === "-" ? -milliseconds : milliseconds)).toISOString()
}

type Filter = Pick<EventsView, "where" | "from" | "to">

/** The end of a view. What began so long ago ends now: events may be dated in the future. */
export const endOf = ({ from, to }: Filter): string | undefined =>
  to ?? (from?.startsWith("-") ? "now" : undefined)

/** The filter of a view as parameters of the API, as of a moment. */
export const filterOf = (view: Filter, now: number): string =>
  filterUntil(view, now, fixedBound(endOf(view), now))

/** The same with an end that goes on with the time, for what has come since that moment. */
export const filterOfNews = (view: Filter, now: number): string =>
  filterUntil(view, now, endOf(view))

const filterUntil = ({ from, where }: Filter, now: number, to: string | undefined): string =>
  queryOf([
    ["where", given(where.trim())],
    ["from", fixedBound(from, now)],
    ["to", to]
  ])

/** A path of the API with a filter and more parameters. */
export const pathWith = (path: string, filter: string, more: string): string =>
  `${path}?${[filter, more].filter((part) => part !== "").join("&")}`

/** A view with a name. */
export interface SavedView {
  readonly name: string
  readonly address: string
}

const VIEWS_MAX = 50

const isSavedView = (one: unknown): one is SavedView =>
  typeof (one as SavedView | null)?.name === "string"
  && typeof (one as SavedView).address === "string"
  && /^\/events(?:\?|$)/.test((one as SavedView).address)

const views = keptList("alk.views", isSavedView, VIEWS_MAX)

export const savedViews = views.items

/** Keeps a view in this browser, in place of one with its name; the oldest beyond 50 go. */
export const saveView = (view: SavedView): void =>
  views.keep([...savedViews.peek().filter(({ name }) => name !== view.name), view])

export const dropView = (name: string): void =>
  views.keep(savedViews.peek().filter((view) => view.name !== name))
