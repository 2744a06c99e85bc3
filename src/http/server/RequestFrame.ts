/**
 * What happens around every request, whatever its route: an id, one log line, metrics, compression
 * and CORS of the answer, and an error body for everything that no handler has answered.
 */
import type { IncomingMessage } from "node:http"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Cause, Effect, Option, Scope, type Tracer } from "effect"
import {
  HttpMiddleware,
  HttpServerError,
  HttpServerRequest,
  HttpServerResponse,
  HttpTraceContext
} from "effect/http"
import type { RequestLog } from "../../config/Config.ts"
import { defined } from "../../domain/Defined.ts"
import { toBrowsers } from "../console/ConsolePage.ts"
import { isPage } from "../console/ConsolePaths.ts"
import { errorResponse, isRouteNotFound } from "../messages/Answer.ts"
import { ApiError, errorFormOf, unavailable } from "../messages/ApiError.ts"
import { ApiSettings } from "../messages/ApiSettings.ts"
import { Bodies, CurrentBody } from "../messages/BodyBudget.ts"
import {
  CurrentRequest,
  pathOf,
  type RequestFacts,
  requestIdOf,
  TracesRequests
} from "../messages/CurrentRequest.ts"
import { AnswerBudget, AnswerLimits } from "./AnswerBudget.ts"
import { compressed } from "./Compression.ts"
import { bytesOf, type ConnectionBytes } from "./ConnectionBytes.ts"
import { corsOptions } from "./Cors.ts"
import { meantRoute, noSuchRoute } from "./MeantRoute.ts"
import { requestAnswered } from "./Metrics.ts"
import { allowedMethods, findRoute, takenPath, UNKNOWN_ROUTE } from "./RouteTable.ts"

/** Status in the log of a request whose client has gone, as nginx counts it. */
const CLIENT_GONE = 499
/** Routes that are asked all the time by machines: their log lines are for debugging. */
const quietRoutes: ReadonlySet<string> = new Set(["/healthz", "/readyz", "/metrics"])
/** The reference page loads nothing from other servers. */
const DOCS_POLICY =
  "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
  + "img-src 'self' data: blob:; font-src data:; connect-src 'self'; base-uri 'none'; "
  + "form-action 'none'; frame-ancestors 'none'"

/** What the router makes of a request. */
type App<E> = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  E,
  HttpServerRequest.HttpServerRequest | Scope.Scope
>

const cors = (origins: ReadonlyArray<string>) => HttpMiddleware.cors(corsOptions(origins))

const unknownRoute = (method: string, path: string): ApiError => {
  const allowed = allowedMethods(path)
  if (allowed.length > 0 && !allowed.includes(method)) {
    return new ApiError({
      code: "method_not_allowed",
      message: `${method} is not allowed here, but ${allowed.join(", ")}`,
      headers: { allow: allowed.join(", ") }
    })
  }
  // A route that the router has not taken all the same is a page, or has an impossible parameter.
  const template = findRoute(method, path)?.template
  const isOwn = template !== undefined && !isPage(template)
  return noSuchRoute(isOwn ? undefined : meantRoute(method, path))
}

/** True if the process, not the client, has given up the request. */
const isStopped = (cause: Cause.Cause<unknown>): boolean =>
  !cause.reasons.some(({ annotations }) => annotations.has(HttpServerError.ClientAbort.key))

/** What browsers get at an address that nothing has. */
type MissingPage = Effect.Effect<HttpServerResponse.HttpServerResponse> | undefined

/** The error of an address that nothing has; the page to who likes HTML better, as browsers do. */
const unknownAnswer = (method: string, path: string, missingPage: MissingPage): App<never> => {
  const error = unknownRoute(method, path)
  const answer = errorResponse(error)
  return missingPage === undefined || error.status !== 404 || !/^(?:GET|HEAD)$/.test(method)
    ? answer
    : toBrowsers(Effect.map(missingPage, HttpServerResponse.setStatus(404)), answer)
}

