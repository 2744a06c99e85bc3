/** Serves read-only SQL: reads the request and hands it on. The store decides what may be asked. */
import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { ProjectionProgress } from "../../actors/log/ProjectionProgress.ts"
import { defined } from "../../domain/Defined.ts"
import { allowedFunctions } from "../../domain/sql/SqlFunctions.ts"
import { sqlTableNames, sqlTables, sqlTableTexts } from "../../domain/sql/SqlTables.ts"
import {
  SQL_AT_ONCE_MAX,
  SQL_BYTES_MAX,
  SQL_LENGTH_MAX,
  SQL_MEMORY_MAX,
  SQL_ROWS_MAX,
  SQL_SECONDS_MAX,
  type SqlColumn,
  type SqlFormat,
  SqlStore
} from "../../ports/SqlStore.ts"
import { Api } from "../Api.ts"
import { bodyOf } from "../contract/Bodies.ts"
import { negotiated } from "../messages/Answer.ts"
import { invalid, refusable } from "../messages/ApiError.ts"
import { CSV_TYPE, JSON_TYPE, NDJSON_TYPE, PARQUET_TYPE } from "../messages/MediaTypes.ts"
import { readBody } from "../messages/RequestBody.ts"
import { readableView } from "../messages/StoreView.ts"
import { tenantSlots } from "../messages/TenantSlots.ts"
import { CurrentPrincipal } from "../server/Authorization.ts"
import { COLUMNS_HEADER, SqlInput, sqlTypes } from "./SqlContract.ts"

/** Bytes of a body at most: a statement of the longest characters, each escaped. */
const BODY_BYTES_MAX = 12 * SQL_LENGTH_MAX

const readStatement = bodyOf(SqlInput, "a statement")

const types: Readonly<Record<SqlFormat, (typeof sqlTypes)[number]>> = {
  json: JSON_TYPE,
  ndjson: NDJSON_TYPE,
  csv: CSV_TYPE,
  parquet: PARQUET_TYPE
}

const formatOf = (type: (typeof sqlTypes)[number]): SqlFormat =>
  (Object.keys(types) as ReadonlyArray<SqlFormat>).find((format) => types[format] === type)!

const contentTypes: Readonly<Record<SqlFormat, string>> = {
  ...types,
  csv: `${CSV_TYPE}; charset=utf-8; header=present`
}

const documentation = {
  tables: sqlTableNames.map((name) => ({
    name,
    description: sqlTableTexts[name],
    columns: Object.entries(sqlTables[name]).map(([column, [type, description]]) => ({
      name: column,
      type,
      description
    }))
  })),
  functions: allowedFunctions,
  limits: {
    rows_max: SQL_ROWS_MAX,
    bytes_max: SQL_BYTES_MAX,
    seconds_max: SQL_SECONDS_MAX,
    memory_bytes_max: SQL_MEMORY_MAX,
    query_length_max: SQL_LENGTH_MAX,
    at_once_max: SQL_AT_ONCE_MAX
  }
}

const BOM_OF_CSV = 'is for CSV only: add "format": "csv"'

/** Bytes of the header at most: some servers take no longer ones. */
const COLUMNS_HEADER_BYTES_MAX = 4_096

/** The columns with their types as ASCII; none where that would be too long. */
const columnsHeader = (columns: ReadonlyArray<SqlColumn>): Record<string, string> => {
  const text = JSON.stringify(columns).replace(
    /[\x7f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`
  )
  return text.length > COLUMNS_HEADER_BYTES_MAX ? {} : { [COLUMNS_HEADER]: text }
}

/** The handlers of SqlApi. */
export const layerSqlHandlers = HttpApiBuilder.group(
  Api,
  "SQL",
  Effect.fnUntraced(function* (handlers) {
    const store = yield* SqlStore
    const projection = yield* ProjectionProgress
    const takeSlot = tenantSlots("statements", SQL_AT_ONCE_MAX)

    return handlers
      .handleRaw(
        "runSql",
        Effect.fnUntraced(function* ({ request }) {
          const { tenantId } = yield* CurrentPrincipal
          const { bytes } = yield* readBody(request, [JSON_TYPE], BODY_BYTES_MAX)
          const { bom, format: given, query: sql } = yield* refusable(() => readStatement(bytes))
          const format = given ?? formatOf(yield* negotiated(request, sqlTypes, "rows come"))
          if (bom === true && format !== "csv") return yield* invalid("bom", BOM_OF_CSV)
          const { deduplicate } = yield* readableView(projection, tenantId)
          yield* takeSlot(tenantId)
          const { bytes: answer, columns } = yield* store
            .answer({ tenantId, sql, format, ...defined({ bom: bom ?? undefined }) }, deduplicate)
            .pipe(Effect.catchTag("SqlRefused", ({ message }) => invalid("query", message)))
          const options = { contentType: contentTypes[format], headers: columnsHeader(columns) }
          return HttpServerResponse.uint8Array(answer, options)
        })
      )
      .handle("listSqlTables", () => Effect.succeed(documentation))
  })
)
