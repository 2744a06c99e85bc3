/**
 * Lists of events: pages with their total, single events, and scans of any length in chunks. What
 * comes out are the stored bytes.
 */
import { Effect, Stream } from "effect"
import type {
  EventListQuery,
  EventPageQuery,
  EventStore,
  LastEvent
} from "../../../ports/EventStore.ts"
import { CHUNK_BYTES_MAX, inChunks, sumBefore } from "../client/Chunks.ts"
import type { Parameters } from "../client/Parameters.ts"
import type { RowBinary } from "../client/RowBinary.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import {
  filterCondition,
  IS_NO_EVENT,
  isCheap,
  isOfColumns,
  isUnindexed
} from "./EventFilterSql.ts"
import { EVENT_ROW, type ListedEvent, NO_EVENT_ROW, readEventRow } from "./EventRows.ts"

/** All reads of a statement see the same rows: 23 of 566 statements did not under inserts. */
const ONE_MOMENT = "enable_shared_storage_snapshot_in_query = 1"

type Store = EventStore["Service"]

const boundsOf = ({ afterSequence, beforeSequence }: EventPageQuery, bind: Parameters): string =>
  [
    ...(afterSequence === undefined ? [] : [`sequence_number > ${bind.integer(afterSequence)}`]),
    ...(beforeSequence === undefined ? [] : [`sequence_number < ${bind.integer(beforeSequence)}`])
  ].join(" AND ") || "true"

const matching = (
  store: StoreClient,
  { filter, tenantId }: Pick<EventListQuery, "filter" | "tenantId">,
  bind: Parameters
) => filterCondition(store.events, tenantId, filter, bind)

/** The columns that rows are sorted by, each in the order. */
const sorted = ({ order, sort }: EventListQuery, direction: string = order): string => {
  const columns = ["sequence_number", "hash"]
  if (sort === "timestamp") columns.unshift("timestamp")
  return columns.map((column) => `${column} ${direction}`).join(", ")
}

/** Rows to skip above which only the sequences of what is skipped are read. */
const SHALLOW_OFFSET_MAX = 1_000

/** The statement for the rows of a page, whatever their sequences are. */
const pageRows = (
  store: StoreClient,
  query: EventPageQuery,
  deduplicate: boolean,
  bind: Parameters
): string => {
  const { limit, offset, order, sort, tenantId } = query
  const table = store.eventsOf(deduplicate)
  const condition = matching(store, query, bind)
  const inOrder = sort === "timestamp" ? sorted(query) : `sequence_number ${order}`
  const slice =
    `FROM ${table} WHERE ${condition} AND ${boundsOf(query, bind)} ORDER BY ${inOrder}`
    + ` LIMIT ${bind.integer(limit)} OFFSET ${bind.integer(offset)}`
  const row = `toUInt8(1) AS kind, toUInt64(0) AS total, ${EVENT_ROW}`
  const isShallow = offset <= SHALLOW_OFFSET_MAX
  if (isShallow && isCheap(query.filter)) return `SELECT ${row} ${slice}`
  const keys = isShallow
    ? `SELECT sequence_number, hash ${slice}`
    : `SELECT sequence_number, hash FROM ${table} WHERE ${condition}`
      + ` AND sequence_number IN (SELECT sequence_number ${slice})`
  return (
    `SELECT ${row} FROM ${table} WHERE ${bind.tenant(tenantId)}`
    + ` AND (sequence_number, hash) IN (${keys})`
  )
}

const inListOrder = (
  { order, sort }: EventListQuery,
  events: ReadonlyArray<ListedEvent>
): ReadonlyArray<string> => {
  const sign = order === "asc" ? 1 : -1
  const bySequence = events.toSorted(
    (left, right) => sign * (left.sequenceNumber - right.sequenceNumber)
  )
  // Events of the same time keep their order.
  const inOrder =
    sort === "timestamp"
      ? bySequence.sort(({ timestamp: left }, { timestamp: right }) =>
          left < right ? -sign : sign * Number(left > right)
        )
      : bySequence
  return inOrder.map(({ body }) => body)
}

/**
 * The row with the total. To look at the sequence of every row costs as much as to look at a column of
 * few values: what is below the first event is counted apart, where the primary key finds it.
 */
