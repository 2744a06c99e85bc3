/**
 * What the store's server passes on to the engine, which would read and write files of this machine
 * and call other hosts as the service. A statement is looked at token by token, so that no text
 * hides anything; what could be read in another way than here, comments among it, is refused.
 */
import { isAllowedFunction, takesFunction, words } from "../../../domain/sql/SqlFunctions.ts"
import { nameOf, QUOTED_NAME, tokensOf } from "./StatementTokens.ts"
import { takesForeignZone } from "./ZoneGuard.ts"

const setOf = (text: string): ReadonlySet<string> => new Set(words(text))

/**
 * What may stand before a bracket, beside the functions that statements of clients may use: all of it
 * computes on its arguments, the statement and tables of the store alone. A name that is in none of
 * these lists is refused, so that what a later ClickHouse adds is as well.
 */
const FUNCTIONS = setOf(`
  arrayReduce arrayWithConstant bitmapAnd bitmapAndnot bitmapAndnotCardinality bitmapBuild
  bitmapCardinality bitmapContains bitmapOr bitmapSubsetInRange bitmapSubsetLimit bitmapToArray
  byteSize currentDatabase finalizeAggregation formatQuery formatQueryOrNull formatQuerySingleLine
  formatQuerySingleLineOrNull generateUUIDv4 generateUUIDv7 getSetting groupBitmap groupBitmapAnd
  groupBitmapOr identity ignore isConstant materialize quantileExactInclusive
  quantilesExactExclusive quantilesExactInclusive rand rand64 randomString reinterpret
  reinterpretAsFixedString reinterpretAsString reinterpretAsUInt8 reinterpretAsUInt64
  rowNumberInAllBlocks
  rowNumberInBlock sipHash128 sipHash64Keyed sleep sleepEachRow throwIf timezone toInterval
  transform tupleToNameValuePairs untuple version xxh3
`)
const TABLE_FUNCTIONS = setOf(`
  generateRandom generateSeries generate_series input null numbers numbers_mt values view zeros
  zeros_mt
`)
const TYPES = setOf(`
  AggregateFunction Array DateTime DateTime64 Decimal Decimal32 Decimal64 Decimal128 Decimal256
  Dynamic Enum Enum8 Enum16 FixedString JSON LowCardinality Map Nested Nullable
  SimpleAggregateFunction Time64 Tuple Variant
`)
/** Codecs, and kinds of indexes and of their tokenizers. */
const PARTS_OF_COLUMNS = setOf(`
  CODEC Delta DoubleDelta Gorilla LZ4HC T64 ZSTD bloom_filter minmax ngrambf_v1 set text tokenbf_v1
  splitByNonAlpha splitByString ngrams array sparseGrams
`)
const KEYWORDS = setOf(`
  ALIAS ALL AND ANY APPLY AS BETWEEN BY CASE CHECK COLUMNS CUBE DEFAULT DISTINCT ELSE END EPHEMERAL
  EXCEPT EXISTS EXPRESSION FILL FILTER FROM HAVING ILIKE IN INNER INTERPOLATE INTERSECT INTERVAL IS
  JOIN KEY LIKE LIMIT MATERIALIZED NOT OFFSET ON OR OVER PARTITION PREWHERE QUALIFY REPLACE ROLLUP
  SAMPLE SELECT SET SETS SETTINGS STEP TABLE THEN TO TTL UNION UPDATE USING VALUES WHEN WHERE WITH
`)
/** What an aggregate function may be called with behind its name, beside what clients may use. */
const COMBINATORS = /(Array|SimpleState|State|Merge|ForEach|Null)$/
/** Engines of tables and databases that keep their rows in the store. */
const ENGINES =
  /^((Aggregating|Coalescing|Collapsing|Replacing|Summing|VersionedCollapsing)?MergeTree|Atomic|Join|Log|Memory|Null|Set|StripeLog|TinyLog|View|MaterializedView)$/
/** What may come behind a column that is called `engine`. */
const NO_ENGINE = setOf("AS FROM IN IS LIKE ILIKE NOT AND OR ASC DESC")

/** Whether a function of this name may be called, or be given to another one. */
const isOwnFunction = (name: string): boolean => {
  if (isAllowedFunction(name) || FUNCTIONS.has(name)) return true
  const shorter = name.replace(COMBINATORS, "")
  return shorter !== name && isOwnFunction(shorter)
}

