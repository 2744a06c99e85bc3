/**
 * From whatever a route fails with to its answer: failures of handlers, and what the schemas of its
 * path and query refuse. Applied around every endpoint of the contract.
 */
import { Effect, Layer } from "effect"
import type { HttpServerResponse } from "effect/http"
import { HttpApiError, HttpApiMiddleware } from "effect/http-api"
import { refusalIn } from "../contract/Requests.ts"
import { errorResponse, failureResponse } from "../messages/Answer.ts"
import type { Failure } from "../messages/Failure.ts"

/** Answers failures. */
export class Refusals extends HttpApiMiddleware.Service<Refusals>()("alk/http/Refusals") {}

const answered = (
  error: Failure | HttpApiError.HttpApiSchemaError
): Effect.Effect<HttpServerResponse.HttpServerResponse> => {
  if (!HttpApiError.HttpApiSchemaError.is(error)) return failureResponse(error)
  const refusal = refusalIn(error.cause.issue)
  return refusal === undefined ? Effect.die(error) : errorResponse(refusal)
}

/** Every failure as one of the documented refusals, in the error form of the route. */
export const layerRefusals: Layer.Layer<Refusals> = Layer.succeed(
  Refusals,
  Refusals.of((handler) =>
    Effect.catch(handler, (error) =>
      // The types of the endpoints let handlers fail with nothing else.
      answered(error as unknown as Failure | HttpApiError.HttpApiSchemaError)
    )
  )
)
