/**
 * Checkpoints on a real broker and store: they stand on their topic and in the store, and a
 * sequencer that comes back has the trees and the newest checkpoints, however it came to its state.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type CheckpointRecord, openNote } from "../../src/domain/chain/Checkpoint.ts"
import { Frontier } from "../../src/domain/chain/MerkleTree.ts"
import type { Command } from "../../src/domain/records/Command.ts"
import { HEAD_PREFIX, type StoredHead } from "../../src/domain/records/StateRecords.ts"
import { CheckpointStore } from "../../src/ports/CheckpointStore.ts"
import { EventLog } from "../../src/ports/EventLog.ts"
import { askIndependentTree } from "../support/IndependentTree.ts"
import { append, deleteBelow, loseTopic, readAll, readAtLeast } from "../support/Log.ts"
import { checkpointSigner } from "../support/Signer.ts"
import { tamper } from "../support/Store.ts"
import {
  events,
  project,
  sequence,
  sequencing,
  signed,
  submit,
  TENANT,
  topicCheckpoints,
  topicEvents,
  verify,
  wantCheckpoint,
  withView
} from "./support/Evidence.ts"

const { signer } = checkpointSigner

/** Submit commands and sequence until a checkpoint of this size stands in the topic. */
const checkpointed = (size: number, ...commands: ReadonlyArray<Command>) =>
  Effect.andThen(submit(...commands), sequencing(signed(size)))

/** Every checkpoint of the topic is signed, and of the events in the topic. */
const assertTrue = Effect.fnUntraced(function* () {
  const made = yield* topicCheckpoints
  const hashes = (yield* topicEvents).map(({ hash }) => hash)
  const { roots } = askIndependentTree({
    hashes,
    sizes: made.map(({ tree_size }) => tree_size),
    inclusion: [],
    consistency: []
  })
  assert.deepStrictEqual(
    made.map(({ root_hash }) => root_hash),
    roots
  )
  for (const { note, root_hash: rootHash, tree_size: treeSize } of made) {
    assert.deepStrictEqual(openNote(note, [signer.vkey]), {
      checkpoint: {
        origin: `alk/${TENANT}`,
        treeSize,
        rootHash,
        extensions: [],
        keyIds: [signer.keyId]
      }
    })
  }
  return made
})

/** The newest value of a key of the changelog. */
const inChangelog = (key: string) =>
  Effect.map(readAll("state"), (records) => {
    const value = records.findLast((record) => record.key?.toString() === key)?.value
    return value == null ? undefined : (JSON.parse(value.toString()) as object)
  })

const storedHead = Effect.map(inChangelog(`${HEAD_PREFIX}${TENANT}`), (head) => head as StoredHead)
const storedCheckpoint = inChangelog(`checkpoint/${TENANT}`)

/** The tree in the changelog is that of the events in the topic. */
const assertTreeStored = Effect.fnUntraced(function* () {
  const frontier = Frontier.empty()
  for (const { hash } of yield* topicEvents) frontier.append(hash)
  assert.strictEqual((yield* storedHead).tree, frontier.encode())
})

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

  it.live("are stored again when the view of them was dropped, or denied by the topic", () =>
    withView((database) =>
      Effect.gen(function* () {
        yield* checkpointed(5, events(5))
        yield* checkpointed(9, events(4), wantCheckpoint())
        yield* project()
        const store = yield* CheckpointStore
        const made = yield* topicCheckpoints
        yield* tamper(`TRUNCATE TABLE ${database}.checkpoints`)
        assert.isUndefined(yield* store.latest(TENANT))
        yield* project()
        assert.deepStrictEqual(yield* store.list(TENANT, { limit: 10 }), made.toReversed())
        const forged: CheckpointRecord = { ...made[1]!, tree_size: 99 }
        const body = Buffer.from(JSON.stringify(forged))
        yield* store.insert([{ partition: 0, offset: 99, tenantId: TENANT, treeSize: 99, body }])
        yield* project()
        assert.deepStrictEqual(yield* store.list(TENANT, { limit: 10 }), made.toReversed())
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

  it.live("makes its tree anew when an older version has written the changelog", () =>
    withView(() =>
      Effect.gen(function* () {
        yield* sequence(9, events(9))
        const { tree: _tree, ...head } = yield* storedHead
        const key = `${HEAD_PREFIX}${TENANT}`
        yield* append([{ topic: "state", partition: 0, key, value: JSON.stringify(head) }])
        yield* checkpointed(13, events(4), wantCheckpoint())
        yield* assertTrue()
        yield* assertTreeStored()
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
        yield* sequencing(readAtLeast("receipts", length + 2))
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