/** `/v1/events//erase`: the router would take the empty text for an id. */
const lacksSegment = (path: string): boolean => path !== "/" && path.split("/").includes("", 1)

/** The router would give the method of a wildcard's route to a path that a literal names. */
const withinMethods = (
  app: App<unknown>,
  method: string,
  path: string,
  missingPage: MissingPage
): App<unknown> => {
  const allowed = allowedMethods(path)
  if (allowed.includes(method)) return app
  if (allowed.length > 0) return errorResponse(unknownRoute(method, path))
  return lacksSegment(path) ? unknownAnswer(method, path, missingPage) : app
}

/** An answer for what no handler has answered. A client that has gone needs none. */
const answered = (
  app: App<unknown>,
  method: string,
  path: string,
  missingPage: MissingPage
): App<never> =>
  Effect.catchCause(app, (cause) => {
    if (isRouteNotFound(cause)) return unknownAnswer(method, path, missingPage)
    if (Cause.hasInterruptsOnly(cause)) {
      return isStopped(cause)
        ? errorResponse(
            unavailable(
              "the service stops and could not finish this request in time; a write may have "
                + "been stored, so retry it with the same event ids or the same Idempotency-Key"
            )
          )
        : Effect.failCause(cause as Cause.Cause<never>)
    }
    return Effect.andThen(
      Effect.logError("a request failed unexpectedly", cause),
      errorResponse(unavailable("the request failed unexpectedly; its request_id is in the log"))
    )
  })

const hostMissing = new ApiError({
  code: "invalid_request",
  message: "Host: the header is required in HTTP/1.1",
  field: "Host"
})

/** What of node's request is looked at here. */
type Head = Pick<IncomingMessage, "complete" | "headers" | "httpVersion">

const lacksHost = ({ headers, httpVersion }: Head): boolean =>
  headers.host === undefined && httpVersion === "1.1"

/**
 * True if the rest of the body may be endless: it is not read to its end, so the connection ends
 * with this answer. One with a Content-Length is discarded, or ended by the platform.
 */
const hasEndlessRest = ({ complete, headers }: Head): boolean =>
  !complete && headers["transfer-encoding"] !== undefined

/** A value of `Vary` with one more name. */
const varying = (name: string, others: string | undefined): string =>
  others === undefined ? name : `${name}, ${others}`

