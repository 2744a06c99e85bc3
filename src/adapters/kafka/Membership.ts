/**
 * Membership of a consumer group that shares out the partitions of `commands`. Only
 * the assignment of the group is used: records are read elsewhere, from offsets of the topics.
 */
import { Cause, Effect, Queue, Schedule, Stream } from "effect"
import type { Consumer } from "kafkajs"
import { topicName } from "../../domain/records/Topics.ts"
import { type Assignment, LogUnavailable } from "../../ports/EventLog.ts"
import { removeDeadMembers } from "./DeadMembers.ts"
import { type KafkaSettings, makeKafka, RETRY } from "./protocol/KafkaClient.ts"

/**
 * Milliseconds without a heartbeat until another member takes over: the least that brokers allow.
 */
const SESSION_TIMEOUT_MS = 6_000
const HEARTBEAT_MS = 1_000
const REBALANCE_TIMEOUT_MS = 8_000
/**
 * Milliseconds for one request: a coordinator that has frozen is looked for elsewhere then. Others may
 * take part in what it waits for as long as a rebalance lasts.
 */
const REQUEST_TIMEOUT_MS = REBALANCE_TIMEOUT_MS + 1_000
/**
 * Milliseconds after a heartbeat in which no other member can have taken over: the session less
 * what the heartbeat may have spent on its way.
 */
const LEASE_MS = SESSION_TIMEOUT_MS - 2_000
/** The protocol's numbers of what keeps a member's session alive. */
const KEEPS_ALIVE: ReadonlySet<number> = new Set([11, 12, 14])
/** Milliseconds after which partitions that were added are shared out at the latest. */
const METADATA_MS = 10_000
/** Milliseconds between two looks at the group; partitions are paused, so nothing is fetched. */
const POLL_MS = 300

/**
 * When the session was last kept alive, in milliseconds: at the sending of what was answered well.
 */
const followSession = (consumer: Consumer): { readonly aliveAt: () => number } => {
  const { GROUP_JOIN, HEARTBEAT, REQUEST } = consumer.events
  let sentAt = 0
  let aliveAt = 0
  consumer.on(REQUEST, ({ payload }) => {
    if (KEEPS_ALIVE.has(payload.apiKey)) sentAt = payload.sentAt
  })
  const keptAlive = () => {
    aliveAt = sentAt
  }
  consumer.on(HEARTBEAT, keptAlive)
  consumer.on(GROUP_JOIN, keptAlive)
  return { aliveAt: () => aliveAt }
}

const run = async (
  consumer: Consumer,
  topic: string,
  assigned: (partitions: ReadonlyArray<number>) => void,
  lost: (cause: unknown) => void
): Promise<void> => {
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    const partitions = payload.memberAssignment[topic] ?? []
    assigned([...partitions].sort((left, right) => left - right))
  })
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    if (!payload.restart) lost(payload.error)
    else assigned([])
  })
  await consumer.connect()
  await consumer.subscribe({ topic })
  await consumer.run({ autoCommit: false, eachBatch: () => Promise.resolve() })
  consumer.pause([{ topic }])
}

/** Of the consumer group of one of the program's roles. */
export const groupName = (prefix: string, role: string): string => `${prefix}-${role}`

/**
 * Assignments of this member, each with a number that grows. Joins again when the group is lost.
 */
export const membership = (
  settings: KafkaSettings,
  prefix: string,
  group: string
): Stream.Stream<Assignment, LogUnavailable> => {
  let generation = 0
  const topic = topicName(prefix, "commands")
  const groupId = groupName(prefix, group)
  const kafka = makeKafka(settings, { requestTimeout: REQUEST_TIMEOUT_MS })
  const once = Stream.callback<Assignment, LogUnavailable>(
    Effect.fnUntraced(function* (queue) {
      if (settings.isClientIdOwn) yield* removeDeadMembers(settings, groupId)
      const consumer = yield* Effect.acquireRelease(
        Effect.sync(() =>
          kafka.consumer({
            groupId,
            sessionTimeout: SESSION_TIMEOUT_MS,
            heartbeatInterval: HEARTBEAT_MS,
            rebalanceTimeout: REBALANCE_TIMEOUT_MS,
            maxWaitTimeInMs: POLL_MS,
            metadataMaxAge: METADATA_MS,
            allowAutoTopicCreation: false,
            retry: { ...RETRY, retries: 30 }
          })
        ),
        (joined) => Effect.promise(() => joined.disconnect().catch(() => undefined))
      )
      const session = followSession(consumer)
      const assigned = (partitions: ReadonlyArray<number>) => {
        generation += 1
        const own = generation
        Queue.offerUnsafe(queue, {
          generation,
          partitions,
          isCurrent: () => generation === own && Date.now() - session.aliveAt() < LEASE_MS
        })
      }
      const failed = (cause: unknown) =>
        Queue.failCauseUnsafe(
          queue,
          Cause.fail(new LogUnavailable({ operation: `join ${group}`, cause }))
        )
      yield* Effect.tryPromise({
        try: () => run(consumer, topic, assigned, failed),
        catch: (cause) => new LogUnavailable({ operation: `join ${group}`, cause })
      })
    }),
    { bufferSize: 64, strategy: "sliding" }
  )
  return once.pipe(
    Stream.catch(() =>
      Stream.sync(() => {
        generation += 1
        return { generation, partitions: [], isCurrent: () => true }
      }).pipe(Stream.concat(Stream.fail(new LogUnavailable({ operation: group, cause: "lost" }))))
    ),
    Stream.retry(Schedule.spaced("500 millis"))
  )
}
