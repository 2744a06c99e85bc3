/**
 * The OTLP/HTTP routes, those of signals that are not kept too: paths, bodies in both encodings,
 * statuses. Says nothing of how they are served, and of the messages no more than that
 * OpenTelemetry publishes them.
 */
import { Schema } from "effect"
import {
  HttpApiEndpoint,
  HttpApiGroup,
  HttpApiMiddleware,
  HttpApiSchema,
  OpenApi
} from "effect/http-api"
import { ErrorBody, shownAs } from "../contract/ContractErrors.ts"
import { operation } from "../contract/Operation.ts"
import { Authorization } from "../server/Authorization.ts"
import { Refusals } from "../server/Refusals.ts"
import { PROTOBUF_TYPE } from "./OtlpEncoding.ts"

/** Puts every refusal of the route into the form of OTLP: applied around the other middleware. */
export class OtlpRefusals extends HttpApiMiddleware.Service<OtlpRefusals>()(
  "alk/http/OtlpRefusals"
) {}

const resourceSpans = Schema.Array(Schema.Record(Schema.String, Schema.Unknown))

const ExportRequest = Schema.Struct({
  resourceSpans: Schema.optionalKey(Schema.NullOr(resourceSpans))
}).annotate({
  identifier: "ExportTraceServiceRequest",
  description:
    "`opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest` in OTLP's JSON mapping: "
    + "ids in hex, enums as numbers (names are understood), 64-bit integers as strings or numbers.",
  examples: [
    {
      resourceSpans: [
        {
          resource: {
            attributes: [{ key: "service.name", value: { stringValue: "support-agent" } }]
          },
          scopeSpans: [
            {
              spans: [
                {
                  traceId: "5b8efff798038103d269b633813fc60c",
                  spanId: "eee19b7ec3c1b174",
                  name: "answer a ticket",
                  startTimeUnixNano: "1795860001000000000",
                  endTimeUnixNano: "1795860002000000000"
                }
              ]
            }
          ]
        }
      ]
    }
  ]
})

const ExportResponse = Schema.Struct({
  partialSuccess: Schema.optionalKey(
    Schema.Struct({
      rejectedSpans: Schema.optionalKey(
        Schema.String.annotate({
          description: "How many, in decimal digits; absent if all are stored."
        })
      ),
      errorMessage: Schema.String.annotate({
        description: "Which spans were refused or repaired, or had values that were cut, and why."
      })
    })
  )
}).annotate({
  identifier: "ExportTraceServiceResponse",
  description:
    "`partialSuccess` only if spans were refused or repaired, or values cut; they must not be sent again."
})

/** `google.rpc.Status` in JSON, with the error body of the other routes in it. */
const Refusal = Schema.Struct({
  ...ErrorBody.fields,
  code: Schema.Int.annotate({ description: "Of `google.rpc.Code`." }),
  message: Schema.String,
  details: Schema.Array(Schema.Record(Schema.String, Schema.Unknown)).annotate({
    description: "Messages of `google.rpc`, each with its `@type`."
  })
}).annotate({ identifier: "OtlpError" })

/** The same message as binary protobuf, and `google.rpc.Status` in refusals. */
const Protobuf = Schema.Uint8Array.pipe(HttpApiSchema.asUint8Array({ contentType: PROTOBUF_TYPE }))

const refusals = [400, 401, 403, 413, 415, 429, 503] as const

const errors = [
  ...refusals.map((status) => shownAs(Refusal).pipe(HttpApiSchema.status(status))),
  ...refusals.map((status) => Protobuf.pipe(HttpApiSchema.status(status)))
]

const exportTraces = HttpApiEndpoint.post("exportTraces", "/v1/traces", {
  payload: [ExportRequest, Protobuf],
  success: [ExportResponse.pipe(HttpApiSchema.status(200)), Protobuf],
  error: errors
}).pipe(
  operation({
    scopes: ["write"],
    summary: "Export OpenTelemetry spans (OTLP/HTTP)",
    description:
      "One execution per trace id, named and ended by the span without a parent; spans, their "
      + "events and links become spans, trace events and causes. Spans may come in any order, in "
      + "several requests, and again: the same id is the same span, and a repeated export adds "
      + "nothing. Answered when everything is stored and visible; 503 if that takes longer than "
      + "10 s: send the same again. The answer has the request's encoding. Refusals are "
      + "`google.rpc.Status` messages, in JSON together with the error body of the other routes."
  })
)

