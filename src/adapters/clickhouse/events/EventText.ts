/**
 * The stored JSON of an event as a fixed function of the columns of its row: nothing is stored
 * twice, so a filter column can't differ from the bytes.
 */

/** A text as a string literal of ClickHouse. */
export const literal = (text: string): string =>
  `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`

export const concat = (...parts: ReadonlyArray<string>): string => `concat(${parts.join(", ")})`

/** The canonical text of a column without control characters; of others it makes no JSON. */
export const quoted = (column: string): string => {
  const backslashes = `replaceAll(${column}, ${literal("\\")}, ${literal("\\\\")})`
  const marks = `replaceAll(${backslashes}, ${literal('"')}, ${literal('\\"')})`
  return concat(literal('"'), marks, literal('"'))
}

/** Canonical microsecond form of a column. */
export const timeOf = (column: string): string =>
  `formatDateTime(${column}, ${literal("%Y-%m-%dT%H:%i:%s.%fZ")})`

/** Lower-case hex digits of a column of raw bytes. */
export const digitsOf = (column: string): string => `lower(hex(${column}))`

/** Zero bytes say that an event has no salt, or no hash of details. */
export const NO_SALT = "toFixedString('', 16)"
export const NO_HASH = "toFixedString('', 32)"

/** Columns that hold the JSON text of a member that may be absent: then they are empty. */
export const memberOf = (name: string, column: string): string =>
  `if(${column} = '', '', ${concat(literal(`,"${name}":`), column)})`

/** Whether an event was erased, by its column. */
export const isErased = (erasedAt: string): string => `${erasedAt} > toDateTime64(0, 6, 'UTC')`
export const IS_ERASED = isErased("erased_at")

/** Details are shown until the event is erased, whatever is still in their columns. */
const shown = (text: string): string => `if(${IS_ERASED}, '', ${text})`

/** The JSON of a row: the expression of the column `json`. */
export const storedText: string = concat(
  literal('{"id":'),
  quoted("id"),
  literal(',"timestamp":"'),
  timeOf("timestamp"),
  literal('","actor":{"id":'),
  quoted("actor_id"),
  literal(',"type":'),
  quoted("actor_type"),
  shown(memberOf("email", "actor_email")),
  literal('},"action":'),
  quoted("action"),
  literal(',"resource":{"id":'),
  quoted("resource_id"),
  literal(',"type":'),
  quoted("resource_type"),
  shown(memberOf("name", "resource_name")),
  literal('},"outcome":'),
  quoted("outcome"),
  shown(memberOf("metadata", "metadata")),
  literal(',"tenant_id":'),
  quoted("tenant_id"),
  literal(',"sequence_number":'),
  "toString(sequence_number)",
  literal(',"created_at":"'),
  timeOf("created_at"),
  literal('","prev_hash":"'),
  digitsOf("prev_hash"),
  shown(
    `if(details_salt = ${NO_SALT}, '',`
      + ` ${concat(literal('","details_salt":"'), digitsOf("details_salt"))})`
  ),
  `if(details_hash = ${NO_HASH}, '',`
    + ` ${concat(literal('","details_hash":"'), digitsOf("details_hash"))})`,
  literal('","content_hash":"'),
  digitsOf("content_hash"),
  literal('","hash":"'),
  "hash",
  `if(${IS_ERASED}, ${concat(literal('","erased_at":"'), timeOf("erased_at"))}, '')`,
  literal('"}')
)
