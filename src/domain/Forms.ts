/**
 * The forms of single values that occur in many records: hashes, times, tenants, offsets. Written
 * in the part of regular expressions that every JSON Schema validator reads the same way.
 */
import { Schema } from "effect"
import { parseTimestamp } from "./Timestamp.ts"

/** Text of one form. */
export const form = (pattern: RegExp, description: string) =>
  Schema.String.check(
    Schema.isPattern(pattern, { expected: `of the form ${pattern.source}` })
  ).annotate({ description })

/** Text that is not empty. */
export const text = (description: string) =>
  Schema.String.check(Schema.isMinLength(1, { expected: "a text" })).annotate({ description })

/** SHA-256, written out. */
export const sha256 = (description: string) => form(/^[0-9a-f]{64}$/u, description)

/** 16 bytes, written out. */
export const hex16 = (description: string) => form(/^[0-9a-f]{32}$/u, description)

/** UTC with microseconds; texts sort as times do. A date that does not exist is none. */
export const time = (description: string) =>
  Schema.String.check(
    Schema.makeFilter((text: string) => parseTimestamp(text) === text, {
      expected: "a time in canonical form",
      toJsonSchema: () => ({ pattern: "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{6}Z$" })
    })
  ).annotate({ description, format: "date-time" })

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
