/**
 * Statements on the store as effects: each with a limit on its time, and every failure a
 * `StoreUnavailable` that names the operation. Knows how to ask and to insert, not what.
 */
import { Readable } from "node:stream"
import type { ClickHouseClient, ClickHouseSettings } from "@clickhouse/client"
import { Duration, Effect, Schedule } from "effect"
import { inSlices } from "../../../domain/InSlices.ts"
import {
  INSERT_BYTES_MAX,
  INSERT_ROWS_MAX,
  type StoreResult,
  StoreUnavailable
} from "../../../ports/EventStore.ts"
import type { ClickHouseConnection } from "./ClickHouseConnection.ts"
import { Parameters, type Statement } from "./Parameters.ts"
import { RAW_ROWS } from "./RawRows.ts"
import { type RowBinary, readRows } from "./RowBinary.ts"

/** A block holds the strings of the bodies twice: as they are, and to be searched. */
const BLOCK_BYTES_MAX = 2 * INSERT_BYTES_MAX
/** Bytes of a row beside its body at most, for rows that fill an insert. */
const ROW_FRAME_BYTES_MAX = 256

/** Seconds until a statement that reads is given up, by the store and by us. */
const READ_SECONDS_MAX = 30
/** Seconds until an insert of at most 64 MiB is given up. */
const INSERT_SECONDS_MAX = 60
/**
 * ClickHouse's exception codes of an insert that was refused for want of memory, or because too
 * much is going on: nothing of it is stored, and a moment later there may be room.
 */
const NO_ROOM = new Set(["241", "202"])
/**
 * Time that such an insert is tried again, from 100 ms on: then the insert fails. Short
 * beside the time of an insert, after which the projection takes it for ended, see settleMs.
 */
const NO_ROOM_SCHEDULE = Schedule.exponential("100 millis").pipe(Schedule.upTo({ times: 6 }))
/** Time between two looks at a change of stored rows. */
const MUTATION_POLL = Schedule.spaced("250 millis")
/** Seconds until a change of the schema, or the removal of a partition, is given up. */
const CHANGE_SECONDS_MAX = 600
/** Characters from which a statement may be longer than ClickHouse takes by default (256 KiB). */
const LONG_QUERY_LENGTH = 65_536
/** Bytes of a statement at most: lists of ids. */
const LONG_QUERY_SETTINGS: ClickHouseSettings = { max_query_size: String(16 * 1_048_576) }
/**
 * Bytes of the store's memory that a statement may take: one that reads too much fails alone, long
 * before inserts and other reads are refused for want of memory.
 */
const READ_MEMORY_MAX = 4_294_967_296
const READ_LIMITS = `max_memory_usage = ${READ_MEMORY_MAX}`
/** The same for one that reads payloads, which come in pieces of a few MiB. */
const BULK_MEMORY_MAX = 536_870_912
/** Threads of such a statement: each holds blocks of payloads. */
const BULK_THREADS_MAX = 2
const BULK_LIMITS = `max_memory_usage = ${BULK_MEMORY_MAX}, max_threads = ${BULK_THREADS_MAX}`
/** Above 0, which is everything else: after it on the embedded engine, see ChdbEngine. */
const BULK_PRIORITY: ClickHouseSettings = { priority: "10" }
/** What the store gets to report its own timeout before we do. */
const GRACE_SECONDS = 5

/**
 * Stored before acknowledged, as one block, every row of it: a block that looks like an earlier one
 * is a rebuild, not a retry, and rows that look alike are for FINAL to merge.
 */
const INSERT_SETTINGS: ClickHouseSettings = {
  async_insert: 0,
  insert_deduplicate: 0,
  optimize_on_insert: 0,
  max_insert_block_size: "1048576",
  min_insert_block_size_rows: "1048576",
  min_insert_block_size_bytes: "0",
  input_format_parallel_parsing: 0,
  max_execution_time: INSERT_SECONDS_MAX
}

/**
 * A block stays one on its way through the `SELECT`. It gets no indexes before it is merged: merges
 * write them anew anyway, and to look through the few blocks that are not merged yet costs less.
 */
const BLOCK_SETTINGS: ClickHouseSettings = {
  max_threads: 1,
  max_insert_threads: "1",
  materialize_skip_indexes_on_insert: 0
}

