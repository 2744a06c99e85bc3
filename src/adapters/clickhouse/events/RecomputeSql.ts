/**
 * The recomputation of stored events as ClickHouse expressions: from the filter columns and what
 * is between them in the bytes, the whole stored text is built again, and with it every hash. A
 * row is perfect only if all of it comes out as it is stored; what is wrong otherwise is not said.
 *
 * The text of `metadata` is hashed as it is. That it is in RFC 8785 form, only the program
 * checks; another form could hold a forged chain after it.
 */
import { metadataStrings } from "./EventColumns.ts"

/** A text as a string literal of ClickHouse. */
export const literal = (text: string): string =>
  `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`

/** Canonical texts of one string: RFC 8785, section 3.2.2.2. */
const CANONICAL_STRING =
  '"(?:[^"\\\\\\x00-\\x1f]|\\\\["\\\\bfnrt]|\\\\u00(?:0[0-7be-f]|1[0-9a-f]))*"'

/** `"erased_at"` and what is around it at the end of a stored event. */
const ERASED_AT_MARK = ',"erased_at":"'
const TIME_LENGTH = 27
const ERASED_END_LENGTH = ERASED_AT_MARK.length + TIME_LENGTH + 2
const HASH_LENGTH = 64
const SALT_LENGTH = 32
const HASH_MARK = '","hash":"'
const CONTENT_MARK = '","content_hash":"'
const DETAILS_MARK = '","details_hash":"'
const SALT_MARK = '","details_salt":"'

/** Where the fixed members start, counted from the end of an event that is not erased. */
const HASH_AT = HASH_LENGTH + 2
const CONTENT_AT = HASH_AT + HASH_MARK.length + HASH_LENGTH
const DETAILS_AT = CONTENT_AT + CONTENT_MARK.length + HASH_LENGTH
const SALT_AT = DETAILS_AT + DETAILS_MARK.length + SALT_LENGTH
/** `prev_hash` is before the salt, before the details' hash, or before the content's hash. */
const PREV_AT_WITH_SALT = SALT_AT + SALT_MARK.length + HASH_LENGTH
const PREV_AT_WITH_HASH = DETAILS_AT + DETAILS_MARK.length + HASH_LENGTH
const PREV_AT_BARE = DETAILS_AT
/** From the earliest `prev_hash` to the end of an event that is erased. */
const ERASED_ENDING_LENGTH = PREV_AT_WITH_SALT + ERASED_END_LENGTH - 1

const EMAIL_MARK = ',"email":'
const NAME_MARK = ',"name":'
const METADATA_MARK = ',"metadata":'

const concat = (...parts: ReadonlyArray<string>): string => `concat(${parts.join(", ")})`

/** The canonical text of a column without control characters; of others it makes no JSON. */
const quoted = (column: string): string => {
  const backslashes = `replaceAll(${column}, ${literal("\\")}, ${literal("\\\\")})`
  const marks = `replaceAll(${backslashes}, ${literal('"')}, ${literal('\\"')})`
  return concat(literal('"'), marks, literal('"'))
}

const time = (column: string): string =>
  `formatDateTime(${column}, ${literal("%Y-%m-%dT%H:%i:%s.%fZ")})`

const sha256 = (text: string): string => `lower(hex(SHA256(${text})))`

const ESCAPED = `position(details, ${literal("\\")}) > 0`

const inner = (text: string): string => `substring(${text}, 2, length(${text}) - 2)`

/** The search column where nothing is escaped: a quotation mark opens a string or closes it. */
const plainSearch = (): string => {
  const tokens = `extractAll(metadata_text, ${literal('"[^"]*":?')})`
  const strings =
    `arrayMap(token -> ${inner("token")},`
    + ` arrayFilter(token -> NOT endsWith(token, ':'), ${tokens}))`
  const texts = [
    "action",
    "actor_id",
    inner("email_text"),
    "resource_id",
    "resource_type",
    inner("name_text")
  ]
  return (
    `lowerUTF8(concat(${texts.join(", char(0), ")},`
    + ` arrayStringConcat(arrayMap(text -> concat(char(0), text), ${strings}))))`
  )
}

/** The search column of any row. Within the arrayMap, so that it costs nothing on other rows. */
const escapedSearch = (): string => {
  const texts = [
    "toString(action)",
    "toString(actor_id)",
    "JSONExtractString(escaped.1)",
    "resource_id",
    "toString(resource_type)",
    "JSONExtractString(escaped.2)"
  ]
  return (
    `lowerUTF8(arrayStringConcat(arrayConcat([${texts.join(", ")}],`
    + ` ${metadataStrings("escaped.3")}), char(0)))`
  )
}

