/**
 * Stored events as lines of CSV (RFC 4180), with values that a spreadsheet would run as a formula
 * made harmless. Reads stored bytes only.
 */
import type { AuditEvent } from "../../domain/events/AuditEvent.ts"
import { eventFields, memberAt } from "../../domain/events/EventFields.ts"
import { metadataOf } from "../../domain/events/StoredEvent.ts"
import { parseJson } from "../../domain/json/Json.ts"

/** The columns, in order. */
export const CSV_COLUMNS = eventFields.map(({ name }) => name)

/** The first line of every table, even of an empty one. */
export const CSV_HEADER = `${CSV_COLUMNS.join(",")}\r\n`

/** What a spreadsheet may take for the start of a formula. */
const FORMULA = /^[=+\-@\t\r]/
const NEEDS_QUOTES = /[",\r\n]/

/** A value as it stands between two commas. */
export const csvField = (value: string): string => {
  const guarded = FORMULA.test(value) ? `'${value}` : value
  return NEEDS_QUOTES.test(guarded) ? `"${guarded.replaceAll('"', '""')}"` : guarded
}

/** One stored event as a line of CSV. */
export const csvLine = (body: string): string => {
  const event = parseJson(body) as AuditEvent
  const values = eventFields.map(({ name, path }) => {
    if (name === "metadata") return event.metadata === undefined ? "" : metadataOf(body)
    return String(memberAt(event, path) ?? "")
  })
  return `${values.map(csvField).join(",")}\r\n`
}
