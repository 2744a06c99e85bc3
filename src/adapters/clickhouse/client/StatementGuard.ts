/**
 * What the store's server passes on to the engine, which would read and write files of this machine
 * and call other hosts as the service. A statement is looked at token by token, so that neither texts
 * nor comments hide anything. Knows nothing of alk's tables.
 */

/** Names that reach outside of the store, as table function, function, table engine or source. */
const OUTSIDE =
  /^(ai[A-Z]\w*|azure\w*|backup|catboost\w*|cosn|datalakecatalog|deltaLake\w*|dictionary|disk|eval|executable\w*|file\w*|filesystem|gcs|hdfs\w*|hudi\w*|iceberg\w*|jdbc|kafka|keepermap|materializedpostgresql|embeddedrocksdb|mongodb\w*|mysql|nats|odbc|oss|paimon\w*|postgresql|prometheus\w*|queryrunner|rabbitmq|redis|remote\w*|s3\w*|sqlite|cluster|clusterAllReplicas|distributed|url\w*|ytsaurus|arrowflight|arrowstream|library|cassandra|clickhouse|http)$/i

const TOKEN =
  /--[^\n]*|#[! ][^\n]*|\/\*[\s\S]*?\*\/|'(?:[^'\\]|\\[\s\S]|'')*'|`(?:[^`\\]|\\[\s\S]|``)*`|"(?:[^"\\]|\\[\s\S]|"")*"|\$(\w*)\$[\s\S]*?\$\1\$|[A-Za-z_]\w*|\d[\w.]*|[^\s]/g

const words = (text: string): ReadonlySet<string> => new Set(text.split(" "))

/** Characters of a statement's beginning that a refusal shows. */
const START_CHARACTERS_MAX = 40

/** ClickHouse takes them for quotes. */
const CURLY_QUOTES = /^[\u2018\u2019\u201c\u201d]$/
/**
 * Settings that alk gives or that bound a statement, of a statement and of a table; others may name files
 * and disks, or what is done with those.
 */
const SETTINGS =
  /^(max_\w+|min_\w+|preferred_block_size_bytes|result_overflow_mode|async_insert|insert_(deduplicate|quorum|quorum_parallel)|optimize_(on_insert|move_to_prewhere|throw_if_noop|skip_unused_shards)|query_plan_(optimize_prewhere|direct_read_from_text_index)|materialize_skip_indexes_on_insert|select_sequential_consistency|short_circuit_function_evaluation|(mutations|alter|lightweight_deletes)_sync|enable_shared_storage_snapshot_in_query|use_query_condition_cache|final|date_time_output_format|format_csv_(delimiter|allow_(single|double)_quotes)|input_format_(parallel_parsing|csv_trim_whitespaces|csv_empty_as_default)|output_format_(write_statistics|json_\w+)|priority|wait_end_of_query|send_progress_in_http_headers|http_headers_progress_interval_ms|cancel_http_readonly_queries_on_client_close|enable_http_compression|index_granularity\w*|merge_selector_base|old_parts_lifetime|enable_block_(number|offset)_column)$/
/** Formats that alk asks and gives, and those for a reader; others need a schema or a template of a file. */
const FORMATS =
  /^(native|rowbinary\w*|csv\w*|tsv\w*|tabseparated\w*|json\w*|parquet|values|vertical|pretty\w*|null|markdown)$/i
/** What may come behind a column that is called `format`. */
const NO_FORMAT = words("FROM AS")