const SEARCH_HOLDS =
  `if(${ESCAPED},`
  + ` arrayExists(escaped -> search = ${escapedSearch()},`
  + ` if(${ESCAPED}, [(email_text, name_text, metadata_text)], [])),`
  + ` search = ${plainSearch()})`

/** Values by name, made of the columns, of the stages before, and of those above in the stage. */
type Stage = Readonly<Record<string, string>>

const fromEnding = (at: number, length: number): string => `substring(ending, -${at}, ${length})`

/** True if the mark of a member is before its value. */
const hasMark = (at: number, mark: string): string =>
  `${fromEnding(at + mark.length, mark.length)} = ${literal(mark)}`

/** The fixed members, as they are at the end, and the columns as they are in the text. */
const texts: Stage = {
  gone: `substring(body, -${ERASED_END_LENGTH}, ${ERASED_AT_MARK.length}) = ${literal(ERASED_AT_MARK)}`,
  ending: `if(gone, ${concat(
    `substring(right(body, ${ERASED_ENDING_LENGTH}), 1, ${PREV_AT_WITH_SALT - 1})`,
    literal("}")
  )}, right(body, ${PREV_AT_WITH_SALT}))`,
  erased_time: `if(gone, substring(body, -${TIME_LENGTH + 2}, ${TIME_LENGTH}), '')`,
  stored_hash: fromEnding(HASH_AT, HASH_LENGTH),
  stored_content: fromEnding(CONTENT_AT, HASH_LENGTH),
  stored_details: fromEnding(DETAILS_AT, HASH_LENGTH),
  salt: fromEnding(SALT_AT, SALT_LENGTH),
  hashed: hasMark(DETAILS_AT, DETAILS_MARK),
  salted: hasMark(SALT_AT, SALT_MARK),
  stored_prev:
    `multiIf(hashed AND salted, ${fromEnding(PREV_AT_WITH_SALT, HASH_LENGTH)},`
    + ` hashed, ${fromEnding(PREV_AT_WITH_HASH, HASH_LENGTH)},`
    + ` ${fromEnding(PREV_AT_BARE, HASH_LENGTH)})`,
  j_id: quoted("id"),
  j_actor_id: quoted("actor_id"),
  j_actor_type: quoted("actor_type"),
  j_action: quoted("action"),
  j_resource_id: quoted("resource_id"),
  j_resource_type: quoted("resource_type"),
  j_outcome: quoted("outcome"),
  happened: time("timestamp"),
  created: time("created_at"),
  number: "toString(sequence_number)"
}

/** What the text is made of, but for the three members that have no column of their own. */
const parts = (tenant: string): Stage => ({
  before: concat(
    literal('{"id":'),
    "j_id",
    literal(',"timestamp":"'),
    "happened",
    literal('","actor":{"id":'),
    "j_actor_id",
    literal(',"type":'),
    "j_actor_type"
  ),
  middle: concat(
    literal('},"action":'),
    "j_action",
    literal(',"resource":{"id":'),
    "j_resource_id",
    literal(',"type":'),
    "j_resource_type"
  ),
  ended: concat(literal('},"outcome":'), "j_outcome"),
  after: concat(
    literal(',"tenant_id":"'),
    tenant,
    literal('","sequence_number":'),
    "number",
    literal(',"created_at":"'),
    "created",
    literal('","prev_hash":"'),
    "stored_prev",
    `if(salted, ${concat(literal(SALT_MARK), "salt")}, '')`,
    `if(hashed, ${concat(literal(DETAILS_MARK), "stored_details")}, '')`,
    literal(CONTENT_MARK),
    "stored_content",
    literal(HASH_MARK),
    "hash",
    `if(gone, ${concat(literal(`"${ERASED_AT_MARK}`), "erased_time")}, '')`,
    literal('"}')
  )
})

/**
 * The other members are between the parts. No string can hold the parts, because the quotation
 * marks in it are escaped.
 */
const members: Stage = {
  middle_at: "position(body, middle, length(before) + 1)",
  name_at: "middle_at + length(middle)",
  ended_at: "position(body, ended, name_at)",
  metadata_at: "ended_at + length(ended)",
  metadata_end: "length(body) - length(after) + 1",
  email_member: "substring(body, length(before) + 1, middle_at - length(before) - 1)",
  name_member: "substring(body, name_at, ended_at - name_at)",
  metadata_member: "substring(body, metadata_at, metadata_end - metadata_at)",
  email_text: `substring(email_member, ${EMAIL_MARK.length + 1})`,
  name_text: `substring(name_member, ${NAME_MARK.length + 1})`,
  metadata_text: `substring(metadata_member, ${METADATA_MARK.length + 1})`,
  details: concat(
    `if(email_member = '', '', ${concat(literal(',"actor_email":'), "email_text")})`,
    "metadata_member",
    `if(name_member = '', '', ${concat(literal(',"resource_name":'), "name_text")})`
  )
}

