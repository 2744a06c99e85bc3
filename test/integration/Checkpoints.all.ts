/** Checkpoints of a view that was dropped or denied, and of a changelog without trees. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { CheckpointRecord } from "../../src/domain/chain/Checkpoint.ts"
import { HEAD_PREFIX } from "../../src/domain/records/StateRecords.ts"
import { CheckpointStore } from "../../src/ports/CheckpointStore.ts"
import { append } from "../support/Log.ts"
import { tamper } from "../support/Store.ts"
import { assertTreeStored, assertTrue, checkpointed, storedHead } from "./support/Checkpoints.ts"
import {
  events,
  project,
  sequence,
  TENANT,
  topicCheckpoints,
  wantCheckpoint,
  withView
} from "./support/Evidence.ts"

describe("checkpoints", () => {
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
})

describe("a sequencer that comes back", () => {
  it.live("makes its tree anew when the changelog has a head without one", () =>
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
})
