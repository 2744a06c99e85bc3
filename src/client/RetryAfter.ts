/** How long to wait before a request is sent again: what the service asks for, and back-off. */

/** Milliseconds before the second attempt, on average twice as much before each further one. */
const FIRST_WAIT_MS = 200
/** Milliseconds between two attempts at most, unless the service asks for more. */
const WAIT_MAX_MS = 10_000
/** Milliseconds that a service may ask for at most: a wrong clock must not stop a client for days. */
const RETRY_AFTER_MAX_MS = 10 * 60_000

/**
 * The milliseconds that a `Retry-After` asks for: seconds, or a date (RFC 9110, 10.2.3), at most ten
 * minutes. Undefined without a header or with one that says neither.
 */
export const retryAfterMs = (header: string | null, now: number): number | undefined => {
  const text = header?.trim() ?? ""
  if (text === "") return undefined
  const wait = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - now
  return Number.isNaN(wait) ? undefined : Math.min(Math.max(wait, 0), RETRY_AFTER_MAX_MS)
}

/**
 * Milliseconds before the next attempt, after `attempts` that failed (1 at least): exponential
 * back-off with jitter, so that clients which failed together do not come back together. What the
 * service asked for is waited in full, with the jitter on top.
 */
export const waitMs = (
  attempts: number,
  random: () => number,
  asked: number | undefined = 0
): number => {
  const ceiling = Math.min(WAIT_MAX_MS, FIRST_WAIT_MS * 2 ** Math.min(attempts - 1, 20))
  return asked + ceiling * (0.5 + random() / 2)
}
