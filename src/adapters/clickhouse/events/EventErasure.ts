/**
 * Takes the details out of stored events, in place, so no list ever shows an event twice or not at
 * all meanwhile. An event is marked as erased, which hides its details from every answer at once; they
 * leave the disk when they are purged.
 */
import { Effect } from "effect"
import { linkOf } from "../../../domain/chain/ChainLink.ts"
import { ERASURE_ACTION, erasureOf } from "../../../domain/events/Erasure.ts"
import { eraseEvent } from "../../../domain/events/HashChain.ts"
import { parseEvent } from "../../../domain/events/StoredEvent.ts"
import type { EventErasure, EventStore } from "../../../ports/EventStore.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { eraseSetAside, unerasedKeys } from "../topics/SetAside.ts"
import { IS_ERASED, NO_SALT, timeOf } from "./EventText.ts"
import { SEARCH_LEFT } from "./SearchText.ts"

/** Events of one update at most: when they are erased is in the statement. */
const UPDATE_EVENTS_MAX = 64
/** Erasure events that are read at a time. */
const RECORDS_MAX = 1_000

/** Rows that are marked and still have their details. */
const UNPURGED =
  `${IS_ERASED} AND (actor_email != '' OR resource_name != '' OR metadata != ''`
  + ` OR search != ${SEARCH_LEFT})`
const IS_MARKABLE = `NOT (${IS_ERASED})`

type Store = EventStore["Service"]

/** Undefined if the bytes are not those of an event: another program wrote them. */
const erased = (body: string, erasedAt: string): string | undefined => {
  const event = parseEvent(body)
  try {
    return event && eraseEvent(event, erasedAt)
  } catch {
    // Verification reports such a row.
    return undefined
  }
}

/** When events are erased, by sequence. */
type ErasedAt = ReadonlyMap<number, string>

/** Of two erasures of one event the first counts: in a live view the second finds nothing. */
const erasedAtOf = (erasures: ReadonlyArray<EventErasure>): ErasedAt =>
  new Map(erasures.toReversed().map((erasure) => [erasure.sequenceNumber, erasure.erasedAt]))

/** A lightweight update. */
const mark = (store: StoreClient, tenantId: string, erasedAt: ErasedAt) =>
  store.change("eraseDetails", (bind) => {
    const sequences = bind.integers([...erasedAt.keys()])
    const times = [...erasedAt.values()].map((time) => bind.time(time)).join(", ")
    return (
      `UPDATE ${store.events} SET`
      + ` erased_at = transform(sequence_number, [${sequences}], [${times}], erased_at)`
      + ` WHERE ${bind.tenant(tenantId)} AND sequence_number IN (${sequences})`
      + ` AND ${IS_MARKABLE}`
    )
  })

/** True if some rows at these sequences are not erased. */
const areMarkable = (store: StoreClient, tenantId: string, erasedAt: ErasedAt) =>
  store.readOne(
    "eraseDetails",
    (bind) =>
      `SELECT count() > 0 FROM ${store.events} WHERE ${bind.tenant(tenantId)}`
      + ` AND sequence_number IN (${bind.integers([...erasedAt.keys()])})`
      + ` AND ${IS_MARKABLE}`,
    (row) => row.uint8() === 1
  )

/** Take the details out of what was set aside at these sequences. */
const eraseAside = (
  store: StoreClient,
  tenantId: string,
  erasures: ReadonlyArray<EventErasure>
) => {
  const [first] = erasures
  if (first === undefined) return Effect.void
  const erasedAt = new Map(erasures.map((erasure) => [erasure.sequenceNumber, erasure.erasedAt]))
  const sequences = erasures.map(({ sequenceNumber }) => sequenceNumber)
  return eraseSetAside(
    store,
    "events",
    (bind) => `${bind.tenant(tenantId)} AND sequence_number IN (${bind.integers(sequences)})`,
    (body) => {
      const sequence = linkOf(Buffer.from(body))?.sequenceNumber ?? first.sequenceNumber
      return erased(body, erasedAt.get(sequence) ?? first.erasedAt)
    }
  )
}

