/**
 * Sends one request and reads its answer: address, key, time limit, refusals as ApiFailure. Nothing
 * is sent twice here, and nothing is known of what the routes mean.
 */
import { parseJson } from "../domain/json/Json.ts"
import { ApiFailure, refusalIn, UNEXPECTED } from "./ApiFailure.ts"
import { retryAfterMs } from "./RetryAfter.ts"

/** The key, or what gives the one of now: for keys that are renewed while a program runs. */
export type Key = string | (() => string | Promise<string>)

export interface TransportOptions {
  /** Address of the service, with its path if it has one. */
  readonly url: string
  /** Undefined sends no `Authorization`: for public routes, or a session of a browser. */
  readonly key: Key | undefined
  /** Sent with each request. */
  readonly headers: Readonly<Record<string, string>>
  /** Milliseconds from sending to the headers of the answer. */
  readonly timeoutMs: number
  readonly fetch: typeof fetch
}

/** A request to one path. */
export interface Outgoing {
  readonly method: string
  /** With the query; starts with a slash. */
  readonly path: string
  readonly accept?: string | undefined
  readonly body?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly signal?: AbortSignal | undefined
  readonly timeoutMs?: number | undefined
  /** Let a browser send it after its page is closed; 64 KiB at most. */
  readonly keepalive?: boolean | undefined
}

/** An answer that was read to its end. */
export interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** Sends the requests of one client. Rejects with ApiFailure, or the reason of an aborted signal. */
export interface Transport {
  /** The whole answer; the time limit is for all of it. */
  readonly send: (outgoing: Outgoing) => Promise<Reply>
  /** The answer from its headers on, for streams and files; the time limit is for the headers. */
  readonly open: (outgoing: Outgoing) => Promise<Response>
}

const unreachable = (url: string, cause: unknown): ApiFailure => {
  // fetch says "fetch failed"; what failed is in its cause.
  const inner = (cause as { readonly cause?: { readonly message?: string } }).cause?.message
  const why = inner ?? (cause instanceof Error ? cause.message : String(cause))
  const message = `the service at ${url} can't be reached (${why}); check url, or whether it runs`
  return new ApiFailure(0, "unreachable", message, { cause })
}

const timedOut = (url: string, ms: number): ApiFailure =>
  new ApiFailure(0, "timed_out", `the service at ${url} has not answered for ${ms} ms`)

/** What a response that is not a success says. */
export const failureOfResponse = async (response: Response): Promise<ApiFailure> => {
  const text = await response.text().catch(() => "")
  let body: unknown
  try {
    body = parseJson(text)
  } catch {
    // A proxy between answers in words of its own.
  }
  const { code = UNEXPECTED, field, message, request_id } = refusalIn(body)
  const said = message ?? `the service answered ${response.status} ${response.statusText}`.trim()
  return new ApiFailure(response.status, code, said, {
    field,
    requestId: request_id ?? response.headers.get("x-request-id") ?? undefined,
    retryAfterMs: retryAfterMs(response.headers.get("retry-after"), Date.now())
  })
}

const keyOf = async (key: Key): Promise<string> => {
  if (typeof key === "string") return key
  try {
    return await key()
  } catch (cause) {
    const message = `key: the function that gives it has thrown: ${String(cause)}`
    throw new ApiFailure(0, UNEXPECTED, message, { cause })
  }
}

const headersOf = async (
  { headers, key }: TransportOptions,
  { accept = "application/json", body, headers: own }: Outgoing
): Promise<Record<string, string>> => ({
  accept,
  ...(body === undefined ? {} : { "content-type": "application/json" }),
  ...headers,
  ...own,
  ...(key === undefined ? {} : { authorization: `Bearer ${await keyOf(key)}` })
})

const addressOf = (url: string): string => url.replace(/\/+$/, "")

/** The response to a request, refusals as ApiFailure. */
const responseTo = async (
  options: TransportOptions,
  outgoing: Outgoing,
  signal: AbortSignal
): Promise<Response> => {
  const { body, keepalive, method, path } = outgoing
  const headers = await headersOf(options, outgoing)
  const response = await options.fetch(addressOf(options.url) + path, {
    method,
    headers,
    // A key must not follow a redirect to another address.
    redirect: "error",
    signal,
    ...(body === undefined ? {} : { body }),
    ...(keepalive === true ? { keepalive: true } : {})
  })
  if (response.ok) return response
  throw await failureOfResponse(response)
}

/**
 * Run a request within its time limit and as long as its signal lets it. `isOpen`: the signal goes
 * on to hold for what is read of the answer afterwards.
 */
const limited = async <A>(
  options: TransportOptions,
  outgoing: Outgoing,
  isOpen: boolean,
  run: (signal: AbortSignal) => Promise<A>
): Promise<A> => {
  const { signal, timeoutMs = options.timeoutMs } = outgoing
  signal?.throwIfAborted()
  const controller = new AbortController()
  const giveUp = () => controller.abort(signal?.reason)
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    controller.abort()
  }, timeoutMs)
  signal?.addEventListener("abort", giveUp, { once: true })
  try {
    const result = await run(controller.signal)
    if (!isOpen) signal?.removeEventListener("abort", giveUp)
    return result
  } catch (error) {
    signal?.removeEventListener("abort", giveUp)
    if (error instanceof ApiFailure) throw error
    if (signal?.aborted === true) throw signal.reason
    throw isLate ? timedOut(options.url, timeoutMs) : unreachable(options.url, error)
  } finally {
    clearTimeout(timer)
  }
}

/** The sender of a client. */
export const makeTransport = (options: TransportOptions): Transport => ({
  send: (outgoing) =>
    limited(options, outgoing, false, async (signal) => {
      const response = await responseTo(options, outgoing, signal)
      const { headers, status } = response
      return { status, headers, text: await response.text() }
    }),
  open: (outgoing) =>
    limited(options, outgoing, true, (signal) => responseTo(options, outgoing, signal))
})
