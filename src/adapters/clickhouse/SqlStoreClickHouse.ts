/**
 * The port `SqlStore` on ClickHouse: a statement is read by a grammar of its own, and what is written
 * from that runs, with the views before it.
 */
import type { ClickHouseSettings } from "@clickhouse/client"
import { Effect, Layer } from "effect"
import { inSlices } from "../../domain/InSlices.ts"
import { parseJson } from "../../domain/json/Json.ts"
import { sqlTableNames } from "../../domain/sql/SqlTables.ts"
import type { StoreUnavailable } from "../../ports/EventStore.ts"
import {
  SQL_BYTES_MAX,
  SQL_MEMORY_MAX,
  SQL_ROWS_MAX,
  SQL_SECONDS_MAX,
  type SqlColumn,
  SqlRefused,
  SqlStore
} from "../../ports/SqlStore.ts"
import { ClickHouseConnection } from "./client/ClickHouseConnection.ts"
import { StoreClient } from "./client/StoreClient.ts"
import { eventTable } from "./sql/EventTable.ts"
import { sameNames, writtenAnswer } from "./sql/SqlAnswer.ts"
import { limitOf, reasonOf, TABLE_TOO_LARGE, TOO_LARGE } from "./sql/SqlFailure.ts"
import { readStatement } from "./sql/SqlStatement.ts"
import { viewDefinitions, viewSettings } from "./sql/SqlViews.ts"

const OPERATION = "sql"

const TABLES = { parquet: "Parquet", ndjson: "JSONEachRow" } as const

const SETTINGS: ClickHouseSettings = {
  max_execution_time: SQL_SECONDS_MAX,
  max_memory_usage: String(SQL_MEMORY_MAX),
  max_threads: 2,
  // The time is looked at between blocks only.
  max_block_size: "8192",
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
const failed = (error: StoreUnavailable, sql: string): SqlRefused | StoreUnavailable => {
  const reason = reasonOf(error.cause, sql)
  return reason === undefined ? error : refused(reason)
}

/** The columns that a statement would have, without its rows. */
const columnsOf = (store: StoreClient, statement: string) =>
  Effect.map(
    store.answer(OPERATION, () => `DESCRIBE TABLE (${statement})`, "JSONCompact", SETTINGS),
    (json) =>
      (parseJson(String(json)) as { readonly data: ReadonlyArray<ReadonlyArray<string>> }).data.map(
        ([name = "", type = ""]): SqlColumn => ({ name, type })
      )
  )

const parquet = Effect.fnUntraced(function* (store: StoreClient, statement: string) {
  const columns = yield* columnsOf(store, statement)
  const refusal = sameNames(columns)
  if (refusal !== undefined) return yield* refusal
  const bytes = yield* store.answer(OPERATION, () => statement, "Parquet", SETTINGS)
  // What is the same in each row counts once for ClickHouse.
  return bytes.length > SQL_BYTES_MAX ? yield* refused(TOO_LARGE) : { bytes, columns }
})

export const layerSqlStore: Layer.Layer<SqlStore, never, ClickHouseConnection> = Layer.effect(
  SqlStore,
  Effect.map(ClickHouseConnection, (connection) => {
    const store = new StoreClient(connection)
    return SqlStore.of({
      answer: Effect.fn("SqlStore.answer")(
        function* (question, deduplicate) {
          const { sql, tenantId } = question
          const read = yield* Effect.try({
            try: () => readStatement(sql, sqlTableNames),
            catch: (cause) => cause as SqlRefused
          })
          const statement = read.text(viewDefinitions(read.views, store, tenantId, deduplicate))
          if (question.format === "parquet") return yield* parquet(store, statement)
          const json = yield* store.answer(OPERATION, () => statement, "JSONCompact", SETTINGS)
          const written = yield* inSlices(() => writtenAnswer(json, question))
          return written instanceof SqlRefused ? yield* written : written
        },
        (answer, { sql }) =>
          Effect.mapError(answer, (error) =>
            error instanceof SqlRefused ? error : failed(error, sql)
          )
      ),
      events: Effect.fn("SqlStore.events")(
        function* (query, deduplicate) {
          const statement = eventTable(store, query, deduplicate)
          const bytes = yield* store.answer(OPERATION, statement, TABLES[query.format], SETTINGS)
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
