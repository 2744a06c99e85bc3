/**
 * What the store needs from time to time, by the process that projects the first partition: details of
 * erased events leave the disk.
 */
import { Effect, Schedule } from "effect"
import { EventStore } from "../../ports/EventStore.ts"

/** Between two purges: details are off the disk some minutes after an erasure. */
const PURGE_INTERVAL = "2 minutes"

const purge = EventStore.use((store) => store.purgeErased).pipe(
  Effect.tap((events) =>
    events === 0
      ? Effect.void
      : Effect.logInfo("the details of erased events have left the tables", { events })
  ),
  Effect.tapError((error) =>
    Effect.logWarning("the details of erased events could not be purged", {
      error: String(error.cause)
    })
  ),
  Effect.ignore
)

/** Takes care of the store for as long as its scope is open. */
export const storeMaintenance = Effect.repeat(purge, Schedule.spaced(PURGE_INTERVAL))
