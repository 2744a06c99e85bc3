/**
 * Who may call what: bearer keys with scopes for the audit routes, the admin token for the admin
 * routes, and in place of either the session of a browser. Runs before anything else of a route is
 * looked at, so 401 comes before 403 before the rest, of which the query's names come first.
 */
import { Context, Effect, Layer, Redacted } from "effect"
import { HttpServerRequest, type HttpServerResponse } from "effect/http"
import { type HttpApiEndpoint, HttpApiMiddleware, HttpApiSecurity, OpenApi } from "effect/http-api"
import { ADMIN_KEY_ID, Keys, type Principal } from "../../actors/follower/Keys.ts"
import type { Scope } from "../../domain/registry/RegistryEntry.ts"
import type { LogUnavailable } from "../../ports/EventLog.ts"
import { type SessionKind, Sessions } from "../../services/administration/Sessions.ts"
import { errorResponse, failureResponse } from "../messages/Answer.ts"
import { ApiError } from "../messages/ApiError.ts"
import { ApiSettings } from "../messages/ApiSettings.ts"
import { CurrentRequest } from "../messages/CurrentRequest.ts"
import { withKnownQuery } from "../messages/KnownQuery.ts"
import {
  isOfOwnPage,
  kindsMeant,
  noSuchKind,
  SESSION_HEADER,
  sessionCookies
} from "../sessions/SessionCookies.ts"
import { FailedCredentials } from "./FailedCredentials.ts"

/** Whose key the current request came with. */
export class CurrentPrincipal extends Context.Service<CurrentPrincipal, Principal>()(
  "alk/http/CurrentPrincipal"
) {}

/**
 * The scopes of which a key needs one. A route without scopes refuses every key.
 */
export const RequiredScope: Context.Reference<ReadonlyArray<Scope>> = Context.Reference<
  ReadonlyArray<Scope>
>("alk/http/RequiredScope", { defaultValue: () => [] })

/** A bearer API key that has one of the required scopes of the endpoint. */
export class Authorization extends HttpApiMiddleware.Service<
  Authorization,
  { provides: CurrentPrincipal }
>()("alk/http/Authorization", {
  security: {
    api_key: HttpApiSecurity.bearer.pipe(
      HttpApiSecurity.annotateMerge(
        OpenApi.annotations({
          description:
            "An API key, `svc_live_` or `alk_live_` and 43 base62 characters, with the scopes "
            + "`read` and `write`. The admin token works on the read routes and shows the tenant "
            + "`_system`. In place of a key a page of the console sends the cookie of its session "
            + "(`POST /v1/session`); of a browser that has signed in with a key and with the admin "
            + `token, the key's counts, unless \`${SESSION_HEADER}: admin\` asks for the other.`,
          format: "svc_live_… or alk_live_…"
        })
      )
    )
  }
}) {}

/** The admin token as bearer. */
export class AdminAuthorization extends HttpApiMiddleware.Service<AdminAuthorization>()(
  "alk/http/AdminAuthorization",
  {
    security: {
      admin_token: HttpApiSecurity.bearer.pipe(
        HttpApiSecurity.annotateMerge(
          OpenApi.annotations({ description: "The token in `ALK_ADMIN_TOKEN`." })
        )
      )
    }
  }
) {}

export const unauthenticated = (message: string): ApiError =>
  new ApiError({ code: "unauthenticated", message })

const insufficientScope = (required: ReadonlyArray<Scope>): ApiError =>
  new ApiError({
    code: "insufficient_scope",
    message: `this key lacks the scope ${required.join(" or ")}`,
    headers: { "www-authenticate": `Bearer error="insufficient_scope", scope="${required[0]}"` }
  })

const sessionEnded = unauthenticated("the session has ended: sign in again")

const foreignOrigin = unauthenticated(
  "sessions are for the console's own pages: this request comes from another origin"
)

type Answer = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  never,
  HttpServerRequest.HttpServerRequest
>

/** Who calls, and what the answer has to tell the browser of its session. */
interface Caller {
  readonly principal: Principal
  readonly told: (
    response: HttpServerResponse.HttpServerResponse
  ) => HttpServerResponse.HttpServerResponse
}

/** What the header has to be, and what is wrong with the one that was sent; never what it holds. */
export const withoutCredential = (header: string | undefined): ApiError => {
  const sent = header?.trim() ?? ""
  if (/^(?:bearer)?$/i.test(sent))
    return unauthenticated("send the header Authorization: Bearer <key>")
  const wrong = /%20/.test(sent)
    ? "holds a literal %20 in the place of a space, so it was encoded and not decoded again"
    : "does not begin with the word Bearer and a space"
  return unauthenticated(`the header Authorization ${wrong}; send Authorization: Bearer <key>`)
}

/**
 * The caller by the cookie of the first of the kinds that has one. If that session has ended, the
 * other one is no substitute: it shows another tenant.
 */
