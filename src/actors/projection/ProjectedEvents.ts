/** Projects `alk.events`: the rows that lists show, in the order of the chains. */
import { Effect } from "effect"
import { type ChainLink, linkOf } from "../../domain/chain/ChainLink.ts"
import type { LogRecord } from "../../ports/EventLog.ts"
import {
  type ConflictRow,
  type EventRow,
  EventStore,
  NOT_CANONICAL
} from "../../ports/EventStore.ts"
import {
  addTo,
  bodyOf,
  conflictRow,
  insertAll,
  measured,
  type ProjectedTopic,
  refusalOf,
  type Segment,
  storeConflicts,
  strayReasonOf,
  tenantOf
} from "./ProjectedTopic.ts"
import {
  type ErasedEvents,
  erasedTargetsOf,
  erasedTogether,
  isEventOf
} from "./ProjectionErasure.ts"
import type { ChainLinks, Links } from "./ProjectionLinks.ts"
import { isGone, type RemovedChains } from "./RemovedChains.ts"

interface Rows {
  /** In order, cut before each event that erases another one. */
  readonly events: Array<Segment<EventRow, ErasedEvents>>
  readonly conflicts: Array<ConflictRow>
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
    const erased = erasedTargetsOf(body)
    addTo(into.events, { partition, offset: record.offset, body }, erased, erasedTogether)
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

const insertEvents = Effect.fnUntraced(function* ({ conflicts, events }: Rows) {
  const store = yield* EventStore
  const others: Array<ConflictRow> = []
  const insert = (rows: ReadonlyArray<EventRow>) =>
    Effect.map(store.insertEvents(rows), (left) => void others.push(...left.map(otherForm)))
  for (const { erase, rows } of events) {
    if (erase !== undefined) yield* store.eraseDetails(erase.tenantId, erase.erasures)
    yield* measured(rows.length, insertAll(rows, insert))
  }
  yield* storeConflicts("events", [...conflicts, ...others], store.insertConflicts)
})

export const projectedEvents: ProjectedTopic = {
  topic: "events",
  isRecord: isEventOf,
  begin: (links) => {
    const rows: Rows = { events: [], conflicts: [] }
    return {
      take: (partition, record) => takeEvent(rows, links, partition, record),
      store: Effect.suspend(() => insertEvents(rows))
    }
  }
}
