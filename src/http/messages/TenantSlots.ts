/**
 * How much of one kind a tenant may have under way at once, counted in this process. A slot is taken
 * with the request and given back when its answer has been sent, or when the client has gone.
 */
import { Effect, type Scope } from "effect"
import { ApiError } from "./ApiError.ts"

/** Takes a slot of a tenant for as long as the scope lasts, or refuses the request. */
export type TakeSlot = (tenantId: string) => Effect.Effect<void, ApiError, Scope.Scope>

const refused = (what: string, limit: number): ApiError =>
  new ApiError({
    code: "rate_limited",
    message: `this tenant has ${limit} ${what} under way already, the most allowed; try again`,
    headers: { "ratelimit-limit": String(limit), "ratelimit-remaining": "0" }
  })

/** `what` is what is counted, in the plural. */
export const tenantSlots = (what: string, limit: number): TakeSlot => {
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
        (taken.get(tenantId) ?? 0) >= limit ? Effect.fail(refused(what, limit)) : add(tenantId, 1)
      ),
      () => add(tenantId, -1)
    )
}
