/**
 * Whether the topics have the partitions that the registry says. In an installation that has never
 * grown it says nothing: then they have what the configuration says, as they were made.
 */
import { Effect, Schedule } from "effect"
import { readPlacement } from "../../actors/log/PlacementOfLog.ts"
import { partitionedTopics, type TopicKind, topicName } from "../../domain/records/Topics.ts"
import type { Partitions } from "../../domain/registry/RegistryEntry.ts"
import { type EventLog, TopicsInvalid } from "../../ports/EventLog.ts"

const neverGrown = (wrong: string) =>
  `the partition count of existing topics differs from ALK_PARTITIONS: ${wrong}. A chain lives in `
  + "one partition, so the count can't simply change: set ALK_PARTITIONS to the count that the topics "
  + "have, or use another ALK_TOPIC_PREFIX; more partitions come with 'alk partitions add'"

const otherwise = (wrong: string, { growing_to, topics }: Partitions) =>
  `the topics don't have the ${topics} partitions that alk.registry says`
  + `${growing_to === undefined ? "" : ` (they are getting ${growing_to})`}: ${wrong}. Topics with fewer `
  + "were lost or made anew: restore them; with more, somebody has added partitions by hand: 'alk "
  + "partitions add' with the earlier version of the topics is the only way that keeps tenants apart"

const whileHeard = Schedule.spaced("250 millis").pipe(Schedule.upTo({ times: 20 }))

const hasFewer = (counts: ReadonlyMap<TopicKind, number>, least: number): boolean =>
  partitionedTopics.some((kind) => (counts.get(kind) ?? 0) < least)

/**
 * Fails on topics that would tear the chains, once it has read where tenants are. `configured` is
 * ALK_PARTITIONS.
 */
export const checkPartitions = Effect.fn("Partitions.check")(function* (
  log: EventLog["Service"],
  { partitions: configured, prefix }: { readonly partitions: number; readonly prefix: string }
) {
  // Counted before: a growth is written down before any topic grows.
  let counts = yield* log.counts
  const { record } = yield* readPlacement(log)
  const least = record?.topics ?? configured
  const most = record?.growing_to ?? least
  if (record !== undefined && hasFewer(counts, least)) {
    // A broker may hear of a growth later than others.
    counts = yield* log.counts.pipe(
      Effect.repeat({ schedule: whileHeard, until: (found) => !hasFewer(found, least) })
    )
  }
  const wrong = partitionedTopics.flatMap((kind) => {
    const found = counts.get(kind) ?? 0
    const isRight = least <= found && found <= most
    return isRight ? [] : [`${topicName(prefix, kind)} has ${found}, not ${least}`]
  })
  if (wrong.length === 0) return
  const text = wrong.join("; ")
  return yield* new TopicsInvalid({
    message: record === undefined ? neverGrown(text) : otherwise(text, record)
  })
})
