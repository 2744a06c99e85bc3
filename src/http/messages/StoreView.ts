/**
 * Whether, and how, a tenant's rows may be read now, by what the projection has said of them.
 */
import { Effect } from "effect"
import type { ProjectionProgress } from "../../actors/log/ProjectionProgress.ts"
import { type ApiError, unavailable } from "./ApiError.ts"

/** Refused while the view is being built anew: what is missing then is not known to be missing. */
export const readableView = (
  projection: ProjectionProgress["Service"],
  tenantId: string
): Effect.Effect<{ readonly deduplicate: boolean }, ApiError> =>
  Effect.suspend(() => {
    const { final: deduplicate, rebuilding } = projection.of(tenantId)
    return rebuilding
      ? Effect.fail(unavailable("the view of the events is being rebuilt; try again"))
      : Effect.succeed({ deduplicate })
  })
