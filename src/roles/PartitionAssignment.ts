/**
 * Which partitions each process of an installation has when the first one has started the others.
 * Its processes don't have to agree in a consumer group: one that ends is started again with the
 * same partitions, and the others go on undisturbed meanwhile.
 */
import { Effect, Queue, Stream } from "effect"
import type { Config } from "../config/Config.ts"
import type { Assignment, EventLog } from "../ports/EventLog.ts"
import { embedsBroker, has } from "./Topology.ts"

/** Number `index`, from 0, of `of` processes. */
export interface PartitionAssignment {
  readonly index: number
  readonly of: number
}

/** Of the partitions 0 to `partitions` - 1 those of a share. */
export const partitionsOf = (
  { index, of }: PartitionAssignment,
  partitions: number
): ReadonlyArray<number> =>
  Array.from({ length: partitions }, (_, partition) => partition).filter(
    (partition) => partition % of === index
  )

/**
 * What each process of the group gets; undefined where other processes may work on the partitions,
 * and a consumer group shares them out.
 */
export const sharesOf = (config: Config): number | undefined =>
  config.workers > 0 && embedsBroker(config) && has(config, "sequencer", "projection")
    ? config.workers + 1
    : undefined

/** The log with the assignments of a share instead of those of consumer groups. */
export const withAssignment = (
  log: EventLog["Service"],
  share: PartitionAssignment
): EventLog["Service"] => ({
  ...log,
  // Copied it would not grow.
  get partitions() {
    return log.partitions
  },
  membership: () =>
    Stream.callback<Assignment>(
      Effect.fnUntraced(function* (queue) {
        const placement = yield* log.placement
        let generation = 0
        const assign = (partitions: number) => {
          generation += 1
          Queue.offerUnsafe(queue, {
            generation,
            partitions: partitionsOf(share, partitions),
            // No other process gets them while this one is there.
            isCurrent: () => true
          })
        }
        yield* Effect.acquireRelease(
          Effect.sync(() => placement.onGrown(assign)),
          (stop) => Effect.sync(stop)
        )
        assign(placement.partitions)
      })
    )
})
