/** Consumer groups: members whose program has ended give their partitions up at once. */
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Latch, Stream } from "effect"
import { inject } from "vitest"
import { removeDeadMembers } from "../../src/adapters/kafka/DeadMembers.ts"
import { membership } from "../../src/adapters/kafka/Membership.ts"
import { type KafkaSettings, makeKafka } from "../../src/adapters/kafka/protocol/KafkaClient.ts"
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

/** Joins a group and stays in it; comes back once partitions are assigned. */
const joined = (settings: KafkaSettings, prefix: string, group: string) =>
  Effect.gen(function* () {
    const assigned = yield* Latch.make()
    const fiber = yield* membership(settings, prefix, group).pipe(
      Stream.runForEach(({ partitions }) => (partitions.length > 0 ? assigned.open : Effect.void)),
      Effect.forkScoped
    )
    yield* assigned.await
    return fiber
  })

it.live("members of a program that has ended are removed, and no others", () =>
  withLog((prefix) =>
    Effect.gen(function* () {
      const proxy = yield* Effect.acquireRelease(
        Effect.promise(() => startFlakyProxy(inject("bootstrap"))),
        (opened) => Effect.promise(() => opened.close())
      )
      const ended = yield* joined(settingsOf("own", proxy.port), prefix, "ended")
      yield* joined(settingsOf("other"), prefix, "running")
      // The connections end without a farewell, as those of a killed process do.
      yield* Effect.promise(() => proxy.close())
      yield* Effect.forkChild(Fiber.interrupt(ended))
      assert.deepStrictEqual(yield* membersOf(`${prefix}-ended`), ["own"])
      for (const group of ["ended", "running", "never-there"]) {
        yield* removeDeadMembers(settingsOf("own"), `${prefix}-${group}`)
      }
      assert.deepStrictEqual(yield* membersOf(`${prefix}-ended`), [])
      assert.deepStrictEqual(yield* membersOf(`${prefix}-running`), ["other"])
    })
  )
)
