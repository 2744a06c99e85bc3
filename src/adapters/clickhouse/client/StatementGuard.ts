/**
 * What the store's server passes on to the engine, which would read and write files of this machine
 * and call other hosts as the service. A statement is looked at token by token, so that neither texts
 * nor comments hide anything. Knows nothing of alk's tables.
 */

/** Names that reach outside of the store, as table function, function, table engine or source. */
const OUTSIDE =
  /^(azure\w*|cosn|deltaLake\w*|dictionary|disk|eval|executable\w*|file\w*|filesystem|gcs|hdfs\w*|hudi\w*|iceberg\w*|jdbc|kafka|keepermap|materializedpostgresql|embeddedrocksdb|mongodb\w*|mysql|nats|odbc|oss|paimon\w*|postgresql|prometheus\w*|queryrunner|rabbitmq|redis|remote\w*|s3\w*|sqlite|cluster|clusterAllReplicas|distributed|url\w*|ytsaurus|arrowflight|arrowstream|library|cassandra|clickhouse|http)$/i

const TOKEN =
  /--[^\n]*|#[! ][^\n]*|\/\*[\s\S]*?\*\/|'(?:[^'\\]|\\[\s\S]|'')*'|`(?:[^`\\]|\\[\s\S]|``)*`|"(?:[^"\\]|\\[\s\S]|"")*"|\$(\w*)\$[\s\S]*?\$\1\$|[A-Za-z_]\w*|\d[\w.]*|[^\s]/g

const COMMENT = /^(?:--|#[! ]|\/\*)/
const TEXT = /^['$]/
const QUOTED_NAME = /^[`"]/
const PLAIN_NAME = /^[\w .:-]*$/

/** Words after which names of tables come, and those that end such a list. */
const TABLES_FOLLOW = new Set(["FROM", "JOIN", "INTO"])
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
    if (isPath(token) && (levels.at(-1) === true || tokens[at - 1]?.toUpperCase() === "TABLE")) {
      return true
    }
    if (OPEN.has(token)) levels.push(false)
    else if (CLOSE.has(token)) levels.pop()
    else if (TABLES_FOLLOW.has(word)) levels[levels.length - 1] = true
    else if (TABLES_END.has(word)) levels[levels.length - 1] = false
  }
  return false
}

/** A name with a backslash may be any other. */
const isOutside = (token: string): boolean =>
  OUTSIDE.test(nameOf(token)) || (QUOTED_NAME.test(token) && token.includes("\\"))

/** Why a statement is not passed on; undefined if it is. */
export const refusalOf = (sql: string): string | undefined => {
  const tokens = tokensOf(sql)
  const end = tokens.indexOf(";")
  if (end >= 0 && tokens.slice(end).some((token) => token !== ";")) return "one statement a request"
  for (const [at, token] of tokens.entries()) {
    const word = token.toUpperCase()
    const next = tokens[at + 1]?.toUpperCase()
    // A bare name at the beginning of brackets may stand for the function of that name.
    if ((next === "(" || tokens[at - 1] === "(") && isOutside(token))
      return `${nameOf(token)}() reaches outside`
    if ((word === "INTO" && next === "OUTFILE") || (word === "FROM" && next === "INFILE")) {
      return `${word} ${next} reaches outside`
    }
    if (word === "ENGINE") {
      const engine = tokens[at + (next === "=" ? 2 : 1)] ?? ""
      if (isOutside(engine)) return `the table engine ${engine} reaches outside`
    }
  }
  return hasPathAsTable(tokens) ? "a path as the name of a table reaches outside" : undefined
}

const READ = /^[\s(]*(SELECT|WITH|EXISTS|SHOW|DESCRIBE|EXPLAIN)\b/i

/** True for statements that change nothing: WITH may also stand before an INSERT. */
export const isRead = (sql: string): boolean => {
  const [, word = ""] = READ.exec(sql) ?? []
  if (word.toUpperCase() !== "WITH") return word !== ""
  return !tokensOf(sql).some((token) => token.toUpperCase() === "INSERT")
}
