/**
 * The last events that the projection of this process has brought into the store: the request that
 * waited for one is answered from here. What is read later is read from the store, which knows of
 * erasures; and where another process projects, so is the first answer.
 */

import { Context, Effect } from "effect"
import { linkOf } from "../../domain/chain/ChainLink.ts"
import { detachedCopy } from "../../domain/DetachedCopy.ts"
import type { EventRow, EventStore } from "../../ports/EventStore.ts"

/** Rows of an insert at most that are kept: in larger ones hardly an event has a request waiting. */
const ROWS_MAX = 2_000
const EVENTS_MAX = 4_096
const BYTES_MAX = 8 * 1_048_576

/** Where an event is, as its receipt says. */
export interface EventPlace {
  readonly partition: number
  readonly offset: number
  readonly tenantId: string
  readonly sequenceNumber: number
}

const keyOf = ({ offset, partition }: Pick<EventRow, "partition" | "offset">): string =>
  `${partition}/${offset}`

export class RecentEvents extends Context.Service<
  RecentEvents,
  {
    keep(rows: ReadonlyArray<EventRow>): void
    /** The stored JSON of an event, if it is among the last ones. */
    bodyOf(place: EventPlace): string | undefined
  }
>()("alk/RecentEvents") {}

/** None at first; events are in it once the projection puts them there, see `keepingRecent`. */
export const makeRecentEvents = (): RecentEvents["Service"] => {
  const bodies = new Map<string, Buffer>()
  let bytes = 0
  return RecentEvents.of({
    keep: (rows) => {
      if (rows.length > ROWS_MAX) return
      for (const row of rows) {
        const key = keyOf(row)
        bytes += row.body.length - (bodies.get(key)?.length ?? 0)
        bodies.set(key, detachedCopy(row.body))
      }
      for (const [key, body] of bodies) {
        if (bodies.size <= EVENTS_MAX && bytes <= BYTES_MAX) break
        bodies.delete(key)
        bytes -= body.length
      }
    },
    bodyOf: (place) => {
      const body = bodies.get(keyOf(place))
      const link = body && linkOf(body)
      return link?.tenantId === place.tenantId && link.sequenceNumber === place.sequenceNumber
        ? body?.toString()
        : undefined
    }
  })
}

/** The store, with the events that are inserted kept in memory once they are stored. */
export const keepingRecent = (
  store: EventStore["Service"],
  recent: RecentEvents["Service"]
): EventStore["Service"] => ({
  ...store,
  insertEvents: (rows) =>
    Effect.tap(store.insertEvents(rows), (others) =>
      Effect.sync(() =>
        recent.keep(others.length === 0 ? rows : rows.filter((row) => !others.includes(row)))
      )
    )
})
