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

/** How cookies are named and sent here; `publicUrl` as in the settings. */
export const sessionCookies = (publicUrl: string | undefined) => {
  const isSecure = publicUrl?.startsWith("https:") === true
  // Browsers take a cookie of this prefix from this very host only, over TLS.
  const prefix = isSecure ? "__Host-" : ""
  const nameOf = (kind: SessionKind): string => `${prefix}alk_${kind}`
  const attributes = {
    path: "/",
    httpOnly: true,
    sameSite: "strict",
    secure: isSecure
  } as const

  return {
    /** The token that the request comes with. */
    read: ({ cookies }: HttpServerRequest.HttpServerRequest, kind: SessionKind) =>
      cookies[nameOf(kind)],
    set: (
      response: HttpServerResponse.HttpServerResponse,
      kind: SessionKind,
      token: string,
      { limits }: OpenSession
    ): HttpServerResponse.HttpServerResponse =>
      Responses.setCookieUnsafe(response, nameOf(kind), token, {
        ...attributes,
        maxAge: `${limits.idle} seconds`
      }),
    /** The browser forgets the token. */
    clear: (
      response: HttpServerResponse.HttpServerResponse,
      kind: SessionKind
    ): HttpServerResponse.HttpServerResponse =>
      Responses.setCookieUnsafe(response, nameOf(kind), "", { ...attributes, maxAge: 0 })
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
