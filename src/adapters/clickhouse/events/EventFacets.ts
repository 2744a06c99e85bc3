/**
 * The values that matching events have, counted by several fields at once: fields with a column in
 * one statement, a path of metadata in one of its own.
 */
import { Effect } from "effect"
import type { EventStore, Facet, FacetsQuery } from "../../../ports/EventStore.ts"
import type { Parameters } from "../client/Parameters.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { filterCondition } from "./EventFilterSql.ts"
import { marksOf } from "./Marks.ts"
import { metadataTexts } from "./MetadataSql.ts"

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
  { fields, limit }: FacetsQuery,
  source: Source
) {
  if (fields.length === 0) return []
  const sets = fields.map((field) => `(${field})`).join(", ")
  const keys = fields.map(
    (field, index) => `mask = ${maskOf(index, fields.length)}, toString(${field})`
  )
  const rows = yield* store.read(
    "facets",
    (bind) =>
      `SELECT mask, key, events, count() OVER (PARTITION BY mask) FROM (SELECT`
      + ` grouping(${fields.join(", ")}) AS mask, multiIf(${keys.join(", ")}, '') AS key,`
      + ` count() AS events FROM ${source(bind)} GROUP BY GROUPING SETS (${sets}))`
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

const ofMetadata = Effect.fnUntraced(function* (
  store: StoreClient,
  { limit, tenantId }: FacetsQuery,
  path: string,
  source: Source,
  total: number
) {
  const texts = (bind: Parameters): string => {
    const marks = marksOf(store.events, bind.tenant(tenantId))
    const { condition, expression } = metadataTexts(path, bind, marks)
    return `SELECT ${expression} AS texts FROM ${source(bind)} AND ${condition}`
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
  return facetOf(`metadata.${path}`, rows, Math.max(0, total - present))
})

export const makeFacets = (store: StoreClient): EventStore["Service"]["facets"] =>
  Effect.fn("EventStore.facets")(function* (query, deduplicate) {
    const { filter, paths, tenantId } = query
    const source: Source = (bind) =>
      `${store.eventsOf(deduplicate)} WHERE ${filterCondition(store.events, tenantId, filter, bind)}`
    const total = yield* store.readOne(
      "facets",
      (bind) => `SELECT count() FROM ${source(bind)}`,
      (row) => row.uint64()
    )
    const columns = yield* ofColumns(store, query, source)
    const metadata = yield* Effect.forEach(paths, (path) =>
      ofMetadata(store, query, path, source, total)
    )
    return { facets: [...columns, ...metadata], total }
  })
