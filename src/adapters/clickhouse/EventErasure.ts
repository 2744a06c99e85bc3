/**
 * Takes the details out of stored events, in place: a mutation replaces whole parts at once, so no
 * list ever shows an event twice or not at all meanwhile. What an erased event looks like is the
 * domain's to say.
 */
import { Effect } from "effect"
import type { AuditEvent } from "../../domain/AuditEvent.ts"
import { eraseEvent } from "../../domain/HashChain.ts"
import type { EventErasure, EventStore } from "../../ports/EventStore.ts"
import { Parameters } from "./EventFilterSql.ts"
import type { StoreClient } from "./StoreClient.ts"

/** Events of one mutation at most: their bodies stand in the statement. */
const MUTATION_EVENTS_MAX = 64

type Store = EventStore["Service"]

interface Replacement {
  readonly sequenceNumber: number
  readonly hash: string
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
  const erasedAt = new Map(
    erasures.map((erasure) => [erasure.sequenceNumber, erasure.erasedAt])
  )
  const sequences = [...erasedAt.keys()].map((sequence) => parameters.integer(sequence))
  return store.read({
    operation: "eraseDetails",
    parameters,
    sql: `SELECT sequence_number, hash, body FROM ${store.events}`
      + ` WHERE tenant_id = ${parameters.string(tenantId)}`
      + ` AND sequence_number IN (${sequences.join(", ")})`
  }, (row) => ({ sequenceNumber: row.uint64(), hash: row.string(), body: row.string() })).pipe(
    Effect.map((rows) =>
      rows.flatMap(({ body, hash, sequenceNumber }): ReadonlyArray<Replacement> => {
        if (body.includes('"erased_at":') && !body.includes('"details_salt":')) return []
        const replaced = erased(body, erasedAt.get(sequenceNumber)!)
        return replaced === undefined ? [] : [{ sequenceNumber, hash, body: replaced }]
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
  const hashes = list(rows.map(({ hash }) => hash))
  return store.change({
    operation: "eraseDetails",
    parameters,
    // The columns that are made of details are what they are for an event that never had any.
    sql: `ALTER TABLE ${store.events} UPDATE`
      + ` body = transform(hash, ${hashes}, ${list(rows.map(({ body }) => body))}, body),`
      + " metadata = '',"
      + " search = lowerUTF8(arrayStringConcat("
      + "[action, actor_id, '', resource_id, resource_type, ''], '\\0'))"
      + ` WHERE tenant_id = ${parameters.string(tenantId)}`
      + ` AND sequence_number IN (${sequences.join(", ")}) AND hash IN (${hashes.slice(1, -1)})`
      + " SETTINGS mutations_sync = 2"
  })
}

export const makeEraseDetails = (store: StoreClient): Store["eraseDetails"] =>
  Effect.fn("EventStore.eraseDetails")(function*(tenantId, erasures) {
    for (let at = 0; at < erasures.length; at += MUTATION_EVENTS_MAX) {
      const part = erasures.slice(at, at + MUTATION_EVENTS_MAX)
      const rows = yield* replacements(store, tenantId, part)
      if (rows.length > 0) yield* replace(store, tenantId, rows)
    }
  })