/** Answers to exports that are not kept, or not as a whole. */
const refusedAs = (identifier: string, member: string) =>
  Schema.Struct({
    partialSuccess: Schema.optionalKey(
      Schema.Struct({
        [member]: Schema.optionalKey(
          Schema.String.annotate({
            description: "How many, in decimal digits; absent if all are stored."
          })
        ),
        errorMessage: Schema.String.annotate({
          description: "What was refused, cut or repaired, and where it is to be sent."
        })
      })
    )
  }).annotate({
    identifier,
    description:
      "`partialSuccess` only if something was refused, cut or repaired; it must not be sent again."
  })

const ENCODING = "The answer has the request's encoding."

const LogsRequest = Schema.Struct({
  resourceLogs: Schema.optionalKey(
    Schema.NullOr(Schema.Array(Schema.Record(Schema.String, Schema.Unknown)))
  )
}).annotate({
  identifier: "ExportLogsServiceRequest",
  description:
    "`opentelemetry.proto.collector.logs.v1.ExportLogsServiceRequest` in OTLP's JSON mapping.",
  examples: [
    {
      resourceLogs: [
        {
          scopeLogs: [
            {
              logRecords: [
                {
                  timeUnixNano: "1795860001000000000",
                  eventName: "gen_ai.user.message",
                  traceId: "5b8efff798038103d269b633813fc60c",
                  spanId: "eee19b7ec3c1b174",
                  body: { stringValue: "Where is my parcel?" }
                }
              ]
            }
          ]
        }
      ]
    }
  ]
})

const MetricsRequest = Schema.Struct({
  resourceMetrics: Schema.optionalKey(
    Schema.NullOr(Schema.Array(Schema.Record(Schema.String, Schema.Unknown)))
  )
}).annotate({
  identifier: "ExportMetricsServiceRequest",
  description:
    "`opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceRequest` in OTLP's JSON mapping.",
  examples: [
    {
      resourceMetrics: [
        {
          scopeMetrics: [
            {
              metrics: [
                {
                  name: "gen_ai.client.token.usage",
                  sum: { dataPoints: [{ timeUnixNano: "1795860001000000000", asInt: "512" }] }
                }
              ]
            }
          ]
        }
      ]
    }
  ]
})

const LogsResponse = refusedAs("ExportLogsServiceResponse", "rejectedLogRecords")
const MetricsResponse = refusedAs("ExportMetricsServiceResponse", "rejectedDataPoints")

const exportLogs = HttpApiEndpoint.post("exportLogs", "/v1/logs", {
  payload: [LogsRequest, Protobuf],
  success: [LogsResponse.pipe(HttpApiSchema.status(200)), Protobuf],
  error: errors
}).pipe(
  operation({
    scopes: ["write"],
    summary: "Export OpenTelemetry logs of models (OTLP/HTTP)",
    description:
      "Log records that are events of a model, by an event name that begins with `gen_ai.`, and that "
      + "name a trace and a span become trace events of that span, which may come later; the same "
      + "record again adds nothing. Other records are counted and refused in `partial_success`, so "
      + "that an exporter that is switched on neither fails nor tries again. Spans go to "
      + `\`/v1/traces\`. ${ENCODING}`
  })
)

const exportMetrics = HttpApiEndpoint.post("exportMetrics", "/v1/metrics", {
  payload: [MetricsRequest, Protobuf],
  success: [MetricsResponse.pipe(HttpApiSchema.status(200)), Protobuf],
  error: errors
}).pipe(
  operation({
    scopes: ["write"],
    summary: "Refuse OpenTelemetry metrics (OTLP/HTTP)",
    description:
      "An export of data points is read, counted and refused as a whole in `partial_success`, so "
      + "that an exporter that is switched on neither fails nor tries again. Spans go to "
      + `\`/v1/traces\`. ${ENCODING}`
  })
)

/** The routes that OpenTelemetry exporters send to. */
export class OtlpApi extends HttpApiGroup.make("OpenTelemetry")
  .add(exportTraces, exportLogs, exportMetrics)
  .middleware(Refusals)
  .middleware(Authorization)
  .middleware(OtlpRefusals)
  .annotateMerge(
    OpenApi.annotations({ description: "Spans as OpenTelemetry SDKs and collectors export them." })
  ) {}
