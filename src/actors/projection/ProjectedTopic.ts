/**
 * What the projection does with the records of one topic, and what its topics share: rows of
 * bounded inserts, erasures before the rows that ask for them, and records that do not link.
 */
import { Clock, Effect, Metric } from "effect"
import type { ChainLink } from "../../domain/chain/ChainLink.ts"
import type { Chain } from "../../domain/chain/Chains.ts"
import { RecordUnreadable } from "../../domain/json/RecordFields.ts"
import { histogramOf } from "../../domain/metrics/Metrics.ts"
import type { CheckpointStore } from "../../ports/CheckpointStore.ts"
import type { LogRecord } from "../../ports/EventLog.ts"
import {
  type ConflictRow,
  type EventStore,
  INSERT_BYTES_MAX,
  INSERT_ROWS_MAX,
  NOT_SEQUENCED,
  type StoreUnavailable
} from "../../ports/EventStore.ts"
import type { StoredTopic } from "../../ports/TopicRows.ts"
import type { TraceStore } from "../../ports/TraceStore.ts"
import { malformedRecords } from "../log/Malformed.ts"
import type { IsRecord } from "./Confirmation.ts"
import type { ChainLinks } from "./ProjectionLinks.ts"

/** The records of one topic that one fetch holds. */
export interface ProjectedBatch {
  /** @throws RecordUnreadable */
  readonly take: (partition: number, record: LogRecord) => void
  /** Brings the rows of all that were taken into the store, in order. */
  readonly store: Effect.Effect<void, StoreUnavailable, CheckpointStore | EventStore | TraceStore>
}

/** A topic that the store shows. */
export interface ProjectedTopic {
  readonly topic: StoredTopic
  /** Whether a stored row is its record; by default if the bytes are the same. */
  readonly isRecord?: IsRecord
  readonly begin: (links: ChainLinks) => ProjectedBatch
}

const flushRows = histogramOf("alk_projection_flush_rows")
const flushSeconds = histogramOf("alk_projection_flush_duration_seconds")

/** Why a link does not follow the one before it, if it does not. */
export const refusalOf = (link: ChainLink, tenantId: string, before: ChainLink | undefined) =>
  link.tenantId !== tenantId
    ? "tenant_mismatch"
    : link.sequenceNumber < 1
      ? "sequence_mismatch"
      : before !== undefined && link.sequenceNumber !== before.sequenceNumber + 1
        ? "sequence_mismatch"
        : before !== undefined && link.prevHash !== before.hash
          ? "prev_hash_mismatch"
          : undefined

/** Why a record that no sequencer has written is not shown. */
export const strayReasonOf = (
  link: ChainLink | undefined,
  tenantId: string,
  before: ChainLink | undefined
): string =>
  link === undefined ? "unreadable" : (refusalOf(link, tenantId, before) ?? NOT_SEQUENCED)

/** Bytes that end a field or a row on their way into the store; they can't be in compact JSON. */
const LINE_FEED = 10
const SEPARATOR = 1
/** Characters that no id holds. */
export const CONTROL = /[\u0000-\u001f]/

/** @throws RecordUnreadable for bytes that are no compact JSON */
export const bodyOf = ({ value }: LogRecord): Buffer => {
  const body = value ?? Buffer.alloc(0)
  if (body.includes(LINE_FEED) || body.includes(SEPARATOR)) {
    throw new RecordUnreadable("it holds raw control characters")
  }
  return body
}

/** The tenant that the key of a record names. */
export const tenantOf = ({ key }: LogRecord): string => key?.toString() ?? ""

/** The row of a record that is not shown; `sequence` is the one that it claims, if it has any. */
export const conflictRow = (
  partition: number,
  record: LogRecord,
  reason: string,
  sequence = 0
): ConflictRow => ({
  partition,
  offset: record.offset,
  tenantId: tenantOf(record),
  sequenceNumber: Number.isSafeInteger(sequence) && sequence >= 0 ? sequence : 0,
  reason,
  body: record.value ?? Buffer.alloc(0)
})

/** Cut rows into inserts of bounded size, in order. */
const toInserts = <Row extends { readonly body: Buffer }>(
  rows: ReadonlyArray<Row>
): ReadonlyArray<ReadonlyArray<Row>> => {
  const inserts: Array<Array<Row>> = []
  let current: Array<Row> = []
  let bytes = 0
  for (const row of rows) {
    const full = current.length >= INSERT_ROWS_MAX || bytes + row.body.length > INSERT_BYTES_MAX
    if (current.length > 0 && full) {
      inserts.push(current)
      current = []
      bytes = 0
    }
    current.push(row)
    bytes += row.body.length
  }
  if (current.length > 0) inserts.push(current)
  return inserts
}

/** Stores rows and measures how many, and how long it took. */
export const measured = Effect.fnUntraced(function* <E, R>(
  rows: number,
  insert: Effect.Effect<void, E, R>
) {
  const started = yield* Clock.currentTimeMillis
  yield* Effect.withSpan(insert, "projection.insert", { attributes: { rows } })
  if (rows === 0) return
  yield* Metric.update(flushRows, rows)
  yield* Metric.update(flushSeconds, ((yield* Clock.currentTimeMillis) - started) / 1_000)
})

/** Stores rows in inserts of bounded size. */
export const insertAll = <Row extends { readonly body: Buffer }, E, R>(
  rows: ReadonlyArray<Row>,
  insert: (part: ReadonlyArray<Row>) => Effect.Effect<void, E, R>
): Effect.Effect<void, E, R> => Effect.forEach(toInserts(rows), insert, { discard: true })

/** Keeps the records that are not part of a chain, logs and counts each. */
export const storeConflicts = <E, R>(
  chain: Chain,
  conflicts: ReadonlyArray<ConflictRow>,
  insert: (rows: ReadonlyArray<ConflictRow>) => Effect.Effect<void, E, R>
): Effect.Effect<void, E, R> =>
  Effect.andThen(
    insertAll(conflicts, insert),
    Effect.forEach(
      conflicts,
      ({ offset, partition, reason, sequenceNumber }) =>
        Effect.andThen(
          Effect.logError(`a record of alk.${chain} is no part of its chain and is not shown`, {
            partition,
            offset,
            sequenceNumber,
            reason
          }),
          Metric.update(Metric.withAttributes(malformedRecords, { topic: chain }), 1)
        ),
      { discard: true }
    )
  )
