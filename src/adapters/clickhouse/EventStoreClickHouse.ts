/**
 * The query store on ClickHouse, a server's or the engine in this process. Turns the port's questions
 * into statements with bound parameters, and rows into the stored bytes. Decides nothing: what is
 * stored comes from the topics.
 */
import { Duration, Effect, Layer, Option, Stream } from "effect"
import { Readable } from "node:stream"
import {
  EventStore,
  StatsTooLarge,
  StoreUnavailable,
  type ConflictRow,
  type EventPageQuery,
  type EventRow,
  type ReceiptRow,
  type SequenceSpan,
  type StatsDimension,
  type StatsQuery,
  type StoredPosition,
  type StoredRow
} from "../../ports/EventStore.ts"
import { ClickHouseConnection } from "./ClickHouseConnection.ts"
import { disagreement } from "./EventColumns.ts"
import { filterCondition, isUnfiltered, Parameters } from "./EventFilterSql.ts"
import { migrate } from "./Migrations.ts"
import { RowBinary, readRows } from "./RowBinary.ts"

/** Rows and bytes of one insert at most: it has to be one block, and chDB takes it as one piece. */
export const INSERT_ROWS_MAX = 50_000
export const INSERT_BYTES_MAX = 64 * 1_048_576

/** Seconds until a statement that reads is given up, by the store and by us. */
const READ_SECONDS_MAX = 30
/** Seconds until an insert of at most 64 MiB is given up. */
const INSERT_SECONDS_MAX = 60
/** Seconds until a change of the schema, or the removal of a partition, is given up. */
const CHANGE_SECONDS_MAX = 600
/** What the store gets to report its own timeout before we do. */
const GRACE_SECONDS = 5

/** Rows and bytes of one chunk of a scan at most (one row may be larger). */
const SCAN_ROWS_MAX = 5_000
const SCAN_BYTES_MAX = 8 * 1_048_576
/** Offsets that are looked through for duplicates at a time: 16 bytes of memory for each. */
const DUPLICATES_WINDOW = 4_000_000
/** Up to this end (offset and limit) a filtered page is found together with its total. */
const FOUND_PAGE_END_MAX = 2_000
/** Buckets of one answer at most. */
const BUCKETS_MAX = 100_000

/**
 * Fields end with U+0001 and rows with a line feed, neither of which can stand in JSON, and nothing
 * is quoted or escaped: the bytes go through as they are. (TabSeparatedRaw would do the same, but
 * chDB takes that format only as a decoded string, at ten times the cost.)
 */
const SEPARATOR = 1
const LINE_FEED = 10
const RAW_ROWS = {
  format_csv_delimiter: "\x01",
  format_csv_allow_single_quotes: 0,
  format_csv_allow_double_quotes: 0,
  input_format_csv_trim_whitespaces: 0,
  input_format_csv_empty_as_default: 0
} as const

/**
 * Stored before acknowledged, as one block, every row of it: a block that looks like an earlier one
 * is a rebuild, not a retry, and rows that look alike are for FINAL to merge.
 */
const INSERT_SETTINGS = {
  async_insert: 0,
  insert_deduplicate: 0,
  optimize_on_insert: 0,
  max_insert_block_size: "1048576",
  min_insert_block_size_rows: "1048576",
  min_insert_block_size_bytes: "0",
  input_format_parallel_parsing: 0,
  max_execution_time: INSERT_SECONDS_MAX
} as const

/** With several replicas: a majority has each insert before it counts, and reads wait for it. */
const QUORUM_SETTINGS = { insert_quorum: "auto", insert_quorum_parallel: 0 } as const

const MICROSECONDS: Record<NonNullable<StatsQuery["interval"]>, number> = {
  minute: 60_000_000,
  hour: 3_600_000_000,
  day: 86_400_000_000
}

