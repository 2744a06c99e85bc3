/** Projects `alk.events`: the rows that lists show, in the order of the chains. */

import { Effect } from "effect"
import { type ChainLink, linkOf } from "../../domain/chain/ChainLink.ts"
import { addTo } from "../../domain/Lists.ts"
import type { LogRecord } from "../../ports/EventLog.ts"
import {
  type ConflictRow,
  type EventErasure,
  type EventRow,
  EventStore,
  NOT_CANONICAL
} from "../../ports/EventStore.ts"
import {
  bodyOf,
  conflictRow,
  insertAll,
  measured,
  type ProjectedTopic,
  refusalOf,
  storeConflicts,
  strayReasonOf,
  tenantOf
} from "./ProjectedTopic.ts"
import { erasedRecord, erasedTargetOf, isErased, isEventOf } from "./ProjectionErasure.ts"
import type { ChainLinks, Links } from "./ProjectionLinks.ts"
import { isGone, type RemovedChains } from "./RemovedChains.ts"

interface Rows {
  /** In order, without the details that a later one of them erases. */
  readonly events: Array<EventRow>
  /** Where they are in the list, by tenant and sequence; as far as an erasure has needed it. */
  readonly places: Map<string, number>
  /** Erasures of what is stored already, by tenant. */
  readonly erasures: Map<string, Array<EventErasure>>
  readonly conflicts: Array<ConflictRow>
}

/** No tenant has a slash in it. */
const placeKey = (tenantId: string, sequence: number): string => `${tenantId}/${sequence}`

/**
 * What is stored already is erased before anything else is stored; a row that is not stored yet loses
 * its details here. So a thousand erasures are one, whatever events are between them.
 */
const erase = (into: Rows, tenantId: string, erasure: EventErasure): void => {
  const { events, places } = into
  for (let at = places.size; at < events.length; at++) {
    const link = linkOf(events[at]!.body)!
    places.set(placeKey(link.tenantId, link.sequenceNumber), at)
  }
  const { erasedAt, sequenceNumber } = erasure
  const at = places.get(placeKey(tenantId, sequenceNumber))
  const row = at === undefined ? undefined : events[at]
  if (row !== undefined) {
    const record = row.body.toString()
    const left = isErased(record) ? undefined : erasedRecord(record, erasedAt)
    if (left !== undefined) events[at!] = { ...row, body: Buffer.from(left) }
  }
  addTo(into.erasures, tenantId, erasure)
}

/** Adds a record to the rows, unless it was removed, or is not shown: then says why. */
const addLinked = (
  into: Rows,
  links: Links,
  removed: RemovedChains,
  partition: number,
  record: LogRecord,
  link: ChainLink | undefined
): string | undefined => {
  const tenantId = tenantOf(record)
  if (link === undefined) return "unreadable"
  const reason = refusalOf(link, tenantId, links.get(tenantId))
  if (reason !== undefined) return reason
  if (link.sequenceNumber <= removed(tenantId, "events")) {
    links.set(tenantId, link)
    return undefined
  }
  try {
    const body = bodyOf(record)
    const erasure = erasedTargetOf(body)
    if (erasure !== undefined) erase(into, tenantId, erasure)
    into.events.push({ partition, offset: record.offset, body })
  } catch {
    // Bytes that only end like an event.
    return "unreadable"
  }
  links.set(tenantId, link)
  return undefined
}

const takeEvent = (
  into: Rows,
  { events: links, own, removed }: ChainLinks,
  partition: number,
  record: LogRecord
): void => {
  const link = record.value === null ? undefined : linkOf(record.value)
  const tenantId = tenantOf(record)
  const reason = own(partition).isOwn("events", record.offset)
    ? addLinked(into, links, removed, partition, record, link)
    : strayReasonOf(link, tenantId, links.get(tenantId))
  if (reason === undefined || isGone(removed, tenantId)) return
  into.conflicts.push(conflictRow(partition, record, reason, link?.sequenceNumber))
}

/** The row of a record that links, in another form than alk writes. */
const otherForm = ({ body, offset, partition }: EventRow): ConflictRow => {
  const link = linkOf(body)
  return {
    partition,
    offset,
    tenantId: link?.tenantId ?? "",
    sequenceNumber: link?.sequenceNumber ?? 0,
    reason: NOT_CANONICAL,
    body
  }
}

const insertEvents = Effect.fnUntraced(function* ({ conflicts, erasures, events }: Rows) {
  const store = yield* EventStore
  const others: Array<ConflictRow> = []
  const insert = (rows: ReadonlyArray<EventRow>) =>
    Effect.map(store.insertEvents(rows), (left) => void others.push(...left.map(otherForm)))
  // In this order nothing is lost when the projection ends in between: the erasure is done again
  // with the row that asks for it.
  for (const [tenantId, some] of erasures) yield* store.eraseDetails(tenantId, some)
  yield* measured(events.length, insertAll(events, insert))
  yield* storeConflicts("events", [...conflicts, ...others], store.insertConflicts)
})

export const projectedEvents: ProjectedTopic = {
  topic: "events",
  isRecord: isEventOf,
  begin: (links) => {
    const rows: Rows = { events: [], places: new Map(), erasures: new Map(), conflicts: [] }
    return {
      take: (partition, record) => takeEvent(rows, links, partition, record),
      store: Effect.suspend(() => insertEvents(rows))
    }
  }
}