const totalRow = (
  store: StoreClient,
  { filter, tenantId }: EventPageQuery,
  deduplicate: boolean,
  bind: Parameters
): string => {
  const from = (isEvent?: string) =>
    `FROM ${store.eventsOf(deduplicate)}`
    + ` WHERE ${filterCondition(store.events, tenantId, filter, bind, isEvent)}`
  const isApart = isCheap(filter) && isOfColumns(filter)
  const total = isApart ? `count() - (SELECT count() ${from(IS_NO_EVENT)})` : "count()"
  return (
    `SELECT toUInt8(0) AS kind, toUInt64(assumeNotNull(${total})) AS total, ${NO_EVENT_ROW}`
    + ` ${from(isApart ? "true" : undefined)}`
  )
}

/** A page and its total in one statement. */
const pageAtOnce = (store: StoreClient, query: EventPageQuery, deduplicate: boolean) =>
  store
    .read(
      "page",
      (bind) =>
        totalRow(store, query, deduplicate, bind)
        + (query.limit === 0 ? "" : ` UNION ALL ${pageRows(store, query, deduplicate, bind)}`),
      (row) => ({ isEvent: row.uint8() === 1, total: row.uint64(), event: readEventRow(row) }),
      { settings: ONE_MOMENT }
    )
    .pipe(
      Effect.map((rows) => ({
        bodies: inListOrder(
          query,
          rows.filter(({ isEvent }) => isEvent).map(({ event }) => event)
        ).slice(0, query.limit),
        total: rows.reduce((total, row) => Math.max(total, row.total), 0)
      }))
    )

/** The total, and the sequences of a page: one look at what matches is enough for both. */
const pageSequences = (store: StoreClient, query: EventPageQuery, deduplicate: boolean) => {
  const sign = query.order === "asc" ? "" : "-"
  const { limit, offset } = query
  return store.readOne(
    "page",
    (bind) =>
      "SELECT count(), arrayStringConcat(arrayMap(at -> toString(abs(at)), arraySlice("
      + `groupArraySortedIf(${offset + limit})(${sign}toInt64(sequence_number),`
      + ` ${boundsOf(query, bind)}), ${offset + 1})), ',')`
      + ` FROM ${store.eventsOf(deduplicate)} WHERE ${matching(store, query, bind)}`,
    (row) => ({ total: row.uint64(), sequences: row.string() })
  )
}

/**
 * Rows by the sequences that ClickHouse has printed, written out: by a list that is made of a parameter
 * the primary key does not always find them. As texts, since a tampered one may be beyond a double.
 */
const rowsOf = (store: StoreClient, tenantId: string, sequences: string, deduplicate: boolean) =>
  store.read(
    "page",
    (bind) =>
      `SELECT ${EVENT_ROW} FROM ${store.eventsOf(deduplicate)} WHERE ${bind.tenant(tenantId)}`
      + ` AND sequence_number IN (${sequences})`,
    readEventRow
  )

/**
 * Filters by an index of texts, or by what has to be looked for in texts, cost more than the page: they
 * are evaluated once, and the rows are read by their sequences. Where a sequence has several rows (a
 * tampered database), not each of them may match, and all is asked again in one statement.
 */
export const makePage =
  (store: StoreClient): Store["page"] =>
  (query, deduplicate) => {
    const { filter, limit, offset, sort, tenantId } = query
    const atOnce = pageAtOnce(store, query, deduplicate)
    const isPlain = offset > SHALLOW_OFFSET_MAX || isCheap(filter) || sort === "timestamp"
    if (limit === 0 || isPlain) return atOnce
    return Effect.gen(function* () {
      const { sequences, total } = yield* pageSequences(store, query, deduplicate)
      if (sequences === "") return { bodies: [], total }
      const events = yield* rowsOf(store, tenantId, sequences, deduplicate)
      if (events.length !== sequences.split(",").length) return yield* atOnce
      return { bodies: inListOrder(query, events), total }
    }).pipe(Effect.withSpan("EventStore.page"))
  }

