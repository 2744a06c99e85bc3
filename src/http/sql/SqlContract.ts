/**
 * The routes of read-only SQL: a statement, and the tables that it may ask. Says nothing of how it is
 * run.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { natural, text } from "../../domain/Forms.ts"
import {
  SQL_BYTES_MAX,
  SQL_LENGTH_MAX,
  SQL_MEMORY_MAX,
  SQL_ROWS_MAX,
  SQL_SECONDS_MAX,
  sqlFormats
} from "../../ports/SqlStore.ts"
import { mustBe, optionalInput, textInput } from "../contract/Bodies.ts"
import { errorsOf } from "../contract/ContractErrors.ts"
import { operation } from "../contract/Operation.ts"
import { queryOf } from "../contract/Requests.ts"
import { bomOfTables } from "../events/QueryContract.ts"
import { CSV_TYPE, JSON_TYPE, NDJSON_TYPE, PARQUET_TYPE } from "../messages/MediaTypes.ts"
import { Authorization } from "../server/Authorization.ts"

/** Names and types of the columns, for the formats that say none. */
export const COLUMNS_HEADER = "X-Columns"

/** What the formats are as media types, the default first. */
export const sqlTypes = [JSON_TYPE, NDJSON_TYPE, CSV_TYPE, PARQUET_TYPE] as const

const MIB = 1_048_576
const exampleQuery =
  "SELECT action, count() AS events FROM events WHERE outcome = 'failure' GROUP BY action"

export const SqlInput = Schema.Struct({
  query: textInput(
    SQL_LENGTH_MAX,
    "One SELECT in ClickHouse's SQL over the tables of `GET /v1/sql/tables`."
  ),
  format: optionalInput(
    mustBe(`one of ${sqlFormats.join(", ")}`, Schema.Literals(sqlFormats)).annotate({
      description: "Form of the answer; wins over `Accept`, which is asked otherwise."
    })
  ),
  bom: optionalInput(mustBe("true or false", Schema.Boolean)).annotateKey({
    description: bomOfTables
  })
}).annotate({ identifier: "SqlInput", examples: [{ query: exampleQuery, format: "json" }] })

const row = Schema.Record(Schema.String, Schema.Json)

const SqlAnswer = Schema.Struct({
  meta: Schema.Array(
    Schema.Struct({ name: Schema.String, type: text("Type of ClickHouse.") })
  ).annotate({ description: "The columns." }),
  data: Schema.Array(row).annotate({
    description:
      "The rows. Times are ISO 8601 in UTC; NaN and infinities are texts, and so are integers beyond "
      + "2^53 in columns of 64 bits and more."
  }),
  rows: natural("How many rows there are."),
  totals: Schema.optionalKey(row.annotate({ description: "What WITH TOTALS asks for." })),
  rows_before_limit_at_least: Schema.optionalKey(
    natural("Rows without LIMIT, at least; only with LIMIT.")
  )
}).annotate({
  identifier: "SqlAnswer",
  description: "The members of ClickHouse's format JSON.",
  examples: [
    {
      meta: [
        { name: "action", type: "String" },
        { name: "events", type: "UInt64" }
      ],
      data: [{ action: "document.read", events: 17 }],
      rows: 1
    }
  ]
})

const lines = Schema.String.annotate({
  description: "One row a line, as a JSON object; the values are those of JSON."
}).pipe(HttpApiSchema.asText({ contentType: NDJSON_TYPE }))
const table = Schema.String.annotate({
  description:
    "RFC 4180, with a header. NULL is empty; a text that a spreadsheet would take for a formula has a "
    + "leading '. Without totals."
}).pipe(HttpApiSchema.asText({ contentType: CSV_TYPE }))
const parquet = Schema.Uint8Array.annotate({ description: "Apache Parquet." }).pipe(
  HttpApiSchema.asUint8Array({ contentType: PARQUET_TYPE })
)

const runSql = HttpApiEndpoint.post("runSql", "/v1/sql", {
  query: queryOf({}),
  payload: SqlInput,
  success: [SqlAnswer, lines, table, parquet],
  error: errorsOf("object", 400, 401, 403, 406, 413, 415, 429, 503)
}).pipe(
  operation({
    scopes: ["read"],
    summary: "Ask by SQL",
    description:
      "Runs one SELECT over views of the key's own tenant. Nothing else can be read, and nothing "
      + "written: other tables, table functions, settings and functions that are not in the list of "
      + "`GET /v1/sql/tables` are refused with 400, as is what ClickHouse can't run. An answer has at "
      + `most ${SQL_ROWS_MAX.toLocaleString("en-US")} rows and ${SQL_BYTES_MAX / MIB} MiB, takes at most `
      + `${SQL_SECONDS_MAX} s and ${SQL_MEMORY_MAX / MIB} MiB of memory; above, it is refused as a whole. `
      + "Two columns of one name are refused too: AS gives one of them another.",
    responseHeaders: {
      200: {
        [COLUMNS_HEADER]:
          "Names and types of the columns, as `meta` of JSON; left out above 4 KiB of them."
      }
    }
  })
)

const SqlTables = Schema.Struct({
  tables: Schema.Array(
    Schema.Struct({
      name: Schema.String,
      description: Schema.String,
      columns: Schema.Array(
        Schema.Struct({
          name: Schema.String,
          type: text("Type of ClickHouse."),
          description: Schema.String
        })
      )
    })
  ),
  functions: Schema.Array(Schema.String).annotate({
    description:
      "What a statement may call, in any case. Aggregates also with -If, -Array, -Distinct, -OrNull, "
      + "-OrDefault and -Map."
  }),
  limits: Schema.Struct({
    rows_max: natural("Rows of an answer."),
    bytes_max: natural("Bytes of an answer."),
    seconds_max: natural("Seconds that a statement may take."),
    memory_bytes_max: natural("Bytes of memory that a statement may take."),
    query_length_max: natural("Characters of a statement."),
    at_once_max: natural("Statements of a tenant that run at once, in each process with an API.")
  })
}).annotate({ identifier: "SqlTables" })

const listSqlTables = HttpApiEndpoint.get("listSqlTables", "/v1/sql/tables", {
  query: queryOf({}),
  success: SqlTables,
  error: errorsOf("object", 400, 401, 403, 503)
}).pipe(
  operation({
    scopes: ["read"],
    summary: "Tables and functions of SQL",
    description: "The tables with their columns, the functions that may be called, and the limits."
  })
)

/** The routes of the tag SQL. */
export class SqlApi extends HttpApiGroup.make("SQL")
  .add(runSql, listSqlTables)
  .middleware(Authorization)
  .annotateMerge(OpenApi.annotations({ description: "Read-only SQL over one's own data." })) {}
