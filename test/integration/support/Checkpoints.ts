/** Checkpoints and trees of the topics, and what they have to be. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { openNote } from "../../../src/domain/chain/Checkpoint.ts"
import { Frontier } from "../../../src/domain/chain/MerkleTree.ts"
import type { Command } from "../../../src/domain/records/Command.ts"
import { HEAD_PREFIX, type StoredHead } from "../../../src/domain/records/StateRecords.ts"
import { askIndependentTree } from "../../support/IndependentTree.ts"
import { readAll } from "../../support/Log.ts"
import { checkpointSigner } from "../../support/Signer.ts"
import { sequencing, signed, submit, TENANT, topicCheckpoints, topicEvents } from "./Evidence.ts"

const { signer } = checkpointSigner

/** Submit commands and sequence until a checkpoint of this size stands in the topic. */
export const checkpointed = (size: number, ...commands: ReadonlyArray<Command>) =>
  Effect.andThen(submit(...commands), sequencing(signed(size)))

/** Every checkpoint of the topic is signed, and of the events in the topic. */
export const assertTrue = Effect.fnUntraced(function* () {
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

export const storedHead = Effect.map(
  inChangelog(`${HEAD_PREFIX}${TENANT}`),
  (head) => head as StoredHead
)
export const storedCheckpoint = inChangelog(`checkpoint/${TENANT}`)

/** The tree in the changelog is that of the events in the topic. */
export const assertTreeStored = Effect.fnUntraced(function* () {
  const frontier = Frontier.empty()
  for (const { hash } of yield* topicEvents) frontier.append(hash)
  assert.strictEqual((yield* storedHead).tree, frontier.encode())
})
