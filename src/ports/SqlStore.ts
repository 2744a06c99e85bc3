/** Read-only SQL of clients over what the store holds of one tenant. */
import { Context, type Effect, Schema } from "effect"
import type { ListedField } from "../domain/events/EventFields.ts"
import type { EventListQuery, StoreUnavailable } from "./EventStore.ts"

export const sqlFormats = ["json", "ndjson", "csv", "parquet"] as const
export type SqlFormat = (typeof sqlFormats)[number]

/** Rows of an answer at most. */
export const SQL_ROWS_MAX = 100_000
/** Bytes of an answer at most, before it is written in its format. */
export const SQL_BYTES_MAX = 64 * 1_048_576
/** Seconds that a statement may take. */
export const SQL_SECONDS_MAX = 10
/** Bytes of memory that a statement may take. */
export const SQL_MEMORY_MAX = 1_073_741_824
/** Statements of a tenant at once, in each process with an API, so that others get their turn. */
export const SQL_AT_ONCE_MAX = 2
/** Characters of a statement at most. */
export const SQL_LENGTH_MAX = 20_000

/** The statement can't be run: why, in words for its author. */
export class SqlRefused extends Schema.TaggedError<SqlRefused>()("SqlRefused", {
  message: Schema.String
}) {}

/** What an answer is written as. */
export interface SqlForm {
  readonly format: SqlFormat
  /** Of CSV: it begins with a byte order mark. */
  readonly bom?: boolean
}

export interface SqlQuestion extends SqlForm {
  readonly tenantId: string
  readonly sql: string
}

export interface SqlColumn {
  readonly name: string
  /** Of ClickHouse. */
  readonly type: string
}

export interface SqlAnswer {
  readonly bytes: Buffer
  readonly columns: ReadonlyArray<SqlColumn>
}

/** Events as a table. */
export interface EventTableQuery extends EventListQuery {
  readonly fields: ReadonlyArray<ListedField>
  readonly format: "parquet" | "ndjson"
}

export class SqlStore extends Context.Service<
  SqlStore,
  {
    /**
     * The whole answer in its format: in JSON and NDJSON integers beyond 2^53 are texts, CSV is as
     * that of events. `deduplicate` as in EventStore.
     * @error SqlRefused for a statement that may not run, or that ClickHouse can't, and for two
     * columns of one name
     */
    answer(
      question: SqlQuestion,
      deduplicate: boolean
    ): Effect.Effect<SqlAnswer, SqlRefused | StoreUnavailable>
    /**
     * All events of a list as one table in a format, within the limits of statements; `metadata` as
     * its JSON text, what is at a path of it as a text.
     * @error SqlRefused for more than an answer may hold
     */
    events(
      query: EventTableQuery,
      deduplicate: boolean
    ): Effect.Effect<Buffer, SqlRefused | StoreUnavailable>
  }
>()("alk/SqlStore") {}
