/** The role projection: writes what the topics say into the query store. */
import { Context, Effect } from "effect"
import { runProjection } from "../actors/projection/Projection.ts"
import { EventStore } from "../ports/EventStore.ts"
import { keepingRecent, type RecentEvents } from "../services/ingest/RecentEvents.ts"
import type { OpenedStore } from "./Store.ts"

/** Milliseconds after which an insert, given again if need be, has ended on a server. */
const SERVER_SETTLE_MS = 70_000

/** Starts it; comes back with the partitions that it works on right now, and how far it is. */
export const startProjection = Effect.fnUntraced(function* (
  { engine, stores }: OpenedStore,
  /** Where the API of this process looks for new events first. */
  recent: RecentEvents["Service"] | undefined
) {
  const settleMs = engine === undefined ? SERVER_SETTLE_MS : 0
  const opened = yield* stores
  const stored = Context.get(opened, EventStore)
  const store = recent === undefined ? stored : keepingRecent(stored, recent)
  return yield* runProjection({ settleMs }).pipe(
    Effect.provideService(EventStore, store),
    Effect.provideContext(opened)
  )
})