const DIMENSIONS: Record<StatsDimension, string> = {
  action: "action",
  outcome: "outcome",
  actor_type: "actor_type",
  actor_id: "actor_id",
  resource_type: "resource_type",
  resource_id: "resource_id"
}

/** The rows of an insert as one piece of memory. */
const rawRows = (
  rows: ReadonlyArray<{ readonly body: Buffer }>,
  prefixes: ReadonlyArray<string>
): Buffer => {
  let length = 0
  for (const [index, row] of rows.entries()) {
    length += Buffer.byteLength(prefixes[index]!) + row.body.length + 1
  }
  const bytes = Buffer.allocUnsafe(length)
  let at = 0
  for (const [index, { body }] of rows.entries()) {
    if (body.includes(LINE_FEED) || body.includes(SEPARATOR)) {
      throw new Error(`a body with a control character is no JSON: ${prefixes[index]!.split("\x01")}`)
    }
    at += bytes.write(prefixes[index]!, at, "utf8")
    at += body.copy(bytes, at)
    bytes[at++] = LINE_FEED
  }
  return bytes
}

const TAB_SEPARATED_ESCAPES: Record<string, string> = {
  "\\": "\\\\",
  "\t": "\\t",
  "\n": "\\n",
  "\r": "\\r",
  "\0": "\\0"
}

/** Any bytes at all as a field of TabSeparated. */
const escapedField = (bytes: Buffer): Buffer =>
  Buffer.from(
    bytes.toString("latin1").replace(/[\\\t\n\r\0]/g, (mark) => TAB_SEPARATED_ESCAPES[mark]!),
    "latin1"
  )

const conflictRows = (rows: ReadonlyArray<ConflictRow>): Buffer =>
  Buffer.concat(rows.flatMap((row) => {
    const fields = [
      Buffer.from(`${row.partition}\t${row.offset}\t${row.tenantId}\t${row.sequenceNumber}\t`),
      escapedField(Buffer.from(row.reason, "utf8")),
      Buffer.from("\t"),
      escapedField(row.body),
      Buffer.from("\n")
    ]
    return fields
  }))

/** What a client's error says without what it quotes: that may be a body. */
const withoutQuotes = (cause: unknown): unknown => {
  const { code, type } = cause as { readonly code?: unknown; readonly type?: unknown }
  return typeof type === "string" ? new Error(`ClickHouse refused: ${type} (code ${code})`) : cause
}

interface Insert {
  readonly operation: string
  readonly table: string
  readonly columns: readonly [string, ...Array<string>]
  readonly format: "CSV" | "TabSeparated"
  readonly rows: number
  readonly bytes: () => Buffer
}

interface Read {
  readonly operation: string
  readonly sql: string
  readonly parameters?: Parameters
}

const canonicalTime = (microseconds: number): string =>
  `${new Date(microseconds / 1000).toISOString().slice(0, 19)}.000000Z`

