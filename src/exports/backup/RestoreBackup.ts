/**
 * Writes a backup that was verified to an empty log: each record at its offset. The order of the topics
 * lets no service start on a part of it: what authenticates the rest comes last.
 */
import { Effect } from "effect"
import {
  type BackupManifest,
  type BackupPart,
  type BackupTopic,
  backupTopics,
  isKeyed,
  partOf
} from "../../domain/backup/BackupManifest.ts"
import type { BackupRecord } from "../../domain/backup/BackupSegment.ts"
import type { RestoreTarget } from "../../ports/BackupLog.ts"
import type { BackupFolder } from "./BackupFolder.ts"
import { refuse } from "./BackupRefused.ts"

/** Partitions that are written at the same time: each waits for the broker most of the time. */
const WRITERS = 4

/**
 * The changelog first: while the topics are behind it no sequencer goes on. The quarantine last: as long
 * as its marker is missing no process starts on authenticated records.
 */
const ORDER: ReadonlyArray<ReadonlyArray<BackupTopic>> = [
  ["state", "registry"],
  ["events", "traces", "checkpoints", "receipts", "commands"],
  ["quarantine"]
]

export interface RestoreSettings {
  readonly folder: BackupFolder
  readonly manifest: BackupManifest
  readonly target: RestoreTarget
  /** Milliseconds since the epoch: when commands are accepted anew. */
  readonly now: number
  /** Says how far it is, to a person. */
  progress(line: () => string): void
}

const places = ({ manifest }: RestoreSettings) =>
  backupTopics.flatMap((topic) =>
    Array.from({ length: topic === "registry" ? 1 : manifest.partitions }, (_, partition) => ({
      topic,
      partition
    }))
  )

const checkEmpty = Effect.fnUntraced(function* (settings: RestoreSettings) {
  const all = places(settings)
  const ends = yield* settings.target.ends(all)
  const taken = all.find((_, index) => ends[index]! > 0)
  if (taken === undefined) return
  return yield* refuse(
    `${settings.manifest.topic_prefix}.${taken.topic} holds records already: a backup is restored to `
      + "new topics only. Delete the topics, or name a cluster without them in KAFKA_BROKERS"
  )
})

/**
 * Commands that wait begin to wait anew: with the time of before they could expire before they are
 * applied.
 */
const timed = (topic: BackupTopic, now: number, record: BackupRecord): BackupRecord =>
  topic === "commands" ? { ...record, timestamp: now } : record

const writePart = Effect.fnUntraced(function* (
  { folder, now, progress, target }: RestoreSettings,
  { from, partition, segments, to, topic }: BackupPart,
  count: (records: number) => number
) {
  const writer = yield* target.writer(topic, partition)
  for (const segment of segments) {
    const records = folder
      .records(segment)
      .filter(({ offset }) => offset >= from && offset < to)
      .map((record) => timed(topic, now, record))
    yield* writer.write(records)
    const written = count(records.length)
    progress(() => `${written} records restored`)
  }
  yield* writer.finish(to)
  // Where the topic had begun, it begins again: what is before is not a part of the chain that is lost.
  if (from > 0 && !isKeyed(topic)) yield* target.deleteBelow(topic, partition, from)
}, Effect.scoped)

/** The number of records that were written. The backup has to be verified. */
export const restoreBackup = Effect.fnUntraced(function* (settings: RestoreSettings) {
  const { manifest } = settings
  yield* checkEmpty(settings)
  let written = 0
  const count = (records: number): number => {
    written += records
    return written
  }
  for (const topics of ORDER) {
    const parts = places(settings).flatMap(({ partition, topic }) => {
      const part = topics.includes(topic) ? partOf(manifest, topic, partition) : undefined
      return part === undefined ? [] : [part]
    })
    yield* Effect.forEach(parts, (part) => writePart(settings, part, count), {
      concurrency: WRITERS,
      discard: true
    })
  }
  return written
})
