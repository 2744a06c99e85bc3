/** Topics that a backup is restored to: made where they are missing, and written record by record. */
import { Effect, type Scope } from "effect"
import { partitionedTopics, topicName } from "../../domain/records/Topics.ts"
import type { RestoreTarget } from "../../ports/BackupLog.ts"
import { type LogUnavailable, TopicsInvalid } from "../../ports/EventLog.ts"
import { uncommittedCluster, writtenEndsOf } from "./ExistingLog.ts"
import { makePlacedWriter } from "./PlacedWriter.ts"
import { type KafkaSettings, makeKafka } from "./protocol/KafkaClient.ts"
import { deleteBelow, ensureTopics, type TopicSettings } from "./Topics.ts"

export const emptyLog = (
  settings: KafkaSettings,
  topics: TopicSettings
): Effect.Effect<RestoreTarget, LogUnavailable | TopicsInvalid, Scope.Scope> =>
  Effect.gen(function* () {
    const { partitions, prefix, publicCompression = "zstd" } = topics
    const kafka = makeKafka(settings)
    const counts = yield* ensureTopics(kafka, topics)
    const wrong = partitionedTopics.filter((kind) => counts.get(kind) !== partitions)
    if (wrong.length > 0) {
      const names = wrong.map((kind) => `${topicName(prefix, kind)} has ${counts.get(kind)}`)
      const message = `the topics need ${partitions} partitions to be restored to: ${names.join("; ")}`
      return yield* new TopicsInvalid({ message })
    }
    const ends = writtenEndsOf(yield* uncommittedCluster(settings), prefix)
    const placed = {
      kafka: settings,
      prefix,
      publicCompression,
      writtenEnd: async (topic, partition) => {
        const [end = 0] = await Effect.runPromise(ends([{ topic, partition }]))
        return end
      }
    } satisfies Parameters<typeof makePlacedWriter>[0]
    return {
      partitions,
      ends,
      writer: (topic, partition) => makePlacedWriter(placed, topic, partition),
      deleteBelow: deleteBelow(kafka, prefix)
    }
  })
