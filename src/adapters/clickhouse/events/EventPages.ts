/**
 * Lists of events: pages with their total, single events, and scans of any length in chunks. What
 * comes out are the stored bytes.
 */
import { Effect, Stream } from "effect"
import type { EventPageQuery, EventStore } from "../../../ports/EventStore.ts"
import { CHUNK_BYTES_MAX, CHUNK_ROWS_MAX, inChunks, sumBefore } from "../client/Chunks.ts"
import type { Parameters, Statement } from "../client/Parameters.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { filterCondition, isUnfiltered } from "./EventFilterSql.ts"

/** Up to this end (offset and limit) a filtered page is found together with its total. */
const FOUND_PAGE_END_MAX = 2_000
type Store = EventStore["Service"]
type Slice = Pick<EventPageQuery, "limit" | "offset" | "order">
type ScanQuery = Pick<EventPageQuery, "tenantId" | "filter" | "order">

const boundsOf = ({ afterSequence, beforeSequence }: EventPageQuery, bind: Parameters): string =>
  [
    ...(afterSequence === undefined ? [] : [`sequence_number > ${bind.integer(afterSequence)}`]),
    ...(beforeSequence === undefined ? [] : [`sequence_number < ${bind.integer(beforeSequence)}`])
  ].join(" AND ") || "true"

const matching = ({ filter, tenantId }: Pick<ScanQuery, "filter" | "tenantId">, bind: Parameters) =>
  filterCondition(tenantId, filter, bind)

const bodiesWhere = (
  store: StoreClient,
  condition: Statement,
  { limit, offset, order }: Slice,
  deduplicate: boolean
) =>
  store.read(
    "page",
    (bind) =>
      `SELECT body FROM ${store.eventsOf(deduplicate)} WHERE ${condition(bind)}`
      + ` ORDER BY sequence_number ${order}`
      + ` LIMIT ${bind.integer(limit)} OFFSET ${bind.integer(offset)}`,
    (row) => row.string()
  )

/** The total, and the sequences of the page, by going through the matches once. */
const findPage = (store: StoreClient, query: EventPageQuery, deduplicate: boolean) => {
  const { limit, offset, order } = query
  const sign = order === "asc" ? 1 : -1
  return store.readOne(
    "page",
    (bind) =>
      `SELECT count(), groupArraySortedIf(${offset + limit})`
      + `(${sign} * toInt64(sequence_number), ${boundsOf(query, bind)})`
      + ` FROM ${store.eventsOf(deduplicate)} WHERE ${matching(query, bind)}`,
    (row) => ({
      total: row.uint64(),
      sequences: row.list(() => sign * row.int64()).slice(offset)
    })
  )
}

export const makePage = (store: StoreClient): Store["page"] =>
  Effect.fn("EventStore.page")(function* (query, deduplicate) {
    const { filter, limit, offset, order } = query
    if (isUnfiltered(filter) || limit === 0 || offset + limit > FOUND_PAGE_END_MAX) {
      // Rows that arrive after the count are left out, so that total and page are of one moment.
      const { last, total } = yield* store.readOne(
        "page",
        (bind) =>
          `SELECT count(), max(sequence_number) FROM ${store.eventsOf(deduplicate)}`
          + ` WHERE ${matching(query, bind)}`,
        (row) => ({ total: row.uint64(), last: row.uint64() })
      )
      if (total <= offset || limit === 0) return { bodies: [], total }
      const within: Statement = (bind) =>
        `${matching(query, bind)} AND ${boundsOf(query, bind)}`
        + ` AND sequence_number <= ${bind.integer(last)}`
      return { bodies: yield* bodiesWhere(store, within, query, deduplicate), total }
    }
    const { sequences, total } = yield* findPage(store, query, deduplicate)
    if (sequences.length === 0) return { bodies: [], total }
    // Numbers that the store has just given, so they need no binding.
    const within: Statement = (bind) =>
      `${matching(query, bind)} AND sequence_number IN (${sequences.join(", ")})`
    const slice = { order, limit, offset: 0 }
    return { bodies: yield* bodiesWhere(store, within, slice, deduplicate), total }
  })

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
        const condition = matching(query, bind)
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

/** A row and its place in the list. */
interface Scanned {
  readonly sequenceNumber: number
  readonly hash: string
  readonly body: string
}

/** What follows `after` in order, as many rows as fit into a chunk. */
const scanChunk = (
  store: StoreClient,
  query: ScanQuery,
  deduplicate: boolean,
  after: Scanned | undefined
) => {
  const { order } = query
  const inOrder = `sequence_number ${order}, hash ${order}`
  const row = "sequence_number, hash, body"
  return store.read(
    "scan",
    (bind) => {
      const beyond =
        after === undefined
          ? ""
          : ` AND ${bind.beside("sequence_number", order === "asc" ? ">" : "<", [after.sequenceNumber, after.hash])}`
      return (
        `SELECT ${row} FROM (SELECT ${row}, ${sumBefore("length(body)", inOrder)} AS bytes_before`
        + ` FROM (SELECT ${row} FROM ${store.eventsOf(deduplicate)}`
        + ` WHERE ${matching(query, bind)}${beyond} ORDER BY ${inOrder} LIMIT ${CHUNK_ROWS_MAX}))`
        + ` WHERE bytes_before < ${CHUNK_BYTES_MAX} ORDER BY ${inOrder}`
      )
    },
    (row): Scanned => ({
      sequenceNumber: row.uint64(),
      hash: row.string(),
      body: row.string()
    })
  )
}

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
        return inChunks((after: Scanned | undefined) =>
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
        `SELECT sequence_number, body FROM ${store.eventsOf(deduplicate)}`
        + ` WHERE ${filterCondition(tenantId, { id, metadata: [], ...range }, bind)}`
        + " ORDER BY sequence_number, hash LIMIT 1",
      (row) => ({ sequenceNumber: row.uint64(), body: row.string() })
    )
  }
