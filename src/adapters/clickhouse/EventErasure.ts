/**
 * Takes the details out of stored events, in place: a mutation replaces whole parts at once, so no
 * list ever shows an event twice or not at all meanwhile. What an erased event looks like is the
 * domain's to say.
 */
import { Effect } from "effect"
import type { AuditEvent } from "../../domain/AuditEvent.ts"
import { ERASURE_ACTION, erasureOf } from "../../domain/Erasure.ts"
import { eraseEvent } from "../../domain/HashChain.ts"
import type { EventErasure, EventStore, StoreUnavailable } from "../../ports/EventStore.ts"
import { Parameters } from "./EventFilterSql.ts"
import type { StoreClient } from "./StoreClient.ts"

/** Events and bytes of one mutation at most: what is left of them stands in the statement. */
const MUTATION_EVENTS_MAX = 64
const MUTATION_BYTES_MAX = 65_536
/** Erasure events that are read at a time. */
const RECORDS_MAX = 1_000

const DIGEST = "lower(hex(SHA256(body)))"

type Store = EventStore["Service"]

interface Replacement {
  readonly sequenceNumber: number
  /** SHA-256 of the bytes as they are: rows that somebody forged may share everything else. */
  readonly digest: string
  readonly body: string
}

/** Undefined if the bytes are not those of an event: what somebody wrote there is not ours. */
const erased = (body: string, erasedAt: string): string | undefined => {
  try {
    return eraseEvent(JSON.parse(body) as AuditEvent, erasedAt)
  } catch {
    // Verification reports such a row.
    return undefined
  }
}

/** What the rows at these sequences have to become; rows that are that already are left out. */
const replacements = (
  store: StoreClient,
  tenantId: string,
  erasures: ReadonlyArray<EventErasure>
) => {
  const parameters = new Parameters()
  // Of two erasures of one event the first counts: in a live view the second finds nothing.
  const erasedAt = new Map(
    erasures.toReversed().map((erasure) => [erasure.sequenceNumber, erasure.erasedAt])
  )
  const sequences = [...erasedAt.keys()].map((sequence) => parameters.integer(sequence))
  return store.read({
    operation: "eraseDetails",
    parameters,
    sql: `SELECT sequence_number, ${DIGEST}, body FROM ${store.events}`
      + ` WHERE tenant_id = ${parameters.string(tenantId)}`
      + ` AND sequence_number IN (${sequences.join(", ")})`
  }, (row) => ({ sequenceNumber: row.uint64(), digest: row.string(), body: row.string() })).pipe(
    Effect.map((rows) =>
      rows.flatMap(({ body, digest, sequenceNumber }): ReadonlyArray<Replacement> => {
        if (body.includes('"erased_at":') && !body.includes('"details_salt":')) return []
        const replaced = erased(body, erasedAt.get(sequenceNumber)!)
        return replaced === undefined ? [] : [{ sequenceNumber, digest, body: replaced }]
      })
    )
  )
}

const replace = (
  store: StoreClient,
  tenantId: string,
  rows: ReadonlyArray<Replacement>
) => {
  const parameters = new Parameters()
  const list = (texts: ReadonlyArray<string>) =>
    `[${texts.map((text) => parameters.string(text)).join(", ")}]`
  const sequences = [...new Set(rows.map((row) => row.sequenceNumber))].map((sequence) =>
    parameters.integer(sequence)
  )
  const digests = list(rows.map(({ digest }) => digest))
  return store.change({
    operation: "eraseDetails",
    parameters,
    // The columns that are made of details are what they are for an event that never had any.
    sql: `ALTER TABLE ${store.events} UPDATE`
      + ` body = transform(${DIGEST}, ${digests}, ${list(rows.map(({ body }) => body))}, body),`
      + " metadata = '',"
      + " search = lowerUTF8(arrayStringConcat("
      + "[action, actor_id, '', resource_id, resource_type, ''], '\\0'))"
      + ` WHERE tenant_id = ${parameters.string(tenantId)}`
      + ` AND sequence_number IN (${sequences.join(", ")})`
      + ` AND ${DIGEST} IN (${digests.slice(1, -1)})`
      + " SETTINGS mutations_sync = 2"
  })
}

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

export const makeEraseDetails = (store: StoreClient): Store["eraseDetails"] =>
  Effect.fn("EventStore.eraseDetails")(function*(tenantId, erasures) {
    for (let at = 0; at < erasures.length; at += MUTATION_EVENTS_MAX) {
      const part = erasures.slice(at, at + MUTATION_EVENTS_MAX)
      const rows = yield* replacements(store, tenantId, part)
      for (const statement of toStatements(rows)) yield* replace(store, tenantId, statement)
    }
  })

interface ErasureRecord {
  readonly tenantId: string
  readonly sequenceNumber: number
  readonly body: string
}

/** What follows `after` of the stored events that erase others. */
const erasureRecords = (store: StoreClient, after: ErasureRecord | undefined) => {
  const parameters = new Parameters()
  const beyond = after === undefined
    ? ""
    : ` AND (tenant_id, sequence_number) > (${parameters.string(after.tenantId)},`
      + ` ${parameters.integer(after.sequenceNumber)})`
  return store.read({
    operation: "eraseAgain",
    parameters,
    sql: `SELECT tenant_id, sequence_number, body FROM ${store.events}`
      + ` WHERE action = ${parameters.string(ERASURE_ACTION)}${beyond}`
      + ` ORDER BY tenant_id, sequence_number LIMIT ${RECORDS_MAX}`
  }, (row): ErasureRecord => ({
    tenantId: row.string(),
    sequenceNumber: row.uint64(),
    body: row.string()
  }))
}

const erasureIn = (body: string): EventErasure | undefined => {
  try {
    const event = JSON.parse(body) as AuditEvent
    const erasure = erasureOf(event)
    return erasure && { sequenceNumber: erasure.sequence_number, erasedAt: event.created_at }
  } catch {
    // Verification reports such a row.
    return undefined
  }
}

/**
 * Erase again whatever the stored events ask for: rows that a late insert has brought back would
 * else win when they are merged.
 */
export const makeEraseAgain = (store: StoreClient): Effect.Effect<void, StoreUnavailable> => {
  const eraseDetails = makeEraseDetails(store)
  return Effect.gen(function*() {
    let after: ErasureRecord | undefined
    for (;;) {
      const records = yield* erasureRecords(store, after)
      for (const [tenantId, own] of Map.groupBy(records, (record) => record.tenantId)) {
        yield* eraseDetails(tenantId, own.flatMap(({ body }) => erasureIn(body) ?? []))
      }
      after = records.at(-1)
      if (records.length < RECORDS_MAX) return
    }
  })
}
