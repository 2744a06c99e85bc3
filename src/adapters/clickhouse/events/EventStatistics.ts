/**
 * Counts of events by one field or more, by intervals of time, and what numbers in metadata amount
 * to.
 */
import { Effect } from "effect"
import { defined } from "../../../domain/Defined.ts"
import {
  type EventStore,
  type Numbers,
  type StatsGroup,
  type StatsQuery,
  StatsTooLarge
} from "../../../ports/EventStore.ts"
import type { Parameters } from "../client/Parameters.ts"
import type { RowBinary } from "../client/RowBinary.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { columnValue, countedTexts, isOnce, type OnceField } from "./CountedSql.ts"
import { type ErasedEvents, erasedEventsOf } from "./ErasedEvents.ts"
import { filterCondition } from "./EventFilterSql.ts"
import { metadataNumbers } from "./MetadataSql.ts"

/** Buckets of one answer at most. */
const BUCKETS_MAX = 100_000
/** Characters of the keys of all groups and buckets of one answer: values of metadata may be long. */
const KEYS_TEXT_MAX = 16 * 1_048_576

/** Buckets as numbers, and the time that one begins at. */
interface Interval {
  readonly bucket: string
  readonly start: (bucket: number) => string
}

const DAY = 86_400_000_000
/** 1970-01-01 was a Thursday. */
const DAYS_SINCE_MONDAY = 3
const MICROSECONDS = "toUnixTimestamp64Micro(timestamp)"

/** Of whole minutes. */
const canonicalTime = (microseconds: number): string =>
  `${new Date(microseconds / 1000).toISOString().slice(0, 19)}.000000Z`

const every = (microseconds: number): Interval => ({
  bucket: `intDiv(${MICROSECONDS}, ${microseconds})`,
  start: (bucket) => canonicalTime(bucket * microseconds)
})

const INTERVALS: Readonly<Record<NonNullable<StatsQuery["interval"]>, Interval>> = {
  minute: every(60_000_000),
  hour: every(3_600_000_000),
  day: every(DAY),
  week: {
    bucket: `intDiv(${MICROSECONDS} + ${DAYS_SINCE_MONDAY * DAY}, ${7 * DAY})`,
    // The first week begins before the first timestamp that there can be.
    start: (bucket) => canonicalTime((7 * bucket - DAYS_SINCE_MONDAY) * DAY)
  },
  month: {
    bucket: "toYYYYMM(timestamp)",
    start: (bucket) =>
      `${String(bucket).slice(0, 4)}-${String(bucket).slice(4)}-01T00:00:00.000000Z`
  }
}

const LEVELS = [0.5, 0.9, 0.95, 0.99]

/** What lists of numbers amount to, as a column of texts. */
const NUMBERS =
  "concat(toString(countArray(numbers)), ' ', toString(sumArray(numbers)), ' ',"
  + " toString(minArray(numbers)), ' ', toString(maxArray(numbers)), ' ', arrayStringConcat("
  + `arrayMap(level -> toString(level), quantilesExactInclusiveArray(${LEVELS.join(", ")})(numbers)), ' '))`

/** A number of ClickHouse, which writes inf and nan too. */
const finite = (text: string | undefined): number | null => {
  const value = Number(text)
  return Number.isFinite(value) ? value : null
}

const numbersOf = (text: string): Numbers | undefined => {
  const [count, sum, min, max, p50, p90, p95, p99] = text.split(" ").map(finite)
  if (!count) return undefined
  const of = (value: number | null | undefined) => value ?? null
  return {
    count,
    sum: of(sum),
    min: of(min),
    max: of(max),
    p50: of(p50),
    p90: of(p90),
    p95: of(p95),
    p99: of(p99)
  }
}

/** A statement's part that gives the rows to be grouped. */
type Rows = (bind: Parameters) => string

const isOfFields = ({ groupBy, measure }: StatsQuery): boolean =>
  measure === undefined && groupBy.every(isOnce)

const keyColumn = (field: OnceField, index: number): string =>
  `${columnValue(field)} AS key${index}`

/** The events that have a value for each path, with `values0` and so on for the texts there. */
const eventsOf = (store: StoreClient, query: StatsQuery, deduplicate: boolean): Rows => {
  const { filter, groupBy, measure, tenantId } = query
  return (bind) => {
    const table = store.eventsOf(deduplicate)
    const condition = filterCondition(store.events, tenantId, filter, bind)
    if (isOfFields(query)) {
      const columns = ["timestamp", ...groupBy.filter(isOnce).map(keyColumn)]
      return `SELECT ${columns.join(", ")} FROM ${table} WHERE ${condition}`
    }
    const marks: ErasedEvents = erasedEventsOf(store.events, bind.tenant(tenantId))
    const parts = groupBy.map((field, index) => {
      if (isOnce(field)) return { column: keyColumn(field, index) }
      const { condition, values } = countedTexts(field, bind, marks)!
      return { column: `${values} AS values${index}`, condition }
    })
    const columns = [
      "timestamp",
      ...parts.map(({ column }) => column),
      ...(measure === undefined ? [] : [`${metadataNumbers(measure, bind, marks)} AS numbers`])
    ]
    const conditions = [condition, ...parts.flatMap((part) => part.condition ?? [])]
    return `SELECT ${columns.join(", ")} FROM ${table} WHERE ${conditions.join(" AND ")}`
  }
}

