/** The queue before `alk.commands`, over a log in memory that answers when the test lets it. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Latch, Layer } from "effect"
import { TestClock } from "effect/testing"
import { decodeCommand } from "../../../src/domain/records/CommandBytes.ts"
import { WRITER_HEADER } from "../../../src/domain/records/RecordHeaders.ts"
import { MESSAGE_BYTES_MAX, SEND_RECORDS_MAX } from "../../../src/domain/records/Topics.ts"
import { EventLog, LogUnavailable, type NewRecord } from "../../../src/ports/EventLog.ts"
import { CommandLog, layerCommandLog } from "../../../src/services/commands/CommandLog.ts"
import { ingestCommand } from "../../support/Events.ts"

/** A log whose appends are kept, and wait while `gate` is closed. */
const makeLog = () => {
  const gate = Latch.makeUnsafe(true)
  const appends: Array<ReadonlyArray<NewRecord>> = []
  const failures: Array<LogUnavailable> = []
  const layer = Layer.mock(EventLog, {
    partitions: 4,
    bootstrap: "nowhere",
    partitionOf: (tenantId) => tenantId.length % 4,
    appender: Effect.succeed({
      append: (records: ReadonlyArray<NewRecord>) =>
        Effect.suspend(() => {
          appends.push(records)
          const failure = failures.shift()
          return failure === undefined ? gate.await : Effect.fail(failure)
        })
    })
  })
  return { appends, failures, gate, layer: layerCommandLog.pipe(Layer.provide(layer)) }
}

const submit = (tenantId: string, partition?: number) =>
  CommandLog.use((log) => log.submit(ingestCommand(tenantId, 1), partition))

describe("the queue before the log", () => {
  it.effect("writes a command to the partition of its tenant, or to the one that is named", () => {
    const { appends, layer } = makeLog()
    return Effect.gen(function* () {
      yield* submit("acme")
      yield* submit("beta-x")
      yield* submit("acme", 3)
      const records = appends.flat()
      assert.deepStrictEqual(
        records.map(({ key, partition, topic }) => [topic, key, partition]),
        [
          ["commands", "acme", 0],
          ["commands", "beta-x", 2],
          ["commands", "acme", 3]
        ]
      )
      const first = decodeCommand(Buffer.from(records[0]!.value!))
      assert.strictEqual(records[0]!.headers!["alk-format"], "1")
      assert.strictEqual(first.tenantId, "acme")
    }).pipe(Effect.provide(layer))
  })

  it.effect("sends what has waited together, in its order, each record with a number", () => {
    const { appends, gate, layer } = makeLog()
    return Effect.gen(function* () {
      gate.closeUnsafe()
      const all = SEND_RECORDS_MAX + 10
      const fibers = yield* Effect.forEach(Array.from({ length: all }), (_, n) =>
        Effect.forkChild(submit(`tenant-${n}`), { startImmediately: true })
      )
      gate.openUnsafe()
      for (const fiber of fibers) yield* Fiber.join(fiber)
      const records = appends.flat()
      assert.deepStrictEqual(
        records.map(({ key }) => key),
        Array.from({ length: all }, (_, n) => `tenant-${n}`)
      )
      assert.isAtMost(Math.max(...appends.map(({ length }) => length)), SEND_RECORDS_MAX)
      assert.isBelow(appends.length, 4)
      const numbers = records.map(({ headers }) => String(headers![WRITER_HEADER]))
      assert.strictEqual(new Set(numbers).size, all)
    }).pipe(Effect.provide(layer))
  })

  it.effect("tells each caller of a send that failed, and goes on with the next", () => {
    const { failures, layer } = makeLog()
    return Effect.gen(function* () {
      failures.push(new LogUnavailable({ operation: "append", cause: new Error("away") }))
      const failed = yield* Effect.flip(submit("acme"))
      assert.strictEqual(failed._tag, "LogUnavailable")
      yield* submit("acme")
    }).pipe(Effect.provide(layer))
  })

  it.effect("says after ten seconds whether the command may have been written", () => {
    const { appends, gate, layer } = makeLog()
    return Effect.gen(function* () {
      gate.closeUnsafe()
      const sent = yield* Effect.forkChild(Effect.flip(submit("first")), { startImmediately: true })
      yield* Effect.yieldNow
      const queued = yield* Effect.forkChild(Effect.flip(submit("second")), {
        startImmediately: true
      })
      yield* TestClock.adjust("10 seconds")
      const failures = [yield* Fiber.join(sent), yield* Fiber.join(queued)]
      assert.deepStrictEqual(
        failures.map((failure) => failure._tag === "CommandLogBusy" && failure.maybeWritten),
        [true, false]
      )
      // What gave up before it was sent has left the queue.
      gate.openUnsafe()
      yield* submit("third")
      assert.deepStrictEqual(
        appends.flat().map(({ key }) => key),
        ["first", "third"]
      )
    }).pipe(Effect.provide(layer))
  })

  it.effect("refuses a command that is larger than a record of the log", () => {
    const { appends, layer } = makeLog()
    return Effect.gen(function* () {
      const command = ingestCommand("acme", 1)
      const large = { ...command, receiptId: "r".repeat(MESSAGE_BYTES_MAX) }
      const exit = yield* Effect.exit(CommandLog.use((log) => log.submit(large)))
      assert.isTrue(Exit.isFailure(exit))
      assert.include(JSON.stringify(exit), "CommandTooLarge")
      assert.deepStrictEqual(appends, [])
    }).pipe(Effect.provide(layer))
  })
})