export const makeKeysetPages = (store: StoreClient): Store["keysetPages"] =>
  Effect.fn("EventStore.keysetPages")(function* (query, deduplicate) {
    const { afterSequence, beforeSequence, limit, order } = query
    const isAscending = order === "asc"
    const [cursor, end] = isAscending
      ? [afterSequence, beforeSequence]
      : [beforeSequence, afterSequence]
    const [within, beyond] = isAscending ? ["<", "<="] : [">", ">="]
    return yield* store.readOne(
      "keysetPages",
      (bind) => {
        const condition = matching(store, query, bind)
        /** How many matches a page takes that ends here, and the first of them in list order. */
        const pageBackFrom = (bound: string) =>
          `(SELECT count() AS events, ${isAscending ? "min" : "max"}(sequence_number) AS first FROM`
          + ` (SELECT sequence_number FROM ${store.eventsOf(deduplicate)}`
          + ` WHERE ${condition} AND ${bound}`
          + ` ORDER BY sequence_number ${isAscending ? "DESC" : "ASC"}`
          + ` LIMIT ${bind.integer(limit)}))`
        const before =
          cursor === undefined ? "false" : `sequence_number ${beyond} ${bind.integer(cursor)}`
        const all = end === undefined ? "true" : `sequence_number ${within} ${bind.integer(end)}`
        return (
          "SELECT before.events, before.first, ending.events, ending.first"
          + ` FROM ${pageBackFrom(before)} AS before, ${pageBackFrom(all)} AS ending`
        )
      },
      (row) => {
        const bound = (count: number, first: number) =>
          count === 0 ? undefined : isAscending ? first - 1 : first + 1
        const previous = bound(row.uint64(), row.uint64())
        return { previous, last: bound(row.uint64(), row.uint64()) }
      }
    )
  })

/** Rows of a chunk of a scan at most. */
const SCAN_ROWS_MAX = 10_000
/** About as many bytes as the stored JSON of a row has, without a look at all of its columns. */
const ABOUT_BYTES =
  "600 + length(metadata) + length(id) + length(actor_id) + length(actor_email)"
  + " + length(resource_id) + length(resource_name)"

/** A place in the order of a scan. */
interface Place extends Pick<ListedEvent, "sequenceNumber" | "hash"> {
  /** Microseconds since 1970, as text: a tampered one may be beyond a double. Empty by sequence. */
  readonly time: string
}

const placeOf = ({ sort }: EventListQuery): string =>
  `sequence_number, hash, ${sort === "timestamp" ? "toString(toUnixTimestamp64Micro(timestamp))" : "''"}`

const readPlace = (row: RowBinary): Place => ({
  sequenceNumber: row.uint64(),
  hash: row.string(),
  time: row.string()
})

/** What is on one side of a place. The first of the two conditions is what an index can use. */
const besideTime = (
  sign: ">" | "<" | "<=" | ">=",
  { hash, sequenceNumber, time }: Place,
  bind: Parameters
): string => {
  const at = `fromUnixTimestamp64Micro(toInt64(${bind.string(time)}), 'UTC')`
  const place = `(${at}, ${bind.integer(sequenceNumber)}, ${bind.string(hash)})`
  return `timestamp ${sign[0]}= ${at} AND (timestamp, sequence_number, hash) ${sign} ${place}`
}

/** What follows `after` in order, up to `end`. */
const scanned = (
  store: StoreClient,
  query: EventListQuery,
  bind: Parameters,
  { after, end }: { readonly after?: Place | undefined; readonly end?: Place }
): string => {
  const [beyond, upTo] = query.order === "asc" ? ([">", "<="] as const) : (["<", ">="] as const)
  const beside = (sign: typeof beyond | typeof upTo, place: Place) =>
    query.sort === "timestamp"
      ? besideTime(sign, place, bind)
      : bind.beside("sequence_number", sign, [place.sequenceNumber, place.hash])
  return [
    matching(store, query, bind),
    ...(after ? [beside(beyond, after)] : []),
    ...(end ? [beside(upTo, end)] : [])
  ].join(" AND ")
}

/** The last row before which less than a chunk's bytes come: one row always does. */
const scanEnd = (
  store: StoreClient,
  query: EventListQuery,
  deduplicate: boolean,
  after: Place | undefined
) => {
  const inOrder = sorted(query)
  const places = `sequence_number, hash${query.sort === "timestamp" ? ", timestamp" : ""}`
  const inReverse = sorted(query, query.order === "asc" ? "desc" : "asc")
  return store.readFirst(
    "scan",
    (bind) =>
      `SELECT ${placeOf(query)} FROM (SELECT ${places}, ${sumBefore("bytes", inOrder)}`
      + ` AS bytes_before FROM (SELECT ${places}, ${ABOUT_BYTES} AS bytes`
      + ` FROM ${store.eventsOf(deduplicate)} WHERE ${scanned(store, query, bind, { after })}`
      + ` ORDER BY ${inOrder} LIMIT ${SCAN_ROWS_MAX}))`
      + ` WHERE bytes_before < ${CHUNK_BYTES_MAX}`
      + ` ORDER BY ${inReverse} LIMIT 1`,
    readPlace
  )
}