const make = Effect.gen(function*() {
  const { client, place } = yield* ClickHouseConnection
  const events = `${place.database}.events`
  const receipts = `${place.database}.receipts`
  const conflictsTable = `${place.database}.conflicts`
  const replicated = place.cluster !== undefined
  const eventsOf = (final: boolean) => `${events}${final ? " FINAL" : ""}`

  const attempt = <A>(
    operation: string,
    secondsMax: number,
    run: (signal: AbortSignal) => Promise<A>
  ): Effect.Effect<A, StoreUnavailable> =>
    Effect.tryPromise({
      try: run,
      catch: (cause) => new StoreUnavailable({ operation, cause })
    }).pipe(
      Effect.timeoutOrElse({
        duration: Duration.seconds(secondsMax + GRACE_SECONDS),
        orElse: () =>
          Effect.fail(
            new StoreUnavailable({
              operation,
              cause: new Error(`no answer within ${secondsMax + GRACE_SECONDS} s`)
            })
          )
      })
    )

  const read = <A>(
    { operation, parameters, sql }: Read,
    row: (reader: RowBinary) => A
  ): Effect.Effect<ReadonlyArray<A>, StoreUnavailable> =>
    attempt(operation, READ_SECONDS_MAX, async (signal) => {
      const answer = await client.exec({
        query: `${sql} SETTINGS max_execution_time = ${READ_SECONDS_MAX}${
          replicated ? ", select_sequential_consistency = 1" : ""
        } FORMAT RowBinary`,
        query_params: parameters?.values ?? {},
        abort_signal: signal
      })
      // An empty body means "no rows" only if a ClickHouse says so, not some proxy before it.
      if (answer.summary === undefined) throw new Error("an answer without X-ClickHouse-Summary")
      const chunks: Array<Buffer> = []
      for await (const chunk of answer.stream) chunks.push(chunk)
      return readRows(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks), row)
    })

  /** The one row that an aggregate has always. */
  const readOne = <A>(question: Read, row: (reader: RowBinary) => A): Effect.Effect<A, StoreUnavailable> =>
    read(question, row).pipe(Effect.flatMap((rows) =>
      rows.length === 1
        ? Effect.succeed(rows[0]!)
        : Effect.fail(
            new StoreUnavailable({
              operation: question.operation,
              cause: new Error(`${rows.length} rows where there is one`)
            })
          )
    ))

  const insert = (
    { bytes, columns, format, operation, rows, table }: Insert
  ): Effect.Effect<void, StoreUnavailable> => {
    if (rows === 0) return Effect.void
    if (rows > INSERT_ROWS_MAX) return Effect.die(new RangeError(`${operation}: ${rows} rows`))
    return attempt(operation, INSERT_SECONDS_MAX, async (signal) => {
      const piece = bytes()
      if (piece.length > INSERT_BYTES_MAX + rows * 64) {
        throw new RangeError(`${operation}: ${piece.length} bytes in one insert`)
      }
      const result = await client.insert({
        table,
        columns: [...columns],
        format,
        values: Readable.from([piece], { objectMode: false }),
        clickhouse_settings: Object.assign(
          {},
          INSERT_SETTINGS,
          replicated ? QUORUM_SETTINGS : undefined,
          format === "CSV" ? RAW_ROWS : undefined
        ),
        abort_signal: signal
      }).catch((cause: unknown) => {
        throw withoutQuotes(cause)
      })
      const written = Number(result.summary?.written_rows)
      if (written !== rows) throw new Error(`${rows} rows were given, ${written} were stored`)
    })
  }

  const change = (operation: string, sql: string, parameters: Parameters) =>
    attempt(operation, CHANGE_SECONDS_MAX, (signal) =>
      client.command({ query: sql, query_params: parameters.values, abort_signal: signal })
    ).pipe(Effect.asVoid)

  const countWhere = (operation: string, condition: string, parameters: Parameters, final: boolean) =>
    readOne(
      { operation, parameters, sql: `SELECT count() FROM ${eventsOf(final)} WHERE ${condition}` },
      (row) => row.uint64()
    )

  const bodiesWhere = (
    condition: string,
    parameters: Parameters,
    { limit, offset, order }: Pick<EventPageQuery, "limit" | "offset" | "order">,
    final: boolean
  ) =>
    read({
      operation: "page",
      parameters,
      sql: `SELECT body FROM ${eventsOf(final)} WHERE ${condition} ORDER BY sequence_number ${order}`
        + ` LIMIT ${parameters.integer(limit)} OFFSET ${parameters.integer(offset)}`
    }, (row) => row.string())

  /** The total, and the sequences of the page, by going through the matches once. */
  const findPage = (
    condition: string,
    bounds: string,
    parameters: Parameters,
    { limit, offset, order }: Pick<EventPageQuery, "limit" | "offset" | "order">,
    final: boolean
  ) => {
    const sign = order === "asc" ? 1 : -1
    const sorted = `groupArraySortedIf(${offset + limit})(${sign} * toInt64(sequence_number), ${bounds})`
    return readOne({
      operation: "page",
      parameters,
      sql: `SELECT count(), ${sorted} FROM ${eventsOf(final)} WHERE ${condition}`
    }, (row) => ({
      total: row.uint64(),
      sequences: row.list(() => sign * row.int64()).slice(offset)
    }))
  }

  const page: EventStore["Service"]["page"] = Effect.fn("EventStore.page")(function*(query, final) {
    const { afterSequence = 0, beforeSequence, filter, limit, offset } = query
    const parameters = new Parameters()
    const condition = filterCondition(query.tenantId, filter, parameters)
    const bounds = `sequence_number > ${parameters.integer(afterSequence)}`
      + (beforeSequence === undefined
        ? ""
        : ` AND sequence_number < ${parameters.integer(beforeSequence)}`)
    if (isUnfiltered(filter) || offset + limit > FOUND_PAGE_END_MAX) {
      const total = yield* countWhere("page", condition, parameters, final)
      if (total <= offset) return { bodies: [], total }
      const within = `${condition} AND ${bounds}`
      return { bodies: yield* bodiesWhere(within, parameters, query, final), total }
    }
    const { sequences, total } = yield* findPage(condition, bounds, parameters, query, final)
    if (sequences.length === 0) return { bodies: [], total }
    // Numbers that the store has just given, so they need no binding.
    const within = `${condition} AND sequence_number IN (${sequences.join(", ")})`
    const found = { order: query.order, limit, offset: 0 }
    return { bodies: yield* bodiesWhere(within, parameters, found, final), total }
  })

  interface Place {
    readonly sequenceNumber: number
    readonly hash: string
  }

  /** One chunk of a scan: what follows `after` in order, by rows and bytes. */
  const scanChunk = (
    query: Pick<EventPageQuery, "tenantId" | "filter" | "order">,
    final: boolean,
    after: Place | undefined
  ) => {
    const parameters = new Parameters()
    const condition = filterCondition(query.tenantId, query.filter, parameters)
    const beyond = query.order === "asc" ? ">" : "<"
    const bound = after === undefined ? "" : ` AND sequence_number ${beyond}= ${
      parameters.integer(after.sequenceNumber)
    } AND (sequence_number, hash) ${beyond} (${parameters.integer(after.sequenceNumber)}, ${
      parameters.string(after.hash)
    })`
    const order = `sequence_number ${query.order}, hash ${query.order}`
    return read({
      operation: "scan",
      parameters,
      sql: "SELECT sequence_number, hash, body FROM (SELECT sequence_number, hash, body,"
        + ` sum(length(body)) OVER (ORDER BY ${order}`
        + " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before"
        + ` FROM (SELECT sequence_number, hash, body FROM ${eventsOf(final)}`
        + ` WHERE ${condition}${bound} ORDER BY ${order} LIMIT ${SCAN_ROWS_MAX}))`
        + ` WHERE bytes_before < ${SCAN_BYTES_MAX} ORDER BY ${order}`
    }, (row) => ({ sequenceNumber: row.uint64(), hash: row.string(), body: row.string() }))
  }

  const lastSequence = (tenantId: string) => {
    const parameters = new Parameters()
    return readOne({
      operation: "scan",
      parameters,
      sql: `SELECT max(sequence_number) FROM ${events} WHERE tenant_id = ${parameters.string(tenantId)}`
    }, (row) => row.uint64())
  }

  const scan: EventStore["Service"]["scan"] = (query, final) =>
    Stream.unwrap(Effect.gen(function*() {
      // A scan that follows its own tenant's new events would have no end.
      const last = yield* lastSequence(query.tenantId)
      const toSequence = Math.min(last, query.filter.toSequence ?? last)
      const bounded = { ...query, filter: { ...query.filter, toSequence } }
      return Stream.paginate(undefined as Place | undefined, (after) =>
        scanChunk(bounded, final, after).pipe(Effect.map((rows) => {
          const place = rows.at(-1)
          const bodies = rows.map((row) => row.body)
          return place === undefined
            ? [[], Option.none<Place | undefined>()] as const
            : [[bodies], Option.some<Place | undefined>(place)] as const
        })))
    }))

  const byId: EventStore["Service"]["byId"] = (tenantId, id, sequenceNumber, final) => {
    const parameters = new Parameters()
    const condition = filterCondition(tenantId, {
      id,
      metadata: [],
      ...(sequenceNumber === undefined
        ? {}
        : { fromSequence: sequenceNumber, toSequence: sequenceNumber })
    }, parameters)
    return read({
      operation: "byId",
      parameters,
      sql: `SELECT body FROM ${eventsOf(final)} WHERE ${condition}`
        + " ORDER BY sequence_number, hash LIMIT 1"
    }, (row) => row.string()).pipe(Effect.map(([body]) => body))
  }

  const stats: EventStore["Service"]["stats"] = Effect.fn("EventStore.stats")(
    function*({ filter, groupBy, interval, limit, tenantId }, final) {
      const parameters = new Parameters()
      const condition = filterCondition(tenantId, filter, parameters)
      const source = `${eventsOf(final)} WHERE ${condition}`
      const column = DIMENSIONS[groupBy]
      const groups = `SELECT ${column} AS key, count() AS events FROM ${source} GROUP BY key`
      const shown = `ORDER BY events DESC, key LIMIT ${parameters.integer(limit)}`
      const rows = yield* read({
        operation: "stats",
        parameters,
        sql: `SELECT toString(key), events, sum(events) OVER () FROM (${groups}) ${shown}`
      }, (row) => ({ key: row.string(), count: row.uint64(), total: row.uint64() }))
      const total = rows[0]?.total ?? 0
      const counted = {
        groups: rows.map(({ count, key }) => ({ key, count })),
        other: rows.reduce((rest, { count }) => rest - count, total),
        total
      }
      if (interval === undefined) return counted
      const width = MICROSECONDS[interval]
      const buckets = yield* read({
        operation: "stats",
        parameters,
        sql: `SELECT intDiv(toUnixTimestamp64Micro(timestamp), ${width}) AS bucket,`
          + ` toString(${column}) AS key, count() FROM ${source}`
          + ` AND ${column} IN (SELECT key FROM (${groups} ${shown}))`
          + ` GROUP BY bucket, key ORDER BY bucket, key LIMIT ${BUCKETS_MAX + 1}`
      }, (row) => ({
        start: canonicalTime(row.uint64() * width),
        key: row.string(),
        count: row.uint64()
      }))
      if (buckets.length > BUCKETS_MAX) {
        return yield* new StatsTooLarge({ bucketsMax: BUCKETS_MAX })
      }
      return { ...counted, buckets }
    }
  )

  const sequenceSpan: EventStore["Service"]["sequenceSpan"] = (tenantId, from, to) => {
    const parameters = new Parameters()
    const condition = filterCondition(tenantId, {
      metadata: [],
      ...(from === undefined ? {} : { from }),
      ...(to === undefined ? {} : { to })
    }, parameters)
    return readOne({
      operation: "sequenceSpan",
      parameters,
      sql: "SELECT min(sequence_number), max(sequence_number), count()"
        + ` FROM ${eventsOf(true)} WHERE ${condition}`
    }, (row) => ({ first: row.uint64(), last: row.uint64(), eventsInBounds: row.uint64() })).pipe(
      Effect.map((span): SequenceSpan | undefined => span.eventsInBounds === 0 ? undefined : span)
    )
  }

  /**
   * One chunk for verification: all rows of as many sequences as fit, so that rows which share a
   * sequence come together. Of a sequence with thousands of rows, enough to see that it has several.
   */
  const rowsChunk = (tenantId: string, from: number, to: number) => {
    const parameters = new Parameters()
    const range = `tenant_id = ${parameters.string(tenantId)}`
      + ` AND sequence_number BETWEEN ${parameters.integer(from)}`
    const last = "SELECT max(sequence_number) FROM (SELECT sequence_number, sum(bytes)"
      + " OVER (ORDER BY sequence_number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before"
      + ` FROM (SELECT sequence_number, length(body) AS bytes FROM ${events}`
      + ` WHERE ${range} AND ${parameters.integer(to)}`
      + ` ORDER BY sequence_number LIMIT ${SCAN_ROWS_MAX})) WHERE bytes_before < ${SCAN_BYTES_MAX}`
    return read({
      operation: "rows",
      parameters,
      sql: `SELECT sequence_number, version, body, groupUniqArrayArray(names) FROM (`
        + `WITH ${disagreement.with} SELECT sequence_number, version, hash, body,`
        + ` ${disagreement.names} AS names FROM ${events} WHERE ${range} AND (${last}))`
        + " GROUP BY sequence_number, hash, version, body"
        + ` ORDER BY sequence_number, hash, version, body LIMIT ${2 * SCAN_ROWS_MAX}`
    }, (row): StoredRow => ({
      sequenceNumber: row.uint64(),
      version: row.uint8(),
      body: row.string(),
      wrongColumns: [...row.list(() => row.string())].sort()
    }))
  }

  const rows: EventStore["Service"]["rows"] = (tenantId, fromSequence, toSequence) =>
    Stream.paginate(fromSequence, (from) =>
      rowsChunk(tenantId, from, toSequence).pipe(Effect.map((chunk) => {
        const last = chunk.at(-1)
        return last === undefined
          ? [[], Option.none<number>()] as const
          : [[chunk], Option.some(last.sequenceNumber + 1)] as const
      })))

  const highest = (partition: number, table: string, columns: string) => {
    const parameters = new Parameters()
    const inPartition = `kafka_partition = ${parameters.bind("UInt32", partition)}`
    return {
      operation: "position",
      parameters,
      sql: `SELECT ${columns} FROM ${table} WHERE ${inPartition} AND kafka_offset =`
        + ` (SELECT max(kafka_offset) FROM ${table} WHERE ${inPartition}) LIMIT 1`
    }
  }

  const position: EventStore["Service"]["position"] = Effect.fn("EventStore.position")(
    function*(partition) {
      const bodyAt = (row: RowBinary) => ({ offset: row.uint64(), body: row.string() })
      const [event] = yield* read(highest(partition, events, "kafka_offset, body"), bodyAt)
      const [conflict] = yield* read(highest(partition, conflictsTable, "kafka_offset, body"), bodyAt)
      const [receipt] = yield* read(highest(partition, receipts, "kafka_offset"), (row) => row.uint64())
      const last = (conflict?.offset ?? -1) > (event?.offset ?? -1) ? conflict : event
      return { event: last, receiptOffset: receipt } satisfies StoredPosition
    }
  )

  /** Only rows that FINAL and merges make one count: of a forged second row they never do. */
  const hasDuplicates: EventStore["Service"]["hasDuplicates"] = Effect.fn(
    "EventStore.hasDuplicates"
  )(function*(partition, fromOffset) {
    const [last] = yield* read(highest(partition, events, "kafka_offset"), (row) => row.uint64())
    for (let from = fromOffset; last !== undefined && from <= last; from += DUPLICATES_WINDOW) {
      const repeats = (what: string) => {
        const parameters = new Parameters()
        return readOne({
          operation: "hasDuplicates",
          parameters,
          sql: `SELECT count() > uniqExact(${what}) FROM ${events}`
            + ` WHERE kafka_partition = ${parameters.bind("UInt32", partition)}`
            + ` AND kafka_offset >= ${parameters.integer(from)}`
            + ` AND kafka_offset < ${parameters.integer(from + DUPLICATES_WINDOW)}`
        }, (row) => row.uint8() === 1)
      }
      if (!(yield* repeats("kafka_offset"))) continue
      if (yield* repeats("(kafka_offset, tenant_id, sequence_number, hash)")) return true
    }
    return false
  })

  const mergeDuplicates = change(
    "mergeDuplicates",
    `OPTIMIZE TABLE ${events} FINAL SETTINGS alter_sync = 2, optimize_throw_if_noop = 1`,
    new Parameters()
  )

  const dropPartition: EventStore["Service"]["dropPartition"] = (partition) =>
    Effect.forEach([events, receipts, conflictsTable], (table) => {
      const parameters = new Parameters()
      const condition = `kafka_partition = ${parameters.bind("UInt32", partition)}`
      return change(
        "dropPartition",
        `ALTER TABLE ${table} DELETE WHERE ${condition} SETTINGS mutations_sync = 2`,
        parameters
      )
    }, { discard: true })

  const insertEvents = (given: ReadonlyArray<EventRow>) =>
    insert({
      operation: "insertEvents",
      table: events,
      columns: ["kafka_partition", "kafka_offset", "body"],
      format: "CSV",
      rows: given.length,
      bytes: () => rawRows(given, given.map((row) => `${row.partition}\x01${row.offset}\x01`))
    })

  const insertReceipts = (given: ReadonlyArray<ReceiptRow>) =>
    insert({
      operation: "insertReceipts",
      table: receipts,
      columns: ["kafka_partition", "kafka_offset", "tenant_id", "receipt_id", "body"],
      format: "CSV",
      rows: given.length,
      bytes: () =>
        rawRows(
          given,
          given.map((row) =>
            `${row.partition}\x01${row.offset}\x01${row.tenantId}\x01${row.receiptId}\x01`
          )
        )
    })

  const insertConflicts = (given: ReadonlyArray<ConflictRow>) =>
    insert({
      operation: "insertConflicts",
      table: conflictsTable,
      columns: ["kafka_partition", "kafka_offset", "tenant_id", "sequence_number", "reason", "body"],
      format: "TabSeparated",
      rows: given.length,
      bytes: () => conflictRows(given)
    })

  return EventStore.of({
    migrate: attempt("migrate", CHANGE_SECONDS_MAX, () => migrate(client, place)),
    ping: countWhere("ping", "tenant_id = ''", new Parameters(), false).pipe(Effect.asVoid),
    insertEvents,
    insertReceipts,
    insertConflicts,
    position,
    hasDuplicates,
    mergeDuplicates,
    dropPartition,
    page,
    scan,
    byId,
    stats,
    receipt: (tenantId, receiptId) => {
      const parameters = new Parameters()
      return read({
        operation: "receipt",
        parameters,
        sql: `SELECT body FROM ${receipts} WHERE tenant_id = ${parameters.string(tenantId)}`
          + ` AND receipt_id = ${parameters.string(receiptId)} ORDER BY kafka_offset LIMIT 1`
      }, (row) => row.string()).pipe(Effect.map(([body]) => body))
    },
    sequenceSpan,
    rows,
    conflicts: (tenantId, limit) => {
      const parameters = new Parameters()
      return read({
        operation: "conflicts",
        parameters,
        sql: "SELECT kafka_partition, kafka_offset, sequence_number, reason, body"
          + ` FROM ${conflictsTable} FINAL WHERE tenant_id = ${parameters.string(tenantId)}`
          + " ORDER BY sequence_number, kafka_partition, kafka_offset"
          + ` LIMIT ${parameters.integer(limit)}`
      }, (row): ConflictRow => ({
        partition: row.uint32(),
        offset: row.uint64(),
        tenantId,
        sequenceNumber: row.uint64(),
        reason: row.string(),
        body: row.bytes()
      }))
    }
  })
})

/** The store behind the port. */
export const layerClickHouse: Layer.Layer<EventStore, never, ClickHouseConnection> = Layer.effect(
  EventStore,
  make
)
