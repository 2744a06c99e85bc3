/**
 * Traces of alk itself, to the collector that OTEL_EXPORTER_OTLP_ENDPOINT names; without it there
 * is no tracer, and nothing is kept or sent. Spans say what the program does, never what its
 * clients have sent: those that the HTTP library makes of its own hold addresses with their
 * queries, and are off. The collector must not be alk itself: each span that it stored would make
 * the next.
 */
import { NodeHttpClient } from "@effect/platform-node"
import { Layer } from "effect"
import { HttpMiddleware } from "effect/http"
import { OtlpSerialization, OtlpTracer } from "effect/observability"
import { TracesRequests } from "../http/messages/CurrentRequest.ts"

export interface TracingSettings {
  /** Where traces are sent to, without `/v1/traces`; undefined is off. */
  readonly endpoint: string | undefined
  readonly serviceName: string
}

/** The tracer of this process. */
export const layerTracing = ({ endpoint, serviceName }: TracingSettings): Layer.Layer<never> =>
  endpoint === undefined || endpoint === ""
    ? Layer.empty
    : Layer.mergeAll(
        Layer.succeed(HttpMiddleware.TracerDisabledWhen, () => true),
        Layer.succeed(TracesRequests, true),
        OtlpTracer.layer({
          url: `${endpoint.replace(/\/+$/, "")}/v1/traces`,
          resource: { serviceName }
        }).pipe(Layer.provide([NodeHttpClient.layerNodeHttp, OtlpSerialization.layerJson]))
      )
