/**
 * Checkpoints on a real broker and store: they stand on their topic and in the store, and a
 * sequencer that comes back has the trees and the newest checkpoints, however it came to its state.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { ChainEnds } from "../../src/actors/chainEnds/ChainEnds.ts"
import type { CheckpointRecord } from "../../src/domain/chain/Checkpoint.ts"
import { CheckpointStore } from "../../src/ports/CheckpointStore.ts"
import { EventLog } from "../../src/ports/EventLog.ts"
import { append, decidedEnd, deleteBelow, loseTopic, readAll, readAtLeast } from "../support/Log.ts"
import {
  assertTreeStored,
  assertTrue,
  checkpointed,
  storedCheckpoint,
  storedHead
} from "./support/Checkpoints.ts"
import {
  events,
  layerVerification,
  project,
  sequence,
  sequencing,
  submit,
  TENANT,
  topicCheckpoints,
  verify,
  wantCheckpoint,
  withView
} from "./support/Evidence.ts"
import { acceptAll, assertRefused } from "./support/Starts.ts"

describe("checkpoints", () => {
  it.live("are made while the chain grows and when one is asked for, and are stored", () =>
    withView(() =>
      Effect.gen(function* () {
        // Nobody asks for the first one.
        yield* checkpointed(30, events(30))
        yield* checkpointed(41, events(11), wantCheckpoint())
        const made = yield* assertTrue()
        assert.deepStrictEqual(
          made.map(({ tree_size }) => tree_size),
          [30, 41]
        )
        const records = yield* readAll("checkpoints")
        for (const [index, { headers, key }] of records.entries()) {
          const { created_at, key_id, tree_size } = made[index]!
          assert.strictEqual(key?.toString(), TENANT)
          const texts = Object.entries(headers).map(([name, value]) => [name, value.toString()])
          assert.deepStrictEqual(Object.fromEntries(texts), {
            ce_specversion: "1.0",
            ce_type: "alk.checkpoint.v1",
            ce_source: `alk/${TENANT}/checkpoints`,
            ce_id: `${tree_size}-${key_id}`,
            ce_time: created_at,
            "content-type": "application/json"
          })
        }
        yield* project()
        const store = yield* CheckpointStore
        assert.deepStrictEqual(yield* store.latest(TENANT), made[1])
        assert.deepStrictEqual(yield* store.atOrBelow(TENANT, 40), made[0])
        assert.deepStrictEqual(yield* store.list(TENANT, { limit: 10 }), made.toReversed())
        const report = yield* verify()
        assert.deepStrictEqual([report.status, report.assurance], ["valid", "signed"])
      })
    )
  )

  it.live("that are no records of this service are left out of the store", () =>
    withView(() =>
      Effect.gen(function* () {
        yield* checkpointed(3, events(3))
        const strange = ["no JSON", "null", "{}", '{"tenant_id":"acme","tree_size":0}']
        yield* append(
          strange.map((value) => ({ topic: "checkpoints", partition: 0, key: TENANT, value }))
        )
        yield* project()
        const store = yield* CheckpointStore
        const sizes = (yield* store.list(TENANT, { limit: 10 })).map(({ tree_size }) => tree_size)
        assert.deepStrictEqual(sizes, [3])
      })
    )
  )
})

describe("the newest checkpoint of the topic", () => {
  it.live("is found below any number of forged ones, each of which is looked at once", () =>
    withView(() =>
      Effect.gen(function* () {
        yield* checkpointed(3, events(3))
        const [own] = yield* topicCheckpoints
        const forged = Array.from({ length: 200 }, (_, n) => ({
          ...own!,
          key_id: n.toString(16).padStart(8, "0")
        }))
        const add = append(
          forged.map((one) => ({
            topic: "checkpoints",
            partition: 0,
            key: TENANT,
            value: JSON.stringify(one)
          }))
        )
        yield* add
        yield* decidedEnd("checkpoints")
        const ends = yield* ChainEnds
        const looks: Array<number> = []
        const isGenuine = (one: CheckpointRecord) => {
          looks[looks.length - 1]! += 1
          return one.key_id === own!.key_id
        }
        for (const _ of [1, 2]) {
          looks.push(0)
          assert.deepStrictEqual(yield* ends.checkpoint(TENANT, isGenuine), own)
        }
        // Of the newest 64, of all, and of the newest 64 and the one that was found.
        assert.deepStrictEqual(looks, [64 + 201, 64 + 1])
        yield* add
        yield* decidedEnd("checkpoints")
        looks.push(0)
        assert.deepStrictEqual(yield* ends.checkpoint(TENANT, isGenuine), own)
        assert.strictEqual(looks.at(-1), 64 + 1 + 200)
      }).pipe(Effect.provide(layerVerification))
    )
  )
})

describe("a sequencer that comes back", () => {
  it.live("goes on with the tree of its changelog", () =>
    withView(() =>
      Effect.gen(function* () {
        yield* checkpointed(7, events(7))
        yield* sequence(18, events(11))
        yield* checkpointed(20, events(2), wantCheckpoint())
        yield* assertTrue()
        yield* assertTreeStored()
      })
    )
  )

  it.live("has trees and newest checkpoints again when its changelog was lost", () =>
    withView((prefix) =>
      Effect.gen(function* () {
        yield* checkpointed(7, events(7))
        yield* checkpointed(12, events(5), wantCheckpoint())
        const before = yield* topicCheckpoints
        yield* loseTopic(prefix, "state")
        const { length } = yield* readAll("receipts")
        yield* submit(wantCheckpoint())
        yield* sequencing(readAtLeast("receipts", length + 1))
        // The chain has not grown: the newest one is given again, and none is made.
        const answer = (yield* readAll("receipts")).at(-1)!.value!.toString()
        assert.deepStrictEqual(JSON.parse(answer).checkpoint, before.at(-1))
        assert.deepStrictEqual(yield* storedCheckpoint, before.at(-1))
        assert.deepStrictEqual(yield* topicCheckpoints, before)
        yield* assertTreeStored()
        yield* checkpointed(15, events(3), wantCheckpoint())
        yield* assertTrue()
      })
    )
  )

  it.live("signs nothing of a chain whose start has left the topic", () =>
    withView((prefix) =>
      Effect.gen(function* () {
        yield* sequence(9, events(9))
        const log = yield* EventLog
        const { end } = yield* log.bounds("events", 0)
        yield* deleteBelow(prefix, "events", end - 3)
        yield* loseTopic(prefix, "state")
        const before = yield* topicCheckpoints
        const { length } = yield* readAll("receipts")
        yield* submit(events(2), wantCheckpoint())
        const going = sequencing(readAtLeast("receipts", length + 2))
        assertRefused(
          yield* Effect.flip(going),
          /what is left of the topic does not say which root/
        )
        yield* acceptAll
        yield* going
        const answer = (yield* readAll("receipts")).at(-1)!.value!.toString()
        assert.deepInclude(JSON.parse(answer), { status: "committed" })
        assert.notProperty(JSON.parse(answer), "checkpoint")
        assert.isNull((yield* storedHead).tree)
        assert.strictEqual((yield* storedHead).sequence_number, 11)
        assert.deepStrictEqual(yield* topicCheckpoints, before)
      })
    )
  )
})
