/**
 * What the API refuses and how it says so: the closed list of codes with their statuses, and the
 * two body forms in which an error leaves the process. The refusing side names the code.
 */
import { Effect, Schema } from "effect"

/** Every code that an answer may carry, with its status. Closed: clients switch on these. */
export const errorStatuses = {
  invalid_request: 400,
  invalid_json: 400,
  invalid_range: 400,
  unauthenticated: 401,
  insufficient_scope: 403,
  not_found: 404,
  method_not_allowed: 405,
  not_acceptable: 406,
  idempotency_conflict: 409,
  id_conflict: 409,
  already_ended: 409,
  cycle_detected: 409,
  not_ready: 409,
  not_replayable: 409,
  legal_hold: 409,
  pruned: 410,
  tenant_deleted: 410,
  payload_too_large: 413,
  unsupported_media_type: 415,
  idempotency_mismatch: 422,
  rate_limited: 429,
  unavailable: 503,
  pdf_unavailable: 503
} as const

/** One of the closed list of codes. */
export type ErrorCode = keyof typeof errorStatuses
/** A status that an error may be answered with. */
export type ErrorStatus = (typeof errorStatuses)[ErrorCode]

/** The closed list, in the order of the statuses. */
export const errorCodes = Object.keys(errorStatuses) as ReadonlyArray<ErrorCode>

/** Seconds after which a client may try again what was unavailable. */
export const RETRY_AFTER_SECONDS = 1

/** A refusal on its way to the client. */
export class ApiError extends Schema.TaggedError<ApiError>()("ApiError", {
  code: Schema.Literals(errorCodes),
  message: Schema.String,
  /** The parameter, header or body field at fault. */
  field: Schema.optionalKey(Schema.String),
  /** Headers beyond those that every answer with this status has. */
  headers: Schema.optionalKey(Schema.Record(Schema.String, Schema.String))
}) {
  get status(): ErrorStatus {
    return errorStatuses[this.code]
  }
}

/** A request that can't be served as it is; the message begins with the field's name. */
export const invalid = (
  field: string,
  problem: string,
  code: "invalid_request" | "invalid_range" = "invalid_request"
): ApiError => new ApiError({ code, message: `${field}: ${problem}`, field })

/** The field at the beginning of a message. */
const FIELD = /^[\w.[\]-]+(?=: )/

/** The refusal of an item, whose message begins with the path of the field at fault. */
export const refusedItem = (message: string, code: ErrorCode = "invalid_request"): ApiError => {
  const field = FIELD.exec(message)?.[0]
  return new ApiError({ code, message, ...(field === undefined ? {} : { field }) })
}

/** Run a plain function that throws ApiError where it refuses; any other throw is a defect. */
export const refusable = <A>(evaluate: () => A): Effect.Effect<A, ApiError> =>
  Effect.suspend(() => {
    try {
      return Effect.succeed(evaluate())
    } catch (error) {
      return error instanceof ApiError ? Effect.fail(error) : Effect.die(error)
    }
  })

/** 404; also for what belongs to another tenant. */
export const notFound = (what: string): ApiError =>
  new ApiError({ code: "not_found", message: `there is no such ${what}` })

/** 503: it may work later, and a write may have happened. */
export const unavailable = (message: string): ApiError =>
  new ApiError({ code: "unavailable", message })

/** `object`: `{error: {code, message, …}}`; `text`: `{error: "<message>", code, …}`. */
export type ErrorForm = "object" | "text"

/** The published contract has a string as `error` on these paths, whatever the status. */
export const errorFormOf = (path: string): ErrorForm =>
  path === "/api/v1" || path.startsWith("/api/v1/") || path === "/v1/events/batch"
    ? "text"
    : "object"

/** The body of an error's answer, JSON. */
export const errorBody = (form: ErrorForm, error: ApiError, requestId: string): string => {
  const { code, field, message } = error
  const rest = { ...(field === undefined ? {} : { field }), request_id: requestId }
  return JSON.stringify(
    form === "text" ? { error: message, code, ...rest } : { error: { code, message, ...rest } }
  )
}

const statusHeaders: Partial<Record<ErrorStatus, Readonly<Record<string, string>>>> = {
  401: { "www-authenticate": "Bearer" },
  429: { "retry-after": String(RETRY_AFTER_SECONDS) },
  503: { "retry-after": String(RETRY_AFTER_SECONDS) }
}

/** The headers of an error's answer: those of its status, then its own. */
export const errorHeaders = (error: ApiError): Readonly<Record<string, string>> => ({
  "cache-control": "no-store",
  ...statusHeaders[error.status],
  ...error.headers
})
