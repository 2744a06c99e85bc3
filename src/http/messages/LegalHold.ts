/** Refuses what a legal hold of the tenant forbids. The reason of a hold is the administrators'. */
import { Effect } from "effect"
import type { RegistryView } from "../../actors/follower/LogFollower.ts"
import { holdRefusal } from "../../domain/registry/Retention.ts"
import { ApiError, unavailable } from "./ApiError.ts"

/** Fails under a hold that was decided before this is asked. */
export const refuseUnderHold = Effect.fnUntraced(function* (
  view: RegistryView["Service"],
  tenantId: string
) {
  yield* Effect.catchTag(view.caughtUp, "LogUnavailable", () =>
    unavailable("whether the tenant is under a legal hold can't be read; nothing was erased")
  )
  if (holdRefusal(view.registry(), tenantId) === undefined) return
  const message = "the tenant is under a legal hold: nothing of it is erased until that is released"
  return yield* new ApiError({ code: "legal_hold", message })
})
