/**
 * How handlers answer: stored JSON as it is, and every failure of the services behind them as one
 * of the documented refusals, in the error form of the route. The only place that translates
 * failures.
 */
import { Cause, Effect, Option } from "effect"
import { HttpServerError, type HttpServerRequest, HttpServerResponse } from "effect/http"
import type { TooManyStreams } from "../../actors/feeds/LiveFeed.ts"
import type { ResumePointInvalid } from "../../actors/feeds/LiveStream.ts"
import type { AdminRefused, AdminTimedOut } from "../../actors/follower/Keys.ts"
import { tooManyLinks } from "../../domain/registry/Registry.ts"
import type { LogUnavailable } from "../../ports/EventLog.ts"
import type { StatsTooLarge, StoreUnavailable } from "../../ports/EventStore.ts"
import type { TooManyLinks } from "../../services/administration/ShareLinks.ts"
import type { CommandLogBusy, CommandTooLarge } from "../../services/commands/CommandLog.ts"
import { ApiError, errorBody, errorHeaders, unavailable } from "./ApiError.ts"
import { CurrentRequest } from "./CurrentRequest.ts"
import { negotiate } from "./MediaTypes.ts"

/** Everything that a handler may fail with. */
export type Failure =
  | ApiError
  | AdminRefused
  | AdminTimedOut
  | CommandLogBusy
  | CommandTooLarge
  | LogUnavailable
  | ResumePointInvalid
  | StatsTooLarge
  | StoreUnavailable
  | TooManyLinks
  | TooManyStreams

const toApiError = (failure: Failure): ApiError => {
  switch (failure._tag) {
    case "ApiError":
      return failure
    case "AdminRefused":
      return new ApiError({
        code: failure.code === "limit_reached" ? "rate_limited" : failure.code,
        message: failure.message
      })
    case "AdminTimedOut":
      return unavailable(failure.message)
    case "CommandLogBusy":
      return unavailable(
        failure.maybeWritten
          ? "the log did not acknowledge in time; the request may still have been stored, so "
              + "retry it with the same event ids or the same Idempotency-Key"
          : "the service is overloaded and stored nothing of this request; try again"
      )
    case "CommandTooLarge":
      return new ApiError({
        code: "payload_too_large",
        message: "the request is larger than the log takes in one record; send fewer events"
      })
    case "LogUnavailable":
      return unavailable("the log can't be reached; try again")
    case "ResumePointInvalid":
      return new ApiError({ code: "invalid_request", message: failure.message })
    case "StatsTooLarge":
      return new ApiError({
        code: "invalid_range",
        message:
          `interval: more than ${failure.bucketsMax} buckets; ask for a coarser interval or a `
          + "shorter time",
        field: "interval"
      })
    case "StoreUnavailable":
      return unavailable("the query store can't be reached; try again")
    case "TooManyLinks":
      return new ApiError({
        code: "rate_limited",
        message: tooManyLinks(failure.limit)
      })
    case "TooManyStreams":
      return new ApiError({
        code: "rate_limited",
        message: `this tenant has ${failure.limit} streams open already, the most allowed`,
        headers: { "ratelimit-limit": String(failure.limit), "ratelimit-remaining": "0" }
      })
  }
}

/** The answer of a refusal, in the form of the route of the current request. */
export const errorResponse = (
  error: ApiError
): Effect.Effect<HttpServerResponse.HttpServerResponse> =>
  Effect.map(CurrentRequest, ({ errorForm, id }) =>
    jsonText(errorBody(errorForm, error, id), {
      status: error.status,
      headers: errorHeaders(error)
    })
  )

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

/** A JSON answer made of a value. */
export const json = (
  body: unknown,
  options: AnswerOptions = {}
): HttpServerResponse.HttpServerResponse => jsonText(JSON.stringify(body), options)
