/**
 * Transactions that the broker never ends, and their remedy with Kafka's own client for operators.
 * Into one that has records of alk already, another program can write with the producer id of alk and a
 * higher epoch only where the broker does not check that, so here it does without.
 */
import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { ConfigResourceTypes, Kafka, logLevel } from "kafkajs"
import { inject } from "vitest"
import { findJava } from "../../src/adapters/embedded/broker/Java.ts"
import { kafkaJars } from "../../src/adapters/embedded/broker/KafkaJars.ts"
import { topicName } from "../../src/domain/records/Topics.ts"
import { EventLog } from "../../src/ports/EventLog.ts"
import { cacheDir } from "../adapters/embedded/fixtures.ts"
import {
  assertTexts,
  beforeOnce,
  event,
  intrude,
  soonStuck,
  state
} from "../integration/support/Writers.ts"
import { PRODUCE } from "../support/FlakyProxy.ts"
import { readNow, withLog } from "../support/Log.ts"

const HIGHER = { firstSequence: 0, producerEpoch: 32_767 }

/**
 * Whether the broker asks the coordinator if what is written to a transaction belongs to it. A change
 * may fail transactions of others that are under way: no other test runs beside this one.
 */
const setVerified = (isVerified: boolean) =>
  Effect.promise(async () => {
    const brokers = [inject("bootstrap")]
    const admin = new Kafka({ brokers, logLevel: logLevel.NOTHING }).admin()
    await admin.connect()
    const name = "transaction.partition.verification.enable"
    const configEntries = isVerified ? [] : [{ name, value: "false" }]
    const { brokers: nodes } = await admin.describeCluster()
    const resources = nodes.map(({ nodeId }) => ({
      type: ConfigResourceTypes.BROKER,
      name: String(nodeId),
      configEntries
    }))
    await admin.alterConfigs({ validateOnly: false, resources })
    await admin.disconnect()
  })

const unverified = Effect.acquireRelease(setVerified(false), () => setVerified(true))

/** What Kafka's own tool does with `abort`, for the transaction that begins at the offset. */
const abortAt = (topic: string, offset: number) =>
  Effect.gen(function* () {
    const java = yield* findJava
    const jars = yield* kafkaJars(cacheDir, () => undefined)
    const program = "test/support/AbortTransaction.java"
    const given = [inject("bootstrap"), topic, "0", String(offset)]
    const run = promisify(execFile)(java, ["-cp", join(jars, "*"), program, ...given])
    return Number((yield* Effect.promise(() => run)).stdout)
  })

describe("a transaction that hangs", () => {
  it.live(
    "holds readers until an operator ends it; its writer comes too late with the next one",
    () =>
      withLog((prefix) =>
        Effect.gen(function* () {
          const { context, proxy, start } = yield* soonStuck(prefix)
          const writer = yield* start
          yield* writer.commit([], () => [state("one")])
          yield* unverified
          // The first request has the event, whose place is not known, the second one the state.
          const within = { ...HIGHER, within: `${prefix}-w` }
          const both = Effect.andThen(
            intrude(prefix, "events", within),
            intrude(prefix, "state", HIGHER)
          )
          proxy.decide = beforeOnce(PRODUCE, Effect.provide(both, context), 2)
          const failed = yield* Effect.flip(writer.commit([event("two")], () => [state("two")]))
          assert.strictEqual(failed._tag, "LogUnavailable")
          const next = yield* start
          yield* next.commit([event("three")], () => [state("three")])
          const late = yield* Effect.flip(writer.commit([event("late")], () => [state("late")]))
          assert.strictEqual(late._tag, "LogUnavailable")
          assert.deepStrictEqual(yield* readNow("events"), [])
          const { end } = yield* EventLog.use((log) => log.bounds("events", 0))
          const epoch = yield* abortAt(topicName(prefix, "events"), end)
          assert.strictEqual(epoch, HIGHER.producerEpoch)
          yield* assertTexts("events", ["three"])
          yield* assertTexts("state", ["one", "of an intruder", "three"])
        })
      )
  )
})
