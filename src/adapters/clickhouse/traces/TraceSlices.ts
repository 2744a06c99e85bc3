/**
 * Lists inside one execution in pieces of bounded size: facts, events of a span, spans with their
 * facts. First the places and sizes of what comes next, which is cheap however large the texts are;
 * then the texts of as many as fit. Nothing is sorted, or sent, that is not part of the piece.
 */
import { Effect } from "effect"
import type {
  EventPlace,
  PageBounds,
  SpanEventPage,
  SpanPage,
  SpanPlace,
  TraceStore
} from "../../../ports/TraceStore.ts"
import { CHUNK_BYTES_MAX, CHUNK_ROWS_MAX } from "../client/Chunks.ts"
import { Parameters } from "../client/Parameters.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { textSet } from "../client/TextSets.ts"
import { Scope } from "./TraceColumns.ts"
import { ofExecution } from "./TraceSql.ts"

type Store = TraceStore["Service"]

/** How many of these, in order, fit; one always does. `isCut` if any is left. */
const fitting = <A extends { readonly bytes: number }>(
  sized: ReadonlyArray<A>,
  { bytesMax, itemsMax }: PageBounds
): { readonly kept: ReadonlyArray<A>; readonly isCut: boolean } => {
  let bytes = 0
  let count = 0
  for (const item of sized) {
    if (count === itemsMax || (count > 0 && bytes + item.bytes > bytesMax)) break
    bytes += item.bytes
    count += 1
  }
  return { kept: sized.slice(0, count), isCut: count < sized.length }
}

/** A stored fact, and where it is in the topic. */
export interface PlacedFact {
  readonly partition: number
  readonly offset: number
  readonly factNumber: number
  readonly hash: string
  readonly body: string
}

const CHUNK: PageBounds = { itemsMax: CHUNK_ROWS_MAX, bytesMax: CHUNK_BYTES_MAX }

/** Facts in the order of their numbers, the newest version of each. */
const IN_ORDER = "ORDER BY fact_number, hash, version DESC LIMIT 1 BY fact_number, hash"

/** The facts that meet a condition and follow `after`, as many as fit into a chunk. */
export const factChunk = Effect.fnUntraced(function* (
  store: StoreClient,
  operation: string,
  condition: string,
  parameters: Parameters,
  after: Pick<PlacedFact, "factNumber" | "hash"> | undefined
) {
  const beyond =
    after === undefined
      ? ""
      : ` AND fact_number >= ${parameters.integer(after.factNumber)}`
        + ` AND (fact_number, hash) > (${parameters.integer(after.factNumber)},`
        + ` ${parameters.string(after.hash)})`
  const sized = yield* store.read(
    {
      operation,
      parameters,
      sql:
        `SELECT fact_number, hash, length(body) FROM ${store.facts}`
        + ` WHERE ${condition}${beyond} ${IN_ORDER} LIMIT ${CHUNK_ROWS_MAX}`
    },
    (row) => ({ factNumber: row.uint64(), hash: row.string(), bytes: row.uint64() })
  )
  const last = fitting(sized, CHUNK).kept.at(-1)
  if (last === undefined) return []
  const upTo = parameters.integer(last.factNumber)
  return yield* store.read(
    {
      operation,
      parameters,
      isBulk: true,
      sql:
        `SELECT kafka_partition, kafka_offset, fact_number, hash, body FROM ${store.facts}`
        + ` WHERE ${condition}${beyond} AND fact_number <= ${upTo}`
        + ` AND (fact_number, hash) <= (${upTo}, ${parameters.string(last.hash)}) ${IN_ORDER}`
    },
    (row): PlacedFact => ({
      partition: row.uint32(),
      offset: row.uint64(),
      factNumber: row.uint64(),
      hash: row.string(),
      body: row.string()
    })
  )
})

/** Events in the order of their numbers, the newest version of each. */
const EVENTS_IN_ORDER =
  "ORDER BY sequence_number, hash, version DESC LIMIT 1 BY sequence_number, hash"

/** Conditions on what is between two places, the first of them left out. */
const between = (
  after: EventPlace | undefined,
  upTo: EventPlace | undefined,
  parameters: Parameters
): string =>
  (
    [
      [">", after],
      ["<=", upTo]
    ] as const
  )
    .map(([sign, place]) => {
      if (place === undefined) return ""
      const sequence = parameters.integer(place.sequenceNumber)
      return (
        ` AND sequence_number ${sign[0]}= ${sequence}`
        + ` AND (sequence_number, hash) ${sign} (${sequence}, ${parameters.string(place.hash)})`
      )
    })
    .join("")

