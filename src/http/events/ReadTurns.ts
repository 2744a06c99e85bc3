/** Reads of many events take turns, so that those of one tenant don't make the others wait. */
import { Effect, Stream } from "effect"
import { tenantTurns } from "../messages/TenantSlots.ts"

/** Pages, statistics, facets and chunks of lines that the store works on at once, by tenant. */
const READS_AT_ONCE_MAX = 4

export const inReadTurn = tenantTurns(READS_AT_ONCE_MAX)

/** Each chunk is read in a turn of its own; none is held while the client reads. */
export const inReadTurns = <A, E, R>(
  tenantId: string,
  chunks: Stream.Stream<A, E, R>
): Stream.Stream<A, E, R> =>
  Stream.transformPull(chunks, (pull) => Effect.succeed(inReadTurn(tenantId, pull)))
