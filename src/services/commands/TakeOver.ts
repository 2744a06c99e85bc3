/**
 * The start of authenticated records in topics that older versions have written without MACs: once,
 * what is there is taken over, up to offsets that a marker names; from then on a record without a
 * MAC is refused. The marker is on `alk.quarantine`, which is neither compacted nor expires, so
 * that more records can't take it away, and again in the data folder where there is one.
 */
import { Effect, Schedule, Schema } from "effect"
import { type Partition, scan, scanAll } from "../../actors/log/PartitionScan.ts"
import { recordDecoder } from "../../domain/json/RecordDecoder.ts"
import { MARKER_KEY, type Marker, readMarker } from "../../domain/records/Quarantine.ts"
import { MAC_HEADER } from "../../domain/records/RecordHeaders.ts"
import { authenticatedTopics, type RecordMac } from "../../domain/records/RecordMac.ts"
import { type TopicKind, topicName } from "../../domain/records/Topics.ts"
import { currentTime } from "../../domain/Timestamp.ts"
import type { EventLog, LogReader, LogRecord } from "../../ports/EventLog.ts"

/** By `<topic>/<partition>`: records without a MAC below this offset were there before. */
export type TakenOver = ReadonlyMap<string, number>

export const placeOf = ({ partition, topic }: Partition): string => `${topic}/${partition}`

/** Commands at the end of a partition that are searched for a MAC; older ones are left alone. */
const SEARCHED_COMMANDS = 10_000

/** Processes that start together fence each other until one of them is through. */
const whileFenced = Schedule.exponential("20 millis").pipe(
  Schedule.jittered,
  Schedule.upTo({ times: 12 })
)

/** The records can't be distinguished from those of others: a person has to look. */
export class TakeOverRefused extends Schema.TaggedError<TakeOverRefused>()("TakeOverRefused", {
  message: Schema.String
}) {}

/** Where a copy of the marker is kept beside the topics. */
export interface MarkerCopy<E> {
  readonly read: Effect.Effect<string | undefined, E>
  write(text: string): Effect.Effect<void, E>
}

interface TakingOver<E = unknown> {
  readonly log: EventLog["Service"]
  readonly mac: RecordMac
  readonly prefix: string
  /** undefined: this process has no place of its own. */
  readonly copy: MarkerCopy<E> | undefined
}

const QUARANTINE = { topic: "quarantine", partition: 0 } as const

const macOf = ({ mac, prefix }: TakingOver, value: string | Buffer): string =>
  mac.of({
    topic: topicName(prefix, QUARANTINE.topic),
    partition: QUARANTINE.partition,
    key: MARKER_KEY,
    value,
    headers: {}
  })

interface Found {
  /** The first that this service has written. */
  readonly marker: Marker | undefined
  /** True if there is one that another secret, or another writer, has made. */
  readonly isForeign: boolean
}

const findMarker = Effect.fnUntraced(function* (taking: TakingOver, reader: LogReader) {
  let marker: Marker | undefined
  let isForeign = false
  const take = ({ headers, key, value }: LogRecord) => {
    if (key?.toString() !== MARKER_KEY || value === null || marker !== undefined) return
    if (headers[MAC_HEADER]?.toString() === macOf(taking, value)) marker = readMarker(value)
    else isForeign = true
  }
  yield* scanAll(taking.log, reader, QUARANTINE, (records) => records.forEach(take))
  return { marker, isForeign } satisfies Found
})

const readMarkerCopy = recordDecoder(
  Schema.Struct({ mac: Schema.String, marker: Schema.Unknown }),
  "copy of the marker"
)

/** The copy, if this service has written it. */
const readCopy = Effect.fnUntraced(function* <E>(taking: TakingOver<E>) {
  const text = yield* taking.copy?.read ?? Effect.succeed(undefined)
  if (text === undefined) return undefined
  try {
    const { mac, marker } = readMarkerCopy(text)
    const value = JSON.stringify(marker)
    return mac === macOf(taking, value) ? readMarker(value) : undefined
  } catch {
    // Damaged: as good as none, and written again.
    return undefined
  }
})

const writeCopy = <E>(taking: TakingOver<E>, marker: Marker): Effect.Effect<void, E> => {
  const mac = macOf(taking, JSON.stringify(marker))
  return taking.copy?.write(`${JSON.stringify({ marker, mac })}\n`) ?? Effect.void
}

const offsetsOf = ({ offsets }: Marker): TakenOver =>
  new Map(offsets.map(({ offset, ...place }) => [`${place.topic}/${place.partition}`, offset]))

const places = ({ log }: TakingOver): ReadonlyArray<Partition> =>
  authenticatedTopics.flatMap((topic: TopicKind) =>
    Array.from({ length: topic === "registry" ? 1 : log.partitions }, (_, partition) => ({
      topic,
      partition
    }))
  )

