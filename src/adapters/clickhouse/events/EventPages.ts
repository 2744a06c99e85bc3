/**
 * Lists of events: pages with their total, single events, and scans of any length in chunks. What
 * comes out are the stored bytes.
 */
import { Effect, Option, Stream } from "effect"
import type { EventPageQuery, EventStore } from "../../../ports/EventStore.ts"
import { CHUNK_BYTES_MAX, CHUNK_ROWS_MAX } from "../client/Chunks.ts"
import { Parameters } from "../client/Parameters.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { filterCondition, isUnfiltered } from "./EventFilterSql.ts"

/** Up to this end (offset and limit) a filtered page is found together with its total. */
const FOUND_PAGE_END_MAX = 2_000
type Store = EventStore["Service"]
type Slice = Pick<EventPageQuery, "limit" | "offset" | "order">
type ScanQuery = Pick<EventPageQuery, "tenantId" | "filter" | "order">

const boundsOf = (
  { afterSequence, beforeSequence }: EventPageQuery,
  parameters: Parameters
): string =>
  [
    ...(afterSequence === undefined
      ? []
      : [`sequence_number > ${parameters.integer(afterSequence)}`]),
    ...(beforeSequence === undefined
      ? []
      : [`sequence_number < ${parameters.integer(beforeSequence)}`])
  ].join(" AND ") || "true"

const bodiesWhere = (
  store: StoreClient,
  condition: string,
  parameters: Parameters,
  { limit, offset, order }: Slice,
  final: boolean
) =>
  store.read(
    {
      operation: "page",
      parameters,
      sql:
        `SELECT body FROM ${store.eventsOf(final)} WHERE ${condition}`
        + ` ORDER BY sequence_number ${order}`
        + ` LIMIT ${parameters.integer(limit)} OFFSET ${parameters.integer(offset)}`
    },
    (row) => row.string()
  )

/** The total, and the sequences of the page, by going through the matches once. */
const findPage = (
  store: StoreClient,
  condition: string,
  bounds: string,
  parameters: Parameters,
  { limit, offset, order }: Slice,
  final: boolean
) => {
  const sign = order === "asc" ? 1 : -1
  return store.readOne(
    {
      operation: "page",
      parameters,
      sql:
        `SELECT count(), groupArraySortedIf(${offset + limit})`
        + `(${sign} * toInt64(sequence_number), ${bounds})`
        + ` FROM ${store.eventsOf(final)} WHERE ${condition}`
    },
    (row) => ({
      total: row.uint64(),
      sequences: row.list(() => sign * row.int64()).slice(offset)
    })
  )
}

export const makePage = (store: StoreClient): Store["page"] =>
  Effect.fn("EventStore.page")(function* (query, final) {
    const { filter, limit, offset, order, tenantId } = query
    const parameters = new Parameters()
    const condition = filterCondition(tenantId, filter, parameters)
    const bounds = boundsOf(query, parameters)
    if (isUnfiltered(filter) || limit === 0 || offset + limit > FOUND_PAGE_END_MAX) {
      // Rows that arrive after the count are left out, so that total and page are of one moment.
      const { last, total } = yield* store.readOne(
        {
          operation: "page",
          parameters,
          sql: `SELECT count(), max(sequence_number) FROM ${store.eventsOf(final)} WHERE ${condition}`
        },
        (row) => ({ total: row.uint64(), last: row.uint64() })
      )
      if (total <= offset || limit === 0) return { bodies: [], total }
      const within = `${condition} AND ${bounds} AND sequence_number <= ${parameters.integer(last)}`
      return { bodies: yield* bodiesWhere(store, within, parameters, query, final), total }
    }
    const page = yield* findPage(store, condition, bounds, parameters, query, final)
    const { sequences, total } = page
    if (sequences.length === 0) return { bodies: [], total }
    // Numbers that the store has just given, so they need no binding.
    const within = `${condition} AND sequence_number IN (${sequences.join(", ")})`
    const slice = { order, limit, offset: 0 }
    return { bodies: yield* bodiesWhere(store, within, parameters, slice, final), total }
  })