/** Rows and bytes of a block of an `INSERT … SELECT`: it may be broken off between two of them. */
const COPY_SETTINGS: ClickHouseSettings = {
  min_insert_block_size_rows: "65536",
  min_insert_block_size_bytes: String(INSERT_BYTES_MAX),
  max_execution_time: CHANGE_SECONDS_MAX
}

/** With several replicas: a majority has each insert before it counts, and reads wait for it. */
const QUORUM_SETTINGS: ClickHouseSettings = { insert_quorum: "auto", insert_quorum_parallel: 0 }

export interface ReadOptions {
  /** Settings of this statement beside those that all reads have, as SQL. */
  readonly settings?: string
  /** Reads payloads, of one answer among many: the embedded engine keeps room beside such reads. */
  readonly isBulk?: boolean
}

interface NewRows {
  readonly operation: string
  readonly table: string
  readonly columns: readonly [string, ...Array<string>]
  readonly rows: number
  readonly bytes: () => Buffer
}

/** Rows as text. */
export interface Insertion extends NewRows {
  /** CSV with the settings of RAW_ROWS. */
  readonly format: "CSV" | "TabSeparated"
}

/** Rows as a block of ClickHouse's Native format. */
export interface BlockInsertion extends NewRows {
  /** Columns of the block and their types. */
  readonly structure: string
  /** What of them goes into each of `columns`. */
  readonly values: ReadonlyArray<string>
}

/** ClickHouse has refused an insert; says nothing of what it quotes: that may be a body. */
class InsertRefused extends Error {
  readonly code: string

  constructor(type: string, code: string) {
    super(`ClickHouse refused: ${type} (code ${code})`)
    this.code = code
  }
}

const withoutQuotes = (cause: unknown): unknown => {
  const { code, type } = cause as { readonly code?: unknown; readonly type?: unknown }
  return typeof type === "string" ? new InsertRefused(type, String(code)) : cause
}

const hasNoRoom = ({ cause }: StoreUnavailable): boolean =>
  cause instanceof InsertRefused && NO_ROOM.has(cause.code)

/** The store has closed a connection that was idle, just as the request went out on it. */
const isReset = ({ cause }: StoreUnavailable): boolean =>
  (cause as { readonly code?: unknown } | undefined)?.code === "ECONNRESET"

const attempt = <A>(operation: string, run: (signal: AbortSignal) => Promise<A>): StoreResult<A> =>
  Effect.tryPromise({ try: run, catch: (cause) => new StoreUnavailable({ operation, cause }) })

const within = <A>(
  operation: string,
  secondsMax: number,
  result: StoreResult<A>
): StoreResult<A> => {
  const seconds = secondsMax + GRACE_SECONDS
  return result.pipe(
    Effect.timeoutOrElse({
      duration: Duration.seconds(seconds),
      orElse: () => {
        const cause = new Error(`no answer within ${seconds} s`)
        return Effect.fail(new StoreUnavailable({ operation, cause }))
      }
    })
  )
}

const collect = async (stream: AsyncIterable<Buffer>): Promise<Buffer> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of stream) chunks.push(chunk)
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
}

/** Asks and changes one store; its tables by their names in statements. */
export class StoreClient {
  readonly events: string
  readonly receipts: string
  readonly conflicts: string
  readonly facts: string
  readonly factConflicts: string
  readonly spanIds: string
  readonly setAside: string
  readonly subtrees: string
  readonly checkpoints: string
  readonly #client: ClickHouseClient
  readonly #isEmbedded: boolean
  readonly #isReplicated: boolean

  constructor({ client, embedded, place }: ClickHouseConnection["Service"]) {
    const table = (name: string) => `${place.database}.${name}`
    this.events = table("events")
    this.receipts = table("receipts")
    this.conflicts = table("conflicts")
    this.facts = table("facts")
    this.factConflicts = table("fact_conflicts")
    this.spanIds = table("span_ids")
    this.setAside = table("set_aside")
    this.subtrees = table("subtrees")
    this.checkpoints = table("checkpoints")
    this.#client = client
    this.#isEmbedded = embedded
    this.#isReplicated = place.cluster !== undefined
  }

  /** The events, merged while reading if need be. */
  eventsOf(deduplicate: boolean): string {
    return `${this.events}${deduplicate ? " FINAL" : ""}`
  }

