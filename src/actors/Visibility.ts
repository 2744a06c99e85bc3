/**
 * How far the projection has made each partition visible, as `alk.progress` says: what turns a
 * decided receipt into a committed one. Fed by the Follower; asks nobody.
 */
import { Context, type Effect } from "effect"

/** One record of `alk.progress`, key `<partition>`. */
export interface Progress {
  readonly partition: number
  /** Every record of `alk.events` below this offset can be queried. */
  readonly events_next: number
  /** Every record of `alk.receipts` below this offset can be queried. */
  readonly receipts_next: number
  /** Rows may stand in the store twice: readers must merge while reading. */
  readonly final: boolean
  /** While `final`: the lowest offset of `alk.events` that may stand there twice. */
  readonly duplicates_from: number
  /** The partition's view is being built anew and must not be shown. */
  readonly rebuilding: boolean
}

export const noProgress = (partition: number): Progress => ({
  partition,
  events_next: 0,
  receipts_next: 0,
  final: false,
  duplicates_from: 0,
  rebuilding: false
})

export class Visibility extends Context.Service<
  Visibility,
  {
    /** What is known of the partition of this tenant. */
    of(tenantId: string): Progress
    partition(partition: number): Progress
    /** Succeeds once events and receipts of the partition are visible up to these offsets. */
    reached(
      partition: number,
      eventsNext: number,
      receiptsNext: number
    ): Effect.Effect<void>
  }
>()("alk/Visibility") {}