const mayBeCalled = (token: string): boolean => {
  const name = nameOf(token)
  return (
    isOwnFunction(name)
    || [TABLE_FUNCTIONS, TYPES, PARTS_OF_COLUMNS].some((list) => list.has(name))
    || ENGINES.test(name)
    || KEYWORDS.has(token.toUpperCase())
  )
}

/** Characters of a statement's beginning that a refusal shows. */
const START_CHARACTERS_MAX = 40

/**
 * Settings that alk gives or that bound a statement, of a statement and of a table; others may name files
 * and disks, or what is done with those.
 */
const SETTINGS =
  /^(max_\w+|min_\w+|preferred_block_size_bytes|result_overflow_mode|async_insert|insert_(deduplicate|quorum|quorum_parallel)|optimize_(and_compare_chain|on_insert|move_to_prewhere|throw_if_noop|skip_unused_shards)|query_plan_(optimize_prewhere|direct_read_from_text_index)|materialize_skip_indexes_on_insert|select_sequential_consistency|short_circuit_function_evaluation|(mutations|alter|lightweight_deletes)_sync|enable_shared_storage_snapshot_in_query|use_query_condition_cache|final|date_time_output_format|format_csv_(delimiter|allow_(single|double)_quotes)|input_format_(parallel_parsing|csv_trim_whitespaces|csv_empty_as_default)|output_format_(write_statistics|json_\w+)|priority|wait_end_of_query|send_progress_in_http_headers|http_headers_progress_interval_ms|cancel_http_readonly_queries_on_client_close|enable_http_compression|index_granularity\w*|merge_selector_base|old_parts_lifetime|enable_block_(number|offset)_column)$/
/** Formats that alk asks and gives, and those for a reader; others need a schema or a template of a file. */
const FORMATS =
  /^(native|rowbinary\w*|csv\w*|tsv\w*|tabseparated\w*|json\w*|parquet|values|vertical|pretty\w*|null|markdown)$/i
/** What may come behind a column that is called `format`. */
const NO_FORMAT = setOf("FROM AS")

const TEXT = /^[xXbB]?'/
const PLAIN_NAME = /^[\p{L}\p{M}\p{N}_ .:-]*$/u

/**
 * What a statement may begin with: others would change what outlives it (SET, USE), who may do what, or
 * what is kept where.
 */
const STATEMENTS = setOf(
  "SELECT WITH FROM ( INSERT CREATE ALTER DROP TRUNCATE RENAME EXCHANGE OPTIMIZE DELETE UPDATE EXISTS "
    + "SHOW DESCRIBE DESC EXPLAIN KILL CHECK SYSTEM"
)
/** What these may be about, and the words that may stand before it. */
const KINDS: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ["CREATE", setOf("DATABASE TABLE VIEW")],
  ["ALTER", setOf("TABLE")],
  ["DROP", setOf("DATABASE TABLE VIEW")],
  ["RENAME", setOf("TABLE")],
  ["EXCHANGE", setOf("TABLES")],
  // Merges and the like.
  ["SYSTEM", setOf("START STOP")]
])
const BEFORE_KIND = setOf("OR REPLACE TEMPORARY MATERIALIZED")

/** Tables of this database that it doesn't have are files of the machine, by name. */
const DATABASE_OF_FILES = /^default$/i

/** Words after which names of tables come, and those that end such a list. */
const TABLES_FOLLOW = new Set(["FROM", "JOIN", "INTO"])
const TABLE_FOLLOWS = setOf("TABLE DESCRIBE DESC EXISTS CHECK")
const TABLES_END = new Set(
  (
    "ON USING WHERE PREWHERE GROUP HAVING ORDER LIMIT WINDOW QUALIFY SAMPLE SELECT UNION VALUES "
    + "SETTINGS FORMAT ENGINE COMMENT PARTITION ADD CLEAR DELETE DROP MATERIALIZE MODIFY RENAME UPDATE"
  ).split(" ")
)
const OPEN = new Set(["(", "[", "{"])
const CLOSE = new Set([")", "]", "}"])

/** Whether the engine would take it for a table, and open the file of that name. */
const isPath = (token: string): boolean =>
  TEXT.test(token) || (QUOTED_NAME.test(token) && !PLAIN_NAME.test(nameOf(token)))

