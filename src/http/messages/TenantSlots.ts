/**
 * How much of one kind a tenant, or a share link, may have under way at once, counted in this
 * process. A slot is taken with the request and given back when its answer has been sent, or when
 * the client has gone.
 */
import { Effect, type Scope, Semaphore } from "effect"
import { ApiError } from "./ApiError.ts"

/** Takes a slot of what has this id for as long as the scope lasts, or refuses the request. */
export type TakeSlot = (id: string) => Effect.Effect<void, ApiError, Scope.Scope>

const refused = (whose: string, what: string, limit: number): ApiError =>
  new ApiError({
    code: "rate_limited",
    message: `${whose} has ${limit} ${what} under way already, the most allowed; try again`,
    headers: { "ratelimit-limit": String(limit), "ratelimit-remaining": "0" }
  })

/** `what` is what is counted, in the plural; `whose` if slots are of something else than a tenant. */
export const tenantSlots = (what: string, limit: number, whose = "this tenant"): TakeSlot => {
  const taken = new Map<string, number>()
  const add = (tenantId: string, by: 1 | -1) =>
    Effect.sync(() => {
      const now = (taken.get(tenantId) ?? 0) + by
      if (now === 0) taken.delete(tenantId)
      else taken.set(tenantId, now)
    })
  return (tenantId) =>
    Effect.acquireRelease(
      Effect.suspend(() =>
        (taken.get(tenantId) ?? 0) >= limit
          ? Effect.fail(refused(whose, what, limit))
          : add(tenantId, 1)
      ),
      () => add(tenantId, -1)
    )
}

/** One at once in all: those of a tenant wait among themselves first, so no tenant fills the queue. */
export const oneInTurn = () => {
  const all = Semaphore.makeUnsafe(1)
  const ofTenant = tenantTurns(1)
  return <A, E, R>(tenantId: string, work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    ofTenant(tenantId, all.withPermit(work))
}

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