/** Those events with their keys, one row for each combination of them. */
const keyed = (query: StatsQuery, events: Rows): Rows => {
  if (query.groupBy.every(isOnce)) return events
  const keys = query.groupBy.map((field, index) =>
    isOnce(field) ? `key${index}` : `arrayJoin(values${index}) AS key${index}`
  )
  const numbers = query.measure === undefined ? "" : ", numbers"
  return (bind) => `SELECT timestamp, ${keys.join(", ")}${numbers} FROM (${events(bind)})`
}

/** Columns of a group, and how they are read. */
const groupColumns = ({ groupBy, measure }: StatsQuery) => {
  const names = groupBy.map((_, index) => `key${index}`)
  const aggregates = `count() AS events${measure === undefined ? "" : `, ${NUMBERS} AS amounts`}`
  const shown = [...names.map((name) => `toString(${name})`), "events"]
  const isMeasured = measure !== undefined
  return {
    keys: names.join(", "),
    aggregates,
    shown: [...shown, ...(isMeasured ? ["amounts"] : [])].join(", "),
    read: (row: RowBinary): StatsGroup => ({
      keys: names.map(() => row.string()),
      count: row.uint64(),
      ...defined({ numbers: isMeasured ? numbersOf(row.string()) : undefined })
    })
  }
}

/** Matching events, those without keys among them, and all of their numbers. */
const totalsOf = Effect.fnUntraced(function* (
  store: StoreClient,
  query: StatsQuery,
  deduplicate: boolean
) {
  const all = eventsOf(store, { ...query, groupBy: [] }, deduplicate)
  const { total, numbers } = yield* store.readOne(
    "stats",
    (bind) => `SELECT count(), ${query.measure === undefined ? "''" : NUMBERS} FROM (${all(bind)})`,
    (row) => ({ total: row.uint64(), numbers: numbersOf(row.string()) })
  )
  if (query.groupBy.every(isOnce)) {
    return { total, missing: 0, ...defined({ numbers }) }
  }
  const { measure: _, ...unmeasured } = query
  const events = eventsOf(store, unmeasured, deduplicate)
  const present = yield* store.readOne(
    "stats",
    (bind) => `SELECT count() FROM (${events(bind)})`,
    (row) => row.uint64()
  )
  return { total, missing: Math.max(0, total - present), ...defined({ numbers }) }
})

const keysLength = ({ keys }: StatsGroup): number => keys.reduce((sum, key) => sum + key.length, 0)

export const makeStats = (store: StoreClient): EventStore["Service"]["stats"] =>
  Effect.fn("EventStore.stats")(function* (query, deduplicate) {
    const { interval, limit } = query
    const rows = keyed(query, eventsOf(store, query, deduplicate))
    const { aggregates, keys, read, shown } = groupColumns(query)
    const groups = (bind: Parameters) =>
      `SELECT ${keys}, ${aggregates} FROM (${rows(bind)}) GROUP BY ${keys}`
    const largest = (bind: Parameters) =>
      `ORDER BY events DESC, ${keys} LIMIT ${bind.integer(limit)}`
    const found = yield* store.read(
      "stats",
      (bind) => `SELECT ${shown}, sum(events) OVER () FROM (${groups(bind)}) ${largest(bind)}`,
      (row) => ({ group: read(row), all: row.uint64() })
    )
    const all = found[0]?.all ?? 0
    const counted = {
      groups: found.map(({ group }) => group),
      other: found.reduce((rest, { group }) => rest - group.count, all),
      ...(isOfFields(query)
        ? { total: all, missing: 0 }
        : yield* totalsOf(store, query, deduplicate))
    }
    const longest = found.reduce((most, { group }) => Math.max(most, keysLength(group)), 1)
    const bucketsMax = Math.min(BUCKETS_MAX, Math.floor(KEYS_TEXT_MAX / longest))
    if (bucketsMax < found.length) return yield* new StatsTooLarge({ bucketsMax })
    if (interval === undefined) return counted
    const { bucket, start } = INTERVALS[interval]
    const buckets = yield* store.read(
      "stats",
      (bind) =>
        `SELECT bucket, ${shown} FROM (SELECT toUInt64(${bucket}) AS bucket, ${keys}, ${aggregates}`
        + ` FROM (${rows(bind)}) WHERE (${keys}) IN`
        + ` (SELECT ${keys} FROM (${groups(bind)} ${largest(bind)})) GROUP BY bucket, ${keys})`
        + ` ORDER BY bucket, ${keys} LIMIT ${bucketsMax + 1}`,
      (row) => ({ start: start(row.uint64()), ...read(row) })
    )
    if (buckets.length > bucketsMax) return yield* new StatsTooLarge({ bucketsMax })
    return { ...counted, buckets }
  })
