/**
 * Takes the details out of stored events, in place, so no list ever shows an event twice or not at
 * all meanwhile. An event that its columns hold is marked as erased, which hides its details from
 * every answer at once; they leave the disk when they are purged. One that keeps its bytes gets
 * others: what an erased event looks like is the domain's to say.
 */
import { Effect } from "effect"
import { linkOf } from "../../../domain/chain/ChainLink.ts"
import { ERASURE_ACTION, erasureOf } from "../../../domain/events/Erasure.ts"
import { eraseEvent } from "../../../domain/events/HashChain.ts"
import { parseEvent } from "../../../domain/events/StoredEvent.ts"
import type { EventErasure, EventStore } from "../../../ports/EventStore.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { digestOf, eraseSetAside, isErased, unerasedKeys } from "../topics/SetAside.ts"
import { IS_ERASED, NO_SALT } from "./EventText.ts"
import { SEARCH_LEFT } from "./SearchText.ts"
import { fromBytes, REWRITABLE } from "./StoreUpgrade.ts"

/** Events and bytes of one mutation at most: what is left of them is in the statement. */
const MUTATION_EVENTS_MAX = 64
const MUTATION_BYTES_MAX = 65_536
/** Erasure events that are read at a time. */
const RECORDS_MAX = 1_000

/** Of the bytes that a row keeps. */
const DIGEST = digestOf("body")

/** Rows that are marked and still have their details. */
const UNPURGED =
  `${IS_ERASED} AND body = '' AND (actor_email != '' OR resource_name != '' OR metadata != ''`
  + ` OR search != ${SEARCH_LEFT})`
const IS_MARKABLE = `body = '' AND NOT (${IS_ERASED})`

type Store = EventStore["Service"]

interface Replacement {
  readonly sequenceNumber: number
  /** SHA-256 of the bytes as they are: forged rows may share everything else. */
  readonly digest: string
  readonly body: string
}

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

/**
 * The lightweight update by which events get the times of their erasures; `more` is assigned too,
 * each with a comma after it.
 */
const markWhere = (
  store: StoreClient,
  tenantId: string,
  erasedAt: ErasedAt,
  condition: string,
  more = ""
) =>
  store.change("eraseDetails", (bind) => {
    const sequences = bind.integers([...erasedAt.keys()])
    const times = [...erasedAt.values()].map((time) => bind.time(time)).join(", ")
    return (
      `UPDATE ${store.events} SET ${more}`
      + ` erased_at = transform(sequence_number, [${sequences}], [${times}], erased_at)`
      + ` WHERE ${bind.tenant(tenantId)} AND sequence_number IN (${sequences})`
      + ` AND ${condition}`
    )
  })

/** Marks the rows whose columns are the event. */
const mark = (store: StoreClient, tenantId: string, erasedAt: ErasedAt) =>
  markWhere(store, tenantId, erasedAt, IS_MARKABLE)

/**
 * Makes rows that keep their bytes into such as are marked, where their columns give the bytes back:
 * a rewriting that is under way (StoreUpgrade.ts) would hold up a change of their bytes.
 */
const convert = (store: StoreClient, tenantId: string, erasedAt: ErasedAt) => {
  const { erased_at: _erasedAt, metadata, ...others } = fromBytes
  const changes = Object.entries({ ...others, body: "''" }).map(
    ([name, value]) => `${name} = ${value},`
  )
  const condition = `${REWRITABLE} AND metadata = ${metadata} AND NOT (${isErased("body")})`
  return markWhere(store, tenantId, erasedAt, condition, changes.join(" "))
}

