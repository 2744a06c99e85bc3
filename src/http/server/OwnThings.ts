/** Who may take away what a key has made: a key that may only read takes away nothing of others. */
import type { Principal } from "../../actors/follower/Keys.ts"
import { mayTakeAway } from "../../domain/registry/OwnThings.ts"
import { ApiError } from "../messages/ApiError.ts"

/** Why it may not; undefined if it may. `made` and `take` say it of the thing, for the message. */
export const refusalOfForeign = (
  { keyId, scopes }: Pick<Principal, "keyId" | "scopes">,
  createdBy: string,
  made: string,
  take: string
): ApiError | undefined =>
  mayTakeAway(keyId, scopes, createdBy)
    ? undefined
    : new ApiError({
        code: "insufficient_scope",
        message: `${made} with the key ${createdBy}; another one needs the scope write to ${take} it`
      })
