/** The long work of a request, in slices. */
import { Effect } from "effect"
import * as InSlices from "../../domain/InSlices.ts"
import type { Sliced } from "../../domain/Slices.ts"
import { ApiError } from "./ApiError.ts"

/** Run work that throws ApiError where it refuses; any other throw is a defect. */
export const inSlices = <A>(make: () => Sliced<A>): Effect.Effect<A, ApiError> =>
  Effect.catchDefect(InSlices.inSlices(make), (defect) =>
    defect instanceof ApiError ? Effect.fail(defect) : Effect.die(defect)
  )
