/** What of a row events are counted by. */
import type { CountedBy, WhereField } from "../../../domain/events/EventFields.ts"
import { METADATA_PREFIX } from "../../../domain/events/MetadataPath.ts"
import type { Parameters } from "../client/Parameters.ts"
import type { ErasedEvents } from "./ErasedEvents.ts"
import { digitsOf, timeOf } from "./EventText.ts"
import { metadataTexts } from "./MetadataSql.ts"

/** A field that an erasure takes away: its column holds JSON, empty where it is absent. */
export type DetailField = "actor_email" | "resource_name"

export const isDetail = (field: string): field is DetailField =>
  field === "actor_email" || field === "resource_name"

/** A field that every event has once. */
export type OnceField = Exclude<WhereField, DetailField>

/** Fields that are a column, in another form than the event has them. */
const forms: Partial<Record<OnceField, (column: string) => string>> = {
  timestamp: timeOf,
  created_at: timeOf,
  prev_hash: digitsOf,
  content_hash: digitsOf
}

/** Its value as a text or a number. */
export const columnValue = (field: OnceField): string => forms[field]?.(field) ?? field

/** The values that an event is counted under, each once, for the rows that meet the condition. */
interface Counted {
  readonly values: string
  readonly condition: string
}

/** What events are counted by that they may lack, or have several of; undefined for other fields. */
export const countedTexts = (
  field: CountedBy,
  bind: Parameters,
  marks: ErasedEvents
): Counted | undefined => {
  if (isDetail(field)) {
    const text = `JSONExtractString(concat('[', ${field}, ']'), 1)`
    return { values: `[${text}]`, condition: `${field} != '' AND ${marks.unless()}` }
  }
  if (!field.startsWith(METADATA_PREFIX)) return undefined
  const { condition, expression } = metadataTexts(field.slice(METADATA_PREFIX.length), bind, marks)
  return { values: expression, condition }
}

export const isOnce = (field: CountedBy): field is OnceField =>
  !isDetail(field) && !field.startsWith(METADATA_PREFIX)
