/** Exports in OTLP's JSON mapping, built by hand, and what becomes of them, without their salts. */

import { readFileSync } from "node:fs"
import { join } from "node:path"
import { toBinary } from "@bufbuild/protobuf"
import { finish } from "../../../../../src/domain/Slices.ts"
import type { Repair } from "../../../../../src/domain/traces/Repairs.ts"
import type { RecordOtlpSpan } from "../../../../../src/domain/traces/TraceOperation.ts"
import { decodeJson, decodeProtobuf } from "../../../../../src/services/ingest/otlp/Decode.ts"
import { NO_FLAWS } from "../../../../../src/services/ingest/otlp/Flaws.ts"
import {
  type ExportTraceServiceRequest,
  ExportTraceServiceRequestSchema
} from "../../../../../src/services/ingest/otlp/gen/opentelemetry/proto/collector/trace/v1/trace_service_pb.js"
import type { PreparedItems } from "../../../../../src/services/ingest/otlp/Prepared.ts"
import { prepareSpans } from "../../../../../src/services/ingest/otlp/PrepareSpans.ts"
import type { Decoded, ReadRequest } from "../../../../../src/services/ingest/otlp/Reading.ts"
import type { SpanLimits } from "../../../../../src/services/ingest/otlp/SpanParts.ts"

export type Json = Record<string, any>

export const TENANT = "acme"
export const TRACE = "5b8efff798038103d269b633813fc60c"
export const START = "1763700000000000000"
export const END = "1763700001000000000"

/** A span that is fine, but for what is changed. */
export const span = (changes: Json = {}): Json => ({
  traceId: TRACE,
  spanId: "eee19b7ec3c1b174",
  name: "chat",
  startTimeUnixNano: START,
  endTimeUnixNano: END,
  ...changes
})

export const exportOf = (spans: ReadonlyArray<Json>, resource: Json = {}): Json => ({
  resourceSpans: [{ resource, scopeSpans: [{ scope: { name: "tests" }, spans }] }]
})

export const attribute = (key: string, value: Json): Json => ({ key, value })

const readOf = (decoded: Decoded): ReadRequest => {
  if ("problem" in decoded) throw new Error(decoded.problem.message)
  return decoded
}

/** An export and what could not be read of it. */
export const readJson = (body: Json | string | Buffer): ReadRequest => {
  const text = typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body)
  return readOf(finish(decodeJson(Buffer.from(text))))
}

export const readProtobuf = (bytes: Uint8Array): ReadRequest =>
  readOf(finish(decodeProtobuf(bytes)))

export const fromJsonText = (body: Json | string): ExportTraceServiceRequest =>
  readJson(body).request

export const toProtobuf = (body: Json | string): Uint8Array =>
  toBinary(ExportTraceServiceRequestSchema, fromJsonText(body))

export const throughProtobuf = (body: Json | string): ExportTraceServiceRequest =>
  readProtobuf(toProtobuf(body)).request

export const preparedRead = (
  { flaws, request }: ReadRequest,
  limits?: SpanLimits,
  tenant = TENANT
): PreparedItems => {
  const result = finish(prepareSpans(request, tenant, limits, flaws))
  if ("tooLarge" in result) throw new Error(result.tooLarge)
  return result
}

export const prepared = (
  request: ExportTraceServiceRequest,
  limits?: SpanLimits,
  tenant = TENANT
): PreparedItems => preparedRead({ request, flaws: NO_FLAWS }, limits, tenant)

/** The repairs in the fact of a span. */
export const repairsOf = ({ details }: RecordOtlpSpan): ReadonlyArray<Repair> =>
  JSON.parse(details.text).repairs ?? []

export const operationsOf = (
  body: Json | string,
  limits?: SpanLimits
): ReadonlyArray<RecordOtlpSpan> => prepared(fromJsonText(body), limits).commands.flat()

/** The one refusal of an export of one span. */
export const refusalOf = (changes: Json, limits?: SpanLimits): string => {
  const { commands, refused } = prepared(fromJsonText(exportOf([span(changes)])), limits)
  if (commands.length !== 0 || refused.length !== 1) {
    throw new Error(`not refused: ${JSON.stringify(commands)}`)
  }
  return refused[0]!.message
}

/** Details as values: salts are random, and the hashes follow them. */
const plainDetails = (details: { readonly text: string } | undefined): unknown =>
  details === undefined ? undefined : JSON.parse(details.text)

export const plain = (operation: RecordOtlpSpan): Json => ({
  ...operation,
  details: plainDetails(operation.details),
  endDetails: plainDetails(operation.endDetails),
  executionDetails: plainDetails(operation.executionDetails),
  events: operation.events.map((event) => ({ ...event, details: plainDetails(event.details) }))
})

export const example = (name: string): string =>
  readFileSync(join(import.meta.dirname, "..", "examples", `${name}.json`), "utf8")
