/**
 * How far the projection has made each partition visible, as `alk.progress` says: what turns a
 * decided receipt into a committed one. LogFollower keeps it up to date.
 */
import { Context, type Effect } from "effect"
import type { Progress } from "../../domain/records/Progress.ts"

export class ProjectionProgress extends Context.Service<
  ProjectionProgress,
  {
    /** What is known of the partition of this tenant. */
    of(tenantId: string): Progress
    partition(partition: number): Progress
    /** Succeeds once the partition is visible up to these offsets; those left out don't matter. */
    awaitOffset(
      partition: number,
      ends: {
        readonly events?: number
        readonly receipts?: number
        readonly traces?: number
        readonly checkpoints?: number
      }
    ): Effect.Effect<void>
  }
>()("alk/ProjectionProgress") {}
