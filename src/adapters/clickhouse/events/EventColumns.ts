/**
 * What each filter column of the `events` table says about the stored bytes, as ClickHouse
 * expressions over them: verification computes every column again and names those that differ. The
 * table's defaults in schemas/clickhouse are the same expressions; a test compares the two.
 */
import { eventFields } from "../../../domain/events/EventFields.ts"
import {
  disagreementOf,
  field,
  type NamedExpression,
  readable,
  temporariesOf
} from "../client/JsonColumns.ts"
import { IS_ERASED } from "./EventText.ts"
import { metadataStrings, SEARCH_HOLDS } from "./SearchText.ts"

/** The members of a stored event that columns are made of. */
const FIELDS = [
  "id String",
  "timestamp DateTime64(6, 'UTC')",
  "actor Tuple(id String, type String, email String)",
  "action String",
  "resource Tuple(id String, type String, name String)",
  "outcome String",
  "metadata String",
  "tenant_id String",
  "sequence_number UInt64",
  "created_at DateTime64(6, 'UTC')",
  "hash String",
  "erased_at String"
]

const searched = [
  field("action"),
  field("actor", "id"),
  field("actor", "email"),
  field("resource", "id"),
  field("resource", "type"),
  field("resource", "name")
].join(", ")

export const temporaries = temporariesOf(FIELDS)

/** The filter columns and what they hold. */
export const columns: ReadonlyArray<NamedExpression> = [
  ["version", `${field("erased_at")} != ''`],
  ...eventFields
    .filter(({ isColumn }) => isColumn)
    .map(({ name, path }): NamedExpression => [name, field(...path)]),
  ["metadata", readable(field("metadata"))],
  [
    "search",
    String.raw`lowerUTF8(arrayStringConcat(arrayConcat([${searched}], ${metadataStrings(field("metadata"))}), '\0'))`
  ]
]

const ofBytes = disagreementOf(temporaries, columns)

/**
 * For verification: `WITH …` list and the names of the columns that differ from the bytes. Where the
 * bytes are a function of the columns, only what is made of them again can differ.
 */
export const disagreement = {
  with: ofBytes.with,
  names:
    `if(body = '', arrayConcat(if(${SEARCH_HOLDS}, [], ['search']),`
    + ` if(version = 0, [], ['version'])), arrayConcat(${ofBytes.names},`
    + ` if(${IS_ERASED} AND tupleElement(fields, 'erased_at') = '', ['erased_at'], [])))`
}
