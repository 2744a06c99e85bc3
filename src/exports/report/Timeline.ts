/**
 * Folds counts by day into as many bars as one chart can show: days, weeks, months, quarters, years
 * or decades, whichever is the finest that fits. Empty intervals between the first and the last
 * event are kept.
 */
import type { Outcome } from "../../domain/events/AuditEvent.ts"

export type OutcomeCounts = Readonly<Record<Outcome, number>>

export interface DayCount {
  /** Canonical time at which the day starts. */
  readonly start: string
  readonly outcome: string
  readonly count: number
}

export interface Bar extends OutcomeCounts {
  /** As the axis names it: 2026-11-21, 2026-11, 2026. */
  readonly label: string
}

export interface Timeline {
  readonly unit: Unit["name"]
  readonly bars: ReadonlyArray<Bar>
}

/** Bars that stay apart on the width of a page. */
export const BARS_MAX = 62

const MS_PER_DAY = 86_400_000
const DAYS_PER_WEEK = 7
/** 1970-01-01 was a Thursday; weeks start on Monday. */
const EPOCH_WEEKDAY = 3

interface Unit {
  readonly name: "day" | "week" | "month" | "quarter" | "year" | "decade"
  /** Number of the interval that a day (days since the epoch) is in. */
  readonly indexOf: (day: number) => number
  readonly labelOf: (index: number) => string
}

const dateOf = (day: number) => new Date(day * MS_PER_DAY)
const isoDay = (day: number): string => dateOf(day).toISOString().slice(0, 10)
const monthOf = (day: number): number => {
  const date = dateOf(day)
  return date.getUTCFullYear() * 12 + date.getUTCMonth()
}
const padded = (month: number): string => String(month).padStart(2, "0")

const UNITS: ReadonlyArray<Unit> = [
  { name: "day", indexOf: (day) => day, labelOf: isoDay },
  {
    name: "week",
    indexOf: (day) => Math.floor((day + EPOCH_WEEKDAY) / DAYS_PER_WEEK),
    labelOf: (index) => isoDay(index * DAYS_PER_WEEK - EPOCH_WEEKDAY)
  },
  {
    name: "month",
    indexOf: monthOf,
    labelOf: (index) => `${Math.floor(index / 12)}-${padded((index % 12) + 1)}`
  },
  {
    name: "quarter",
    indexOf: (day) => Math.floor(monthOf(day) / 3),
    labelOf: (index) => `${Math.floor(index / 4)} Q${(index % 4) + 1}`
  },
  { name: "year", indexOf: (day) => Math.floor(monthOf(day) / 12), labelOf: String },
  {
    name: "decade",
    indexOf: (day) => Math.floor(monthOf(day) / 120),
    labelOf: (index) => `${index * 10}s`
  }
]

const dayNumber = (start: string): number => Math.floor(Date.parse(start.slice(0, 10)) / MS_PER_DAY)

const isOutcome = (key: string): key is Outcome =>
  key === "success" || key === "failure" || key === "error"

/** No bars for no days. */
export const timelineOf = (days: ReadonlyArray<DayCount>): Timeline => {
  let first = Infinity
  let last = -Infinity
  for (const { start } of days) {
    const day = dayNumber(start)
    first = Math.min(first, day)
    last = Math.max(last, day)
  }
  if (first > last) return { unit: "day", bars: [] }
  const fits = (unit: Unit) => unit.indexOf(last) - unit.indexOf(first) < BARS_MAX
  const unit = UNITS.find(fits) ?? UNITS.at(-1)!
  const base = unit.indexOf(first)
  const bars = Array.from({ length: unit.indexOf(last) - base + 1 }, (_, index) => ({
    label: unit.labelOf(base + index),
    success: 0,
    failure: 0,
    error: 0
  }))
  for (const { count, outcome, start } of days) {
    const bar = bars[unit.indexOf(dayNumber(start)) - base]
    if (bar !== undefined && isOutcome(outcome)) bar[outcome] += count
  }
  return { unit: unit.name, bars }
}
