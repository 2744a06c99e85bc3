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

export const eventRowColumns = columns.map(([name]) => name)

/** For `SELECT`. */
export const EVENT_ROW = eventRowColumns.join(", ")

/** Columns of the same types for a row that says something else, in a union with the others. */
export const NO_EVENT_ROW = columns.map(([, none]) => none).join(", ")

/** An event and its place in a list. */
export interface ListedEvent {
  readonly sequenceNumber: number
  readonly hash: string
  /** Microseconds since 1970. */
  readonly timestamp: number | bigint
  readonly body: string
}

const isZero = (bytes: Buffer): boolean => bytes.every((byte) => byte === 0)

const digits = (bytes: Buffer): string | undefined =>
  isZero(bytes) ? undefined : bytes.toString("hex")

/** Microseconds that a JavaScript date can hold; others are no time of an event. */
const MICROS_MAX = 8.64e18

const time = (micros: number | bigint): string =>
  Math.abs(Number(micros)) > MICROS_MAX ? String(micros) : formatMicros(micros)

const textOrNone = (text: string): string | undefined => (text === "" ? undefined : text)

/** The columns of EVENT_ROW as they are; times in microseconds, JSON texts empty if absent. */
export interface EventFields {
  readonly sequenceNumber: number
  readonly id: string
  readonly timestamp: number | bigint
  readonly actorId: string
  readonly actorType: string
  readonly actorEmail: string
  readonly action: string
  readonly resourceId: string
  readonly resourceType: string
  readonly resourceName: string
  readonly outcome: string
  readonly metadata: string
  readonly tenantId: string
  readonly createdAt: number | bigint
  readonly prevHash: string
  readonly detailsSalt: string | undefined
  readonly detailsHash: string | undefined
  readonly contentHash: string
  readonly hash: string
  readonly erasedAt: number | bigint
}

/** Reads the columns of EVENT_ROW. */
export const readEventFields = (row: RowBinary): EventFields => ({
  sequenceNumber: row.uint64(),
  id: row.string(),
  timestamp: row.exactInt64(),
  actorId: row.string(),
  actorType: row.string(),
  actorEmail: row.string(),
  action: row.string(),
  resourceId: row.string(),
  resourceType: row.string(),
  resourceName: row.string(),
  outcome: row.string(),
  metadata: row.string(),
  tenantId: row.string(),
  createdAt: row.exactInt64(),
  prevHash: row.fixed(HASH_BYTES).toString("hex"),
  detailsSalt: digits(row.fixed(SALT_BYTES)),
  detailsHash: digits(row.fixed(HASH_BYTES)),
  contentHash: row.fixed(HASH_BYTES).toString("hex"),
  hash: row.string(),
  erasedAt: row.exactInt64()
})

/** The stored JSON of a row. */
export const textOfFields = (fields: EventFields): string => {
  const { contentHash, detailsHash, hash, prevHash, sequenceNumber, tenantId } = fields
  const isErased = fields.erasedAt > 0
  const detail = (text: string) => (isErased ? undefined : textOrNone(text))
  const shown = bodyText({
    id: quote(fields.id),
    timestamp: quote(time(fields.timestamp)),
    actorId: quote(fields.actorId),
    actorType: quote(fields.actorType),
    actorEmail: detail(fields.actorEmail),
    action: quote(fields.action),
    resourceId: quote(fields.resourceId),
    resourceType: quote(fields.resourceType),
    resourceName: detail(fields.resourceName),
    outcome: quote(fields.outcome),
    metadata: detail(fields.metadata)
  })
  return (
    shown
    + appendSuffix({
      tenantId,
      sequenceNumber,
      createdAt: time(fields.createdAt),
      prevHash,
      contentHash,
      hash,
      detailsHash,
      detailsSalt: isErased ? undefined : fields.detailsSalt,
      erasedAt: isErased ? time(fields.erasedAt) : undefined
    })
  )
}

/** Reads the columns of EVENT_ROW. */
export const readEventRow = (row: RowBinary): ListedEvent => {
  const fields = readEventFields(row)
  const { hash, sequenceNumber, timestamp } = fields
  return { sequenceNumber, hash, timestamp, body: textOfFields(fields) }
}
