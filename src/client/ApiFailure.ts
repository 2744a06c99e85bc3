/**
 * The one error of requests: a refusal of the service, or a request that got no answer. Knows how
 * the two forms of refusals look; says nothing of who asks again.
 */

/** The code of an answer that did not come from the service, as from a proxy, and of other surprises. */
export const UNEXPECTED = "unexpected"

/** What is known of a failure beside its text. */
export interface FailureFacts {
  readonly field?: string | undefined
  readonly requestId?: string | undefined
  readonly retryAfterMs?: number | undefined
  readonly cause?: unknown
}

/** A refusal of the API, or a request that got no answer (status 0). */
export class ApiFailure extends Error {
  override readonly name = "ApiFailure"
  /** The HTTP status; 0 without an answer. */
  readonly status: number
  /**
   * Of the closed list of the API (`invalid_request`, `rate_limited`, …). Without an answer
   * `unreachable`, `timed_out`, or `cut_off` where the answer ended early; `unexpected` for an answer
   * in other words than the service's.
   */
  readonly code: string
  /** The parameter, header or field at fault, where there is one. */
  readonly field: string | undefined
  /** Names the request in the log of the service. */
  readonly requestId: string | undefined
  /** Milliseconds that the service asks to wait before the next attempt. */
  readonly retryAfterMs: number | undefined

  constructor(status: number, code: string, message: string, facts: FailureFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause })
    this.status = status
    this.code = code
    this.field = facts.field
    this.requestId = facts.requestId
    this.retryAfterMs = facts.retryAfterMs
  }

  /** True if the same request may be answered later: overload, restarts, the network. */
  get isTransient(): boolean {
    return isTransientStatus(this.status)
  }
}

/** 408 and 425 come from proxies. */
const TRANSIENT: ReadonlyArray<number> = [0, 408, 425, 429]

const isTransientStatus = (status: number): boolean => TRANSIENT.includes(status) || status >= 500

interface Refusal {
  readonly code?: string
  readonly message?: string
  readonly field?: string
  readonly request_id?: string
}

/** Routes of traces and of batches give the message as a string, with the rest beside it. */
type ErrorBody = { readonly error?: Refusal } | (Refusal & { readonly error: string })

/** What the body of a refusal says; empty for a body of another form. */
export const refusalIn = (body: unknown): Refusal => {
  if (typeof body !== "object" || body === null) return {}
  const { error } = body as ErrorBody
  return typeof error === "string" ? { ...(body as Refusal), message: error } : (error ?? {})
}
