/**
 * The log on topics that a service has made, for a program beside it: creates and changes nothing, and
 * takes the number of partitions from the topics.
 */
import { Effect, type Scope } from "effect"
import { topicKinds, topicName } from "../../domain/records/Topics.ts"
import type { BackupSource } from "../../ports/BackupLog.ts"
import { LogUnavailable, TopicsInvalid } from "../../ports/EventLog.ts"
import { logOn, offsetsReader } from "./KafkaEventLog.ts"
import {
  type KafkaSettings,
  makeCluster,
  makeKafka,
  type RawCluster,
  READ_UNCOMMITTED
} from "./protocol/KafkaClient.ts"
import { commonCount, topicCounts } from "./Topics.ts"

/** The least that the topics of a common count have. */
const partitionsOf = (
  settings: KafkaSettings,
  prefix: string
): Effect.Effect<number, LogUnavailable | TopicsInvalid> =>
  Effect.acquireUseRelease(
    Effect.sync(() => makeKafka(settings).admin()),
    (admin) =>
      Effect.tryPromise({
        try: async () => {
          await admin.connect()
          const existing = await admin.listTopics()
          const missing = topicKinds.find((kind) => !existing.includes(topicName(prefix, kind)))
          if (missing !== undefined) return { missing: topicName(prefix, missing) }
          return { missing: undefined }
        },
        catch: (cause) => new LogUnavailable({ operation: "list topics", cause })
      }).pipe(
        Effect.flatMap(
          ({ missing }): Effect.Effect<number, LogUnavailable | TopicsInvalid> =>
            missing === undefined
              ? Effect.map(topicCounts(makeKafka(settings), prefix), commonCount)
              : Effect.fail(
                  new TopicsInvalid({
                    message:
                      `there is no topic ${missing} on these brokers: check KAFKA_BROKERS and `
                      + "ALK_TOPIC_PREFIX"
                  })
                )
        )
      ),
    (admin) => Effect.promise(() => admin.disconnect().catch(() => undefined))
  )

/** Connections that see what is not committed yet. */
export const uncommittedCluster = (
  settings: KafkaSettings
): Effect.Effect<RawCluster, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => makeCluster(settings, { isolationLevel: READ_UNCOMMITTED })),
    (cluster) => Effect.promise(() => cluster.disconnect().catch(() => undefined))
  )

/** Ends of what is written, committed or not. */
export const writtenEndsOf = (cluster: RawCluster, prefix: string): BackupSource["writtenEnds"] => {
  const offsets = offsetsReader(cluster, prefix)
  return (positions) => offsets(positions, false)
}

export const existingLog = Effect.fnUntraced(function* (settings: KafkaSettings, prefix: string) {
  const partitions = yield* partitionsOf(settings, prefix)
  const log = yield* logOn(settings, { prefix, partitions })
  const cluster = yield* uncommittedCluster(settings)
  return { log, writtenEnds: writtenEndsOf(cluster, prefix) } satisfies BackupSource
})
