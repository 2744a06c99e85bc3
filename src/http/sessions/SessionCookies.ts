/**
 * The cookies of sessions, and which requests may use them: those of the console's own pages. A
 * browser sends a cookie with requests of other pages of this host too, whatever their port, so what
 * a request says of its origin decides.
 */
import type { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpServerResponse as Responses } from "effect/http"
import type { OpenSession, SessionKind } from "../../services/administration/Sessions.ts"
import { ApiError } from "../messages/ApiError.ts"

/** The kinds of sessions, in the order in which they are asked. */
export const sessionKinds: ReadonlyArray<SessionKind> = ["session", "admin"]

/** By this a request of a browser that has both says which one it is about. */
export const SESSION_HEADER = "X-Alk-Session"

/** The kinds that a request is about; none where it names one that there is not. */
export const kindsMeant = ({
  headers
}: Pick<HttpServerRequest.HttpServerRequest, "headers">): ReadonlyArray<SessionKind> => {
  const named = headers[SESSION_HEADER.toLowerCase()]
  return named === undefined ? sessionKinds : sessionKinds.filter((kind) => kind === named)
}

/** The refusal of a request that is about none. */
export const noSuchKind = new ApiError({
  code: "unauthenticated",
  message: `the header ${SESSION_HEADER} must be one of ${sessionKinds.join(", ")}, or absent`
})

type Request = Pick<HttpServerRequest.HttpServerRequest, "cookies" | "headers">

const isHttps = (url: string | undefined): boolean => url?.startsWith("https:") === true

/** Browsers take a cookie of this name from this very host only, over TLS. */
const secureNameOf = (kind: SessionKind): string => `__Host-alk_${kind}`
const plainNameOf = (kind: SessionKind): string => `alk_${kind}`

/**
 * How cookies are named and sent here; `publicUrl` as in the settings. Where that names no TLS, what
 * the page that signs in says of its origin does: TLS may end at a proxy.
 */
export const sessionCookies = (publicUrl: string | undefined) => {
  const isAlwaysSecure = isHttps(publicUrl)
  const isSecure = ({ cookies, headers }: Request, kind: SessionKind): boolean =>
    isAlwaysSecure || isHttps(headers["origin"]) || cookies[secureNameOf(kind)] !== undefined

  const put = (
    request: Request,
    response: HttpServerResponse.HttpServerResponse,
    kind: SessionKind,
    value: string,
    seconds: number
  ): HttpServerResponse.HttpServerResponse => {
    const secure = isSecure(request, kind)
    return Responses.setCookieUnsafe(
      response,
      secure ? secureNameOf(kind) : plainNameOf(kind),
      value,
      { path: "/", httpOnly: true, sameSite: "strict", secure, maxAge: `${seconds} seconds` }
    )
  }

  return {
    /** The token that the request comes with. */
    read: ({ cookies }: Request, kind: SessionKind): string | undefined =>
      cookies[secureNameOf(kind)] ?? (isAlwaysSecure ? undefined : cookies[plainNameOf(kind)]),
    set: (
      request: Request,
      response: HttpServerResponse.HttpServerResponse,
      kind: SessionKind,
      token: string,
      { limits }: OpenSession
    ): HttpServerResponse.HttpServerResponse => put(request, response, kind, token, limits.idle),
    /** The browser forgets the token. */
    clear: (
      request: Request,
      response: HttpServerResponse.HttpServerResponse,
      kind: SessionKind
    ): HttpServerResponse.HttpServerResponse => put(request, response, kind, "", 0)
  }
}

const READING: ReadonlySet<string> = new Set(["GET", "HEAD"])
/** What browsers say of requests of the page's own origin, and of addresses that people type. */
const OWN_SITES: ReadonlySet<string> = new Set(["same-origin", "none"])

const hostOf = (url: string): string | undefined => {
  try {
    return new URL(url).host
  } catch {
    return undefined
  }
}

/** True for a request of a page of this origin; one that writes has to say so itself. */
export const isOfOwnPage = (
  { headers, method }: Pick<HttpServerRequest.HttpServerRequest, "headers" | "method">,
  publicUrl: string | undefined
): boolean => {
  const site = headers["sec-fetch-site"]
  if (site !== undefined && !OWN_SITES.has(site)) return false
  const { origin } = headers
  if (origin === undefined) return READING.has(method)
  const from = hostOf(origin)
  return from !== undefined && (from === headers["host"] || from === hostOf(publicUrl ?? ""))
}