export const makeSpanEvents = (store: StoreClient): Store["spanEvents"] =>
  Effect.fn("TraceStore.spanEvents")(function* (tenantId, { executionId, spanId }, after, bounds) {
    const parameters = new Parameters()
    const ofSpan =
      ofExecution(tenantId, executionId, parameters, `scope = ${Scope.event}`)
      + ` AND span_id = ${parameters.string(spanId)}`
    const sized = yield* store.read(
      {
        operation: "spanEvents",
        parameters,
        sql:
          `SELECT sequence_number, hash, length(body) FROM ${store.facts}`
          + ` WHERE ${ofSpan}${between(after, undefined, parameters)} ${EVENTS_IN_ORDER}`
          + ` LIMIT ${parameters.integer(bounds.itemsMax + 1)}`
      },
      (row) => ({ sequenceNumber: row.uint64(), hash: row.string(), bytes: row.uint64() })
    )
    const { isCut, kept } = fitting(sized, bounds)
    const last = kept.at(-1)
    if (last === undefined) return { facts: [], next: undefined }
    const facts = yield* store.read(
      {
        operation: "spanEvents",
        parameters,
        isBulk: true,
        sql:
          `SELECT body FROM ${store.facts}`
          + ` WHERE ${ofSpan}${between(after, last, parameters)} ${EVENTS_IN_ORDER}`
      },
      (row) => row.string()
    )
    const page: SpanEventPage = {
      facts,
      next: isCut ? { sequenceNumber: last.sequenceNumber, hash: last.hash } : undefined
    }
    return page
  })

/** Facts of the spans with these ids, in the order of their numbers, by span. */
const factsOfSpans = (
  store: StoreClient,
  ofSpans: string,
  parameters: Parameters,
  ids: ReadonlyArray<string>
) =>
  store
    .read(
      {
        operation: "spans",
        parameters,
        isBulk: true,
        sql:
          `SELECT span_id, body FROM ${store.facts} WHERE ${ofSpans}`
          + ` AND span_id IN ${textSet(ids)} ${IN_ORDER}`
      },
      (row) => ({ id: row.string(), body: row.string() })
    )
    .pipe(Effect.map((rows) => Map.groupBy(rows, ({ id }) => id)))

export const makeSpans = (store: StoreClient): Store["spans"] =>
  Effect.fn("TraceStore.spans")(function* (tenantId, executionId, after, bounds) {
    const parameters = new Parameters()
    const { last = Number.MAX_SAFE_INTEGER } = bounds
    const ofSpans =
      ofExecution(tenantId, executionId, parameters, `scope = ${Scope.span}`)
      + ` AND chain_sequence <= ${parameters.integer(last)}`
    const isStart = "type = 'span.started'"
    const place = "(started, number)"
    const beyond =
      after === undefined
        ? ""
        : ` AND ${place} > (${parameters.bind("Int64", after.startedAt)},`
          + ` ${parameters.integer(after.factNumber)})`
    const sized = yield* store.read(
      {
        operation: "spans",
        parameters,
        sql:
          "SELECT span_id, started, number, bytes FROM (SELECT span_id,"
          + ` toUnixTimestamp64Micro(argMinIf(started_at, fact_number, ${isStart})) AS started,`
          + ` minIf(fact_number, ${isStart}) AS number, sum(length(body)) AS bytes`
          + ` FROM ${store.facts} WHERE ${ofSpans} GROUP BY span_id)`
          + ` WHERE number > 0${beyond} ORDER BY started, number, span_id`
          + ` LIMIT ${parameters.integer(bounds.itemsMax + 1)}`
      },
      (row) => ({
        id: row.string(),
        startedAt: row.int64(),
        factNumber: row.uint64(),
        bytes: row.uint64()
      })
    )
    const { isCut, kept } = fitting(sized, bounds)
    if (kept.length === 0) return { spans: [], next: undefined }
    const facts = yield* factsOfSpans(
      store,
      ofSpans,
      parameters,
      kept.map(({ id }) => id)
    )
    const spans = kept.map(({ factNumber, id, startedAt }) => {
      const at: SpanPlace = { startedAt, factNumber }
      return { id, place: at, facts: (facts.get(id) ?? []).map(({ body }) => body) }
    })
    const page: SpanPage = { spans, next: isCut ? spans.at(-1)?.place : undefined }
    return page
  })
