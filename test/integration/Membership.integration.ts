/** Consumer groups: members whose program has ended give their partitions up at once. */
import { assert, it } from "@effect/vitest"
import { Clock, Duration, Effect } from "effect"
import { inject } from "vitest"
import { removeDeadMembers } from "../../src/adapters/kafka/DeadMembers.ts"
import { groupName } from "../../src/adapters/kafka/Membership.ts"
import { type KafkaSettings, makeKafka } from "../../src/adapters/kafka/protocol/KafkaClient.ts"
import { topicName } from "../../src/domain/records/Topics.ts"
import { startFlakyProxy } from "../support/FlakyProxy.ts"
import { withLog } from "../support/Log.ts"

const settingsOf = (clientId: string, port?: number): KafkaSettings => ({
  brokers: [inject("bootstrap")],
  clientId,
  log: () => undefined,
  ...(port === undefined ? {} : { route: () => ({ host: "127.0.0.1", port }) })
})

/** Client ids of the members of a group, as the broker knows them. */
const membersOf = (groupId: string) =>
  Effect.acquireUseRelease(
    Effect.promise(async () => {
      const admin = makeKafka(settingsOf("observer")).admin()
      await admin.connect()
      return admin
    }),
    (admin) => Effect.promise(() => admin.describeGroups([groupId])),
    (admin) => Effect.promise(() => admin.disconnect())
  ).pipe(Effect.map(({ groups }) => groups[0]!.members.map(({ clientId }) => clientId)))

/** Milliseconds for which the broker keeps a member that says nothing: longer than any test. */
const SESSION_MS = 600_000

/** Joins a group and stays in it; comes back once partitions are assigned. */
const joined = (settings: KafkaSettings, prefix: string, group: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const consumer = makeKafka(settings).consumer({
        groupId: groupName(prefix, group),
        sessionTimeout: SESSION_MS,
        maxWaitTimeInMs: 100,
        retry: { retries: 0 }
      })
      const assigned = new Promise<unknown>((resolve) => {
        consumer.on(consumer.events.GROUP_JOIN, resolve)
      })
      await consumer.connect()
      await consumer.subscribe({ topic: topicName(prefix, "commands") })
      await consumer.run({ eachBatch: () => Promise.resolve() })
      await assigned
      return consumer
    }),
    (consumer) => Effect.promise(() => consumer.disconnect().catch(() => undefined))
  )

/** What a busy machine needs time for is not given up. */
const patient = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const never: Clock.Clock = Object.assign(Object.create(clock), {
      sleep: (duration: Duration.Duration) =>
        Duration.toMillis(duration) < 1_000 ? clock.sleep(duration) : Effect.never
    })
    return yield* Effect.provideService(effect, Clock.Clock, never)
  })

it.live("members of a program that has ended are removed, and no others", () =>
  withLog((prefix) =>
    Effect.gen(function* () {
      const proxy = yield* Effect.acquireRelease(
        Effect.promise(() => startFlakyProxy(inject("bootstrap"))),
        (opened) => Effect.promise(() => opened.close())
      )
      yield* joined(settingsOf("own", proxy.port), prefix, "ended")
      yield* joined(settingsOf("other"), prefix, "running")
      // The connections end without a farewell, as those of a killed process do.
      yield* Effect.promise(() => proxy.close())
      assert.deepStrictEqual(yield* membersOf(groupName(prefix, "ended")), ["own"])
      for (const group of ["ended", "running", "never-there"]) {
        yield* patient(removeDeadMembers(settingsOf("own"), groupName(prefix, group)))
      }
      assert.deepStrictEqual(yield* membersOf(groupName(prefix, "ended")), [])
      assert.deepStrictEqual(yield* membersOf(groupName(prefix, "running")), ["other"])
    })
  )
)