const COMMENT = /^(?:--|#[! ]|\/\*)/
const TEXT = /^['$]/
const QUOTED_NAME = /^[`"]/
const PLAIN_NAME = /^[\p{L}\p{M}\p{N}_ .:-]*$/u

/**
 * What a statement may begin with: others would change what outlives it (SET, USE), who may do what, or
 * what is kept where.
 */
const STATEMENTS = words(
  "SELECT WITH FROM ( INSERT CREATE ALTER DROP TRUNCATE RENAME EXCHANGE OPTIMIZE DELETE UPDATE EXISTS "
    + "SHOW DESCRIBE DESC EXPLAIN KILL CHECK SYSTEM"
)
/** What these may be about, and the words that may stand before it. */
const KINDS: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ["CREATE", words("DATABASE TABLE VIEW")],
  ["ALTER", words("TABLE")],
  ["DROP", words("DATABASE TABLE VIEW")],
  ["RENAME", words("TABLE")],
  ["EXCHANGE", words("TABLES")],
  // Merges and the like.
  ["SYSTEM", words("START STOP")]
])
const BEFORE_KIND = words("OR REPLACE TEMPORARY MATERIALIZED")

/** Tables of this database that it doesn't have are files of the machine, by name. */
const DATABASE_OF_FILES = /^default$/i

/** Words after which names of tables come, and those that end such a list. */
const TABLES_FOLLOW = new Set(["FROM", "JOIN", "INTO"])
const TABLE_FOLLOWS = words("TABLE DESCRIBE DESC EXISTS CHECK")
const TABLES_END = new Set(
  (
    "ON USING WHERE PREWHERE GROUP HAVING ORDER LIMIT WINDOW QUALIFY SAMPLE SELECT UNION VALUES "
    + "SETTINGS FORMAT ENGINE COMMENT PARTITION ADD CLEAR DELETE DROP MATERIALIZE MODIFY RENAME UPDATE"
  ).split(" ")
)
const OPEN = new Set(["(", "[", "{"])
const CLOSE = new Set([")", "]", "}"])

const tokensOf = (sql: string): ReadonlyArray<string> =>
  (sql.match(TOKEN) ?? []).filter((token) => !COMMENT.test(token))

const nameOf = (token: string): string => (QUOTED_NAME.test(token) ? token.slice(1, -1) : token)

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

/** `default.x`, or the database as the argument of a function. */
const namesFiles = (tokens: ReadonlyArray<string>, at: number): boolean => {
  const [token = "", next, before, function_ = ""] = [
    tokens[at],
    tokens[at + 1],
    tokens[at - 1],
    tokens[at - 2]
  ]
  const name = TEXT.test(token) ? token.slice(1, -1) : nameOf(token)
  const isArgument = before === "(" && /^\w+$/.test(function_) && !/^(values|in)$/i.test(function_)
  if (/^default\./i.test(name)) return isArgument
  if (!DATABASE_OF_FILES.test(name)) return false
  return next === "." || (isArgument && next === ",")
}

/** How it begins, if STATEMENTS doesn't have that, or KINDS not what it is about. */
const foreignStart = (tokens: ReadonlyArray<string>): string | undefined => {
  const [first = "", ...rest] = tokens.map((token) => token.toUpperCase())
  const kind = rest.find((word) => !BEFORE_KIND.has(word)) ?? ""
  const isOwn = STATEMENTS.has(first) && (KINDS.get(first)?.has(kind) ?? true)
  return isOwn || first === "" ? undefined : `${first} ${kind}`.slice(0, START_CHARACTERS_MAX)
}

/** A name with a backslash may be any other. */
const isOutside = (token: string): boolean =>
  OUTSIDE.test(nameOf(token)) || (QUOTED_NAME.test(token) && token.includes("\\"))

const HIGHER_ORDER =
  /^(array(Map|Filter|(Reverse)?Fill|(Reverse)?Split|First\w*|Last\w*|Count|Exists|All|Sum|Avg|Min|Max|Product|CumSum\w*|Difference|Compact|(Reverse)?Sort|Partial\w*|Fold)|map(Filter|Apply|Exists|All|(Reverse)?Sort|Partial\w*))$/i

/** A bare name as the first of several arguments of these is a function. */
const standsForFunction = (tokens: ReadonlyArray<string>, at: number): boolean => {
  let [first, last] = [at, at]
  while (tokens[first - 1] === "(" && tokens[last + 1] === ")")
    [first, last] = [first - 1, last + 1]
  const [called = "", next = ""] = [tokens[first - 2], tokens[last + 1]]
  return tokens[first - 1] === "(" && HIGHER_ORDER.test(called) && /^(,|AS)$/i.test(next)
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

/** Why a statement is not passed on; undefined if it is. */
export const refusalOf = (sql: string): string | undefined => {
  const tokens = tokensOf(sql)
  const end = tokens.indexOf(";")
  if (end >= 0 && tokens.slice(end).some((token) => token !== ";")) return "one statement a request"
  const foreign = foreignStart(tokens)
  if (foreign !== undefined) return `statements like ${foreign} are not passed on`
  for (const [at, token] of tokens.entries()) {
    const word = token.toUpperCase()
    const next = tokens[at + 1]?.toUpperCase()
    if (isOutside(token) && (next === "(" || standsForFunction(tokens, at)))
      return `${nameOf(token)}() reaches outside`
    if (namesFiles(tokens, at)) return "the database default reaches outside"
    if (CURLY_QUOTES.test(token)) return "quotes have to be straight ones"
    const setting = foreignSetting(tokens, at)
    if (setting !== undefined) return `the setting ${setting} can't be given`
    const isFormat = word === "FORMAT" && /^["`]?\w/.test(next ?? "") && !NO_FORMAT.has(next!)
    if (isFormat && !FORMATS.test(nameOf(next!))) return `the format ${next} can't be used`
    if ((word === "INTO" && next === "OUTFILE") || (word === "FROM" && next === "INFILE")) {
      return `${word} ${next} reaches outside`
    }
    if (word === "ENGINE") {
      const engine = tokens[at + (next === "=" ? 2 : 1)] ?? ""
      if (isOutside(engine)) return `the table engine ${engine} reaches outside`
    }
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
  return !tokensOf(sql).some((token) => token.toUpperCase() === "INSERT")
}
