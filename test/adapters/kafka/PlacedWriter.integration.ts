/** Records are written back at the offsets that they had, and nothing between them is seen. */
import { Effect } from "effect"
import { assert, inject, it } from "vitest"
import { emptyLog } from "../../../src/adapters/kafka/EmptyLog.ts"
import { EventLog } from "../../../src/ports/EventLog.ts"
import { append, freshPrefix, logLayer, readAll } from "../../support/Log.ts"

const targetOf = (prefix: string) =>
  emptyLog(
    { brokers: [inject("bootstrap")], clientId: "test", log: () => undefined },
    { prefix, partitions: 1, replication: 1, minInSyncReplicas: 1, eventsRetentionMs: "forever" }
  )

const at = (offset: number) => ({
  offset,
  timestamp: 1_700_000_000_000 + offset,
  key: Buffer.from("acme"),
  value: Buffer.from(`value of ${offset}`),
  headers: { "alk-tenant": Buffer.from("acme") }
})

/** Runs, single offsets, and gaps of one and of many. */
const OFFSETS = [3, 4, 5, 7, 9, 10, 60_500, 60_502]

const written = (prefix: string, topic: "events" | "state") =>
  Effect.gen(function* () {
    const target = yield* targetOf(prefix)
    const writer = yield* target.writer(topic, 0)
    yield* writer.write(OFFSETS.slice(0, 5).map(at))
    yield* writer.write(OFFSETS.slice(5).map(at))
    yield* writer.finish(60_510)
    if (topic === "events") yield* target.deleteBelow(topic, 0, 3)
  }).pipe(Effect.scoped)

for (const topic of ["events", "state"] as const) {
  it(`places records of alk.${topic} with their times and headers`, () =>
    Effect.gen(function* () {
      const prefix = freshPrefix()
      yield* written(prefix, topic)
      const { bounds, records } = yield* Effect.gen(function* () {
        const log = yield* EventLog
        return { bounds: yield* log.bounds(topic, 0), records: yield* readAll(topic) }
      }).pipe(Effect.provide(logLayer(prefix)))
      assert.deepStrictEqual(
        records.map((record) => ({ ...record, headers: { ...record.headers } })),
        OFFSETS.map(at)
      )
      assert.deepStrictEqual(bounds, { start: topic === "events" ? 3 : 0, end: 60_510 })
    }).pipe(Effect.runPromise))
}

it("lets others write after what it has placed", () =>
  Effect.gen(function* () {
    const prefix = freshPrefix()
    yield* written(prefix, "events")
    const records = yield* Effect.gen(function* () {
      yield* append([{ topic: "events", partition: 0, key: "acme", value: "next" }])
      return yield* readAll("events")
    }).pipe(Effect.provide(logLayer(prefix)))
    assert.strictEqual(records.at(-1)?.offset, 60_510)
  }).pipe(Effect.runPromise))

it("refuses records that are not in the order of their offsets", () =>
  Effect.gen(function* () {
    const target = yield* targetOf(freshPrefix())
    const writer = yield* target.writer("events", 0)
    yield* writer.write([at(1)])
    const failed = yield* Effect.flip(writer.write([at(1)]))
    assert.include(String(failed.cause), "offset 1 is taken")
  }).pipe(Effect.scoped, Effect.runPromise))
