/**
 * What pages of other origins may do with the API: which headers they may send, and which of an
 * answer they may read.
 */
const ALLOWED_HEADERS = [
  "Authorization",
  "Content-Type",
  "Content-Encoding",
  "Idempotency-Key",
  "If-None-Match",
  "Last-Event-ID",
  "X-Request-Id",
  "X-Service-Sync",
  "traceparent",
  "tracestate"
]

const EXPOSED_HEADERS = [
  "X-Request-Id",
  "Location",
  "Retry-After",
  "Link",
  "ETag",
  "Content-Disposition",
  "X-Columns",
  "RateLimit-Limit",
  "RateLimit-Remaining",
  "RateLimit-Reset"
]

/** The rules for configured origins; `*` among them is any. */
export const corsOptions = (origins: ReadonlyArray<string>) => ({
  allowedOrigins: origins.includes("*") ? [] : origins,
  allowedMethods: ["GET", "HEAD", "POST", "PUT", "DELETE"],
  allowedHeaders: ALLOWED_HEADERS,
  exposedHeaders: EXPOSED_HEADERS,
  maxAge: 600
})

/** The headers of an answer that no router gives; `origin` is what the request's header says. */
export const corsHeaders = (
  origins: ReadonlyArray<string>,
  origin: string | undefined
): Readonly<Record<string, string>> => {
  if (origins.length === 0) return {}
  const exposed = { "access-control-expose-headers": EXPOSED_HEADERS.join(",") }
  if (origins.includes("*")) return { "access-control-allow-origin": "*", ...exposed }
  if (origin === undefined || !origins.includes(origin)) return { vary: "Origin" }
  return { "access-control-allow-origin": origin, vary: "Origin", ...exposed }
}
