/**
 * What all requests have in common that write events or traces: waiting for the commit, the
 * Idempotency-Key, and how a refused item is named.
 */
import type { HttpServerRequest } from "effect/http"
import type { JsonProblem } from "../../domain/json/StrictJson.ts"
import type { IdempotencyKey } from "../../services/ingest/Ingest.ts"
import type { HeaderParameter } from "../contract/Operation.ts"
import { queryOf } from "../contract/Requests.ts"
import type { AnswerOptions } from "./Answer.ts"
import { ApiError, invalid, RETRY_AFTER_SECONDS } from "./ApiError.ts"
import { IDEMPOTENCY_HEADER } from "./Failure.ts"
import { choiceParameter } from "./QueryParameters.ts"

/** Characters of an `Idempotency-Key` at most. */
export const IDEMPOTENCY_KEY_LENGTH_MAX = 255

/** Asks to wait for the commit; its only value is `true`. */
export const SYNC_HEADER = "X-Service-Sync"

const sync = choiceParameter(["true"], {
  description: "Wait until the events are committed; the same as the header `X-Service-Sync`."
})

/** Query of the routes that write several operations on traces. */
export const syncQuery = queryOf({ sync })

/** Query of the ingest routes. */
export const ingestQuery = queryOf({
  sync,
  actions: choiceParameter(["noun.verb", "any"], {
    description:
      "Names that actions may have: dotted names, or any 1 to 256 printable characters. Without it, "
      + "what `ALK_ACTIONS` says: dotted names, as a rule."
  }),
  numbers: choiceParameter(["exact", "text"], {
    default: "exact",
    description:
      "What becomes of a number in `metadata` that no double holds, such as an integer beyond 2^53: "
      + "`exact` refuses its item, `text` keeps it as the text that it was sent as, and says so in "
      + "`warnings`."
  })
})

/** The header that makes a write repeatable. */
export const idempotencyHeader: Readonly<Record<string, HeaderParameter>> = {
  [IDEMPOTENCY_HEADER]: {
    description:
      "Names this request within tenant, method and path. The same key with the same body gives "
      + "the first answer again, with another body 422. Only 2xx answers are remembered, for 7 "
      + "days. Such a request waits for the sequencer's decision, 10 s at most, else 503.",
    schema: {
      type: "string",
      minLength: 1,
      maxLength: IDEMPOTENCY_KEY_LENGTH_MAX,
      pattern: "^[\\x21-\\x7e]+$"
    }
  }
}

const VISIBLE_ASCII = /^[\x21-\x7e]+$/

/** True if the client waits for the commit; throws ApiError for any value but `true`. */
export const wantsSync = ({
  query,
  request
}: {
  readonly query: Pick<typeof syncQuery.Type, "sync">
  readonly request: HttpServerRequest.HttpServerRequest
}): boolean => {
  const header = request.headers[SYNC_HEADER.toLowerCase()]
  if (header !== undefined && header !== "true") {
    throw invalid(SYNC_HEADER, 'the only value is "true"')
  }
  return header === "true" || query.sync === "true"
}

export const idempotencyKey = (
  request: HttpServerRequest.HttpServerRequest,
  path: string
): IdempotencyKey | undefined => {
  const key = request.headers[IDEMPOTENCY_HEADER.toLowerCase()]
  if (key === undefined) return undefined
  if (key.length > IDEMPOTENCY_KEY_LENGTH_MAX || !VISIBLE_ASCII.test(key)) {
    throw invalid(
      IDEMPOTENCY_HEADER,
      `must be 1 to ${IDEMPOTENCY_KEY_LENGTH_MAX} visible ASCII characters`
    )
  }
  return { method: request.method, path, key }
}

const codeOf = ({ code }: JsonProblem) => {
  if (code === "too_large") return "payload_too_large"
  return code === "invalid_json" ? code : "invalid_request"
}

/** A body that can't be read as a whole. */
export const unreadable = (problem: JsonProblem): ApiError =>
  new ApiError({
    code: codeOf(problem),
    message: problem.message,
    ...(problem.path === "" ? {} : { field: problem.path })
  })

/** Where the receipt of a 202 is. */
export type Accepted = (receiptId: string) => AnswerOptions

export const acceptedAt =
  (publicUrl = ""): Accepted =>
  (receiptId) => ({
    status: 202,
    headers: {
      location: `${publicUrl}/v1/receipts/${receiptId}`,
      "retry-after": String(RETRY_AFTER_SECONDS)
    }
  })
