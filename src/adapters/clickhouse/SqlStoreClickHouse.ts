/**
 * The port `SqlStore` on ClickHouse: a statement is written out by ClickHouse, read by ClickHouse into
 * a tree, refused for any part that is not known, and only then run, in the form that was looked at.
 */
import type { ClickHouseSettings } from "@clickhouse/client"
import { Effect, Layer } from "effect"
import { sqlTableNames } from "../../domain/sql/SqlTables.ts"
import type { StoreUnavailable } from "../../ports/EventStore.ts"
import {
  SQL_BYTES_MAX,
  SQL_MEMORY_MAX,
  SQL_ROWS_MAX,
  SQL_SECONDS_MAX,
  type SqlFormat,
  SqlRefused,
  SqlStore
} from "../../ports/SqlStore.ts"
import { ClickHouseConnection } from "./client/ClickHouseConnection.ts"
import { StoreClient } from "./client/StoreClient.ts"
import { eventTable } from "./sql/EventTable.ts"
import { limitOf, reasonOf, TABLE_TOO_LARGE, TOO_LARGE } from "./sql/SqlFailure.ts"
import { inlineWindows, namedTables, refusalOfNames, takesViews, withViews } from "./sql/SqlText.ts"
import { refusalOf, refusalOfHidden, windowsStatement } from "./sql/SqlTree.ts"
import { viewSettings, viewsOf } from "./sql/SqlViews.ts"

const OPERATION = "sql"

const FORMATS: Readonly<Record<SqlFormat, string>> = {
  json: "JSON",
  ndjson: "JSONEachRow",
  csv: "CSVWithNames",
  parquet: "Parquet"
}

const SETTINGS: ClickHouseSettings = {
  max_execution_time: SQL_SECONDS_MAX,
  max_memory_usage: String(SQL_MEMORY_MAX),
  max_threads: 2,
  max_result_rows: String(SQL_ROWS_MAX),
  max_result_bytes: String(SQL_BYTES_MAX),
  result_overflow_mode: "throw",
  date_time_output_format: "iso",
  output_format_write_statistics: 0,
  output_format_json_quote_64bit_integers: 0,
  output_format_json_quote_denormals: 1,
  output_format_json_named_tuples_as_objects: 1,
  ...viewSettings
}

const refused = (message: string) => new SqlRefused({ message })

/** The failure of a statement of a client: mostly its own fault. */
const failed = (error: StoreUnavailable): SqlRefused | StoreUnavailable => {
  const reason = reasonOf(error.cause)
  return reason === undefined ? error : refused(reason)
}

const canonicalOf = Effect.fnUntraced(function* (store: StoreClient, sql: string) {
  if (sql.includes("\0")) return yield* refused("the statement holds the character U+0000")
  const canonical = yield* store.readOne(
    OPERATION,
    (bind) => `SELECT formatQuerySingleLine(${bind.string(sql)})`,
    (row) => row.string()
  )
  if (!takesViews(canonical))
    return yield* refused("only SELECT can be asked, not in brackets and without RECURSIVE")
  return canonical
})

/** The lines of the tree into which ClickHouse reads a statement. */
const treeOf = (store: StoreClient, statement: string) =>
  store.read(
    OPERATION,
    () => `SELECT * FROM (EXPLAIN AST ${statement})`,
    (row) => row.string()
  )

/** The same of windows; read as a statement first, so that none can end before its bracket does. */
const treeOfWindows = Effect.fnUntraced(function* (
  store: StoreClient,
  windows: ReadonlyArray<string>
) {
  return yield* treeOf(store, yield* canonicalOf(store, windowsStatement(windows)))
})

/** What has to hold of a statement before it runs. */
const check = Effect.fnUntraced(function* (store: StoreClient, canonical: string) {
  // One statement, which is read as it is written.
  if ((yield* canonicalOf(store, canonical)) !== canonical) {
    return yield* refused("the statement can't be read: write it in a simpler way")
  }
  const odd = refusalOfNames(canonical)
  if (odd !== undefined) return yield* refused(odd)
  const named = namedTables(canonical)
  if (new Set([...named, ...sqlTableNames]).size < named.length + sqlTableNames.length) {
    return yield* refused(`a name behind WITH is taken: there are ${sqlTableNames.join(", ")}`)
  }
  const tree = yield* treeOf(store, canonical)
  const windows = inlineWindows(canonical)
  const ofWindows = windows.length === 0 ? [] : [yield* treeOfWindows(store, windows)]
  const refusal =
    refusalOf(tree, { views: sqlTableNames, named })
    ?? ofWindows
      .map((lines) => refusalOf(lines, { views: sqlTableNames, named: [] }))
      .find((one) => one !== undefined)
    ?? refusalOfHidden(canonical, [tree, ...ofWindows])
  if (refusal !== undefined) return yield* refused(refusal)
})

export const layerSqlStore: Layer.Layer<SqlStore, never, ClickHouseConnection> = Layer.effect(
  SqlStore,
  Effect.map(ClickHouseConnection, (connection) => {
    const store = new StoreClient(connection)
    return SqlStore.of({
      answer: Effect.fn("SqlStore.answer")(
        function* ({ format, sql, tenantId }, deduplicate) {
          const canonical = yield* canonicalOf(store, sql)
          yield* check(store, canonical)
          const statement = withViews(canonical, viewsOf(store, tenantId, deduplicate))
          const bytes = yield* store.answer(OPERATION, () => statement, FORMATS[format], SETTINGS)
          // What is the same in each row counts once for ClickHouse.
          return bytes.length > SQL_BYTES_MAX ? yield* refused(TOO_LARGE) : bytes
        },
        Effect.mapError((error) => (error instanceof SqlRefused ? error : failed(error)))
      ),
      events: Effect.fn("SqlStore.events")(
        function* (query, deduplicate) {
          const statement = eventTable(store, query, deduplicate)
          const bytes = yield* store.answer(OPERATION, statement, FORMATS[query.format], SETTINGS)
          return bytes.length > SQL_BYTES_MAX ? yield* refused(TABLE_TOO_LARGE) : bytes
        },
        Effect.mapError((error) => {
          const limit = error instanceof SqlRefused ? undefined : limitOf(error.cause)
          if (limit === undefined) return error
          return refused(limit === TOO_LARGE ? TABLE_TOO_LARGE : limit)
        })
      )
    })
  })
)