const hasPathAsTable = (tokens: ReadonlyArray<string>): boolean => {
  // Of each level of brackets whether names of tables come now.
  const levels = [false]
  for (const [at, token] of tokens.entries()) {
    const word = token.toUpperCase()
    const isTable = levels.at(-1) === true || TABLE_FOLLOWS.has(tokens[at - 1]?.toUpperCase() ?? "")
    if (isTable && isPath(token)) return true
    if (OPEN.has(token)) levels.push(false)
    else if (CLOSE.has(token)) levels.pop()
    else if (TABLES_FOLLOW.has(word)) levels[levels.length - 1] = true
    else if (TABLES_END.has(word)) levels[levels.length - 1] = false
  }
  return false
}

/** A name that no table of a database has may be a path wherever it stands, unless it is given there. */
const hasPathAsName = (tokens: ReadonlyArray<string>): boolean =>
  tokens.some(
    (token, at) =>
      QUOTED_NAME.test(token)
      && !PLAIN_NAME.test(nameOf(token))
      && (tokens[at - 1]?.toUpperCase() !== "AS" || tokens[0]?.toUpperCase() === "CREATE")
  )

/** `default.x` */
const namesFiles = (tokens: ReadonlyArray<string>, at: number): boolean =>
  tokens[at + 1] === "." && DATABASE_OF_FILES.test(nameOf(tokens[at]!))

/** How it begins, if STATEMENTS doesn't have that, or KINDS not what it is about. */
const foreignStart = (tokens: ReadonlyArray<string>): string | undefined => {
  const [first = "", ...rest] = tokens.map((token) => token.toUpperCase())
  const kind = rest.find((word) => !BEFORE_KIND.has(word)) ?? ""
  const isOwn = STATEMENTS.has(first) && (KINDS.get(first)?.has(kind) ?? true)
  return isOwn || first === "" ? undefined : `${first} ${kind}`.slice(0, START_CHARACTERS_MAX)
}

