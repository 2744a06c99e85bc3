/**
 * What the page of evidence covers, as its address says it: a period, a query, and the export that is
 * looked at. Days are days in UTC, as the API reads them. Pure.
 */
import { fixedBound } from "./EventsView.ts"

export const periods = [
  ["this-quarter", "This quarter"],
  ["last-quarter", "Last quarter"],
  ["this-month", "This month"],
  ["last-month", "Last month"],
  ["this-year", "This year"],
  ["last-year", "Last year"],
  ["all", "Everything"],
  ["own", "From … to …"]
] as const
export type Period = (typeof periods)[number][0]

export interface EvidenceView {
  readonly period: Period
  /** Of the period `own`, as the API takes them; undefined is open. */
  readonly from: string | undefined
  readonly to: string | undefined
  readonly where: string
  /** Id of the execution whose time this is: the visitor came from its page. */
  readonly execution: string | undefined
  /** Id of the export that is looked at. */
  readonly export: string | undefined
}

/** What an export or a share link covers; all bounds are fixed. */
export interface Scope {
  readonly from?: string
  readonly to?: string
  readonly where?: string
}

/** What most people come for. */
const FIRST: Period = "this-quarter"

const given = (text: string | undefined): string | undefined => (text === "" ? undefined : text)

const isPeriod = (text: string | undefined): text is Period =>
  periods.some(([period]) => period === text)

export const evidenceViewOf = (query: Readonly<Record<string, string>>): EvidenceView => {
  const { from, period, to, where } = query
  // Another page leads here with its bounds and its query alone: they mean what they say.
  const otherwise = [from, to].some(given) ? "own" : given(where) === undefined ? FIRST : "all"
  return {
    period: isPeriod(period) ? period : otherwise,
    from: given(from),
    to: given(to),
    where: where ?? "",
    execution: given(query["execution"]),
    export: given(query["export"])
  }
}

/** The address of a view. */
export const evidenceAddress = (view: EvidenceView): string => {
  const { period, where } = view
  const isOwn = period === "own"
  const members = [
    ["period", period],
    ["from", isOwn ? view.from : undefined],
    ["to", isOwn ? view.to : undefined],
    ["where", given(where)],
    ["execution", isOwn ? view.execution : undefined],
    ["export", view.export]
  ].filter((one): one is [string, string] => one[1] !== undefined)
  return `/evidence?${new URLSearchParams(members)}`
}

/** The address from another page: its bounds and its query. */
export const evidenceLink = (
  scope: { readonly [K in keyof Scope]: Scope[K] | undefined },
  execution?: string
) =>
  evidenceAddress({
    period: scope.from === undefined && scope.to === undefined ? "all" : "own",
    from: scope.from,
    to: scope.to,
    where: scope.where ?? "",
    execution,
    export: undefined
  })

const QUARTER = 3
const YEAR = 12

/** First and last day of so many months from the month `first` of a year on, in UTC. */
const days = (year: number, first: number, months: number): Scope => {
  const day = (at: number) => new Date(at).toISOString().slice(0, 10)
  return { from: day(Date.UTC(year, first, 1)), to: day(Date.UTC(year, first + months, 0)) }
}

/** The bounds of a period, as of a moment. */
const boundsOf = ({ from, period, to }: EvidenceView, now: number): Scope => {
  const at = new Date(now)
  const [year, month] = [at.getUTCFullYear(), at.getUTCMonth()]
  const quarter = month - (month % QUARTER)
  switch (period) {
    case "this-quarter":
      return days(year, quarter, QUARTER)
    case "last-quarter":
      return days(year, quarter - QUARTER, QUARTER)
    case "this-month":
      return days(year, month, 1)
    case "last-month":
      return days(year, month - 1, 1)
    case "this-year":
      return days(year, 0, YEAR)
    case "last-year":
      return days(year - 1, 0, YEAR)
    case "all":
      return {}
    case "own": {
      const fixed = { from: fixedBound(from, now), to: fixedBound(to, now) }
      return {
        ...(fixed.from === undefined ? {} : { from: fixed.from }),
        ...(fixed.to === undefined ? {} : { to: fixed.to })
      }
    }
  }
}

/** What the view covers, as of a moment. */
export const scopeOf = (view: EvidenceView, now: number): Scope => {
  const where = given(view.where.trim())
  return { ...boundsOf(view, now), ...(where === undefined ? {} : { where }) }
}

/** A bound as a day, where it is the first or the last moment of one. */
const dayOf = (bound: string | null | undefined): string | undefined =>
  bound?.replace(/T(?:00:00:00\.000000|23:59:59\.999999)Z$/, "")

/** The bounds of a scope as a person would say them. */
export const boundsText = (bounds: {
  readonly from?: string | null
  readonly to?: string | null
}): string => {
  const [from, to] = [dayOf(bounds.from), dayOf(bounds.to)]
  if (!from && !to) return "the whole log"
  if (!from) return `up to ${to}`
  return to ? `${from} to ${to}` : `from ${from} on`
}
