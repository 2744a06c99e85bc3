/** That a new owner is ready once it has read its own record, whatever others write behind it. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Layer } from "effect"
import { runSequencer } from "../../../src/actors/sequencer/Sequencer.ts"
import { OWNER_KEY } from "../../../src/domain/records/StateRecords.ts"
import { Placement } from "../../../src/domain/registry/Placement.ts"
import { EventLog, type LogRecord, type Position } from "../../../src/ports/EventLog.ts"
import { checkpointSigner } from "../../support/Signer.ts"

/** A log of empty topics; behind each record of an owner stands that of another one. */
const layerLog = Layer.unwrap(
  Effect.sync(() => {
    const state: Array<LogRecord> = []
    const append = (key: string, value: Buffer | string | null): void => {
      const stored = value === null ? null : Buffer.from(value)
      const offset = state.length
      state.push({ offset, timestamp: 0, key: Buffer.from(key), value: stored, headers: {} })
    }
    const fetch = (positions: ReadonlyArray<Position>) =>
      Effect.sync(() =>
        positions.map((position) => {
          const all = position.topic === "state" ? state : []
          const end = Math.max(all.length, position.offset)
          const records = all.slice(position.offset)
          const ends = { nextOffset: end, writtenEnd: end, stableEnd: end, logStart: 0 }
          return { ...position, records, ...ends }
        })
      ).pipe(Effect.delay(state.length === 0 ? 0 : 1))
    return Layer.mock(EventLog, {
      partitions: 1,
      bootstrap: "nowhere",
      partitionOf: () => 0,
      placement: Effect.succeed(new Placement(1)),
      bounds: (topic) =>
        Effect.sync(() => ({ start: 0, end: topic === "state" ? state.length : 0 })),
      reader: Effect.succeed({ fetch }),
      writer: () =>
        Effect.succeed({
          commit: (_first, then) =>
            Effect.sync(() => {
              for (const { key, value } of then({ offsets: {} })) {
                append(String(key), value)
                if (key === OWNER_KEY) append(OWNER_KEY, '{"owner":"another"}')
              }
            })
        })
    })
  })
)

describe("a new owner of a partition", () => {
  it.live("is ready though an older one says behind its record that it owns it", () =>
    Effect.gen(function* () {
      const ready = yield* Deferred.make<number>()
      const settings = { ...checkpointSigner, windows: { dedup: 10, idempotency: 10 } }
      yield* Effect.forkScoped(
        runSequencer(0, settings, (partition) => Effect.asVoid(Deferred.succeed(ready, partition)))
      )
      assert.strictEqual(yield* Deferred.await(ready), 0)
    }).pipe(Effect.scoped, Effect.provide(layerLog))
  )
})
