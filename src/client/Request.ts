/**
 * Requests by the types of the API's contract: a route, its parameters and body, and the answer of
 * that route. What is safe to repeat is tried again; nothing here knows of queues.
 */
import { parseJson } from "../domain/json/Json.ts"
import { ApiFailure } from "./ApiFailure.ts"
import type { Nothing, QueryValue, Routes } from "./gen/Routes.d.ts"
import type { Clock } from "./Pause.ts"
import { waitMs } from "./RetryAfter.ts"
import type { Outgoing, Transport } from "./Transport.ts"

/** A method and a path of the API, such as `"GET /v1/events/{id}"`. */
export type Route = keyof Routes

/** The answer of a route: parsed JSON, or the text of other types; `never` for files (see `open`). */
export type AnswerOf<R extends Route> = Routes[R]["answer"]

/** Attempts that a request makes in all when it is safe to repeat. */
const ATTEMPTS_MAX = 5

interface CommonOptions {
  /** Gives the request up; it rejects with the reason of the signal. */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds for one attempt. */
  readonly timeoutMs?: number | undefined
  /** Media type that is asked for; `application/json` by default. */
  readonly accept?: string
  readonly headers?: Readonly<Record<string, string>>
  /**
   * Attempts in all. By default 5 for GET, and for a request with an `Idempotency-Key`; 1 for other
   * writes, which could be done twice.
   */
  readonly attempts?: number
}

type PathOption<P> = P extends Nothing
  ? keyof P extends never
    ? { readonly path?: never }
    : { readonly path: P }
  : { readonly path: P }

type QueryOption<Q> = keyof Q extends never
  ? { readonly query?: never }
  : Nothing extends Q
    ? { readonly query?: Q }
    : { readonly query: Q }

type BodyOption<B> = [B] extends [undefined]
  ? { readonly body?: never }
  : undefined extends B
    ? { readonly body?: B }
    : { readonly body: B }

/** What a request to a route is made of: the members that the route has. */
export type RequestOptions<R extends Route> = CommonOptions &
  PathOption<Routes[R]["path"]> &
  QueryOption<Routes[R]["query"]> &
  BodyOption<Routes[R]["body"]>

/** The options may be left out where nothing in them has to be given. */
export type RequestArguments<R extends Route> =
  Nothing extends RequestOptions<R> ? [options?: RequestOptions<R>] : [options: RequestOptions<R>]

/** Options of any route, as the code below reads them. */
interface AnyOptions extends CommonOptions {
  readonly path?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, QueryValue | undefined>>
  readonly body?: unknown
}

/** The query string with its question mark; nothing for no parameters. */
export const queryText = (query: Readonly<Record<string, QueryValue | undefined>> = {}): string => {
  const pairs = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue
    for (const one of [value].flat()) pairs.append(name, String(one))
  }
  return pairs.size === 0 ? "" : `?${pairs}`
}

const pathText = (template: string, values: Readonly<Record<string, string>> = {}): string =>
  template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = values[name]
    if (value === undefined || value === "") throw new TypeError(`path.${name}: required`)
    return encodeURIComponent(value)
  })

const IDEMPOTENCY_KEY = "idempotency-key"

const isRepeatable = (method: string, headers: Readonly<Record<string, string>> = {}): boolean =>
  method === "GET" || Object.keys(headers).some((name) => name.toLowerCase() === IDEMPOTENCY_KEY)

const outgoingOf = (route: string, options: AnyOptions): Outgoing => {
  const space = route.indexOf(" ")
  const { accept, body, headers, path, query, signal, timeoutMs } = options
  return {
    method: route.slice(0, space),
    path: pathText(route.slice(space + 1), path) + queryText(query),
    accept,
    headers,
    signal,
    timeoutMs,
    body: body === undefined ? undefined : JSON.stringify(body)
  }
}

export interface RetryOptions {
  readonly clock: Clock
  /** Attempts in all; any number by default. */
  readonly attempts?: number
  /** Milliseconds since 1970 after which there is no further attempt; never by default. */
  readonly until?: number
  readonly signal?: AbortSignal | undefined
}

/** Attempts until one succeeds, or fails for good; then rejects as the last one did. */
export const withRetries = async <A>(
  { attempts = Infinity, clock, signal, until = Infinity }: RetryOptions,
  attempt: () => Promise<A>
): Promise<A> => {
  for (let failed = 1; ; failed++) {
    try {
      return await attempt()
    } catch (error) {
      if (!(error instanceof ApiFailure) || !error.isTransient || failed >= attempts) throw error
      const ms = waitMs(failed, clock.random, error.retryAfterMs)
      if (clock.now() + ms > until) throw error
      await clock.wait(ms, signal)
    }
  }
}

/** Requests over one transport. */
export class Requests {
  readonly #transport: Transport
  readonly #clock: Clock

  constructor(transport: Transport, clock: Clock) {
    this.#transport = transport
    this.#clock = clock
  }

  /** The parsed answer of a route. Rejects with ApiFailure, or the reason of the signal. */
  async request<R extends Route>(
    route: R,
    ...[options]: RequestArguments<R>
  ): Promise<AnswerOf<R>> {
    const { headers, status, text } = await this.#attempt(route, options, this.#transport.send)
    if (status === 204) return undefined as AnswerOf<R>
    const isJson = headers.get("content-type")?.startsWith("application/json") === true
    return (isJson ? parseJson(text) : text) as AnswerOf<R>
  }

  /**
   * The answer of a route from its headers on, for files and streams. Rejects as `request` does; what
   * goes wrong while the body is read, the body says.
   */
  open<R extends Route>(route: R, ...[options]: RequestArguments<R>): Promise<Response> {
    return this.#attempt(route, options, this.#transport.open)
  }

  #attempt<A>(
    route: string,
    options: AnyOptions = {},
    send: (outgoing: Outgoing) => Promise<A>
  ): Promise<A> {
    const outgoing = outgoingOf(route, options)
    const { signal } = options
    const attempts =
      options.attempts ?? (isRepeatable(outgoing.method, options.headers) ? ATTEMPTS_MAX : 1)
    return withRetries({ attempts, clock: this.#clock, signal }, () => send(outgoing))
  }
}
