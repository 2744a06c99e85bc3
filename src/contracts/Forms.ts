/**
 * The forms of single values that occur in many records: hashes, times, tenants, offsets. Written
 * in the part of regular expressions that every JSON Schema validator reads the same way.
 */
import { Schema } from "effect"
import { MAC_HEADER } from "../domain/records/RecordMac.ts"
import { FORMAT_VERSION } from "../domain/records/Topics.ts"

/** Text of one form. */
export const form = (pattern: RegExp, description: string) =>
  Schema.String.check(Schema.isPattern(pattern)).annotate({ description })

export const text = (description: string) => Schema.NonEmptyString.annotate({ description })

/** SHA-256, written out. */
export const sha256 = (description: string) => form(/^[0-9a-f]{64}$/u, description)

/** 16 bytes, written out. */
export const hex16 = (description: string) => form(/^[0-9a-f]{32}$/u, description)

/** UTC with microseconds; texts sort as times do. */
export const time = (description: string) =>
  Schema.String.check(Schema.isPattern(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/u)).annotate({
    description,
    format: "date-time"
  })

/** Counts, offsets, indexes: from 0. */
export const natural = (description: string) => Schema.Natural.annotate({ description })

export const sequence = (description: string) =>
  Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)).annotate({ description, format: "int64" })

/** A tenant that has events: a client's, or the service itself. */
export const tenant = (description: string) =>
  form(/^(?:[a-z0-9][a-z0-9_-]{0,62}|_system)$/u, description)

/** A tenant, or the readiness probe, which has commands and receipts but no events. */
export const tenantOrProbe = (description: string) =>
  form(/^(?:[a-z0-9][a-z0-9_-]{0,62}|_system|_probe)$/u, description)

/** A natural number as text. */
export const digits = (description: string) => form(/^(?:0|[1-9][0-9]*)$/u, description)

/** The header `alk-format`. */
export const formatHeader = Schema.Literal(String(FORMAT_VERSION)).annotate({
  description: "Version of the record's form. A reader stops at a version above its own."
})

/** The header `alk-mac`. */
export const macHeader = sha256(
  "HMAC-SHA256 under a key derived from ALK_SECRET, over topic, partition, key, value and headers."
)

/** Records of which a reader knows only that the service wrote them. */
export const macHeaders = Schema.Struct({ [MAC_HEADER]: macHeader })