export const makeKeysetPages = (store: StoreClient): Store["keysetPages"] =>
  Effect.fn("EventStore.keysetPages")(function* (query, final) {
    const { afterSequence, beforeSequence, filter, limit, order, tenantId } = query
    const isAscending = order === "asc"
    const parameters = new Parameters()
    const condition = filterCondition(tenantId, filter, parameters)
    /** How many of the matches a page takes that ends here, and the first of them in list order. */
    const pageBackFrom = (bound: string) =>
      `(SELECT count() AS events, ${isAscending ? "min" : "max"}(sequence_number) AS first FROM`
      + ` (SELECT sequence_number FROM ${store.eventsOf(final)} WHERE ${condition} AND ${bound}`
      + ` ORDER BY sequence_number ${isAscending ? "DESC" : "ASC"}`
      + ` LIMIT ${parameters.integer(limit)}))`
    const [cursor, end] = isAscending
      ? [afterSequence, beforeSequence]
      : [beforeSequence, afterSequence]
    const [within, beyond] = isAscending ? ["<", "<="] : [">", ">="]
    const before =
      cursor === undefined ? "false" : `sequence_number ${beyond} ${parameters.integer(cursor)}`
    const all = end === undefined ? "true" : `sequence_number ${within} ${parameters.integer(end)}`
    return yield* store.readOne(
      {
        operation: "keysetPages",
        parameters,
        sql:
          "SELECT before.events, before.first, ending.events, ending.first"
          + ` FROM ${pageBackFrom(before)} AS before, ${pageBackFrom(all)} AS ending`
      },
      (row) => {
        const bound = (count: number, first: number) =>
          count === 0 ? undefined : isAscending ? first - 1 : first + 1
        const previous = bound(row.uint64(), row.uint64())
        return { previous, last: bound(row.uint64(), row.uint64()) }
      }
    )
  })

interface Place {
  readonly sequenceNumber: number
  readonly hash: string
}

/** What follows `after` in order, as many rows as fit into a chunk. */
const scanChunk = (
  store: StoreClient,
  { filter, order, tenantId }: ScanQuery,
  final: boolean,
  after: Place | undefined
) => {
  const parameters = new Parameters()
  const conditions = [filterCondition(tenantId, filter, parameters)]
  if (after !== undefined) {
    const beyond = order === "asc" ? ">" : "<"
    const sequence = parameters.integer(after.sequenceNumber)
    // The first of the two is what the primary key can use.
    conditions.push(
      `sequence_number ${beyond}= ${sequence}`,
      `(sequence_number, hash) ${beyond} (${sequence}, ${parameters.string(after.hash)})`
    )
  }
  const inOrder = `ORDER BY sequence_number ${order}, hash ${order}`
  return store.read(
    {
      operation: "scan",
      parameters,
      sql:
        "SELECT sequence_number, hash, body FROM (SELECT sequence_number, hash, body,"
        + ` sum(length(body)) OVER (${inOrder}`
        + " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before"
        + ` FROM (SELECT sequence_number, hash, body FROM ${store.eventsOf(final)}`
        + ` WHERE ${conditions.join(" AND ")} ${inOrder} LIMIT ${CHUNK_ROWS_MAX}))`
        + ` WHERE bytes_before < ${CHUNK_BYTES_MAX} ${inOrder}`
    },
    (row) => ({ sequenceNumber: row.uint64(), hash: row.string(), body: row.string() })
  )
}

const lastSequence = (store: StoreClient, tenantId: string) => {
  const parameters = new Parameters()
  return store.readOne(
    {
      operation: "scan",
      parameters,
      sql:
        `SELECT max(sequence_number) FROM ${store.events}`
        + ` WHERE tenant_id = ${parameters.string(tenantId)}`
    },
    (row) => row.uint64()
  )
}

export const makeScan =
  (store: StoreClient): Store["scan"] =>
  (query, final) =>
    Stream.unwrap(
      Effect.gen(function* () {
        // A scan that follows its own tenant's new events would have no end.
        const last = yield* lastSequence(store, query.tenantId)
        const toSequence = Math.min(last, query.filter.toSequence ?? last)
        const bounded = { ...query, filter: { ...query.filter, toSequence } }
        return Stream.paginate(undefined as Place | undefined, (after) =>
          scanChunk(store, bounded, final, after).pipe(
            Effect.map((rows) => {
              const place = rows.at(-1)
              const bodies = rows.map(({ body }) => body)
              return place === undefined
                ? ([[], Option.none<Place | undefined>()] as const)
                : ([[bodies], Option.some<Place | undefined>(place)] as const)
            })
          )
        )
      })
    )

export const makeById =
  (store: StoreClient): Store["byId"] =>
  (tenantId, id, sequenceNumber, final) => {
    const parameters = new Parameters()
    const condition = filterCondition(
      tenantId,
      {
        id,
        metadata: [],
        ...(sequenceNumber === undefined
          ? {}
          : { fromSequence: sequenceNumber, toSequence: sequenceNumber })
      },
      parameters
    )
    return store
      .read(
        {
          operation: "byId",
          parameters,
          sql:
            `SELECT sequence_number, body FROM ${store.eventsOf(final)} WHERE ${condition}`
            + " ORDER BY sequence_number, hash LIMIT 1"
        },
        (row) => ({ sequenceNumber: row.uint64(), body: row.string() })
      )
      .pipe(Effect.map(([found]) => found))
  }
