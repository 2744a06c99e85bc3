/**
 * Counts of events by one dimension, which is the name of a column, and by intervals of time.
 */
import { Effect } from "effect"
import { type EventStore, type StatsQuery, StatsTooLarge } from "../../../ports/EventStore.ts"
import type { Parameters } from "../client/Parameters.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { filterCondition } from "./EventFilterSql.ts"

/** Buckets of one answer at most. */
const BUCKETS_MAX = 100_000

const MICROSECONDS: Record<NonNullable<StatsQuery["interval"]>, number> = {
  minute: 60_000_000,
  hour: 3_600_000_000,
  day: 86_400_000_000
}

/** Of whole minutes. */
const canonicalTime = (microseconds: number): string =>
  `${new Date(microseconds / 1000).toISOString().slice(0, 19)}.000000Z`

export const makeStats = (store: StoreClient): EventStore["Service"]["stats"] =>
  Effect.fn("EventStore.stats")(function* (
    { filter, groupBy, interval, limit, tenantId },
    deduplicate
  ) {
    const source = (bind: Parameters) =>
      `${store.eventsOf(deduplicate)} WHERE ${filterCondition(store.events, tenantId, filter, bind)}`
    const groups = (bind: Parameters) =>
      `SELECT ${groupBy} AS key, count() AS events FROM ${source(bind)} GROUP BY key`
    const shown = (bind: Parameters) => `ORDER BY events DESC, key LIMIT ${bind.integer(limit)}`
    const rows = yield* store.read(
      "stats",
      (bind) =>
        `SELECT toString(key), events, sum(events) OVER () FROM (${groups(bind)}) ${shown(bind)}`,
      (row) => ({ key: row.string(), count: row.uint64(), total: row.uint64() })
    )
    const total = rows[0]?.total ?? 0
    const counted = {
      groups: rows.map(({ count, key }) => ({ key, count })),
      other: rows.reduce((rest, { count }) => rest - count, total),
      total
    }
    if (interval === undefined) return counted
    const width = MICROSECONDS[interval]
    const buckets = yield* store.read(
      "stats",
      (bind) =>
        `SELECT intDiv(toUnixTimestamp64Micro(timestamp), ${width}) AS bucket,`
        + ` toString(${groupBy}) AS key, count() FROM ${source(bind)}`
        + ` AND ${groupBy} IN (SELECT key FROM (${groups(bind)} ${shown(bind)}))`
        + ` GROUP BY bucket, key ORDER BY bucket, key LIMIT ${BUCKETS_MAX + 1}`,
      (row) => ({
        start: canonicalTime(row.uint64() * width),
        key: row.string(),
        count: row.uint64()
      })
    )
    if (buckets.length > BUCKETS_MAX) return yield* new StatsTooLarge({ bucketsMax: BUCKETS_MAX })
    return { ...counted, buckets }
  })
