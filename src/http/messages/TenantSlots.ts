/**
 * How much of one kind a tenant, or a share link, may have under way at once, counted in this
 * process. A slot is taken with the request and given back when its answer has been sent, or when
 * the client has gone.
 */
import { Effect, type Scope } from "effect"
import { Tally } from "../../domain/Tally.ts"
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
  const taken = new Tally()
  const add = (tenantId: string, by: 1 | -1) => Effect.sync(() => taken.add(tenantId, by))
  return (tenantId) =>
    Effect.acquireRelease(
      Effect.suspend(() =>
        taken.of(tenantId) >= limit ? Effect.fail(refused(whose, what, limit)) : add(tenantId, 1)
      ),
      () => add(tenantId, -1)
    )
}
