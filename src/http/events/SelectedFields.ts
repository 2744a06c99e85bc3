/**
 * Events as rows of the fields that a list is asked for: flat objects of JSON, or lines of CSV. Reads
 * stored bytes only.
 */
import { CSV_LINE_END, csvCell, csvText } from "../../domain/CsvText.ts"
import type { AuditEvent } from "../../domain/events/AuditEvent.ts"
import {
  eventFields,
  fieldNames,
  isMetadataName,
  type ListedField,
  memberAt
} from "../../domain/events/EventFields.ts"
import { METADATA_PREFIX, valueFinder } from "../../domain/events/MetadataPath.ts"
import { metadataOf } from "../../domain/events/StoredEvent.ts"
import { canonicalize } from "../../domain/json/CanonicalJson.ts"
import { type JsonValue, parseJson } from "../../domain/json/Json.ts"
import type { Parameter } from "../messages/QueryParameters.ts"
import { fieldsParameter } from "./FieldsParameter.ts"

/** Fields of a list at most. */
const LISTED_FIELDS_MAX = 50

export const listedFields: Parameter<ReadonlyArray<ListedField>> = fieldsParameter(fieldNames, {
  description: "What is shown of each event",
  more:
    " A page has `rows` then and no `events`, flat objects with null for what an event lacks; lines "
    + "are such objects, and tables have these columns.",
  example: "timestamp,actor_id,metadata.amount",
  most: LISTED_FIELDS_MAX
})
/** A field of an event, as JSON and between the commas of a table; undefined if the event lacks it. */
interface Shown {
  readonly json: string
  readonly cell: string
}

type ShownOf = (event: AuditEvent, body: string) => Shown | undefined

const shownValue = (value: JsonValue | undefined): Shown | undefined => {
  if (value === undefined) return undefined
  const json = canonicalize(value)
  return { json, cell: typeof value === "string" ? csvText(value) : csvCell(json) }
}

const shown = (field: ListedField): ShownOf => {
  if (field === "metadata") {
    return (_, body) => {
      const json = metadataOf(body)
      return json === "" ? undefined : { json, cell: csvCell(json) }
    }
  }
  if (isMetadataName(field)) {
    const find = valueFinder(field.slice(METADATA_PREFIX.length))
    return ({ metadata }) => shownValue(find(metadata ?? {}))
  }
  const { path } = eventFields.find(({ name }) => name === field)!
  return (event) => shownValue(memberAt(event, path) as JsonValue | undefined)
}

/** One stored event as a flat object. */
export const selectedJson = (fields: ReadonlyArray<ListedField>) => {
  const members = fields.map((field) => [`${JSON.stringify(field)}:`, shown(field)] as const)
  return (body: string): string => {
    const event = parseJson(body) as AuditEvent
    return `{${members.map(([name, of]) => `${name}${of(event, body)?.json ?? "null"}`).join(",")}}`
  }
}

/** A table of the fields: its first line, and one stored event as a line. */
export const selectedTable = (fields: ReadonlyArray<ListedField>) => {
  const line = (cells: ReadonlyArray<string>) => `${cells.join(",")}${CSV_LINE_END}`
  const columns = fields.map(shown)
  return {
    header: line(fields.map(csvText)),
    line: (body: string): string => {
      const event = parseJson(body) as AuditEvent
      return line(columns.map((of) => of(event, body)?.cell ?? ""))
    }
  }
}
