/**
 * The marker of an installation: a record with a MAC on `alk.quarantine`, which is neither compacted
 * nor expires. It says with which secret, and in which form, the internal records of these topics are
 * authenticated. Written before any other record; topics with records and without it are refused, unless
 * it was deleted from the start of its topic and records of this installation prove the same.
 */
import { Effect, Schedule, Schema } from "effect"
import { scanAll } from "../../actors/log/PartitionScan.ts"
import { REGISTRY } from "../../actors/log/RegistryChanges.ts"
import {
  EARLIER_MARKER_KEY,
  isEarlierMarker,
  MARKER_KEY,
  type Marker,
  readMarker
} from "../../domain/records/Quarantine.ts"
import { MAC_HEADER } from "../../domain/records/RecordHeaders.ts"
import type { RecordMac } from "../../domain/records/RecordMac.ts"
import { topicKinds, topicName } from "../../domain/records/Topics.ts"
import { currentTime } from "../../domain/Timestamp.ts"
import type { EventLog, LogReader, LogRecord, Position } from "../../ports/EventLog.ts"

/** Processes that start together fence each other until one of them is through. */
const whileFenced = Schedule.exponential("20 millis").pipe(
  Schedule.jittered,
  Schedule.upTo({ times: 12 })
)

/** The topics are not those of this installation: a person has to look. */
export class InstallationRefused extends Schema.TaggedError<InstallationRefused>()(
  "InstallationRefused",
  { message: Schema.String }
) {}

export interface Installation {
  readonly log: EventLog["Service"]
  readonly mac: RecordMac
  /** Of the topics' names. */
  readonly prefix: string
}

const QUARANTINE = { topic: "quarantine", partition: 0 } as const

const macOf = ({ mac, prefix }: Installation, value: string | Buffer): string =>
  mac.of({
    topic: topicName(prefix, QUARANTINE.topic),
    partition: QUARANTINE.partition,
    key: MARKER_KEY,
    value,
    headers: {}
  })

const findMarker = Effect.fnUntraced(function* (installation: Installation, reader: LogReader) {
  let marker: Marker | undefined
  const others = { isForeign: false, isEarlier: false }
  const take = ({ headers, key, value }: LogRecord) => {
    const name = key?.toString()
    if (name === EARLIER_MARKER_KEY) others.isEarlier = true
    if (name !== MARKER_KEY || value === null || marker !== undefined) return
    if (headers[MAC_HEADER]?.toString() !== macOf(installation, value)) others.isForeign = true
    else if (isEarlierMarker(value)) others.isEarlier = true
    else marker = readMarker(value)
  }
  const { start } = yield* scanAll(installation.log, reader, QUARANTINE, (records) =>
    records.forEach(take)
  )
  return { ...others, marker, start }
})

const FIRST_LIMITS = { waitMs: 250, maxBytes: 65_536 }

/**
 * Whether a partition holds a record that is looked for: ends of transactions, which processes that
 * start leave, are none.
 */
const holdsRecord = Effect.fnUntraced(function* (
  reader: LogReader,
  position: Position,
  end: number,
  isWanted: (record: LogRecord) => boolean = () => true
) {
  let { offset } = position
  while (offset < end) {
    const [fetched] = yield* reader.fetch([{ ...position, offset }], FIRST_LIMITS)
    if (fetched === undefined) continue
    if (fetched.records.some(isWanted)) return true
    offset = fetched.nextOffset
  }
  return false
})

/** Topics that hold records, by name. */
const filledTopics = Effect.fnUntraced(function* (
  { log, prefix }: Installation,
  reader: LogReader
) {
  const places = topicKinds.flatMap((topic) =>
    Array.from({ length: topic === "registry" ? 1 : log.partitions }, (_, partition) => ({
      topic,
      partition
    }))
  )
  const ends = yield* log.ends(places)
  const filled = new Set<string>()
  for (const [index, place] of places.entries()) {
    if (ends[index] === 0 || filled.has(topicName(prefix, place.topic))) continue
    const { end, start } = yield* log.bounds(place.topic, place.partition)
    const position = { ...place, offset: start }
    if (yield* holdsRecord(reader, position, end)) filled.add(topicName(prefix, place.topic))
  }
  return [...filled]
})

/** Whether records of this installation are there beside the marker. */
const isProven = Effect.fnUntraced(function* (
  { log, mac, prefix }: Installation,
  reader: LogReader
) {
  const places = [
    REGISTRY,
    ...Array.from({ length: log.partitions }, (_, partition) => ({
      topic: "state" as const,
      partition
    }))
  ]
  for (const place of places) {
    const { end, start } = yield* log.bounds(place.topic, place.partition)
    const topic = topicName(prefix, place.topic)
    const { partition } = place
    const isGenuine = ({ headers, key, offset, value }: LogRecord) =>
      mac.refusal({ topic, partition, offset, key, value, headers }) === undefined
    if (yield* holdsRecord(reader, { ...place, offset: start }, end, isGenuine)) return true
  }
  return false
})

const refusalOf = (
  prefix: string,
  { isEarlier, isForeign }: { readonly isEarlier: boolean; readonly isForeign: boolean },
  filled: ReadonlyArray<string>
): string | undefined => {
  const quarantine = topicName(prefix, QUARANTINE.topic)
  if (isForeign) {
    return (
      `${quarantine} says that another ALK_SECRET authenticates these topics: set the secret back to `
      + "the one that they were written with"
    )
  }
  if (isEarlier) {
    return (
      "these topics were written by a version of alk before the first release, which this one does not "
      + "read: start with a new data folder, or with new topics (ALK_TOPIC_PREFIX)"
    )
  }
  return filled.length === 0
    ? undefined
    : `${filled.join(", ")}: there are records, but the marker of the installation is gone from `
        + `${quarantine}: the topic was shortened or replaced, or a restore has not ended. Restore it, `
        + "or start with new topics (ALK_TOPIC_PREFIX)"
}

/** The installation's marker, which the first process writes. */
export const checkInstallation = Effect.fn("Installation.check")(function* (
  installation: Installation
) {
  const { log, prefix } = installation
  const reader = yield* log.reader
  const found = yield* findMarker(installation, reader)
  if (found.marker !== undefined) return found.marker
  // Once this writer is there, no earlier one can write a marker any more.
  return yield* Effect.gen(function* () {
    const writer = yield* log.writer("installation")
    // A commit may be acknowledged before readers see it: only now is it sure that there is none.
    const { marker, ...others } = yield* findMarker(installation, reader)
    if (marker !== undefined) return marker
    // A restore writes the marker last, to a topic of which nothing was deleted: a part of one is refused.
    const isDeleted =
      others.start > 0 && !others.isEarlier && (yield* isProven(installation, reader))
    if (!isDeleted) {
      const message =
        refusalOf(prefix, others, [])
        ?? refusalOf(prefix, others, yield* filledTopics(installation, reader))
      if (message !== undefined) return yield* new InstallationRefused({ message })
    } else {
      yield* Effect.logWarning(
        `the marker of the installation was deleted from ${topicName(prefix, QUARANTINE.topic)}; other `
          + "records prove the same, and it is written again"
      )
    }
    const made: Marker = { format: 3, created_at: currentTime() }
    const value = JSON.stringify(made)
    const headers = { [MAC_HEADER]: macOf(installation, value) }
    yield* writer.commit([], () => [{ ...QUARANTINE, key: MARKER_KEY, value, headers }])
    return made
  }).pipe(
    Effect.scoped,
    Effect.retry({ schedule: whileFenced, while: ({ _tag }) => _tag === "WriterFenced" })
  )
}, Effect.scoped)
