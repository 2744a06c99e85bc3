/**
 * What each filter column of the `events` table says about the stored bytes, as ClickHouse
 * expressions over them: verification computes every column again and names those that differ. The
 * table's defaults in schemas/clickhouse are the same expressions; a test compares the two.
 */

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
].join(", ")

const parsed = (text: string): string =>
  `JSONExtract(${text}, 'Tuple(${FIELDS.replaceAll("'", "''")})')`

/** Regular expressions over JSON, as ClickHouse's string literals. */
const STRING_OR_LONG_DIGITS = String.raw`'("(?:[^"\\\\]|\\\\.)*")|([0-9]{19,})'`
const STRING_OR_KEY = String.raw`'"(?:[^"\\\\]|\\\\.)*":?'`

/**
 * The text with `e0` behind each run of 19 digits or more that is no part of a string: simdjson
 * refuses a whole document for one integer beyond 64 bits, but reads it as a double like this.
 * U+0001 marks the end of each match, because it can't stand in JSON.
 */
export const withFloatDigits = (text: string): string => {
  const marked = `replaceRegexpAll(${text}, ${STRING_OR_LONG_DIGITS}, '\\\\1\\\\2\\x01')`
  return String.raw`replaceAll(replaceAll(${marked}, '"\x01', '"'), '\x01', 'e0')`
}

/** The text itself, or where the body was refused, what can be read; costs nothing on the rest. */
const readable = (text: string): string =>
  `arrayElement(arrayConcat(arrayMap(refused -> ${withFloatDigits("refused")},`
  + ` if(isValidJSON(body), [], [${text}])), [${text}]), 1)`

const field = (...path: ReadonlyArray<string>): string =>
  path.reduce((record, name) => `tupleElement(${record}, '${name}')`, "fields")

const searched = [
  field("action"),
  field("actor", "id"),
  field("actor", "email"),
  field("resource", "id"),
  field("resource", "type"),
  field("resource", "name")
].join(", ")

/** Every string value of `metadata`: its JSON tokens that no colon follows, unescaped. */
const metadataTexts =
  "JSONExtract(concat('[', arrayStringConcat(arrayFilter(token -> NOT endsWith(token, ':'),"
  + ` extractAll(${field("metadata")}, ${STRING_OR_KEY})), ','), ']'), 'Array(String)')`

/** Temporary values that the columns are made of, in order; each may use those before it. */
export const temporaries: ReadonlyArray<readonly [name: string, expression: string]> = [
  ["readable", readable("body")],
  ["fields", parsed("readable")]
]

/** The filter columns and what they hold. */
export const columns: ReadonlyArray<readonly [name: string, expression: string]> = [
  ["version", `${field("erased_at")} != ''`],
  ["tenant_id", field("tenant_id")],
  ["sequence_number", field("sequence_number")],
  ["hash", field("hash")],
  ["id", field("id")],
  ["timestamp", field("timestamp")],
  ["created_at", field("created_at")],
  ["actor_id", field("actor", "id")],
  ["actor_type", field("actor", "type")],
  ["action", field("action")],
  ["resource_id", field("resource", "id")],
  ["resource_type", field("resource", "type")],
  ["outcome", field("outcome")],
  ["metadata", readable(field("metadata"))],
  [
    "search",
    String.raw`lowerUTF8(arrayStringConcat(arrayConcat([${searched}], ${metadataTexts}), '\0'))`
  ]
]

/** `WITH …` list and expression for the names of the columns that differ from the bytes. */
export const disagreement = {
  with: temporaries.map(([name, expression]) => `${expression} AS ${name}`).join(", "),
  names: `arrayFilter(name -> name != '', [${
    columns.map(([name, expression]) => `if(${name} = (${expression}), '', '${name}')`).join(", ")
  }])`
}
