/**
 * The errors of routes: failures of handlers as types, and in the OpenAPI document as bodies, one
 * schema per form. No body is encoded through these: `errorBody` writes the bytes, a test compares.
 */
import { Schema, SchemaGetter } from "effect"
import { HttpApiSchema } from "effect/http-api"
import {
  type ErrorForm,
  type ErrorStatus,
  errorCodes,
  errorStatuses
} from "../messages/ApiError.ts"
import type { Failure } from "../messages/Failure.ts"

const Code = Schema.Literals(errorCodes).annotate({
  description: "What was wrong, one of a closed list."
})
const Message = Schema.String.annotate({
  description: "For people; begins with the field at fault where there is one."
})
const Field = Schema.String.annotate({ description: "The parameter, header or field at fault." })
const RequestId = Schema.String.annotate({ description: "The `X-Request-Id` of this request." })

/** The object form. */
export const ErrorBody = Schema.Struct({
  error: Schema.Struct({
    code: Code,
    message: Message,
    field: Schema.optionalKey(Field),
    request_id: RequestId
  })
}).annotate({
  identifier: "Error",
  examples: [
    {
      error: {
        code: "invalid_request",
        message: 'page: must be an integer from 1 on, not "0"',
        field: "page",
        request_id: "5f0c6d0e-8f0a-4a55-9d3b-1f6f3f8f0b11"
      }
    }
  ]
})

/** The string form. */
export const TextErrorBody = Schema.Struct({
  error: Message,
  code: Code,
  field: Schema.optionalKey(Field),
  request_id: RequestId
}).annotate({
  identifier: "TextError",
  examples: [
    {
      error: "events: an array of 1 to 1000 items is required",
      code: "invalid_request",
      field: "events",
      request_id: "5f0c6d0e-8f0a-4a55-9d3b-1f6f3f8f0b11"
    }
  ]
})

const isFailure = (value: unknown): value is Failure =>
  typeof value === "object" && value !== null && "_tag" in value

/** What handlers fail with, shown as the body that `Refusals` makes of it. */
export const shownAs = <Body extends Schema.Top>(body: Body) =>
  Schema.declare(isFailure).pipe(
    Schema.encodeTo(body, {
      decode: SchemaGetter.forbidden(() => "a failure is not read"),
      encode: SchemaGetter.forbidden(() => "Refusals writes the bodies of failures")
    })
  )

const bodies = { object: shownAs(ErrorBody), text: shownAs(TextErrorBody) }

/** The error schemas of a route. Every route refuses parameters that it doesn't know: 400. */
export const errorsOf = (form: ErrorForm, ...statuses: ReadonlyArray<ErrorStatus>) =>
  [...new Set<ErrorStatus>([400, ...statuses])].map((status) =>
    bodies[form].pipe(HttpApiSchema.status(status))
  )

const meanings: Readonly<Record<ErrorStatus, string>> = {
  400: "The request can't be read; the message names the field.",
  401: "The credential is missing, unknown or revoked.",
  403: "The key lacks the scope.",
  404: "There is nothing with this id, for this tenant.",
  405: "The route has no such method.",
  406: "None of the media types in `Accept` is available.",
  409: "The request contradicts what is stored.",
  410: "It was removed for good: by the retention of the tenant, or with the tenant.",
  413: "The body is too large after decompression.",
  415: "The media type or the content coding is not understood.",
  422: "The `Idempotency-Key` was used before with another body.",
  429: "A quota of the tenant is used up.",
  503:
    "The service can't do it for now. A write may still have happened: retry it with the same "
    + "event ids or the same `Idempotency-Key`."
}

/** What a status means, with the codes that come with it. */
export const describeStatus = (status: ErrorStatus): string => {
  const codes = errorCodes.filter((code) => errorStatuses[code] === status)
  return `${meanings[status]} Codes: ${codes.map((code) => `\`${code}\``).join(", ")}.`
}
