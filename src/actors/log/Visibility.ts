/**
 * How far the projection has made each partition visible, as `alk.progress` says: what turns a
 * decided receipt into a committed one. Fed by the Follower; asks nobody.
 */
import { Context, type Effect } from "effect"
import { RecordFields } from "../../domain/json/RecordFields.ts"

/** One record of `alk.progress`, key `<partition>`. */
export interface Progress {
  readonly partition: number
  /** Every record of `alk.events` below this offset can be queried. */
  readonly events_next: number
  /** Every record of `alk.receipts` below this offset can be queried. */
  readonly receipts_next: number
  /** Every record of `alk.traces` below this offset can be queried. */
  readonly traces_next: number
  /** Every record of `alk.checkpoints` below this offset can be queried. */
  readonly checkpoints_next: number
  /** Rows may be in the store twice: readers must merge while reading. */
  readonly final: boolean
  /** While `final`: the lowest offset of `alk.events` that may be there twice. */
  readonly duplicates_from: number
  /** The same for `alk.traces`. */
  readonly trace_duplicates_from: number
  /** The partition's view is being built anew and must not be shown. */
  readonly rebuilding: boolean
}

export const noProgress = (partition: number): Progress => ({
  partition,
  events_next: 0,
  receipts_next: 0,
  traces_next: 0,
  checkpoints_next: 0,
  final: false,
  duplicates_from: 0,
  trace_duplicates_from: 0,
  rebuilding: false
})

const offsets = [
  "events_next",
  "receipts_next",
  "traces_next",
  "checkpoints_next",
  "duplicates_from",
  "trace_duplicates_from"
]

/**
 * What a record of `alk.progress` says; what an older version did not know is as at the start.
 * @throws RecordUnreadable
 */
export const readProgress = (partition: number, value: Buffer): Progress => {
  const fields = RecordFields.of(value, "progress")
  if (fields.integer("partition") !== partition) {
    throw fields.wrong("partition", "the one that its record stands in")
  }
  fields.optional(offsets, (name) => fields.integer(name))
  fields.optional(["final", "rebuilding"], (name) => fields.boolean(name))
  return { ...noProgress(partition), ...fields.value }
}

export class Visibility extends Context.Service<
  Visibility,
  {
    /** What is known of the partition of this tenant. */
    of(tenantId: string): Progress
    partition(partition: number): Progress
    /** Succeeds once the partition is visible up to these offsets; those left out don't matter. */
    reached(
      partition: number,
      ends: {
        readonly events?: number
        readonly receipts?: number
        readonly traces?: number
        readonly checkpoints?: number
      }
    ): Effect.Effect<void>
  }
>()("alk/Visibility") {}