/** Answers name their request; the last of a connection says so. */
const completed = (
  response: HttpServerResponse.HttpServerResponse,
  facts: RequestFacts,
  isLast: boolean
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.setHeaders(response, {
    "x-request-id": facts.id,
    "x-content-type-options": "nosniff",
    // Answers to a key belong to its owner: without a header of their own, no cache keeps them.
    ...(response.headers["cache-control"] === undefined ? { "cache-control": "no-store" } : {}),
    ...(isLast ? { connection: "close" } : {}),
    ...(facts.isNegotiated ? { vary: varying("Accept", response.headers["vary"]) } : {}),
    ...(facts.route === "/docs" ? { "content-security-policy": DOCS_POLICY } : {})
  })

/** Whose answer it is: a tenant's, or that of the share links of one. */
const ownerOf = ({ keyId, tenantId }: RequestFacts): string | undefined =>
  tenantId !== undefined && keyId === undefined ? `${tenantId} shared` : tenantId

/** Status from which on a request has failed. */
const FAILED_FROM = 400

/** What the log says of a request that has ended; never keys, bodies or values of the query. */
const logged = (
  requestLog: RequestLog,
  facts: RequestFacts,
  status: number,
  milliseconds: number,
  bytes: ConnectionBytes | undefined
) => {
  const isWanted = requestLog === "all" || (requestLog === "failed" && status >= FAILED_FROM)
  if (!isWanted) return Effect.void
  const line = quietRoutes.has(facts.route) ? Effect.logDebug("request") : Effect.logInfo("request")
  return line.pipe(
    Effect.annotateLogs({
      method: facts.method,
      route: facts.route,
      status,
      ms: Math.round(milliseconds * 10) / 10,
      ...defined({
        bytes_in: bytes?.read,
        bytes_out: bytes?.written,
        code: facts.code,
        tenant: facts.tenantId,
        key: facts.keyId
      })
    })
  )
}

/** The request as a span of its client's trace, if it names one; says nothing that a client chose. */
const spanned = <E, R>(
  answer: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
  { method, route }: RequestFacts,
  parent: Tracer.ExternalSpan | undefined
) =>
  answer.pipe(
    Effect.tap(({ status }) => Effect.annotateCurrentSpan({ "http.response.status_code": status })),
    Effect.withSpan(`${method} ${route}`, {
      kind: "server",
      attributes: { "http.request.method": method, "http.route": route },
      ...defined({ parent })
    })
  )

/**
 * With the path that is taken. Routers take a raw `;` for its end; in an id it is a character like any
 * other.
 */
const withPath = (request: HttpServerRequest.HttpServerRequest, sent: string, path: string) =>
  path === sent && !path.includes(";")
    ? request
    : request.modify({ url: path.replaceAll(";", "%3B") + request.url.slice(sent.length) })

const factsOf = (request: HttpServerRequest.HttpServerRequest, path: string): RequestFacts => ({
  id: requestIdOf(request.headers["x-request-id"]),
  method: request.method,
  route: findRoute(request.method, path)?.template ?? UNKNOWN_ROUTE,
  errorForm: errorFormOf(path),
  tenantId: undefined,
  keyId: undefined,
  code: undefined,
  isNegotiated: false
})

/**
 * The frame of this process's requests; `missingPage` is what browsers get at an address that
 * nothing has.
 */
export const makeRequestFrame = Effect.fnUntraced(function* (missingPage: MissingPage) {
  const settings = yield* ApiSettings
  const bodies = yield* Bodies
  const answers = new AnswerBudget(yield* AnswerLimits)
  const isTraced = yield* TracesRequests
  const allowOrigins: (app: App<unknown>) => App<unknown> =
    settings.corsOrigins.length === 0 ? (app) => app : cors(settings.corsOrigins)

  return (app: App<unknown>) =>
    Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      const incoming = NodeHttpServerRequest.toIncomingMessage(request)
      const sent = pathOf(request.url)
      const path = takenPath(request.method, sent)
      const facts = factsOf(request, path)
      const startedAt = performance.now()
      const trace = Option.getOrUndefined(HttpTraceContext.w3c(request.headers))
      const identity = {
        request_id: facts.id,
        ...(trace === undefined ? {} : { trace_id: trace.traceId })
      }
      let status = CLIENT_GONE
      const body = bodies.open()

      const scope = yield* Effect.scope
      const finished = Effect.suspend(() => {
        const { method, route } = facts
        const milliseconds = performance.now() - startedAt
        body.close()
        return Effect.andThen(
          logged(settings.requestLog, facts, status, milliseconds, bytesOf(incoming.socket)),
          requestAnswered({
            method,
            route,
            status,
            code: facts.code,
            seconds: milliseconds / 1_000
          })
        ).pipe(Effect.annotateLogs(identity))
      })
      yield* Scope.addFinalizer(scope, finished)

      const asked = lacksHost(incoming)
        ? errorResponse(hostMissing)
        : withinMethods(app, request.method, path, missingPage)
      const answer = answered(allowOrigins(asked), request.method, path, missingPage).pipe(
        Effect.flatMap((response) => {
          const held = answers.held(request, response, ownerOf(facts))
          return held instanceof ApiError ? errorResponse(held) : Effect.succeed(held)
        }),
        Effect.map((response) => {
          status = response.status
          return completed(response, facts, hasEndlessRest(incoming))
        }),
        Effect.provideService(HttpServerRequest.HttpServerRequest, withPath(request, sent, path)),
        Effect.provideService(CurrentRequest, facts),
        Effect.provideService(CurrentBody, body),
        Effect.annotateLogs(identity)
      )
      const traced = isTraced ? spanned(answer, facts, trace) : answer
      return yield* compressed(request.headers["accept-encoding"])(traced)
    })
})
