/** Signs browsers in and out. What a session may do is decided by `Sessions`. */
import { Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Keys } from "../../actors/follower/Keys.ts"
import {
  type FoundSession,
  type OpenSession,
  type SessionKind,
  Sessions,
  sessionKindOf
} from "../../services/administration/Sessions.ts"
import { Api } from "../Api.ts"
import { BODY_BYTES_MAX, objectOf, readAs } from "../contract/Bodies.ts"
import { failureResponse, json } from "../messages/Answer.ts"
import { ApiError, invalid, refusable } from "../messages/ApiError.ts"
import { ApiSettings } from "../messages/ApiSettings.ts"
import type { Failure } from "../messages/Failure.ts"
import { withoutQuery } from "../messages/KnownQuery.ts"
import { JSON_TYPE } from "../messages/MediaTypes.ts"
import { readBody } from "../messages/RequestBody.ts"
import { FailedCredentials } from "../server/FailedCredentials.ts"
import { SessionInput } from "./SessionContract.ts"
import {
  isOfOwnPage,
  kindsMeant,
  noSuchKind,
  sessionCookies,
  sessionKinds
} from "./SessionCookies.ts"

const inputOf = (bytes: Buffer) => {
  const object = objectOf(bytes, Object.keys(SessionInput.fields), "a sign-in")
  const { code, key } = readAs(SessionInput, object)
  if ((key ?? undefined) !== undefined && (code ?? undefined) !== undefined) {
    throw invalid("code", "is sent instead of key, not beside it")
  }
  if ((key ?? code ?? undefined) === undefined) throw invalid("key", "is required, or code")
  return { key: key ?? undefined, code: code ?? undefined }
}

const shown = ({ limits, principal, session }: OpenSession) => ({
  id: session.id,
  tenant_id: session.tenant_id,
  key_id: session.key_id,
  scopes: principal.scopes,
  created_at: session.created_at,
  expires_at: session.expires_at,
  idle_seconds: limits.idle
})

type Found = ReadonlyMap<SessionKind, FoundSession>

const noSessions: Found = new Map()

/** The sessions of tokens that can be used. */
const sessionsOf = Effect.fnUntraced(function* (
  sessions: Sessions["Service"],
  tokenOf: (kind: SessionKind) => string | undefined
) {
  const found = new Map<SessionKind, FoundSession>()
  for (const kind of sessionKinds) {
    const token = tokenOf(kind)
    if (token === undefined) continue
    yield* sessions.find(kind, token).pipe(
      Effect.map((session) => found.set(kind, session)),
      Effect.catchTag("Unauthenticated", () => Effect.void)
    )
  }
  return found as Found
})

const stateOf = (found: ReadonlyMap<SessionKind, OpenSession>) =>
  Object.fromEntries(
    sessionKinds.map((kind) => [kind, found.has(kind) ? shown(found.get(kind)!) : null])
  )

const answered = <R>(answer: Effect.Effect<HttpServerResponse.HttpServerResponse, Failure, R>) =>
  withoutQuery(Effect.catch(answer, failureResponse))

const foreign = new ApiError({
  code: "unauthenticated",
  message: "sessions are for the console's own pages: this request comes from another origin"
})

/** What is said of a credential where the request asks for a session of the other kind. */
const notMeant: Readonly<Record<SessionKind, ApiError>> = {
  session: new ApiError({
    code: "unauthenticated",
    message:
      "key: this is not the token in ALK_ADMIN_TOKEN; without one the admin routes are closed"
  }),
  admin: new ApiError({
    code: "unauthenticated",
    message: "key: this is the admin token, not an API key"
  })
}

/** The handlers of SessionApi. */
export const layerSessionHandlers = HttpApiBuilder.group(
  Api,
  "Sessions",
  Effect.fnUntraced(function* (handlers) {
    const { publicUrl } = yield* ApiSettings
    const sessions = yield* Sessions
    const keys = yield* Keys
    const failed = yield* FailedCredentials
    const cookies = sessionCookies(publicUrl)

    const ownPage = (request: HttpServerRequest.HttpServerRequest) =>
      isOfOwnPage(request, publicUrl) ? Effect.void : Effect.fail(foreign)

    /** Signing in from a program has no origin; from another page it would change who is asked. */
    const mayStart = (request: HttpServerRequest.HttpServerRequest) =>
      request.headers["origin"] === undefined && request.headers["sec-fetch-site"] === undefined
        ? Effect.void
        : ownPage(request)

    /** The kinds that the request is about. */
    const meant = (request: HttpServerRequest.HttpServerRequest) => {
      const kinds = kindsMeant(request)
      return kinds.length === 0 ? Effect.fail(noSuchKind) : Effect.succeed(kinds)
    }

    /** The sessions of the cookies that can be used. */
    const openIn = (request: HttpServerRequest.HttpServerRequest) =>
      isOfOwnPage(request, publicUrl)
        ? sessionsOf(sessions, (kind) => cookies.read(request, kind))
        : Effect.succeed(noSessions)

    return handlers
      .handleRaw("startSession", ({ request }) =>
        answered(
          Effect.gen(function* () {
            yield* mayStart(request)
            const { bytes } = yield* readBody(request, [JSON_TYPE], BODY_BYTES_MAX)
            const { code, key } = yield* refusable(() => inputOf(bytes))
            const offered = key !== undefined && keys.isAdmin(key) ? "admin" : "session"
            if (!(yield* meant(request)).includes(offered)) {
              return yield* Effect.flatMap(failed.refusal(notMeant[offered]), Effect.fail)
            }
            const started = yield* (
              key === undefined ? sessions.startWithCode(code!) : sessions.start(key)
            ).pipe(
              Effect.catchTag("Unauthenticated", ({ message }) =>
                Effect.flip(failed.refusal(new ApiError({ code: "unauthenticated", message })))
              )
            )
            const kind = sessionKindOf(started.session.key_id)
            const found = new Map<SessionKind, OpenSession>(yield* openIn(request))
            found.set(kind, started)
            const response = json(stateOf(found), { status: 201 })
            return cookies.set(request, response, kind, started.token, started)
          })
        )
      )
      .handleRaw("getSession", ({ request }) =>
        answered(
          Effect.gen(function* () {
            const found = yield* openIn(request)
            let response = json(stateOf(found))
            for (const kind of sessionKinds) {
              const renewed = found.get(kind)?.renewed
              if (renewed !== undefined) {
                response = cookies.set(request, response, kind, renewed, found.get(kind)!)
              } else if (!found.has(kind) && cookies.read(request, kind) !== undefined) {
                response = cookies.clear(request, response, kind)
              }
            }
            return response
          })
        )
      )
      .handleRaw("endSession", ({ request }) =>
        answered(
          Effect.gen(function* () {
            const kinds = yield* meant(request)
            const hasCookie = kinds.some((kind) => cookies.read(request, kind) !== undefined)
            if (hasCookie) yield* ownPage(request)
            const open = yield* openIn(request)
            for (const { session } of kinds.flatMap((kind) => open.get(kind) ?? [])) {
              yield* sessions.end(session)
            }
            return kinds.reduce(
              (response, kind) => cookies.clear(request, response, kind),
              HttpServerResponse.empty({ status: 204 })
            )
          })
        )
      )
  })
)
