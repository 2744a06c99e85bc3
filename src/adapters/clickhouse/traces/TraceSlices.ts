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
import type { Parameters, Statement } from "../client/Parameters.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { textSet } from "../client/TextSets.ts"
import { countedOfSpans } from "./CountedFacts.ts"
import { Scope } from "./TraceColumns.ts"
import { IN_ORDER, newestBy, ofExecution } from "./TraceSql.ts"

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
  readonly executionId: string
  readonly factNumber: number
  readonly hash: string
  readonly mac: string
  readonly body: string
}

const CHUNK: PageBounds = { itemsMax: CHUNK_ROWS_MAX, bytesMax: CHUNK_BYTES_MAX }

type FactKey = Pick<PlacedFact, "executionId" | "factNumber" | "hash">

const beside = ({ executionId, factNumber, hash }: FactKey, sign: ">" | "<=", bind: Parameters) => {
  const id = bind.string(executionId)
  const key = `(${id}, ${bind.integer(factNumber)}, ${bind.string(hash)})`
  return `execution_id ${sign[0]}= ${id} AND (execution_id, fact_number, hash) ${sign} ${key}`
}

/** The facts that meet a condition and follow `after`, as many as fit into a chunk. */
export const factChunk = Effect.fnUntraced(function* (
  store: StoreClient,
  operation: string,
  condition: Statement,
  after: FactKey | undefined
) {
  const following: Statement = (bind) =>
    condition(bind) + (after === undefined ? "" : ` AND ${beside(after, ">", bind)}`)
  const sized = yield* store.read(
    operation,
    (bind) =>
      `SELECT execution_id, fact_number, hash, length(body) FROM ${store.facts}`
      + ` WHERE ${following(bind)} ${IN_ORDER} LIMIT ${CHUNK_ROWS_MAX}`,
    (row) => ({
      executionId: row.string(),
      factNumber: row.uint64(),
      hash: row.string(),
      bytes: row.uint64()
    })
  )
  const last = fitting(sized, CHUNK).kept.at(-1)
  if (last === undefined) return []
  return yield* store.read(
    operation,
    (bind) =>
      "SELECT kafka_partition, kafka_offset, execution_id, fact_number, hash, mac, body"
      + ` FROM ${store.facts} WHERE ${following(bind)} AND ${beside(last, "<=", bind)} ${IN_ORDER}`,
    (row): PlacedFact => ({
      partition: row.uint32(),
      offset: row.uint64(),
      executionId: row.string(),
      factNumber: row.uint64(),
      hash: row.string(),
      mac: row.string(),
      body: row.string()
    }),
    { isBulk: true }
  )
})

export const makeSpanEvents = (store: StoreClient): Store["spanEvents"] =>
  Effect.fn("TraceStore.spanEvents")(function* (tenantId, { executionId, spanId }, after, bounds) {
    const beside = (bind: Parameters, sign: ">" | "<=", place: EventPlace | undefined) =>
      place === undefined
        ? ""
        : ` AND ${bind.beside("sequence_number", sign, [place.sequenceNumber, place.hash])}`
    const following: Statement = (bind) =>
      ofExecution(tenantId, executionId, bind, `scope = ${Scope.event}`)
      + ` AND span_id = ${bind.string(spanId)}${beside(bind, ">", after)}`
    const inOrder = newestBy("sequence_number, hash")
    const sized = yield* store.read(
      "spanEvents",
      (bind) =>
        `SELECT sequence_number, hash, length(body) FROM ${store.facts}`
        + ` WHERE ${following(bind)} ${inOrder} LIMIT ${bind.integer(bounds.itemsMax + 1)}`,
      (row) => ({ sequenceNumber: row.uint64(), hash: row.string(), bytes: row.uint64() })
    )
    const { isCut, kept } = fitting(sized, bounds)
    const last = kept.at(-1)
    if (last === undefined) return { facts: [], next: undefined }
    const facts = yield* store.read(
      "spanEvents",
      (bind) =>
        `SELECT body FROM ${store.facts}`
        + ` WHERE ${following(bind)}${beside(bind, "<=", last)} ${inOrder}`,
      (row) => row.string(),
      { isBulk: true }
    )
    const page: SpanEventPage = {
      facts,
      next: isCut ? { sequenceNumber: last.sequenceNumber, hash: last.hash } : undefined
    }
    return page
  })

const SPAN_STARTED = "type = 'span.started'"

/** Places and sizes of the spans that follow `after`. */
const sizedSpans = (
  store: StoreClient,
  ofSpans: Statement,
  after: SpanPlace | undefined,
  limit: number
) =>
  store.read(
    "spans",
    (bind) => {
      const beyond =
        after === undefined
          ? ""
          : ` AND (started, number) >`
            + ` (${bind.as("Int64", after.startedAt)}, ${bind.integer(after.factNumber)})`
      return (
        "SELECT span_id, started, number, bytes FROM (SELECT span_id,"
        + ` toUnixTimestamp64Micro(argMinIf(started_at, fact_number, ${SPAN_STARTED})) AS started,`
        + ` minIf(fact_number, ${SPAN_STARTED}) AS number, sum(length(body)) AS bytes`
        + ` FROM ${store.facts} WHERE ${ofSpans(bind)} GROUP BY span_id)`
        + ` WHERE number > 0${beyond} ORDER BY started, number, span_id`
        + ` LIMIT ${bind.integer(limit)}`
      )
    },
    (row) => ({
      id: row.string(),
      startedAt: row.int64(),
      factNumber: row.uint64(),
      bytes: row.uint64()
    })
  )

export const makeSpans = (store: StoreClient): Store["spans"] =>
  Effect.fn("TraceStore.spans")(function* (tenantId, executionId, after, bounds) {
    const { last = Number.MAX_SAFE_INTEGER } = bounds
    const ofSpans: Statement = (bind) =>
      ofExecution(tenantId, executionId, bind, `scope = ${Scope.span}`)
      + ` AND chain_sequence <= ${bind.integer(last)}`
    const sized = yield* sizedSpans(store, ofSpans, after, bounds.itemsMax + 1)
    const { isCut, kept } = fitting(sized, bounds)
    if (kept.length === 0) return { spans: [], next: undefined }
    // Of one that is too large by itself, what was sent again and again: the rest fits.
    const isOver = kept[0]!.bytes > bounds.bytesMax
    const rows = yield* store.read(
      "spans",
      (bind) => {
        const ofKept = `${ofSpans(bind)} AND span_id IN ${textSet(kept.map(({ id }) => id))}`
        const shown = isOver ? ` AND ${countedOfSpans(store, ofKept)}` : ""
        return `SELECT span_id, body FROM ${store.facts} WHERE ${ofKept}${shown} ${IN_ORDER}`
      },
      (row) => ({ id: row.string(), body: row.string() }),
      { isBulk: true }
    )
    const facts = Map.groupBy(rows, ({ id }) => id)
    const spans = kept.map(({ factNumber, id, startedAt }) => {
      const at: SpanPlace = { startedAt, factNumber }
      return { id, place: at, facts: (facts.get(id) ?? []).map(({ body }) => body) }
    })
    const page: SpanPage = { spans, next: isCut ? spans.at(-1)?.place : undefined }
    return page
  })