/** Erase in what was set aside what is erased in the view. */
export const eraseCopies = Effect.fnUntraced(function* (store: StoreClient, partition: number) {
  const found = yield* store.read(
    "eraseDetails",
    (bind) => {
      const own = bind.partition(partition)
      return (
        `SELECT DISTINCT tenant_id, sequence_number, ${timeOf("erased_at")}`
        + ` FROM ${store.events} WHERE ${own} AND ${IS_ERASED} AND (tenant_id, sequence_number)`
        + ` IN (${unerasedKeys(store, "events", "sequence_number", own)})`
      )
    },
    (row) => ({ tenantId: row.string(), sequenceNumber: row.uint64(), erasedAt: row.string() })
  )
  for (const { tenantId, ...erasure } of found) yield* eraseAside(store, tenantId, [erasure])
})

export const makeEraseDetails = (store: StoreClient): Store["eraseDetails"] =>
  Effect.fn("EventStore.eraseDetails")(function* (tenantId, erasures) {
    for (let at = 0; at < erasures.length; at += UPDATE_EVENTS_MAX) {
      const part = erasures.slice(at, at + UPDATE_EVENTS_MAX)
      yield* eraseAside(store, tenantId, part)
      if (part.length === 0) continue
      const erasedAt = erasedAtOf(part)
      if (yield* areMarkable(store, tenantId, erasedAt)) yield* mark(store, tenantId, erasedAt)
    }
  })

/** The stored events of a partition that erase others, from an offset on. */
const erasureRecords = (store: StoreClient, partition: number, fromOffset: number) =>
  store.read(
    "eraseAgain",
    (bind) =>
      `SELECT tenant_id, kafka_offset, json FROM ${store.events}`
      + ` WHERE action = ${bind.string(ERASURE_ACTION)} AND ${bind.partition(partition)}`
      + ` AND kafka_offset >= ${bind.integer(fromOffset)}`
      + ` ORDER BY kafka_offset LIMIT ${RECORDS_MAX}`,
    (row) => ({ tenantId: row.string(), offset: row.uint64(), body: row.string() })
  )

/** Undefined for a row that is not an event, which verification reports. */
const erasureIn = (body: string): EventErasure | undefined => {
  const event = parseEvent(body)
  const erasure = event && erasureOf(event)
  return erasure && { sequenceNumber: erasure.sequence_number, erasedAt: event.created_at }
}

export const makeEraseAgain = (store: StoreClient): Store["eraseAgain"] => {
  const eraseDetails = makeEraseDetails(store)
  return Effect.fn("EventStore.eraseAgain")(function* (partition, fromOffset) {
    for (let from = fromOffset; ; ) {
      const records = yield* erasureRecords(store, partition, from)
      for (const [tenantId, own] of Map.groupBy(records, (record) => record.tenantId)) {
        yield* eraseDetails(
          tenantId,
          own.flatMap(({ body }) => erasureIn(body) ?? [])
        )
      }
      const last = records.at(-1)
      if (last === undefined || records.length < RECORDS_MAX) return
      from = last.offset + 1
    }
  })
}

/** Details of marked rows leave their columns, and the parts of the table with them. */
const purge = (store: StoreClient) =>
  store.mutate(
    "purgeErased",
    store.events,
    () =>
      "UPDATE actor_email = '', resource_name = '', metadata = '',"
      + ` details_salt = ${NO_SALT}, search = ${SEARCH_LEFT} WHERE ${UNPURGED}`
  )

export const makePurgeErased = (store: StoreClient): Store["purgeErased"] =>
  Effect.gen(function* () {
    const marked = yield* store.readOne(
      "purgeErased",
      () => `SELECT count() FROM ${store.events} WHERE ${UNPURGED}`,
      (row) => row.uint64()
    )
    if (marked > 0) yield* purge(store)
    return marked
  })
