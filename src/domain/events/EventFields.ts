/**
 * The fields of a stored event that lists, statistics, tables and the store name, each once: what a
 * filter can ask for, the columns of CSV, and the filter columns of the store follow from this.
 */
import { type AuditEvent, actorTypes, outcomes } from "./AuditEvent.ts"

/** How a field is asked for: by its exact value. */
interface ExactFilter {
  /** Of the condition in an `EventFilter`. */
  readonly key: string
  /** The only values that there are; any text without it. */
  readonly values?: ReadonlyArray<string>
}

interface EventField {
  /** In parameters of the API and in CSV; of the column, if it has one. */
  readonly name: string
  /** Of the member in the stored event. */
  readonly path: readonly [string] | readonly [string, string]
  /** Whether the store has a column of this name that holds just the member. */
  readonly isColumn: boolean
  readonly filter?: ExactFilter
  /** Statistics can count by it. */
  readonly isDimension?: true
}

/** In the order of the columns of CSV. */
export const eventFields = [
  { name: "sequence_number", path: ["sequence_number"], isColumn: true },
  {
    name: "id",
    path: ["id"],
    isColumn: true,
    filter: { key: "id" }
  },
  { name: "timestamp", path: ["timestamp"], isColumn: true },
  { name: "created_at", path: ["created_at"], isColumn: true },
  { name: "tenant_id", path: ["tenant_id"], isColumn: true },
  {
    name: "actor_id",
    path: ["actor", "id"],
    isColumn: true,
    filter: { key: "actorId" },
    isDimension: true
  },
  {
    name: "actor_type",
    path: ["actor", "type"],
    isColumn: true,
    filter: { key: "actorType", values: actorTypes },
    isDimension: true
  },
  { name: "actor_email", path: ["actor", "email"], isColumn: false },
  {
    name: "action",
    path: ["action"],
    isColumn: true,
    filter: {
      key: "action"
    },
    isDimension: true
  },
  {
    name: "resource_id",
    path: ["resource", "id"],
    isColumn: true,
    filter: { key: "resourceId" },
    isDimension: true
  },
  {
    name: "resource_type",
    path: ["resource", "type"],
    isColumn: true,
    filter: { key: "resourceType" },
    isDimension: true
  },
  { name: "resource_name", path: ["resource", "name"], isColumn: false },
  {
    name: "outcome",
    path: ["outcome"],
    isColumn: true,
    filter: { key: "outcome", values: outcomes },
    isDimension: true
  },
  { name: "metadata", path: ["metadata"], isColumn: false },
  { name: "prev_hash", path: ["prev_hash"], isColumn: false },
  { name: "hash", path: ["hash"], isColumn: true }
] as const satisfies ReadonlyArray<EventField>

type Field = (typeof eventFields)[number]

/** A field that a filter can ask for. */
export type FilterField = Extract<Field, { readonly filter: ExactFilter }>

/** The values that a filter can ask a field for. */
export type FilterValue<F extends FilterField> = F["filter"] extends {
  readonly values: ReadonlyArray<infer Value>
}
  ? Value
  : string

/** The exact conditions of a filter, all optional. */
export type ExactConditions = {
  readonly [F in FilterField as F["filter"]["key"]]?: FilterValue<F>
}

/** Names of the fields that statistics count by. */
export type EventDimension = Extract<Field, { readonly isDimension: true }>["name"]

/** What of an event a list can show: a field, or the value at a path of metadata. */
export type ListedField = Field["name"] | `metadata.${string}`

/** What events are counted by: a field, or the values at a path of metadata. */
export type CountedBy = EventDimension | `metadata.${string}`

export const filterFields: ReadonlyArray<FilterField> = eventFields.filter(
  (field) => "filter" in field
)

export const eventDimensions: ReadonlyArray<EventDimension> = eventFields
  .filter((field) => "isDimension" in field)
  .map(({ name }) => name)

export const isEventDimension = (name: string): name is EventDimension =>
  (eventDimensions as ReadonlyArray<string>).includes(name)

/** The member of an event that a field names; undefined if the event lacks it. */
export const memberAt = (event: AuditEvent, path: EventField["path"]): unknown => {
  const outer = event[path[0] as keyof AuditEvent] as unknown
  return path[1] === undefined || outer === undefined
    ? outer
    : (outer as Readonly<Record<string, unknown>>)[path[1]]
}
