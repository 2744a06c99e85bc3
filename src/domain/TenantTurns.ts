/**
 * Work of tenants that takes turns in this process: what one tenant asks for waits among itself, so
 * that none of it keeps other tenants from theirs.
 */
import { Effect, Semaphore, Stream } from "effect"

/** So many of a tenant at once, the others after them in their order; no tenant waits for another. */
export const tenantTurns = (limit: number) => {
  const tenants = new Map<string, { readonly turns: Semaphore.Semaphore; users: number }>()
  return <A, E, R>(tenantId: string, work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.acquireUseRelease(
      Effect.sync(() => {
        const own = tenants.get(tenantId) ?? { turns: Semaphore.makeUnsafe(limit), users: 0 }
        own.users += 1
        tenants.set(tenantId, own)
        return own
      }),
      ({ turns }) => turns.withPermits(1)(work),
      (own) =>
        Effect.sync(() => {
          own.users -= 1
          if (own.users === 0) tenants.delete(tenantId)
        })
    )
}

/** One at once in all: those of a tenant wait among themselves first, so no tenant fills the queue. */
export const oneInTurn = () => {
  const all = Semaphore.makeUnsafe(1)
  const ofTenant = tenantTurns(1)
  return <A, E, R>(tenantId: string, work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    ofTenant(tenantId, all.withPermit(work))
}

/** Pages, statistics, facets and chunks of lines that the store works on at once, by tenant. */
const READS_AT_ONCE_MAX = 4

export const inReadTurn = tenantTurns(READS_AT_ONCE_MAX)

/** Each chunk is read in a turn of its own; none is held while the client reads. */
export const inReadTurns = <A, E, R>(
  tenantId: string,
  chunks: Stream.Stream<A, E, R>
): Stream.Stream<A, E, R> =>
  Stream.transformPull(chunks, (pull) => Effect.succeed(inReadTurn(tenantId, pull)))
