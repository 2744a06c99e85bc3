/**
 * Rows of lists: the columns of an event, and its stored JSON put together from them by the program.
 * The column `json` is the same text, but ClickHouse takes 10 ms to analyse its expression.
 */
import { appendSuffix, bodyText } from "../../../domain/events/HashChain.ts"
import { quote } from "../../../domain/json/CanonicalJson.ts"
import { formatMicros } from "../../../domain/Timestamp.ts"
import type { RowBinary } from "../client/RowBinary.ts"
import { NO_HASH, NO_SALT } from "./EventText.ts"

const SALT_BYTES = 16
const HASH_BYTES = 32

/** In the order in which they are read, each with a value for rows that are no event. */
const columns: ReadonlyArray<readonly [name: string, none: string]> = [
  ["sequence_number", "toUInt64(0)"],
  ["body", "''"],
  ["id", "''"],
  ["timestamp", "toDateTime64(0, 6, 'UTC')"],
  ["actor_id", "''"],
  ["actor_type", "''"],
  ["actor_email", "''"],
  ["action", "''"],
  ["resource_id", "''"],
  ["resource_type", "''"],
  ["resource_name", "''"],
  ["outcome", "''"],
  ["metadata", "''"],
  ["tenant_id", "''"],
  ["created_at", "toDateTime64(0, 6, 'UTC')"],
  ["prev_hash", NO_HASH],
  ["details_salt", NO_SALT],
  ["details_hash", NO_HASH],
  ["content_hash", NO_HASH],
  ["hash", "''"],
  ["erased_at", "toDateTime64(0, 6, 'UTC')"]
]

/** For `SELECT`. */
export const EVENT_ROW = columns.map(([name]) => name).join(", ")

/** Columns of the same types for a row that says something else, in a union with the others. */
export const NO_EVENT_ROW = columns.map(([, none]) => none).join(", ")

/** An event and its place in a list. */
export interface ListedEvent {
  readonly sequenceNumber: number
  readonly hash: string
  readonly body: string
}

const isZero = (bytes: Buffer): boolean => bytes.every((byte) => byte === 0)

const digits = (bytes: Buffer): string | undefined =>
  isZero(bytes) ? undefined : bytes.toString("hex")

/** Microseconds that a JavaScript date can hold; others are no time of an event. */
const MICROS_MAX = 8.64e18

const time = (micros: number): string =>
  Math.abs(micros) > MICROS_MAX ? String(micros) : formatMicros(micros)

const textOrNone = (text: string): string | undefined => (text === "" ? undefined : text)

/** Reads the columns of EVENT_ROW. */
export const readEventRow = (row: RowBinary): ListedEvent => {
  const sequenceNumber = row.uint64()
  const body = row.string()
  const fields = {
    id: quote(row.string()),
    timestamp: quote(time(row.int64())),
    actorId: quote(row.string()),
    actorType: quote(row.string()),
    actorEmail: textOrNone(row.string()),
    action: quote(row.string()),
    resourceId: quote(row.string()),
    resourceType: quote(row.string()),
    resourceName: textOrNone(row.string()),
    outcome: quote(row.string()),
    metadata: textOrNone(row.string())
  }
  const tenantId = row.string()
  const createdAt = time(row.int64())
  const prevHash = row.fixed(HASH_BYTES).toString("hex")
  const detailsSalt = digits(row.fixed(SALT_BYTES))
  const detailsHash = digits(row.fixed(HASH_BYTES))
  const contentHash = row.fixed(HASH_BYTES).toString("hex")
  const hash = row.string()
  const erasedAt = row.int64()
  if (body !== "") return { sequenceNumber, hash, body }
  const isErased = erasedAt > 0
  const shown = isErased
    ? { ...fields, actorEmail: undefined, resourceName: undefined, metadata: undefined }
    : fields
  const suffix = appendSuffix({
    tenantId,
    sequenceNumber,
    createdAt,
    prevHash,
    contentHash,
    hash,
    detailsHash,
    detailsSalt: isErased ? undefined : detailsSalt,
    erasedAt: isErased ? time(erasedAt) : undefined
  })
  return { sequenceNumber, hash, body: bodyText(shown) + suffix }
}
