/** What following the log keeps in memory. */
import { setTimeout as sleep } from "node:timers/promises"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Layer } from "effect"
import { layerLogFollower } from "../../../src/actors/follower/LogFollower.ts"
import { KIND_HEADER, RECEIPT_HEADER } from "../../../src/domain/records/RecordHeaders.ts"
import type { LogRecord, Position } from "../../../src/ports/EventLog.ts"
import { EventStore } from "../../../src/ports/EventStore.ts"
import { emptyLog } from "../support/EmptyLog.ts"

/** Bytes of buffers that something holds: what is left once collecting frees no more. */
const heldBytes = Effect.promise(async () => {
  setFlagsFromString("--expose-gc")
  const collect = runInNewContext("gc") as () => void
  for (let held = Infinity; ; ) {
    collect()
    await sleep(50)
    const now = process.memoryUsage().arrayBuffers
    if (now >= held) return now
    held = now
  }
})

it.live("receipts keep the memory of what they are, not of what was made beside them", () =>
  Effect.gen(function* () {
    const count = 1_000
    let next = 0
    const receipt = (offset: number): LogRecord => ({
      offset,
      timestamp: 0,
      key: Buffer.from("acme"),
      value: Buffer.alloc(1_000, "x"),
      headers: {
        [KIND_HEADER]: Buffer.from("outcome"),
        [RECEIPT_HEADER]: Buffer.from(`rcp_${offset}`)
      }
    })
    const all = yield* Deferred.make<void>()
    const log = emptyLog((positions: ReadonlyArray<Position>) =>
      Effect.gen(function* () {
        const position = positions.find(({ topic }) => topic === "receipts")
        if (position === undefined || next === count) {
          yield* Deferred.succeed(all, undefined)
          return yield* Effect.never
        }
        // What requests make meanwhile, small enough to share its memory with others.
        for (let n = 0; n < 10; n++) Buffer.from("y".repeat(10_000))
        const records = [receipt(next++)]
        const fetched = {
          records,
          nextOffset: next,
          writtenEnd: next,
          stableEnd: next,
          logStart: 0
        }
        return [{ ...position, ...fetched }]
      })
    )
    const before = yield* heldBytes
    yield* Layer.build(
      layerLogFollower.pipe(
        Layer.provide([
          log,
          Layer.mock(EventStore, {
            migrate: Effect.void,
            ping: Effect.void,
            mergeDuplicates: Effect.void
          })
        ])
      )
    )
    yield* Deferred.await(all)
    const kept = (yield* heldBytes) - before
    assert.isAtLeast(kept, count * 1_000)
    assert.isBelow(kept, 5 * count * 1_000)
  }).pipe(Effect.scoped)
)
