/** Ids of OpenTelemetry, and those that executions, spans and roots get for them. */
import { derivedUuid } from "../../../domain/Identifiers.ts"
import { Unstorable } from "./Values.ts"

export const TRACE_ID_BYTES = 16
export const SPAN_ID_BYTES = 8

/** Execution id of a trace. */
export const executionIdOf = (tenantId: string, traceId: string): string =>
  derivedUuid("alk-otlp-execution", tenantId, traceId)

/** Span id of a span; ids as lower-case hex. */
export const spanIdOf = (tenantId: string, traceId: string, spanId: string): string =>
  derivedUuid("alk-otlp-span", tenantId, traceId, spanId)

/** Id of the root that a trace has until a span without a parent arrives. */
export const syntheticRootIdOf = (tenantId: string, traceId: string): string =>
  derivedUuid("alk-otlp-root", tenantId, traceId)

export const hexOf = (id: Uint8Array): string =>
  Buffer.from(id.buffer, id.byteOffset, id.byteLength).toString("hex")

export const isZero = (id: Uint8Array): boolean => id.every((byte) => byte === 0)

export const isId = (id: Uint8Array, bytes: number): boolean => id.length === bytes && !isZero(id)

export const idOf = (id: Uint8Array, bytes: number, path: string): string => {
  if (isId(id, bytes)) return hexOf(id)
  throw new Unstorable(
    `${path}: must be ${bytes} bytes, ${2 * bytes} hex digits in JSON, and not all zero`
  )
}
