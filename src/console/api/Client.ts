/**
 * Asks the API with the browser's session: JSON in and out, refusals as `ApiFailure`. The only place
 * that knows how requests are sent; says nothing of what they mean.
 */
import { signal } from "@preact/signals"
import { ApiFailure } from "../../client/ApiFailure.ts"
import { failureOfResponse } from "../../client/Transport.ts"
import { parseJson } from "../../domain/json/Json.ts"

export { ApiFailure } from "../../client/ApiFailure.ts"

/** Counts how often a session turned out to have ended. */
export const sessionsLost = signal(0)
/** The same of the admin token's session beside it. */
export const adminSessionsLost = signal(0)

/** When the admin token's session was last used here, milliseconds since 1970. */
export const adminUsedAt = signal(0)

/** Whose session: of an API key, or of the admin token. */
export type SessionKind = "session" | "admin"

/** The session that requests are made with, unless they ask for the other one. */
export const usedSession = signal<SessionKind>("session")

/** Says which of two sessions is meant: one that has ended must not be replaced by the other. */
export const sessionHeader = (kind: SessionKind = usedSession.peek()) => ({
  "x-alk-session": kind
})

export interface CallOptions {
  readonly method?: "GET" | "POST" | "DELETE"
  /** Sent as JSON. */
  readonly body?: unknown
  readonly signal?: AbortSignal
  /** Asked without a session: 401 says nothing of it. */
  readonly isPublic?: boolean
  /** Statuses beside 2xx that are answers and no failures. */
  readonly answers?: ReadonlyArray<number>
  /** With the session of this kind. */
  readonly as?: SessionKind
}

interface AskOptions extends CallOptions {
  /** Media type that is asked for; JSON by default. */
  readonly accept?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** What a response that is not a success says; a lost session is counted. */
const refusalOf = (
  response: Response,
  isPublic = false,
  as: SessionKind = usedSession.peek()
): Promise<ApiFailure> => {
  if (response.status === 401 && !isPublic) {
    const lost = as === usedSession.peek() ? sessionsLost : adminSessionsLost
    lost.value += 1
  }
  return failureOfResponse(response)
}

/** Another one at each attempt, so that who shows it knows that it failed again. */
export const unreachable = (): ApiFailure =>
  new ApiFailure(
    0,
    "unreachable",
    "the service can't be reached; it may be restarting, or the network is down"
  )

/** Throws ApiFailure, or AbortError when it is given up. */
export const ask = async (path: string, options: AskOptions = {}): Promise<Response> => {
  const {
    accept = "application/json",
    answers = [],
    as,
    body,
    headers = {},
    isPublic = false,
    method = "GET",
    signal: given
  } = options
  let response: Response
  try {
    response = await fetch(path, {
      method,
      headers: {
        accept,
        ...headers,
        ...(isPublic && as === undefined ? {} : sessionHeader(as)),
        ...(body === undefined ? {} : { "content-type": "application/json" })
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(given === undefined ? {} : { signal: given })
    })
  } catch (error) {
    if (given?.aborted === true) throw error
    throw unreachable()
  }
  if (as === "admin" && response.status !== 401) adminUsedAt.value = Date.now()
  if (response.ok || answers.includes(response.status)) return response
  throw await refusalOf(response, isPublic, as)
}

/**
 * The answer's JSON; undefined for 204. Browsers have the bug of V8 as well that makes the service read
 * JSON by itself. Throws ApiFailure, or AbortError when it is given up.
 */
export const call = async <A>(path: string, options: CallOptions = {}): Promise<A> => {
  const response = await ask(path, options)
  return (response.status === 204 ? undefined : parseJson(await response.text())) as A
}

/** The text of an answer, as it is. Throws ApiFailure. */
export const callText = async (path: string): Promise<string> => {
  const response = await fetch(path, { headers: sessionHeader() }).catch(() => {
    throw unreachable()
  })
  if (!response.ok) throw await refusalOf(response)
  return response.text()
}
