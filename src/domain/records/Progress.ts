/**
 * The record of `alk.progress`: how far the projection has made a partition visible. The topic is
 * compacted, only the newest record of a partition counts.
 */
import { Schema } from "effect"
import { digits, natural } from "../Forms.ts"
import { recordDecoder } from "../json/RecordDecoder.ts"
import { RecordUnreadable } from "../json/RecordFields.ts"
import type { RecordContract } from "./RecordContract.ts"
import { macHeaders } from "./RecordHeaders.ts"
import { REBUILD_KEY, REBUILT_KEY } from "./ViewRebuild.ts"

const partition = natural("The partition.")

/** The value; key `<partition>`. */
export const Progress = Schema.Struct({
  partition,
  number: natural(
    "Microseconds since the epoch when the process took the partition over, and one more with each "
      + "record: one with a smaller number is a copy, or of a process that had it before."
  ),
  events_next: natural("Every record of alk.events below this offset can be queried."),
  receipts_next: natural("Every record of alk.receipts below this offset can be queried."),
  traces_next: natural("Every record of alk.traces below this offset can be queried."),
  checkpoints_next: natural("Every record of alk.checkpoints below this offset can be queried."),
  final: Schema.Boolean.annotate({
    description: "Rows may be in the store twice: readers must merge while reading."
  }),
  duplicates_from: natural("While final: the lowest offset that may be there twice."),
  trace_duplicates_from: natural("The same for alk.traces."),
  rebuilding: Schema.Boolean.annotate({
    description: "The partition's view is being built anew and must not be shown."
  })
})
export type Progress = typeof Progress.Type

export const noProgress = (partition: number): Progress => ({
  partition,
  number: 0,
  events_next: 0,
  receipts_next: 0,
  traces_next: 0,
  checkpoints_next: 0,
  final: false,
  duplicates_from: 0,
  trace_duplicates_from: 0,
  rebuilding: false
})

const decode = recordDecoder(Progress, "progress")

/**
 * What a record of `alk.progress` says.
 * @throws RecordUnreadable
 */
export const readProgress = (partition: number, value: Buffer): Progress => {
  const progress = decode(value)
  if (progress.partition !== partition) {
    throw new RecordUnreadable("progress: partition is not the one that its record is in")
  }
  return progress
}

/** Keys of records that say something else. */
const otherKeys: ReadonlySet<string> = new Set([REBUILD_KEY, REBUILT_KEY])

/** A record of the topic, as far as it matters here. */
interface KeyedRecord {
  readonly key: string | Uint8Array | null
  readonly value: string | Uint8Array | null
}

/**
 * The progress that a record of `alk.progress` says; undefined for one of another kind.
 * @throws RecordUnreadable
 */
const progressIn = (partition: number, { key, value }: KeyedRecord): Progress | undefined =>
  value === null || otherKeys.has(Buffer.from(key ?? "").toString())
    ? undefined
    : readProgress(partition, Buffer.from(value))

/**
 * The progress once a record of the topic is read, whatever its kind.
 * @throws RecordUnreadable for one that is older than what is known
 */
export const progressAfter = (before: Progress, record: KeyedRecord): Progress => {
  const progress = progressIn(before.partition, record) ?? before
  if (progress.number < before.number) {
    throw new RecordUnreadable(`it is older than what is known: ${before.number}`)
  }
  return progress
}

export const progressRecord: RecordContract = {
  name: "progress",
  topic: "progress",
  title: "Progress",
  description: "Which records of one partition can be queried by now.",
  key: digits("The partition."),
  headers: macHeaders,
  value: Progress
}
