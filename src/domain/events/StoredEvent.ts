/**
 * Reading stored events. Hot path, by hand: verification reads every event of a chain so. A property
 * test ties it to the schema.
 */
import { type Fields, isObject, parseJson } from "../json/Json.ts"
import type { AuditEvent } from "./AuditEvent.ts"

const areStrings = (object: Fields, ...names: ReadonlyArray<string>): boolean =>
  names.every((name) => typeof object[name] === "string")

const areStringsOrAbsent = (object: Fields, ...names: ReadonlyArray<string>): boolean =>
  names.every((name) => object[name] === undefined || typeof object[name] === "string")

/** The types that hashing needs; whether the values are right, the hashes show. */
export const isEvent = (value: unknown): value is AuditEvent =>
  isObject(value)
  && areStrings(value, "id", "timestamp", "action", "outcome")
  && areStrings(value, "tenant_id", "created_at", "prev_hash", "content_hash", "hash")
  && areStringsOrAbsent(value, "details_salt", "details_hash", "erased_at")
  && typeof value["sequence_number"] === "number"
  && isObject(value["actor"])
  && areStrings(value["actor"], "id", "type")
  && areStringsOrAbsent(value["actor"], "email")
  && isObject(value["resource"])
  && areStrings(value["resource"], "id", "type")
  && areStringsOrAbsent(value["resource"], "name")
  && (value["metadata"] === undefined || isObject(value["metadata"]))

/** The event that a stored text holds, unchecked but for its types; undefined if it is not one. */
export const parseEvent = (storedJson: string): AuditEvent | undefined => {
  try {
    const value = parseJson(storedJson)
    return isEvent(value) ? value : undefined
  } catch {
    // No JSON: no writer of events made it.
    return undefined
  }
}

const METADATA_MARK = ',"metadata":'
const TENANT_MARK = ',"tenant_id":'

/**
 * The metadata of a stored event as its JCS bytes. Parsing and writing it again would reorder keys
 * that look like integers. The marks can't be elsewhere: inside strings the quotes are escaped,
 * `metadata` is the first member of that name, and nothing of the client's follows `tenant_id`.
 */
export const metadataOf = (body: string): string => {
  const start = body.indexOf(METADATA_MARK)
  const end = body.lastIndexOf(TENANT_MARK)
  return start === -1 || start > end ? "" : body.slice(start + METADATA_MARK.length, end)
}
