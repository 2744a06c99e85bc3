/**
 * The fields of a stored event, each once and by one name: what lists and tables show, what conditions
 * of parameters and of `where` can be on, and what statistics and facets count by follow from this.
 */
import type { AuditEvent } from "./AuditEvent.ts"
import { actorTypes, outcomes } from "./EventEnums.ts"
import { METADATA_PREFIX } from "./MetadataPath.ts"

/** A condition of its own in an `EventFilter`, which the store finds fastest. */
interface ExactFilter {
  readonly key: string
}

interface EventField {
  /** In parameters of the API, expressions, CSV and SQL. */
  readonly name: string
  /** Of the member in the stored event. */
  readonly path: readonly [string] | readonly [string, string]
  /** What its values are, which says what they can be asked; one of `shown` is shown only. */
  readonly kind: "text" | "integer" | "time" | "shown"
  /** The only values that there are; any text without it. */
  readonly values?: ReadonlyArray<string>
  /** Other names in expressions. */
  readonly aliases?: ReadonlyArray<string>
  readonly filter?: ExactFilter
  /** No column of tables, unless it is asked for. */
  readonly isApart?: true
}

/** In the order of the columns of CSV. */
export const eventFields = [
  {
    name: "sequence_number",
    path: ["sequence_number"],
    kind: "integer",
    aliases: ["sequence"]
  },
  { name: "id", path: ["id"], kind: "text", filter: { key: "id" } },
  { name: "timestamp", path: ["timestamp"], kind: "time" },
  { name: "created_at", path: ["created_at"], kind: "time" },
  { name: "tenant_id", path: ["tenant_id"], kind: "shown" },
  {
    name: "actor_id",
    path: ["actor", "id"],
    kind: "text",
    aliases: ["actor", "actor.id"],
    filter: { key: "actorId" }
  },
  {
    name: "actor_type",
    path: ["actor", "type"],
    kind: "text",
    values: actorTypes,
    aliases: ["actor.type"],
    filter: { key: "actorType" }
  },
  {
    name: "actor_email",
    path: ["actor", "email"],
    kind: "text",
    aliases: ["actor.email", "email"]
  },
  { name: "action", path: ["action"], kind: "text", filter: { key: "action" } },
  {
    name: "resource_id",
    path: ["resource", "id"],
    kind: "text",
    aliases: ["resource", "resource.id"],
    filter: { key: "resourceId" }
  },
  {
    name: "resource_type",
    path: ["resource", "type"],
    kind: "text",
    aliases: ["resource.type"],
    filter: { key: "resourceType" }
  },
  { name: "resource_name", path: ["resource", "name"], kind: "text", aliases: ["resource.name"] },
  {
    name: "outcome",
    path: ["outcome"],
    kind: "text",
    values: outcomes,
    filter: { key: "outcome" }
  },
  { name: "metadata", path: ["metadata"], kind: "shown" },
  { name: "prev_hash", path: ["prev_hash"], kind: "text" },
  { name: "hash", path: ["hash"], kind: "text" },
  { name: "content_hash", path: ["content_hash"], kind: "text", isApart: true }
] as const satisfies ReadonlyArray<EventField>

type Field = (typeof eventFields)[number]

/** A field that a filter can ask for by a condition of its own. */
export type FilterField = Extract<Field, { readonly filter: ExactFilter }>

/** The values that a filter can ask a field for. */
export type FilterValue<F extends FilterField> = F extends {
  readonly values: ReadonlyArray<infer Value>
}
  ? Value
  : string

/** The exact conditions of a filter, all optional. */
export type ExactConditions = {
  readonly [F in FilterField as F["filter"]["key"]]?: FilterValue<F>
}

type AskedField = Exclude<Field, { readonly kind: "shown" }>

/** What of an event a list can show: a field, or the value at a path of metadata. */
export type ListedField = Field["name"] | `metadata.${string}`

/** A field that can be asked for and counted by. */
export type WhereField = AskedField["name"]

/** What events are counted by: a field, or the values at a path of metadata. */
export type CountedBy = WhereField | `metadata.${string}`

export const filterFields: ReadonlyArray<FilterField> = eventFields.filter(
  (field) => "filter" in field
)

const askedFields: ReadonlyArray<AskedField> = eventFields.filter((field) => field.kind !== "shown")

/** The fields that can be asked for, by their names. */
export const whereFields = Object.fromEntries(
  askedFields.map((field: EventField) => [field.name, field])
) as Readonly<Record<WhereField, EventField & { readonly kind: "text" | "integer" | "time" }>>

/** Names of the fields that can be asked for and counted by. */
export const whereNames = askedFields.map(({ name }) => name)

/** Names of all fields. */
export const fieldNames = eventFields.map(({ name }) => name)

/** The columns of a table, unless it is asked for others. */
export const tableFields = eventFields
  .filter((field) => !("isApart" in field))
  .map(({ name }) => name)

/** True for `metadata.` and a path. */
export const isMetadataName = (name: string): name is `metadata.${string}` =>
  name.startsWith(METADATA_PREFIX) && name !== METADATA_PREFIX

/** The member of an event that a field names; undefined if the event lacks it. */
export const memberAt = (event: AuditEvent, path: EventField["path"]): unknown => {
  const outer = event[path[0] as keyof AuditEvent] as unknown
  return path[1] === undefined || outer === undefined
    ? outer
    : (outer as Readonly<Record<string, unknown>>)[path[1]]
}
