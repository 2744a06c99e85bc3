/**
 * The recomputation of stored events as ClickHouse expressions: from the columns that an event's
 * JSON is a function of, every hash of it. A row is perfect only if all of them come out as they are
 * stored, and only if the JSON can be cut into its columns in no other way; what is wrong otherwise
 * is not said.
 *
 * The text of `metadata` is hashed as it is. That it is in RFC 8785 form, only the program
 * checks; another form could hold a forged chain after it.
 */
import { withFloatDigits } from "../client/JsonColumns.ts"
import { VERSION_HOLDS } from "./EventColumns.ts"
import {
  concat,
  digitsOf,
  IS_ERASED,
  literal,
  memberOf,
  NO_HASH,
  NO_SALT,
  quoted,
  timeOf
} from "./EventText.ts"
import { SEARCH_HOLDS } from "./SearchText.ts"

/** Canonical texts of one string: RFC 8785, section 3.2.2.2. */
const CANONICAL_STRING =
  '"(?:[^"\\\\\\x00-\\x1f]|\\\\["\\\\bfnrt]|\\\\u00(?:0[0-7be-f]|1[0-9a-f]))*"'

const sha256 = (text: string): string => `lower(hex(SHA256(${text})))`

/** Values by name, made of the columns, of the stages before, and of those above in the stage. */
type Stage = Readonly<Record<string, string>>

/** The texts that hashes are made of, and what of an event is there. */
const texts: Stage = {
  gone: IS_ERASED,
  stored_prev: digitsOf("prev_hash"),
  stored_content: digitsOf("content_hash"),
  stored_details: digitsOf("details_hash"),
  hashed: `details_hash != ${NO_HASH}`,
  salted: `details_salt != ${NO_SALT}`,
  j_id: quoted("id"),
  j_actor_id: quoted("actor_id"),
  j_actor_type: quoted("actor_type"),
  j_action: quoted("action"),
  j_resource_id: quoted("resource_id"),
  j_resource_type: quoted("resource_type"),
  j_outcome: quoted("outcome"),
  happened: timeOf("timestamp"),
  created: timeOf("created_at"),
  number: "toString(sequence_number)",
  details: concat(
    memberOf("actor_email", "actor_email"),
    memberOf("metadata", "metadata"),
    memberOf("resource_name", "resource_name")
  )
}

/** What details, core and link hash to. */
const hashes = (tenant: string): Stage => ({
  core: concat(
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
  ),
  details_found: sha256(
    concat(digitsOf("details_salt"), literal("\n{"), "substring(details, 2)", literal("}"))
  ),
  content_found: sha256("core"),
  link_found: sha256(
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
const stages = (tenant: string): ReadonlyArray<Stage> => [texts, hashes(tenant)]

const HAS_ESCAPES = `position(concat(actor_email, resource_name), ${literal("\\")}) > 0`

/**
 * One JSON string in canonical form, or nothing. Without a backslash every valid one is; the others are
 * matched within the array, so that it costs nothing elsewhere.
 */
const optionalString = (column: string): string =>
  `(${column} = '' OR (startsWith(${column}, '"') AND endsWith(${column}, '"')`
  + ` AND isValidJSON(${column}) AND arrayAll(text -> match(text, ${literal(`^${CANONICAL_STRING}$`)}),`
  + ` if(${HAS_ESCAPES}, [${column}], emptyArrayString()))))`

/** One JSON text, whatever numbers are in it. Within the array, so that it costs nothing elsewhere. */
const IS_JSON =
  "(isValidJSON(metadata) OR arrayExists("
  + `refused -> isValidJSON(${withFloatDigits("refused")}),`
  + " if(isValidJSON(metadata), emptyArrayString(), [metadata])))"

const conditions: ReadonlyArray<string> = [
  VERSION_HOLDS,
  // Every text is one that JSON can hold as it is: without control characters, in UTF-8.
  "isValidJSON(core)",
  "isValidUTF8(details)",
  optionalString("actor_email"),
  optionalString("resource_name"),
  `(metadata = '' OR (startsWith(metadata, '{') AND ${IS_JSON}))`,
  SEARCH_HOLDS,
  // Details, salt and hash come together, or of an erased event only the hash is shown.
  "(gone OR (salted = (details != '') AND hashed = salted))",
  "(gone OR NOT salted OR details_found = stored_details)",
  "content_found = stored_content",
  "link_found = hash"
]

/** What the stages work on. */
const COLUMNS =
  "sequence_number, version, timestamp, created_at, id, actor_id, actor_type, action, resource_id,"
  + " resource_type, outcome, metadata, search, hash, actor_email, resource_name,"
  + " details_salt, details_hash, content_hash, prev_hash, erased_at"

/** What comes out: the parts that blocks are made of, and whether the row is perfect. */
const RESULT =
  "sequence_number, timestamp, id, version, hash, stored_prev, stored_content,"
  + ` if(gone, ${timeOf("erased_at")}, '') AS erased_time`

/**
 * For the whole statement. Every value is needed on nearly every row: deciding row by row which to
 * compute costs ten times as much. Blocks that fit into the processor's caches make up for the many
 * intermediate texts. Comparisons that follow from others are not looked for: among so many that alone
 * took a third of the statement's time on a slice of self-verification, and there are none.
 */
export const RECOMPUTE_SETTINGS =
  "short_circuit_function_evaluation = 'disable', max_block_size = 8192,"
  + " preferred_block_size_bytes = 0, optimize_and_compare_chain = 0"

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