/** What the rows at these sequences have to become that keep their bytes and are not that yet. */
const replacements = (store: StoreClient, tenantId: string, erasedAt: ErasedAt) =>
  store
    .read(
      "eraseDetails",
      (bind) =>
        `SELECT sequence_number, ${DIGEST}, body FROM ${store.events}`
        + ` WHERE ${bind.tenant(tenantId)}`
        + ` AND sequence_number IN (${bind.integers([...erasedAt.keys()])}) AND body != ''`,
      (row) => ({ sequenceNumber: row.uint64(), digest: row.string(), body: row.string() })
    )
    .pipe(
      Effect.map((rows) =>
        rows.flatMap(({ body, digest, sequenceNumber }): ReadonlyArray<Replacement> => {
          if (body.includes('"erased_at":') && !body.includes('"details_salt":')) return []
          const replaced = erased(body, erasedAt.get(sequenceNumber)!)
          return replaced === undefined ? [] : [{ sequenceNumber, digest, body: replaced }]
        })
      )
    )

/** True if some rows at these sequences have their details in their columns. */
const areMarkable = (store: StoreClient, tenantId: string, erasedAt: ErasedAt) =>
  store.readOne(
    "eraseDetails",
    (bind) =>
      `SELECT count() > 0 FROM ${store.events} WHERE ${bind.tenant(tenantId)}`
      + ` AND sequence_number IN (${bind.integers([...erasedAt.keys()])})`
      + ` AND ${IS_MARKABLE}`,
    (row) => row.uint8() === 1
  )

const replace = (store: StoreClient, tenantId: string, rows: ReadonlyArray<Replacement>) =>
  store.change("eraseDetails", (bind) => {
    const sequences = bind.integers([...new Set(rows.map((row) => row.sequenceNumber))])
    const digests = bind.strings(rows.map(({ digest }) => digest))
    const bodies = bind.strings(rows.map(({ body }) => body))
    // The columns that are made of details are what they are for an event that never had any.
    return (
      `ALTER TABLE ${store.events} UPDATE`
      + ` body = transform(${DIGEST}, [${digests}], [${bodies}], body),`
      + " metadata = '',"
      + ` search = ${SEARCH_LEFT}`
      + ` WHERE ${bind.tenant(tenantId)} AND sequence_number IN (${sequences})`
      + ` AND ${DIGEST} IN (${digests}) SETTINGS mutations_sync = 2`
    )
  })

/** As many as fit into a statement. */
const toStatements = (
  rows: ReadonlyArray<Replacement>
): ReadonlyArray<ReadonlyArray<Replacement>> => {
  const statements: Array<Array<Replacement>> = []
  let current: Array<Replacement> = []
  let bytes = 0
  for (const row of rows) {
    const more = Buffer.byteLength(row.body)
    if (current.length > 0 && bytes + more > MUTATION_BYTES_MAX) {
      statements.push(current)
      current = []
      bytes = 0
    }
    current.push(row)
    bytes += more
  }
  return current.length === 0 ? statements : [...statements, current]
}

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
        "SELECT DISTINCT tenant_id, sequence_number, JSONExtractString(json, 'erased_at')"
        + ` FROM ${store.events} WHERE ${own} AND ${isErased("json")} AND (tenant_id, sequence_number)`
        + ` IN (${unerasedKeys(store, "events", "sequence_number", own)})`
      )
    },
    (row) => ({ tenantId: row.string(), sequenceNumber: row.uint64(), erasedAt: row.string() })
  )
  for (const { tenantId, ...erasure } of found) yield* eraseAside(store, tenantId, [erasure])
})

export const makeEraseDetails = (store: StoreClient): Store["eraseDetails"] =>
  Effect.fn("EventStore.eraseDetails")(function* (tenantId, erasures) {
    for (let at = 0; at < erasures.length; at += MUTATION_EVENTS_MAX) {
      const part = erasures.slice(at, at + MUTATION_EVENTS_MAX)
      yield* eraseAside(store, tenantId, part)
      if (part.length === 0) continue
      const erasedAt = erasedAtOf(part)
      // Rows only ever go from bytes to columns, so what is columns is looked for last.
      if ((yield* replacements(store, tenantId, erasedAt)).length > 0) {
        yield* convert(store, tenantId, erasedAt)
        const rows = yield* replacements(store, tenantId, erasedAt)
        for (const statement of toStatements(rows)) yield* replace(store, tenantId, statement)
      }
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

/** Undefined for a row that is no event, which verification reports. */
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
