/**
 * The values that matching events have, counted by several fields at once: fields that every event
 * has in one statement, others and each path of metadata in one of its own.
 */
import { Effect } from "effect"
import type { CountedBy } from "../../../domain/events/EventFields.ts"
import type { EventStore, Facet, FacetsQuery } from "../../../ports/EventStore.ts"
import type { Parameters } from "../client/Parameters.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { columnValue, countedTexts, isOnce, type OnceField } from "./CountedSql.ts"
import { erasedEventsOf } from "./ErasedEvents.ts"
import { filterCondition } from "./EventFilterSql.ts"

type Source = (bind: Parameters) => string

interface Counted {
  readonly key: string
  readonly count: number
  readonly values: number
}

/** `GROUPING(…)` of the group by the field at `index`: a bit for each field that it is not grouped by. */
const maskOf = (index: number, fields: number): number =>
  2 ** fields - 1 - 2 ** (fields - 1 - index)

const ofColumns = Effect.fnUntraced(function* (
  store: StoreClient,
  fields: ReadonlyArray<OnceField>,
  limit: number,
  source: Source
) {
  if (fields.length === 0) return []
  const columns = fields.map((field, index) => `${columnValue(field)} AS column${index}`)
  const names = fields.map((_, index) => `column${index}`)
  const sets = names.map((name) => `(${name})`).join(", ")
  const keys = names.map(
    (name, index) => `mask = ${maskOf(index, fields.length)}, toString(${name})`
  )
  const rows = yield* store.read(
    "facets",
    (bind) =>
      `SELECT mask, key, events, count() OVER (PARTITION BY mask) FROM (SELECT`
      + ` grouping(${names.join(", ")}) AS mask, multiIf(${keys.join(", ")}, '') AS key,`
      + ` count() AS events FROM (SELECT ${columns.join(", ")} FROM ${source(bind)})`
      + ` GROUP BY GROUPING SETS (${sets}))`
      + ` ORDER BY mask, events DESC, key LIMIT ${bind.integer(limit)} BY mask`,
    (row) => ({
      mask: row.uint64(),
      key: row.string(),
      count: row.uint64(),
      values: row.uint64()
    })
  )
  const byMask = Map.groupBy(rows, ({ mask }) => mask)
  return fields.map((field, index) =>
    facetOf(field, byMask.get(maskOf(index, fields.length)) ?? [], 0)
  )
})

const facetOf = (field: string, rows: ReadonlyArray<Counted>, missing: number): Facet => ({
  field,
  groups: rows.map(({ count, key }) => ({ key, count })),
  values: rows[0]?.values ?? 0,
  missing
})

const ofTexts = Effect.fnUntraced(function* (
  store: StoreClient,
  { limit, tenantId }: FacetsQuery,
  field: CountedBy,
  source: Source,
  total: number
) {
  const texts = (bind: Parameters): string => {
    const marks = erasedEventsOf(store.events, bind.tenant(tenantId))
    const { condition, values } = countedTexts(field, bind, marks)!
    return `SELECT ${values} AS texts FROM ${source(bind)} AND ${condition}`
  }
  const rows = yield* store.read(
    "facets",
    (bind) =>
      `SELECT key, events, count() OVER () FROM (SELECT arrayJoin(texts) AS key, count() AS events`
      + ` FROM (${texts(bind)}) GROUP BY key) ORDER BY events DESC, key LIMIT ${bind.integer(limit)}`,
    (row) => ({ key: row.string(), count: row.uint64(), values: row.uint64() })
  )
  const present = yield* store.readOne(
    "facets",
    (bind) => `SELECT count() FROM (${texts(bind)})`,
    (row) => row.uint64()
  )
  return facetOf(field, rows, Math.max(0, total - present))
})

export const makeFacets = (store: StoreClient): EventStore["Service"]["facets"] =>
  Effect.fn("EventStore.facets")(function* (query, deduplicate) {
    const { fields, filter, limit, tenantId } = query
    const source: Source = (bind) =>
      `${store.eventsOf(deduplicate)} WHERE ${filterCondition(store.events, tenantId, filter, bind)}`
    const total = yield* store.readOne(
      "facets",
      (bind) => `SELECT count() FROM ${source(bind)}`,
      (row) => row.uint64()
    )
    const columns = yield* ofColumns(store, fields.filter(isOnce), limit, source)
    const others = fields.filter((field) => !isOnce(field))
    const texts = yield* Effect.forEach(others, (field) =>
      ofTexts(store, query, field, source, total)
    )
    const byName = new Map([...columns, ...texts].map((facet) => [facet.field, facet]))
    return { facets: fields.map((field) => byName.get(field)!), total }
  })
