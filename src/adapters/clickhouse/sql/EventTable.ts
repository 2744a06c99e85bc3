/** The statement for the events of a list as a table, with a column for each field that is asked for. */
import type { ListedField } from "../../../domain/events/EventFields.ts"
import { METADATA_PREFIX } from "../../../domain/events/MetadataPath.ts"
import type { EventTableQuery } from "../../../ports/SqlStore.ts"
import type { Parameters, Statement } from "../client/Parameters.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { filterCondition } from "../events/EventFilterSql.ts"
import { metadataText } from "../events/MetadataSql.ts"
import { eventColumns, isErasedRow } from "./SqlViews.ts"

const escaped = (sign: string): string => `\\x${sign.charCodeAt(0).toString(16).padStart(2, "0")}`

/** As a name in a statement; braces would look like a parameter to the embedded engine. */
const identifier = (name: string): string => `\`${name.replace(/[\\`{}\x00-\x1f]/g, escaped)}\``

const isColumn = (name: ListedField): name is keyof typeof eventColumns & ListedField =>
  Object.hasOwn(eventColumns, name)

const columnOf = (field: ListedField, bind: Parameters): string => {
  if (isColumn(field)) return eventColumns[field]
  if (field === "tenant_id") return "e.tenant_id"
  const text = metadataText(field.slice(METADATA_PREFIX.length), bind)
  return `if(${isErasedRow}, NULL, ${text})`
}

export const eventTable =
  (
    store: StoreClient,
    { fields, filter, order, sort, tenantId }: EventTableQuery,
    deduplicate: boolean
  ): Statement =>
  (bind) => {
    const columns = fields.map((field) => `${columnOf(field, bind)} AS ${identifier(field)}`)
    const matching =
      `SELECT sequence_number, hash FROM ${store.eventsOf(deduplicate)}`
      + ` WHERE ${filterCondition(store.events, tenantId, filter, bind)}`
    const inOrder = ["sequence_number", "hash"].map((column) => `e.${column} ${order}`)
    if (sort === "timestamp") inOrder.unshift(`e.timestamp ${order}`)
    return (
      `SELECT ${columns.join(", ")} FROM ${store.events} AS e${deduplicate ? " FINAL" : ""}`
      + ` PREWHERE e.${bind.tenant(tenantId)} WHERE (e.sequence_number, e.hash) IN (${matching})`
      + ` ORDER BY ${inOrder.join(", ")}`
    )
  }