const isName = (token: string): boolean => /^[A-Za-z_`"]/.test(token)

/** The name of a table that is made or written to, with its columns behind it in brackets. */
const isTableWithColumns = (tokens: ReadonlyArray<string>, at: number): boolean => {
  const start = tokens[at - 1] === "." ? at - 2 : at
  const before = tokens.slice(0, start).join(" ").toUpperCase()
  return /^(INSERT INTO( TABLE)?|CREATE (OR REPLACE )?(TEMPORARY |MATERIALIZED )?(TABLE|VIEW)( IF NOT EXISTS)?)$/.test(
    before
  )
}

/** A bare name as the first of several arguments, in brackets or with an alias too, is a function. */
const isFirstOfSeveral = (tokens: ReadonlyArray<string>, at: number): boolean => {
  let [first, next] = [at, at + 1]
  while (tokens[first - 1] === "(") first -= 1
  if (first === at || !takesFunction(nameOf(tokens[first - 1] ?? ""))) return false
  for (let open = at - first; open > 0; ) {
    if (tokens[next] === ",") return open === 1
    if (tokens[next]?.toUpperCase() === "AS") next += 2
    else if (tokens[next] === ")") [open, next] = [open - 1, next + 1]
    else return false
  }
  return false
}

/** `APPLY f`, `APPLY(f)`, `APPLY f(1)`; but for a lambda, and for what is done to a table. */
const isApplied = (tokens: ReadonlyArray<string>, at: number): boolean => {
  let before = at - 1
  while (tokens[before] === "(") before -= 1
  const isLambda = tokens[at + 1] === "-" && tokens[at + 2] === ">"
  return tokens[before]?.toUpperCase() === "APPLY" && !isLambda
}

/** Whether a function, type or engine is used by its name here that is in none of the lists. */
const isForeignCall = (tokens: ReadonlyArray<string>, at: number): boolean => {
  const token = tokens[at]!
  if (!isName(token)) return false
  if (isApplied(tokens, at) || isFirstOfSeveral(tokens, at)) return !isOwnFunction(nameOf(token))
  return tokens[at + 1] === "(" && !mayBeCalled(token) && !isTableWithColumns(tokens, at)
}

/** The engine that a statement makes a table or database with, if the list does not have it. */
const foreignEngine = (tokens: ReadonlyArray<string>, at: number): string | undefined => {
  if (tokens[0]?.toUpperCase() !== "CREATE" || tokens[at]!.toUpperCase() !== "ENGINE") {
    return undefined
  }
  const isGiven = tokens[at + 1] === "="
  const engine = tokens[at + (isGiven ? 2 : 1)] ?? ""
  const isColumn = !isName(engine) || (!isGiven && NO_ENGINE.has(engine.toUpperCase()))
  return isColumn || ENGINES.test(nameOf(engine)) ? undefined : nameOf(engine)
}

/** What is between two commas, or the end of a list. */
const LIST_ENDS = new Set([",", ")", ";", "FORMAT", "AS", "COMMENT"])

/** The first setting behind `SETTINGS` or `MODIFY SETTING` at this place that none may give. */
const foreignSetting = (tokens: ReadonlyArray<string>, at: number): string | undefined => {
  const word = tokens[at]?.toUpperCase()
  const isList =
    word === "SETTINGS" || (word === "SETTING" && /^modify$/i.test(tokens[at - 1] ?? ""))
  if (!isList) return undefined
  for (let next = at + (tokens[at + 1] === "(" ? 2 : 1); tokens[next + 1] === "="; next += 1) {
    const name = nameOf(tokens[next]!)
    if (!isKnownSetting(name) || OPEN.has(tokens[next + 2] ?? "")) return name
    while (next < tokens.length && !LIST_ENDS.has(tokens[next]!.toUpperCase())) next += 1
    if (tokens[next] !== ",") return undefined
  }
  return undefined
}

/** What is behind the format of an INSERT would be its rows, and no longer be read as SQL. */
const hasRows = (tokens: ReadonlyArray<string>, at: number): boolean =>
  tokens.some((token) => token.toUpperCase() === "INSERT")
  && tokens.slice(at + 2).some((token) => token !== ";")

const UNREAD =
  "a statement has no comments, and nothing but ASCII outside of single quotes, double quotes and backticks"

/** Why a statement is not passed on; undefined if it is. */
export const refusalOf = (sql: string): string | undefined => {
  const tokens = tokensOf(sql)
  if (typeof tokens === "number") return `${UNREAD} (character ${tokens + 1})`
  const end = tokens.indexOf(";")
  if (end >= 0 && tokens.slice(end).some((token) => token !== ";")) return "one statement a request"
  const foreign = foreignStart(tokens)
  if (foreign !== undefined) return `statements like ${foreign} are not passed on`
  for (const [at, token] of tokens.entries()) {
    const word = token.toUpperCase()
    const next = tokens[at + 1]?.toUpperCase()
    if (isForeignCall(tokens, at)) return `${nameOf(token)}() is no function that may be used`
    if (takesForeignZone(tokens, at))
      return "the name of a time zone has to be a known one, as a text"
    // Each of them could begin with what none may.
    if (word === "PARALLEL" && next === "WITH") return "one statement a request"
    if (namesFiles(tokens, at)) return "the database default reaches outside"
    const setting = foreignSetting(tokens, at)
    if (setting !== undefined) return `the setting ${setting} can't be given`
    const isFormat = word === "FORMAT" && /^["`]?\w/.test(next ?? "") && !NO_FORMAT.has(next!)
    if (isFormat && !FORMATS.test(nameOf(next!))) return `the format ${next} can't be used`
    if (isFormat && hasRows(tokens, at)) return "rows of an INSERT come apart from the statement"
    if ((word === "INTO" && next === "OUTFILE") || (word === "FROM" && next === "INFILE")) {
      return `${word} ${next} reaches outside`
    }
    const engine = foreignEngine(tokens, at)
    if (engine !== undefined) return `the engine ${engine} can't be used`
  }
  return hasPathAsTable(tokens) || hasPathAsName(tokens)
    ? "a path as the name of a table reaches outside"
    : undefined
}

/** Whether a setting of this name may be given. */
export const isKnownSetting = (name: string): boolean => SETTINGS.test(name)

/** Whether unqualified names may be looked for in this database. */
export const isOwnDatabase = (name: string): boolean => !DATABASE_OF_FILES.test(name)

const READ = /^[\s(]*(SELECT|WITH|EXISTS|SHOW|DESCRIBE|EXPLAIN)\b/i

/** True for statements that change nothing: WITH may also stand before an INSERT. */
export const isRead = (sql: string): boolean => {
  const [, word = ""] = READ.exec(sql) ?? []
  if (word.toUpperCase() !== "WITH") return word !== ""
  const tokens = tokensOf(sql)
  return typeof tokens !== "number" && !tokens.some((token) => token.toUpperCase() === "INSERT")
}
