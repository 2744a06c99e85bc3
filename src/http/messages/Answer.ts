/**
 * How handlers answer: stored JSON as it is, values as JSON, and failures in the error form of the
 * route.
 */
import { Cause, Effect, Option } from "effect"
import { HttpServerError, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { inSlices } from "../../domain/InSlices.ts"
import { jsonInSteps } from "../../domain/json/JsonText.ts"
import { ApiError, errorBody, errorHeaders } from "./ApiError.ts"
import { CurrentRequest } from "./CurrentRequest.ts"
import { type Failure, toApiError } from "./Failure.ts"
import { negotiate } from "./MediaTypes.ts"

/** The answer of a refusal, in the form of the route of the current request. */
export const errorResponse = (
  error: ApiError
): Effect.Effect<HttpServerResponse.HttpServerResponse> =>
  Effect.map(CurrentRequest, (facts) => {
    facts.code = error.code
    return jsonText(errorBody(facts.errorForm, error, facts.id), {
      status: error.status,
      headers: errorHeaders(error)
    })
  })

/** True if no route of the router has taken the request. */
export const isRouteNotFound = (cause: Cause.Cause<unknown>): boolean => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  return HttpServerError.isHttpServerError(error) && error.reason._tag === "RouteNotFound"
}

/** The answer to a failure, in the form of the route of the current request. */
export const failureResponse = (failure: Failure) => {
  const response = errorResponse(toApiError(failure))
  return failure._tag === "StoreUnavailable" || failure._tag === "LogUnavailable"
    ? Effect.andThen(
        Effect.logWarning("a part of the service is unavailable", failure.operation, failure.cause),
        response
      )
    : response
}

/** The type that the client likes best of those that `what` comes as; else the refusal. */
export const negotiated = <T extends string>(
  request: HttpServerRequest.HttpServerRequest,
  offered: readonly [T, ...ReadonlyArray<T>],
  what: string
): Effect.Effect<T, ApiError> =>
  Effect.flatMap(CurrentRequest, (facts) => {
    facts.isNegotiated = true
    const type = negotiate(request.headers["accept"], offered)
    if (type !== undefined) return Effect.succeed(type)
    const names = offered.join(", ").replace(/, ([^,]*)$/, " or $1")
    const message = `Accept: ${what} as ${names}`
    return Effect.fail(new ApiError({ code: "not_acceptable", message, field: "Accept" }))
  })

/** Status, 200 if missing, and headers of an answer. */
export interface AnswerOptions {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
}

/** Headers of a 201: where to read what was made. */
export const createdAt = (
  publicUrl: string | undefined,
  collection: string,
  id: string
): Readonly<Record<string, string>> => ({
  location: `${publicUrl ?? ""}${collection}/${encodeURIComponent(id)}`
})

/** A JSON answer that is text already. */
export const jsonText = (
  body: string,
  options: AnswerOptions = {}
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(body, { ...options, contentType: "application/json" })

/** A JSON answer that is bytes already. */
export const jsonBytes = (
  body: Uint8Array,
  options: AnswerOptions = {}
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.uint8Array(body, { ...options, contentType: "application/json" })

/** A JSON answer made of a value whose lists may be long, an element of them in a step. */
export const longJson = (
  body: object,
  options: AnswerOptions = {}
): Effect.Effect<HttpServerResponse.HttpServerResponse> =>
  Effect.map(
    inSlices(() => jsonInSteps(body)),
    (bytes) => jsonBytes(bytes, options)
  )

/** A JSON answer made of a value. */
export const json = (
  body: unknown,
  options: AnswerOptions = {}
): HttpServerResponse.HttpServerResponse => jsonText(JSON.stringify(body), options)
