/** The role projection: writes what the topics say into the query store. */
import { Effect } from "effect"
import { runProjection } from "../actors/projection/Projection.ts"
import type { OpenedStore } from "./Store.ts"

/** Milliseconds after which an insert, given again if need be, has ended on a server. */
const SERVER_SETTLE_MS = 70_000

/** Starts it; comes back with the partitions that it works on right now. */
export const startProjection = Effect.fnUntraced(function* ({ engine, stores }: OpenedStore) {
  const settleMs = engine === undefined ? SERVER_SETTLE_MS : 0
  const { running } = yield* runProjection({ settleMs }).pipe(Effect.provideContext(yield* stores))
  return running
})
