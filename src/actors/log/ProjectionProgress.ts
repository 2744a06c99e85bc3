/**
 * How far the projection has made each partition visible, as `alk.progress` says: what turns a
 * decided receipt into a committed one. LogFollower keeps it up to date.
 */
import { Context, type Effect } from "effect"
import type { Progress } from "../../domain/records/Progress.ts"
import type { StoredTopic } from "../../ports/TopicRows.ts"

export class ProjectionProgress extends Context.Service<
  ProjectionProgress,
  {
    /** What is known of the partition of this tenant. */
    of(tenantId: string): Progress
    partition(partition: number): Progress
    /** Succeeds once the partition is visible up to these offsets; topics left out don't matter. */
    awaitOffset(
      partition: number,
      ends: Partial<Readonly<Record<StoredTopic, number>>>
    ): Effect.Effect<void>
  }
>()("alk/ProjectionProgress") {}