const bySession = Effect.fnUntraced(function* (
  sessions: Sessions["Service"],
  publicUrl: string | undefined,
  kinds: ReadonlyArray<SessionKind>,
  without: ApiError
): Effect.fn.Return<Caller, ApiError | LogUnavailable, HttpServerRequest.HttpServerRequest> {
  const request = yield* HttpServerRequest.HttpServerRequest
  const cookies = sessionCookies(publicUrl)
  if (kinds.length === 0) return yield* noSuchKind
  const kind = kinds.find((one) => cookies.read(request, one) !== undefined)
  if (kind === undefined) return yield* without
  if (!isOfOwnPage(request, publicUrl)) return yield* foreignOrigin
  const found = yield* sessions
    .find(kind, cookies.read(request, kind)!)
    .pipe(Effect.catchTag("Unauthenticated", () => Effect.fail(sessionEnded)))
  const { principal, renewed } = found
  return {
    principal,
    told: (response) =>
      renewed === undefined ? response : cookies.set(request, response, kind, renewed, found)
  }
})

/** Of keys and of sessions. */
interface Credentials {
  readonly keys: Keys["Service"]
  readonly sessions: Sessions["Service"]
  readonly failed: FailedCredentials["Service"]
  readonly publicUrl: string | undefined
}

const credentials = Effect.gen(function* (): Effect.fn.Return<
  Credentials,
  never,
  ApiSettings | FailedCredentials | Keys | Sessions
> {
  const { publicUrl } = yield* ApiSettings
  return {
    keys: yield* Keys,
    sessions: yield* Sessions,
    failed: yield* FailedCredentials,
    publicUrl
  }
})

const byKey = ({ failed, keys }: Credentials, token: string) =>
  keys.authenticate(token).pipe(
    Effect.catchTag("Unauthenticated", ({ message }) =>
      Effect.flip(failed.refusal(unauthenticated(message)))
    ),
    Effect.map((principal): Caller => ({ principal, told: (response) => response }))
  )

/** The caller, if it may call the endpoint. */
const admit = Effect.fnUntraced(function* (
  known: Credentials,
  token: string,
  endpoint: HttpApiEndpoint.Top
): Effect.fn.Return<Caller, ApiError | LogUnavailable, HttpServerRequest.HttpServerRequest> {
  const { publicUrl, sessions } = known
  const request = yield* HttpServerRequest.HttpServerRequest
  const caller = yield* token === ""
    ? bySession(
        sessions,
        publicUrl,
        kindsMeant(request),
        withoutCredential(request.headers["authorization"])
      )
    : byKey(known, token)
  const { principal } = caller
  const facts = yield* CurrentRequest
  facts.tenantId = principal.tenantId
  facts.keyId = principal.keyId
  const required = Context.get(endpoint.annotations, RequiredScope)
  return required.some((scope) => principal.scopes.includes(scope))
    ? caller
    : yield* insufficientScope(required)
})

/** 401 without a known key, 403 without the scope, else the principal is provided. */
export const layerAuthorization: Layer.Layer<
  Authorization,
  never,
  ApiSettings | FailedCredentials | Keys | Sessions
> = Layer.effect(
  Authorization,
  Effect.map(credentials, (known) =>
    Authorization.of({
      api_key: (handler, { credential, endpoint }) =>
        admit(known, Redacted.value(credential), endpoint).pipe(
          Effect.matchEffect({
            onFailure: (failure): Answer => failureResponse(failure),
            onSuccess: ({ principal, told }) =>
              Effect.provideService(
                withKnownQuery(endpoint, handler),
                CurrentPrincipal,
                principal
              ).pipe(Effect.map(told))
          })
        )
    })
  )
)

const adminOnly = unauthenticated(
  "this route takes the token in ALK_ADMIN_TOKEN; without one it is closed"
)

const byAdmin = Effect.map(CurrentRequest, (facts) => {
  facts.keyId = ADMIN_KEY_ID
})

/** 401 without the admin token. */
export const layerAdminAuthorization: Layer.Layer<
  AdminAuthorization,
  never,
  ApiSettings | FailedCredentials | Keys | Sessions
> = Layer.effect(
  AdminAuthorization,
  Effect.map(credentials, ({ failed, keys, publicUrl, sessions }) =>
    AdminAuthorization.of({
      admin_token: (handler, { credential, endpoint }) => {
        const token = Redacted.value(credential)
        if (keys.isAdmin(token)) return Effect.andThen(byAdmin, withKnownQuery(endpoint, handler))
        if (token !== "") return Effect.flatMap(failed.refusal(adminOnly), errorResponse)
        return bySession(sessions, publicUrl, ["admin"], adminOnly).pipe(
          Effect.matchEffect({
            onFailure: (failure): Answer => failureResponse(failure),
            onSuccess: ({ told }) =>
              Effect.map(Effect.andThen(byAdmin, withKnownQuery(endpoint, handler)), told)
          })
        )
      }
    })
  )
)
