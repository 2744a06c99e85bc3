/**
 * The signals of OpenTelemetry that are not kept, logs and metrics: how an export of them is read,
 * and how many items it holds. Knows nothing of what the items say.
 */
import { decodersOf } from "./Decode.ts"
import {
  type ExportLogsServiceRequest,
  ExportLogsServiceRequestSchema
} from "./gen/opentelemetry/proto/collector/logs/v1/logs_service_pb.js"
import {
  type ExportMetricsServiceRequest,
  ExportMetricsServiceRequestSchema
} from "./gen/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.js"

export const logsDecoders = decodersOf(ExportLogsServiceRequestSchema)
export const metricsDecoders = decodersOf(ExportMetricsServiceRequestSchema)

/** Log records of an export. */
export const countLogRecords = ({ resourceLogs }: ExportLogsServiceRequest): number => {
  let records = 0
  for (const { scopeLogs } of resourceLogs) {
    for (const { logRecords } of scopeLogs) records += logRecords.length
  }
  return records
}

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
