/**
 * The two encodings of OTLP/HTTP and what may be said in them: an export's answer, and refusals in
 * the form of the specification, `google.rpc.Status`. Who refuses is not decided here.
 */
import {
  create,
  createRegistry,
  type DescMessage,
  type MessageInitShape,
  toBinary,
  toJson
} from "@bufbuild/protobuf"
import { anyPack } from "@bufbuild/protobuf/wkt"
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema
} from "../../services/ingest/otlp/gen/google/rpc/error_details_pb.js"
import { type Status, StatusSchema } from "../../services/ingest/otlp/gen/google/rpc/status_pb.js"
import { ExportLogsServiceResponseSchema } from "../../services/ingest/otlp/gen/opentelemetry/proto/collector/logs/v1/logs_service_pb.js"
import { ExportMetricsServiceResponseSchema } from "../../services/ingest/otlp/gen/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.js"
import { ExportTraceServiceResponseSchema } from "../../services/ingest/otlp/gen/opentelemetry/proto/collector/trace/v1/trace_service_pb.js"
import { type ErrorCode, errorStatuses, RETRY_AFTER_SECONDS } from "../messages/ApiError.ts"
import { JSON_TYPE } from "../messages/MediaTypes.ts"

/** What OTLP calls protobuf. */
export const PROTOBUF_TYPE = "application/x-protobuf"

export type OtlpEncoding = typeof JSON_TYPE | typeof PROTOBUF_TYPE

/** The encoding of a request by its `Content-Type`; JSON if that is missing or neither. */
export const encodingOf = (contentType: string | undefined): OtlpEncoding =>
  contentType?.split(";", 1)[0]?.trim().toLowerCase() === PROTOBUF_TYPE ? PROTOBUF_TYPE : JSON_TYPE

/** The answer to an export of which `rejected` items were refused. */
export type ExportAnswer = (
  encoding: OtlpEncoding,
  rejected: number,
  errorMessage: string
) => Uint8Array | string

/** Answers of a type; with neither refused items nor a warning they are empty. */
const answersOf =
  <Type extends DescMessage>(
    type: Type,
    refused: (count: bigint, errorMessage: string) => MessageInitShape<Type>
  ): ExportAnswer =>
  (encoding, rejected, errorMessage) => {
    const message =
      rejected === 0 && errorMessage === ""
        ? create(type)
        : create(type, refused(BigInt(rejected), errorMessage))
    return encoding === PROTOBUF_TYPE
      ? toBinary(type, message)
      : JSON.stringify(toJson(type, message))
  }

export const tracesAnswer = answersOf(
  ExportTraceServiceResponseSchema,
  (rejectedSpans, errorMessage) => ({ partialSuccess: { rejectedSpans, errorMessage } })
)
export const logsAnswer = answersOf(
  ExportLogsServiceResponseSchema,
  (rejectedLogRecords, errorMessage) => ({ partialSuccess: { rejectedLogRecords, errorMessage } })
)
export const metricsAnswer = answersOf(
  ExportMetricsServiceResponseSchema,
  (rejectedDataPoints, errorMessage) => ({ partialSuccess: { rejectedDataPoints, errorMessage } })
)

const INVALID_ARGUMENT = 3
const NOT_FOUND = 5
const PERMISSION_DENIED = 7
const RESOURCE_EXHAUSTED = 8
const INTERNAL = 13
const UNAVAILABLE = 14
const UNAUTHENTICATED = 16

/** The code of `google.rpc.Code` for a status; clients go by the HTTP status. */
const rpcCodes: Readonly<Record<number, number>> = {
  400: INVALID_ARGUMENT,
  401: UNAUTHENTICATED,
  403: PERMISSION_DENIED,
  404: NOT_FOUND,
  413: RESOURCE_EXHAUSTED,
  415: INVALID_ARGUMENT,
  429: RESOURCE_EXHAUSTED,
  503: UNAVAILABLE
}

/** The domain of the reasons in `google.rpc.ErrorInfo`. */
const ERROR_DOMAIN = "alk"

/** What every refusal says, in whatever form. */
export interface Refusal {
  readonly code: ErrorCode
  readonly message: string
  readonly field?: string
  readonly request_id: string
}

/** The `google.rpc.Status` of a refusal: one with RetryInfo is worth another try. */
export const refusalStatus = ({ code, field, message, request_id }: Refusal): Status => {
  const httpStatus = errorStatuses[code]
  const violation = { field: field ?? "", description: message }
  const retryable = httpStatus === 429 || httpStatus === 503
  return create(StatusSchema, {
    code: rpcCodes[httpStatus] ?? INTERNAL,
    message,
    details: [
      anyPack(
        ErrorInfoSchema,
        create(ErrorInfoSchema, {
          reason: code.toUpperCase(),
          domain: ERROR_DOMAIN,
          metadata: { request_id }
        })
      ),
      ...(httpStatus === 400
        ? [anyPack(BadRequestSchema, create(BadRequestSchema, { fieldViolations: [violation] }))]
        : []),
      ...(retryable
        ? [
            anyPack(
              RetryInfoSchema,
              create(RetryInfoSchema, { retryDelay: { seconds: BigInt(RETRY_AFTER_SECONDS) } })
            )
          ]
        : [])
    ]
  })
}

const registry = createRegistry(StatusSchema, ErrorInfoSchema, BadRequestSchema, RetryInfoSchema)

/**
 * A refusal in the form of OTLP. In JSON it is both at once: the documented error body, and a
 * `google.rpc.Status` for those who look for its `code` and `message`.
 */
export const refusalAnswer = (encoding: OtlpEncoding, refusal: Refusal): Uint8Array | string => {
  const status = refusalStatus(refusal)
  return encoding === PROTOBUF_TYPE
    ? toBinary(StatusSchema, status)
    : JSON.stringify({
        error: refusal,
        ...(toJson(StatusSchema, status, { registry }) as Record<string, unknown>)
      })
}
