/**
 * A filter of the domain as a ClickHouse condition that means the same. Every value is a bound
 * parameter.
 */
import { filterFields } from "../../../domain/events/EventFields.ts"
import { conditionsOf, type EventFilter } from "../../../domain/events/EventFilter.ts"
import { expressionOf } from "../../../domain/events/where/Where.ts"
import type { Parameters } from "../client/Parameters.ts"
import { erasedEventsOf } from "./ErasedEvents.ts"
import { metadataCondition } from "./MetadataSql.ts"
import { searchCondition } from "./SearchSql.ts"
import { whereSql } from "./WhereSql.ts"

/** True if no row is found by an index of texts: then all columns can be read with the condition. */
export const isUnindexed = ({ actorId, resourceId, where }: EventFilter): boolean =>
  [actorId, resourceId, where].every((value) => value === undefined)

/** True if the condition costs little beside the rows: it may be evaluated once more for them. */
export const isCheap = (filter: EventFilter): boolean =>
  isUnindexed(filter) && filter.metadata.length === 0 && filter.q === undefined

/** True if the filter is about more than places in the chain. */
export const isOfColumns = (filter: EventFilter): boolean =>
  conditionsOf(filter).length > 0 || filter.from !== undefined || filter.to !== undefined

/** Chains begin with 1: what is stored below is no event, and verification reports it. */
const IS_EVENT = "sequence_number >= 1"
export const IS_NO_EVENT: string = `NOT (${IS_EVENT})`

/** The rows of the tenant in the table that satisfy the filter; reads no column that is patched. */
export const filterCondition = (
  table: string,
  tenantId: string,
  filter: EventFilter,
  bind: Parameters,
  isEvent: string = IS_EVENT
): string => {
  const tenant = bind.tenant(tenantId)
  const marks = erasedEventsOf(table, tenant)
  const conditions = [tenant, isEvent]
  for (const {
    filter: { key },
    name
  } of filterFields) {
    const value = filter[key]
    if (value !== undefined) conditions.push(`${name} = ${bind.string(value)}`)
  }
  if (filter.actionPrefix !== undefined) {
    conditions.push(`startsWith(action, ${bind.string(filter.actionPrefix)})`)
  }
  if (filter.from !== undefined) conditions.push(`timestamp >= ${bind.time(filter.from)}`)
  if (filter.to !== undefined) conditions.push(`timestamp <= ${bind.time(filter.to)}`)
  if (filter.fromSequence !== undefined) {
    conditions.push(`sequence_number >= ${bind.integer(filter.fromSequence)}`)
  }
  if (filter.toSequence !== undefined) {
    conditions.push(`sequence_number <= ${bind.integer(filter.toSequence)}`)
  }
  for (const condition of filter.metadata) {
    conditions.push(metadataCondition(condition, bind, marks))
  }
  if (filter.q !== undefined) conditions.push(searchCondition(filter.q, bind, marks))
  if (filter.where !== undefined) conditions.push(whereSql(expressionOf(filter.where), bind, marks))
  return conditions.join(" AND ")
}