/** True if one of the records there carries a MAC of this service. */
const holdsMacs = Effect.fnUntraced(function* (
  { log, mac, prefix }: TakingOver,
  reader: LogReader,
  { partition, topic }: Partition
) {
  const { end, start } = yield* log.bounds(topic, partition)
  const offset = topic === "commands" ? Math.max(start, end - SEARCHED_COMMANDS) : start
  const name = topicName(prefix, topic)
  let found = false
  yield* scan(reader, { topic, partition, offset }, end, (records) => {
    found ||= records.some(
      ({ headers, key, value }) =>
        headers[MAC_HEADER] !== undefined
        && mac.refusal({ topic: name, partition, key, value, headers }) === undefined
    )
  })
  return found
})

const foreign = (prefix: string) =>
  new TakeOverRefused({
    message:
      `${topicName(prefix, QUARANTINE.topic)} says that another ALK_SECRET authenticates these `
      + "topics: set the secret back to the one that they were written with"
  })

const lostMarker = (prefix: string, place: string) =>
  new TakeOverRefused({
    message:
      `${prefix}.${place} holds authenticated records, but their marker is gone from `
      + `${topicName(prefix, QUARANTINE.topic)}: the topic was shortened or replaced. Restore it; `
      + "nothing is taken over a second time"
  })

/** Take over what is there now, and write that down. Runs after every other one was fenced. */
const takeOverNow = Effect.fnUntraced(function* (
  taking: TakingOver,
  reader: LogReader,
  writer: Effect.Success<ReturnType<EventLog["Service"]["writer"]>>,
  known: Marker | undefined
) {
  const all = places(taking)
  const ends = yield* taking.log.ends(all)
  if (known === undefined) {
    for (const place of all) {
      if (!(yield* holdsMacs(taking, reader, place))) continue
      // Another process may have fenced this one: its marker is older than its first record.
      const { marker } = yield* findMarker(taking, reader)
      return marker ?? (yield* lostMarker(taking.prefix, placeOf(place)))
    }
  }
  const before = known && offsetsOf(known)
  const marker: Marker = {
    taken_over_at: known?.taken_over_at ?? currentTime(),
    offsets: all.map((place, index) => {
      const end = ends[index]!
      const offset = before === undefined ? end : Math.min(end, before.get(placeOf(place)) ?? 0)
      return { ...place, offset }
    })
  }
  const value = JSON.stringify(marker)
  const headers = { [MAC_HEADER]: macOf(taking, value) }
  yield* writer.commit([], () => [{ ...QUARANTINE, key: MARKER_KEY, value, headers }])
  return marker
})

const report = (marker: Marker, known: Marker | undefined) => {
  const offsets = Object.fromEntries(offsetsOf(marker))
  if (known !== undefined) {
    return Effect.logError(
      "the marker of authenticated records was gone from alk.quarantine and is written again from "
        + "the data folder: the topics were shortened or replaced. No record is taken over anew",
      { offsets }
    )
  }
  return Object.values(offsets).some((offset) => offset > 0)
    ? Effect.logWarning(
        "internal records of an older version are taken over, once: those below these offsets count "
          + "without a MAC, every later one needs one",
        { offsets }
      )
    : Effect.logDebug("internal records are authenticated from the first on")
}

/**
 * Where records without a MAC end. The first process decides; others that start at the
 * same time read what it has written.
 */
export const takeOver = Effect.fn("TakeOver")(function* <E>(taking: TakingOver<E>) {
  const reader = yield* taking.log.reader
  const kept = yield* readCopy(taking)
  const found = yield* findMarker(taking, reader)
  let marker = found.marker
  if (marker === undefined && found.isForeign) return yield* foreign(taking.prefix)
  if (marker === undefined) {
    // Once this writer is there, no earlier one can write a marker any more.
    marker = yield* Effect.gen(function* () {
      const writer = yield* taking.log.writer("take-over")
      const again = yield* findMarker(taking, reader)
      if (again.marker !== undefined) return again.marker
      // A commit may be acknowledged before readers see it: only now is it sure that there is none.
      if (again.isForeign) return yield* foreign(taking.prefix)
      const made = yield* takeOverNow(taking, reader, writer, kept)
      yield* report(made, kept)
      return made
    }).pipe(
      Effect.scoped,
      Effect.retry({ schedule: whileFenced, while: ({ _tag }) => _tag === "WriterFenced" })
    )
  }
  if (kept !== undefined) yield* compareWithCopy(marker, kept)
  else yield* writeCopy(taking, marker)
  const limits = offsetsOf(kept ?? marker)
  return new Map(
    [...offsetsOf(marker)].map(([place, offset]) => [
      place,
      Math.min(offset, limits.get(place) ?? 0)
    ])
  ) satisfies TakenOver
}, Effect.scoped)

/** The topics' marker may have been made anew by a process without this folder. */
const compareWithCopy = (marker: Marker, kept: Marker): Effect.Effect<void> => {
  const before = offsetsOf(kept)
  const later = [...offsetsOf(marker)]
    .filter(([place, offset]) => offset > (before.get(place) ?? 0))
    .map(([place]) => place)
  return later.length === 0
    ? Effect.void
    : Effect.logError(
        "records without a MAC were taken over a second time, at "
          + `${marker.taken_over_at} after ${kept.taken_over_at}: this process refuses what was `
          + "taken over since",
        { partitions: later }
      )
}