/** What is after `after` and not after `end`, in order. */
const scanRange = (
  store: StoreClient,
  query: EventListQuery,
  deduplicate: boolean,
  after: Place | undefined,
  end: Place
) =>
  store.read(
    "scan",
    (bind) => {
      const table = store.eventsOf(deduplicate)
      const condition = scanned(store, query, bind, { after, end })
      const rows = isUnindexed(query.filter)
        ? condition
        : `${bind.tenant(query.tenantId)} AND (sequence_number, hash) IN (SELECT sequence_number, hash FROM ${table} WHERE ${condition})`
      return `SELECT ${placeOf(query)}, json FROM ${table} WHERE ${rows} ORDER BY ${sorted(query)}`
    },
    (row) => ({ ...readPlace(row), body: row.string() }),
    { settings: ONE_MOMENT }
  )

/**
 * What follows `after` in order, as many rows as fit into a chunk. Where a chunk ends is asked first:
 * to sort rows and to add up their sizes costs more than to read them, unless they are narrow.
 */
const scanChunk = Effect.fnUntraced(function* (
  store: StoreClient,
  query: EventListQuery,
  deduplicate: boolean,
  after: Place | undefined
) {
  for (let from = after; ; ) {
    const end = yield* scanEnd(store, query, deduplicate, from)
    if (end === undefined) return []
    const rows = yield* scanRange(store, query, deduplicate, from, end)
    if (rows.length > 0) return rows
    // All of them were erased in between, and the filter finds none any more.
    from = end
  }
})

const lastSequence = (store: StoreClient, tenantId: string) =>
  store.readOne(
    "scan",
    (bind) => `SELECT max(sequence_number) FROM ${store.events} WHERE ${bind.tenant(tenantId)}`,
    (row) => row.uint64()
  )

export const makeScan =
  (store: StoreClient): Store["scan"] =>
  (query, deduplicate) =>
    Stream.unwrap(
      Effect.gen(function* () {
        // A scan that follows its own tenant's new events would have no end.
        const last = yield* lastSequence(store, query.tenantId)
        const toSequence = Math.min(last, query.filter.toSequence ?? last)
        const bounded = { ...query, filter: { ...query.filter, toSequence } }
        return inChunks((after: Place | undefined) =>
          scanChunk(store, bounded, deduplicate, after)
        ).pipe(Stream.map((rows) => rows.map(({ body }) => body)))
      })
    )

export const makeById =
  (store: StoreClient): Store["byId"] =>
  (tenantId, id, sequenceNumber, deduplicate) => {
    const range =
      sequenceNumber === undefined
        ? {}
        : { fromSequence: sequenceNumber, toSequence: sequenceNumber }
    return store.readFirst(
      "byId",
      (bind) =>
        `SELECT sequence_number, json, kafka_offset FROM ${store.eventsOf(deduplicate)}`
        + ` WHERE ${filterCondition(store.events, tenantId, { id, metadata: [], ...range }, bind)}`
        + " ORDER BY sequence_number, hash LIMIT 1",
      (row) => ({ sequenceNumber: row.uint64(), body: row.string(), offset: row.uint64() })
    )
  }

/** One tenant is asked by the order of the table, many together by their highest sequences. */
export const makeLastEvents =
  (store: StoreClient): Store["lastEvents"] =>
  (tenantIds) => {
    if (tenantIds.length === 0) return Effect.succeed([])
    return store.read(
      "lastEvents",
      (bind) => {
        const [first, ...others] = tenantIds
        if (others.length === 0) {
          return (
            `SELECT tenant_id, json FROM ${store.events} WHERE ${bind.tenant(first!)}`
            + " ORDER BY sequence_number DESC LIMIT 1"
          )
        }
        const own = `tenant_id IN (${bind.strings(tenantIds)})`
        return (
          `SELECT tenant_id, json FROM ${store.events} WHERE ${own} AND (tenant_id, sequence_number) IN`
          + ` (SELECT tenant_id, max(sequence_number) FROM ${store.events} WHERE ${own}`
          + " GROUP BY tenant_id) LIMIT 1 BY tenant_id"
        )
      },
      (row): LastEvent => ({ tenantId: row.string(), body: row.string() })
    )
  }