  read<A>(
    operation: string,
    statement: Statement,
    row: (reader: RowBinary) => A,
    { isBulk = false, settings }: ReadOptions = {}
  ): StoreResult<ReadonlyArray<A>> {
    const bind = new Parameters()
    const sql = statement(bind)
    const all = [
      `max_execution_time = ${READ_SECONDS_MAX}`,
      ...(this.#isReplicated ? ["select_sequential_consistency = 1"] : []),
      isBulk ? BULK_LIMITS : READ_LIMITS,
      ...(settings === undefined ? [] : [settings])
    ].join(", ")
    const ask = attempt(operation, async (signal) => {
      const answer = await this.#client.exec({
        query: `${sql} SETTINGS ${all} FORMAT RowBinary`,
        query_params: bind.values,
        clickhouse_settings: {
          ...(sql.length < LONG_QUERY_LENGTH ? undefined : LONG_QUERY_SETTINGS),
          ...(isBulk ? BULK_PRIORITY : undefined)
        },
        abort_signal: signal
      })
      // An empty body means "no rows" only if a ClickHouse says so, not some proxy before it.
      if (answer.summary === undefined) throw new Error("an answer without X-ClickHouse-Summary")
      return collect(answer.stream)
    })
    const rows = Effect.retry(ask, { times: 1, while: isReset }).pipe(
      Effect.flatMap((bytes) => inSlices(() => readRows(bytes, row))),
      Effect.catchDefect((cause) => Effect.fail(new StoreUnavailable({ operation, cause })))
    )
    return within(operation, READ_SECONDS_MAX, rows)
  }

  /** The first row, if there is any. */
  readFirst<A>(
    operation: string,
    statement: Statement,
    row: (reader: RowBinary) => A
  ): StoreResult<A | undefined> {
    return Effect.map(this.read(operation, statement, row), ([first]) => first)
  }

  /** The one row that an aggregate has always. */
  readOne<A>(
    operation: string,
    statement: Statement,
    row: (reader: RowBinary) => A,
    options?: ReadOptions
  ): StoreResult<A> {
    return Effect.flatMap(this.read(operation, statement, row, options), (rows) => {
      if (rows.length === 1) return Effect.succeed(rows[0]!)
      const cause = new Error(`${rows.length} rows where there is one`)
      return Effect.fail(new StoreUnavailable({ operation, cause }))
    })
  }

  /** The whole answer to a statement in a format of ClickHouse; a bulk read. */
  answer(
    operation: string,
    statement: Statement,
    format: string,
    settings: ClickHouseSettings
  ): StoreResult<Buffer> {
    const bind = new Parameters()
    const sql = statement(bind)
    const ask = attempt(operation, async (signal) => {
      const answer = await this.#client.exec({
        query: `${sql} FORMAT ${format}`,
        query_params: bind.values,
        clickhouse_settings: {
          max_execution_time: READ_SECONDS_MAX,
          ...settings,
          ...(this.#isReplicated ? { select_sequential_consistency: "1" as const } : undefined),
          ...BULK_PRIORITY
        },
        abort_signal: signal
      })
      return collect(answer.stream)
    })
    return within(operation, READ_SECONDS_MAX, Effect.retry(ask, { times: 1, while: isReset }))
  }

  insert(insertion: Insertion | BlockInsertion): StoreResult<void> {
    const { operation, rows } = insertion
    if (rows === 0) return Effect.void
    if (rows > INSERT_ROWS_MAX) return Effect.die(new RangeError(`${operation}: ${rows} rows`))
    const result = attempt(operation, (signal) => this.#insert(insertion, signal)).pipe(
      Effect.retry({ while: hasNoRoom, schedule: NO_ROOM_SCHEDULE })
    )
    return this.#written(operation, INSERT_SECONDS_MAX, result)
  }

  change(operation: string, statement: Statement): StoreResult<void> {
    return this.#command(operation, statement, {})
  }

  /** Rows that meet a condition, gone when this returns. */
  remove(operation: string, table: string, condition: Statement): StoreResult<void> {
    return this.change(
      operation,
      (bind) => `ALTER TABLE ${table} DELETE WHERE ${condition(bind)} SETTINGS mutations_sync = 2`
    )
  }

  /**
   * A change of stored rows in the background, `what` after `ALTER TABLE …`: the statement comes back
   * at once, so that inserts go on meanwhile, and this when the change is done. ClickHouse tries a
   * change that fails again and again, so there is no failure of it here.
   */
  mutate(operation: string, table: string, what: Statement): StoreResult<void> {
    const done = this.readOne(
      operation,
      (bind) => {
        const [database = "", name = ""] = table.split(".")
        return (
          "SELECT countIf(NOT is_done)"
          + ` FROM system.mutations WHERE database = ${bind.string(database)}`
          + ` AND table = ${bind.string(name)} AND NOT is_killed`
        )
      },
      (row) => row.uint64()
    )
    return this.change(
      operation,
      (bind) => `ALTER TABLE ${table} ${what(bind)} SETTINGS mutations_sync = 0, alter_sync = 0`
    ).pipe(
      Effect.andThen(Effect.repeat(done, { until: (left) => left === 0, schedule: MUTATION_POLL })),
      Effect.asVoid
    )
  }

  /** An `INSERT … SELECT`: rows of one table that go into another one, or into the same. */
  copy(operation: string, statement: Statement): StoreResult<void> {
    return this.#command(operation, statement, {
      ...INSERT_SETTINGS,
      ...COPY_SETTINGS,
      ...(this.#isReplicated
        ? { ...QUORUM_SETTINGS, select_sequential_consistency: "1" as const }
        : undefined)
    })
  }

  /** A change of many statements. */
  changeBy<A>(operation: string, run: () => Promise<A>): StoreResult<A> {
    return this.#written(operation, CHANGE_SECONDS_MAX, attempt(operation, run))
  }

  #command(
    operation: string,
    statement: Statement,
    settings: ClickHouseSettings
  ): StoreResult<void> {
    const bind = new Parameters()
    const query = statement(bind)
    const command = attempt(operation, (signal) =>
      this.#client.command({
        query,
        query_params: bind.values,
        clickhouse_settings: settings,
        abort_signal: signal
      })
    )
    return this.#written(operation, CHANGE_SECONDS_MAX, Effect.asVoid(command))
  }

  /**
   * A write that is given up may still happen: on a server for as long as it is allowed to take, in
   * this process at any later time. So here it is never given up.
   */
  #written<A>(operation: string, secondsMax: number, result: StoreResult<A>): StoreResult<A> {
    return this.#isEmbedded ? Effect.uninterruptible(result) : within(operation, secondsMax, result)
  }

  async #insert(insertion: Insertion | BlockInsertion, signal: AbortSignal): Promise<void> {
    const { bytes, operation, rows } = insertion
    const piece = bytes()
    const most = "structure" in insertion ? BLOCK_BYTES_MAX : INSERT_BYTES_MAX
    if (piece.length > most + rows * ROW_FRAME_BYTES_MAX) {
      throw new RangeError(`${operation}: ${piece.length} bytes in one insert`)
    }
    const result = await this.#send(insertion, piece, signal).catch((cause: unknown) => {
      throw withoutQuotes(cause)
    })
    const stored = Number(result.summary?.written_rows)
    if (stored !== rows) throw new Error(`${rows} rows were given, ${stored} were stored`)
  }

  async #send(insertion: Insertion | BlockInsertion, piece: Buffer, signal: AbortSignal) {
    const { columns, table } = insertion
    const request = {
      values: Readable.from([piece], { objectMode: false }),
      abort_signal: signal,
      clickhouse_settings: {
        ...INSERT_SETTINGS,
        ...(this.#isReplicated ? QUORUM_SETTINGS : undefined)
      }
    }
    if ("structure" in insertion) {
      const structure = insertion.structure.replaceAll("'", "\\'")
      const query =
        `INSERT INTO ${table} (${columns.join(", ")}) SELECT ${insertion.values.join(", ")}`
        + ` FROM input('${structure}') FORMAT Native`
      const clickhouse_settings = {
        ...request.clickhouse_settings,
        ...BLOCK_SETTINGS
      }
      const answer = await this.#client.exec({ ...request, query, clickhouse_settings })
      await collect(answer.stream)
      return answer
    }
    const { format } = insertion
    const clickhouse_settings = {
      ...request.clickhouse_settings,
      ...(format === "CSV" ? RAW_ROWS : undefined)
    }
    return this.#client.insert({
      ...request,
      table,
      columns: [...columns],
      format,
      clickhouse_settings
    })
  }
}
