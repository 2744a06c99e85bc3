/**
 * Who may call what: bearer keys with scopes for the audit routes, the admin token for the admin
 * routes. Runs before anything else of a route is looked at, so 401 comes before 403 before the
 * rest, of which the query's names come first.
 */
import { Context, Effect, Layer, Redacted } from "effect"
import type { HttpServerRequest, HttpServerResponse } from "effect/http"
import { type HttpApiEndpoint, HttpApiMiddleware, HttpApiSecurity, OpenApi } from "effect/http-api"
import { Keys, type Principal } from "../../actors/follower/Keys.ts"
import type { Scope } from "../../domain/registry/RegistryEntry.ts"
import { errorResponse } from "../messages/Answer.ts"
import { ApiError } from "../messages/ApiError.ts"
import { CurrentRequest } from "../messages/CurrentRequest.ts"
import { withKnownQuery } from "../messages/KnownQuery.ts"
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
            + "`_system`.",
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

const unauthenticated = (message: string): ApiError =>
  new ApiError({ code: "unauthenticated", message })

const insufficientScope = (required: ReadonlyArray<Scope>): ApiError =>
  new ApiError({
    code: "insufficient_scope",
    message: `this key lacks the scope ${required.join(" or ")}`,
    headers: { "www-authenticate": `Bearer error="insufficient_scope", scope="${required[0]}"` }
  })

type Answer = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  never,
  HttpServerRequest.HttpServerRequest
>

/** The principal of the credential, if it may call the endpoint. */
const admit = Effect.fnUntraced(function* (
  keys: Keys["Service"],
  failed: FailedCredentials["Service"],
  token: string,
  endpoint: HttpApiEndpoint.Top
): Effect.fn.Return<Principal, ApiError, HttpServerRequest.HttpServerRequest> {
  if (token === "") return yield* unauthenticated("send the header Authorization: Bearer <key>")
  const principal = yield* keys
    .authenticate(token)
    .pipe(
      Effect.catchTag("Unauthenticated", ({ message }) =>
        Effect.flip(failed.refusal(unauthenticated(message)))
      )
    )
  const facts = yield* CurrentRequest
  facts.tenantId = principal.tenantId
  const required = Context.get(endpoint.annotations, RequiredScope)
  return required.some((scope) => principal.scopes.includes(scope))
    ? principal
    : yield* insufficientScope(required)
})

/** 401 without a known key, 403 without the scope, else the principal is provided. */
export const layerAuthorization: Layer.Layer<Authorization, never, Keys | FailedCredentials> =
  Layer.effect(
    Authorization,
    Effect.gen(function* () {
      const keys = yield* Keys
      const failed = yield* FailedCredentials
      return Authorization.of({
        api_key: (handler, { credential, endpoint }) =>
          admit(keys, failed, Redacted.value(credential), endpoint).pipe(
            Effect.matchEffect({
              onFailure: (error): Answer => errorResponse(error),
              onSuccess: (principal) =>
                Effect.provideService(
                  withKnownQuery(endpoint, handler),
                  CurrentPrincipal,
                  principal
                )
            })
          )
      })
    })
  )

const adminOnly = unauthenticated(
  "this route takes the token in ALK_ADMIN_TOKEN; without one it is closed"
)

/** 401 without the admin token. */
export const layerAdminAuthorization: Layer.Layer<
  AdminAuthorization,
  never,
  Keys | FailedCredentials
> = Layer.effect(
  AdminAuthorization,
  Effect.gen(function* () {
    const keys = yield* Keys
    const failed = yield* FailedCredentials
    return AdminAuthorization.of({
      admin_token: (handler, { credential, endpoint }) => {
        const token = Redacted.value(credential)
        if (keys.isAdmin(token)) return withKnownQuery(endpoint, handler)
        if (token === "") return errorResponse(adminOnly)
        return Effect.flatMap(failed.refusal(adminOnly), errorResponse)
      }
    })
  })
)
