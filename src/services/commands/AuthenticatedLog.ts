/**
 * The log with its internal records authenticated: each that is written to one of their topics gets a
 * MAC, and each that is read without the right one is marked as refused. The one place where MACs are
 * made and checked; what a refused record means is for its reader to decide; its content never counts.
 */
import { Effect } from "effect"
import { MAC_HEADER } from "../../domain/records/RecordHeaders.ts"
import { isAuthenticated, placedTopics, type RecordMac } from "../../domain/records/RecordMac.ts"
import { topicName } from "../../domain/records/Topics.ts"
import type {
  EventLog,
  Fetched,
  LogReader,
  LogRecord,
  NewRecord,
  PackedRecords,
  PlacedSigning,
  Position
} from "../../ports/EventLog.ts"

export interface AuthenticationSettings {
  readonly mac: RecordMac
  /** Of the topics' names. */
  readonly prefix: string
}

const NO_HEADERS = {}

const withMac = (
  { mac, prefix }: AuthenticationSettings,
  record: NewRecord,
  offset?: number
): NewRecord => {
  const { headers = NO_HEADERS, key, partition, value } = record
  const topic = topicName(prefix, record.topic)
  const code = mac.of({ topic, partition, offset, key, value, headers })
  return { ...record, headers: { ...headers, [MAC_HEADER]: code } }
}

/** Why this service did not write a record there; undefined if it did. */
const refusalOf = (
  { mac, prefix }: AuthenticationSettings,
  { headers, key, offset, refused, value }: LogRecord,
  { partition, topic }: Pick<Position, "topic" | "partition">
): string | undefined =>
  refused
  ?? mac.refusal({
    topic: topicName(prefix, topic),
    partition,
    offset: placedTopics.has(topic) ? offset : undefined,
    key,
    value,
    headers
  })

const checkedBy =
  (settings: AuthenticationSettings) =>
  (fetched: Fetched): Fetched => {
    if (!isAuthenticated(fetched.topic)) return fetched
    const check = (record: LogRecord): LogRecord => {
      const refused = refusalOf(settings, record, fetched)
      if (refused === undefined || record.refused !== undefined) return record
      const { headers, key, offset, timestamp, value } = record
      // Copied by name: a spread would miss the getters of the prototype.
      return { offset, timestamp, key, value, headers, refused }
    }
    return { ...fetched, records: fetched.records.map(check) }
  }

/** Of records that are bound to their offsets. */
export const placedSigning = (settings: AuthenticationSettings): PlacedSigning => ({
  topics: placedTopics,
  sign: (record, offset) => withMac(settings, record, offset),
  isGenuine: (record, place) => refusalOf(settings, record, place) === undefined
})

/** Packed records have no headers that could be added: they are of topics without MACs. */
const packedWithoutMac = (packed: PackedRecords): PackedRecords => {
  if (isAuthenticated(packed.topic))
    throw new Error(`packed records of ${packed.topic} have no MAC`)
  return packed
}

/** The log of this service: what it writes carries MACs, what it reads is checked. */
export const authenticated = (
  log: EventLog["Service"],
  settings: AuthenticationSettings
): EventLog["Service"] => {
  /** What is bound to its offset is signed once that is known: by the writer, or not at all. */
  const sign = (record: NewRecord) =>
    isAuthenticated(record.topic) && !placedTopics.has(record.topic)
      ? withMac(settings, record)
      : record
  const signFirst = (record: NewRecord | PackedRecords) =>
    "records" in record ? packedWithoutMac(record) : sign(record)
  const check = checkedBy(settings)
  const reading = (reader: LogReader): LogReader => ({
    fetch: (positions, limits) =>
      Effect.map(reader.fetch(positions, limits), (all) => all.map(check))
  })
  const placed = placedSigning(settings)
  return {
    ...log,
    // Copied it would not grow.
    get partitions() {
      return log.partitions
    },
    reader: Effect.map(log.reader, reading),
    appender: Effect.map(log.appender, (appender) => ({
      append: (records) => appender.append(records.map(sign))
    })),
    writer: (name) =>
      Effect.map(log.writer(name, placed), (writer) => ({
        commit: (first, then) =>
          writer.commit(first.map(signFirst), (offsets) => then(offsets).map(sign))
      }))
  }
}