/** What details, core and link hash to. */
const hashes = (tenant: string): Stage => ({
  details_hash: sha256(concat("salt", literal("\n{"), "substring(details, 2)", literal("}"))),
  content_hash: sha256(
    concat(
      literal('{"action":'),
      "j_action",
      literal(',"actor":{"id":'),
      "j_actor_id",
      literal(',"type":'),
      "j_actor_type",
      literal("}"),
      `if(hashed, ${concat(literal(',"details_hash":"'), "stored_details", literal('"'))}, '')`,
      literal(',"id":'),
      "j_id",
      literal(',"outcome":'),
      "j_outcome",
      literal(',"resource":{"id":'),
      "j_resource_id",
      literal(',"type":'),
      "j_resource_type",
      literal('},"timestamp":"'),
      "happened",
      literal('"}')
    )
  ),
  link_hash: sha256(
    concat(
      literal("alk-chain-v1\n"),
      tenant,
      literal("\n"),
      "number",
      literal("\n"),
      "created",
      literal("\n"),
      "stored_content",
      literal("\n"),
      "stored_prev"
    )
  )
})

/** `tenant` is an expression for the tenant's id, which needs no escape in JSON. */
const stages = (tenant: string): ReadonlyArray<Stage> => [
  texts,
  parts(tenant),
  members,
  hashes(tenant)
]

const optionalString = (member: string, mark: string): string =>
  `(${member} = '' OR match(${member}, ${literal(`^${mark}${CANONICAL_STRING}$`)}))`

const conditions: ReadonlyArray<string> = [
  // A row of version 1 replaces one of version 0, where the store does not change it in place.
  "version <= gone",
  // The text is put together of these parts and nothing else.
  "startsWith(body, before)",
  "middle_at > 0",
  "ended_at > 0",
  "metadata_at <= metadata_end",
  "endsWith(body, after)",
  "isValidUTF8(body)",
  // Each part is what belongs there.
  optionalString("email_member", EMAIL_MARK),
  optionalString("name_member", NAME_MARK),
  "((metadata_member = '' AND metadata = '') OR (metadata != ''"
    + ` AND startsWith(metadata_member, ${literal(`${METADATA_MARK}{`)})`
    + " AND JSONExtractRaw(metadata_text) = metadata))",
  SEARCH_HOLDS,
  // Details, salt and hash come together or, of an erased event, only the hash is left.
  "(NOT gone OR details = '')",
  "salted = (details != '')",
  "(gone OR hashed = salted)",
  "(NOT salted OR details_hash = stored_details)",
  "content_hash = stored_content",
  "link_hash = stored_hash",
  "hash = stored_hash"
]

/** What the stages work on. */
const COLUMNS =
  "sequence_number, version, timestamp, created_at, id, actor_id, actor_type, action, resource_id,"
  + " resource_type, outcome, metadata, search, hash, body"

/** What comes out: the parts that blocks are made of, and whether the row is perfect. */
const RESULT =
  "sequence_number, timestamp, id, version, hash, stored_prev, stored_content, erased_time"

/**
 * For the whole statement. Every value is needed on nearly every row: deciding row by row which to
 * compute costs ten times as much. Blocks that fit into the processor's caches make up for the many
 * intermediate texts.
 */
export const RECOMPUTE_SETTINGS =
  "short_circuit_function_evaluation = 'disable', max_block_size = 8192,"
  + " preferred_block_size_bytes = 0"

/**
 * A query for the rows of a table that satisfy a condition, each recomputed. Each stage is a query
 * around those before it: as aliases in one query, ClickHouse would write out each value wherever
 * it is named, and their number grows with the power of the depth.
 */
export const recomputedRows = (table: string, tenant: string, condition: string): string => {
  const staged = stages(tenant).reduce((from, stage) => {
    const made = Object.entries(stage).map(([name, expression]) => `${expression} AS ${name}`)
    return `SELECT *, ${made.join(", ")} FROM (${from})`
  }, `SELECT ${COLUMNS} FROM ${table} WHERE ${condition}`)
  return `SELECT ${RESULT}, (${conditions.join(" AND ")}) AS perfect FROM (${staged})`
}
