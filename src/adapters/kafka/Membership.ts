/**
 * Membership of a consumer group that shares out the partitions of `commands`. The group is asked
 * for nothing but the assignment: records are read elsewhere, from offsets that the topics tell.
 */
import { Cause, Effect, Queue, Schedule, Stream } from "effect"
import type { Consumer, Kafka } from "kafkajs"
import { topicName } from "../../domain/Topics.ts"
import { LogUnavailable, type Assignment } from "../../ports/EventLog.ts"
import { RETRY } from "./KafkaClient.ts"

/** Milliseconds without a heartbeat until another member takes over: the least that brokers allow. */
const SESSION_TIMEOUT_MS = 6_000
const HEARTBEAT_MS = 1_000
const REBALANCE_TIMEOUT_MS = 8_000
/** Milliseconds between two looks at the group; partitions are paused, so nothing is fetched. */
const POLL_MS = 300

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

/** Assignments of this member, each with a number that grows. Joins again when the group is lost. */
export const membership = (
  kafka: Kafka,
  prefix: string,
  group: string
): Stream.Stream<Assignment, LogUnavailable> => {
  let generation = 0
  const topic = topicName(prefix, "commands")
  const once = Stream.callback<Assignment, LogUnavailable>(
    Effect.fnUntraced(function*(queue) {
      const consumer = yield* Effect.acquireRelease(
        Effect.sync(() =>
          kafka.consumer({
            groupId: `${prefix}-${group}`,
            sessionTimeout: SESSION_TIMEOUT_MS,
            heartbeatInterval: HEARTBEAT_MS,
            rebalanceTimeout: REBALANCE_TIMEOUT_MS,
            maxWaitTimeInMs: POLL_MS,
            allowAutoTopicCreation: false,
            retry: { ...RETRY, retries: 30 }
          })
        ),
        (joined) => Effect.promise(() => joined.disconnect().catch(() => undefined))
      )
      const assigned = (partitions: ReadonlyArray<number>) => {
        generation += 1
        Queue.offerUnsafe(queue, { generation, partitions })
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
        return { generation, partitions: [] }
      }).pipe(Stream.concat(Stream.fail(new LogUnavailable({ operation: group, cause: "lost" }))))
    ),
    Stream.retry(Schedule.spaced("500 millis"))
  )
}
