/**
 * The stored JSON of an event as a fixed function of the columns of its row: nothing is stored
 * twice, so a filter column can't differ from the bytes. What does not have this form keeps its
 * bytes in the column `body`, and its columns are made of them.
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

/** Of a row whose columns are the event; one that keeps its bytes says so in these. */
export const isErased = (erasedAt: string): string => `${erasedAt} > toDateTime64(0, 6, 'UTC')`
export const IS_ERASED = isErased("erased_at")

/** Columns that only rows have whose columns are the event; `metadata` is made for the others too. */
export const ownColumns = [
  "actor_email",
  "resource_name",
  "metadata",
  "details_salt",
  "details_hash",
  "content_hash",
  "prev_hash",
  "erased_at"
] as const

type OwnColumn = (typeof ownColumns)[number]

/** The JSON of a row whose columns are the event, given an expression for each of `ownColumns`. */
export const textOf = (own: Readonly<Record<OwnColumn, string>>): string => {
  /** Details are shown until the event is erased, whatever is still in their columns. */
  const shown = (text: string): string => `if(${isErased(own.erased_at)}, '', ${text})`
  return concat(
    literal('{"id":'),
    quoted("id"),
    literal(',"timestamp":"'),
    timeOf("timestamp"),
    literal('","actor":{"id":'),
    quoted("actor_id"),
    literal(',"type":'),
    quoted("actor_type"),
    shown(memberOf("email", own.actor_email)),
    literal('},"action":'),
    quoted("action"),
    literal(',"resource":{"id":'),
    quoted("resource_id"),
    literal(',"type":'),
    quoted("resource_type"),
    shown(memberOf("name", own.resource_name)),
    literal('},"outcome":'),
    quoted("outcome"),
    shown(memberOf("metadata", own.metadata)),
    literal(',"tenant_id":'),
    quoted("tenant_id"),
    literal(',"sequence_number":'),
    "toString(sequence_number)",
    literal(',"created_at":"'),
    timeOf("created_at"),
    literal('","prev_hash":"'),
    digitsOf(own.prev_hash),
    shown(
      `if(${own.details_salt} = ${NO_SALT}, '',`
        + ` ${concat(literal('","details_salt":"'), digitsOf(own.details_salt))})`
    ),
    `if(${own.details_hash} = ${NO_HASH}, '',`
      + ` ${concat(literal('","details_hash":"'), digitsOf(own.details_hash))})`,
    literal('","content_hash":"'),
    digitsOf(own.content_hash),
    literal('","hash":"'),
    "hash",
    `if(${isErased(own.erased_at)},`
      + ` ${concat(literal('","erased_at":"'), timeOf(own.erased_at))}, '')`,
    literal('"}')
  )
}

const asTheyAre = Object.fromEntries(ownColumns.map((name) => [name, name])) as Record<
  OwnColumn,
  string
>

/** The JSON of any row: the expression of the column `json`. */
export const storedText = `if(body = '', ${textOf(asTheyAre)}, body)`
