/**
 * The signals of OpenTelemetry beside traces: how an export of them is read, and how many items an
 * export of metrics, which are not kept, holds.
 */
import { decodersOf } from "./Decode.ts"
import { ExportLogsServiceRequestSchema } from "./gen/opentelemetry/proto/collector/logs/v1/logs_service_pb.js"
import {
  type ExportMetricsServiceRequest,
  ExportMetricsServiceRequestSchema
} from "./gen/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.js"

export const logsDecoders = decodersOf(ExportLogsServiceRequestSchema)
export const metricsDecoders = decodersOf(ExportMetricsServiceRequestSchema)

/** Data points of an export, over all kinds of metrics. */
export const countDataPoints = ({ resourceMetrics }: ExportMetricsServiceRequest): number => {
  let points = 0
  for (const { scopeMetrics } of resourceMetrics) {
    for (const { metrics } of scopeMetrics) {
      for (const { data } of metrics) points += data.value?.dataPoints.length ?? 0
    }
  }
  return points
}
