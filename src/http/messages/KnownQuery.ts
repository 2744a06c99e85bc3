/**
 * Which query parameters a route knows, as its contract says, and the refusal of every other one: a
 * list that ignored a mistyped filter would show events that were not asked for. Asked by the
 * authorization that every route has, so no handler can leave it out.
 */
import { Effect } from "effect"
import { HttpServerRequest, type HttpServerResponse } from "effect/http"
import type { HttpApiEndpoint } from "effect/http-api"
import { queryTableOf } from "../contract/Requests.ts"
import { errorResponse } from "./Answer.ts"
import { refusable } from "./ApiError.ts"
import { checkQuery, type QueryTable } from "./QueryParameters.ts"

type Answered<E, R> = Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>

const withTable = <E, R>(table: QueryTable, handler: Answered<E, R>) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ url }) =>
    refusable(() => checkQuery(url, table)).pipe(
      Effect.matchEffect({
        onFailure: (error): Answered<E, R> => errorResponse(error),
        onSuccess: () => handler
      })
    )
  )

/** 400 for a parameter that the endpoint doesn't know, or that is repeated or empty. */
export const withKnownQuery = <E, R>(endpoint: HttpApiEndpoint.Top, handler: Answered<E, R>) =>
  withTable(queryTableOf(endpoint), handler)

/** 400 for every parameter: of a route outside of the contract. */
export const withoutQuery = <E, R>(handler: Answered<E, R>) =>
  withTable({ parameters: {} }, handler)
