/** What the parts of a span have in common while it is prepared: its limits, and how texts fit. */
import { METADATA_BYTES_MAX } from "../../../domain/events/AuditEvent.ts"
import { canonicalize } from "../../../domain/json/CanonicalJson.ts"
import type { JsonObject } from "../../../domain/json/Json.ts"
import type { Sliced } from "../../../domain/Slices.ts"
import { formatMicros, YEAR_MAX } from "../../../domain/Timestamp.ts"
import { type OffloadedValues, withoutLargeTexts } from "../LargeValues.ts"
import { tooLarge } from "../Prepare.ts"
import { PAYLOAD_BYTES_MAX } from "../PrepareTrace.ts"
import type { RepairLog } from "./RepairLog.ts"
import { Unstorable } from "./Values.ts"

/**
 * Characters of the operations of one command, and of one span: encoded as UTF-8 inside JSON they
 * take three bytes each at most, which is well below what the log takes in one record.
 */
export const COMMAND_CHARACTERS_MAX = 4 * 1_048_576

const NANOS_PER_MICRO = 1_000n
const MICROS_MAX = BigInt(Date.UTC(YEAR_MAX + 1, 0, 1)) * 1_000n

export interface SpanLimits {
  /** Bytes of the metadata of one span in RFC 8785 form. */
  readonly metadataBytesMax: number
  /** Bytes of the payload of one trace event in RFC 8785 form. */
  readonly payloadBytesMax: number
}

export const defaultSpanLimits: SpanLimits = {
  metadataBytesMax: METADATA_BYTES_MAX,
  payloadBytesMax: PAYLOAD_BYTES_MAX
}

/** One span while it is prepared. */
export interface Context {
  readonly tenantId: string
  readonly traceId: string
  /** As sent, in hex. */
  readonly spanId: string
  readonly limits: SpanLimits
  /** Values of it that are stored apart, so far. */
  readonly apart: OffloadedValues
  readonly repairs: RepairLog
}

/**
 * Canonical microsecond form, nanoseconds cut; undefined for a time that can't be stored, and for
 * 0.
 */
export const timeOf = (nanos: bigint): string | undefined => {
  const micros = nanos / NANOS_PER_MICRO
  return nanos > 0n && micros < MICROS_MAX ? formatMicros(micros) : undefined
}

/** The RFC 8785 text of a value, its large texts put apart: at most `bytesMax` bytes. */
export function* canonicalWithin(
  value: JsonObject,
  bytesMax: number,
  path: string,
  apart: OffloadedValues,
  write: (value: JsonObject) => string = canonicalize
): Sliced<string> {
  const found = yield* withoutLargeTexts(value, bytesMax, apart, write)
  if (found !== undefined) return found
  throw new Unstorable(`${path}: ${tooLarge(write(value), bytesMax)}`)
}
