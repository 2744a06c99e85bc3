/** How exports are read in both encodings of OTLP/HTTP. */
import type { DescMessage } from "@bufbuild/protobuf"
import { ExportTraceServiceRequestSchema } from "./gen/opentelemetry/proto/collector/trace/v1/trace_service_pb.js"
import { fromProtobuf } from "./ReadBinary.ts"
import { fromText } from "./ReadJson.ts"

/** How a message is read in both encodings. */
export const decodersOf = <Type extends DescMessage>(type: Type) => ({
  protobuf: (bytes: Uint8Array) => fromProtobuf(type, bytes),
  json: (bytes: Buffer) => fromText(type, bytes)
})

export const { json: decodeJson, protobuf: decodeProtobuf } = decodersOf(
  ExportTraceServiceRequestSchema
)
