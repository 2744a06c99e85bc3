/**
 * What verification believes of checkpoints: real notes, signed by published keys and by others,
 * and rows that say something else than their note.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { ChainEnds } from "../../src/actors/chainEnds/ChainEnds.ts"
import { PublishedKeys } from "../../src/actors/follower/PublishedKeys.ts"
import {
  type CheckpointRecord,
  makeCheckpoint,
  signerOf
} from "../../src/domain/chain/Checkpoint.ts"
import { Frontier, leafHash, nodeHash, verifyInclusion } from "../../src/domain/chain/MerkleTree.ts"
import { CheckpointStore } from "../../src/ports/CheckpointStore.ts"
import { HashTree, TreeUnbuildable } from "../../src/ports/HashTree.ts"
import {
  checkpointsOf,
  layerSignedCheckpoints,
  SignedCheckpoints
} from "../../src/verify/SignedCheckpoints.ts"
import { Chain } from "./support/Chains.ts"
import { hashesOfChain } from "./support/CheckpointWorld.ts"

const OURS = signerOf("alk", Buffer.alloc(32, 1))
const OTHERS = signerOf("alk", Buffer.alloc(32, 2))
const TIME = "2026-11-21T12:00:00.000000Z"

const chain = new Chain("acme").extend(9)
const hashes = hashesOfChain(chain)

const signed = (size: number, signer = OURS, tenantId = "acme"): CheckpointRecord => {
  const frontier = Frontier.empty()
  for (const hash of hashes.slice(0, size)) frontier.append(hash)
  return makeCheckpoint(signer, "alk", tenantId, frontier, TIME)
}

const published = {
  keyId: OURS.keyId,
  vkey: OURS.vkey,
  publicKey: OURS.publicKey,
  trusted: "root",
  addedAt: TIME
} as const

const withStored = <A, E>(
  stored: ReadonlyArray<CheckpointRecord>,
  test: (checkpoints: SignedCheckpoints["Service"]) => Effect.Effect<A, E>,
  /** Whether this process has heard of the key. */
  world = { heard: true, sizeMax: Infinity }
) =>
  SignedCheckpoints.use(test).pipe(
    Effect.provide(
      layerSignedCheckpoints("alk").pipe(
        Layer.provide([
          Layer.mock(CheckpointStore, {
            atOrBelow: (_, size) =>
              Effect.sync(() => stored.findLast(({ tree_size }) => tree_size <= size))
          }),
          Layer.mock(ChainEnds, {
            checkpoint: (_, isGenuine) => Effect.sync(() => stored.findLast(isGenuine))
          }),
          Layer.mock(HashTree, {
            forget: () => Effect.void,
            nodes: (_, nodes) =>
              Effect.suspend(() => {
                const node = (level: number, index: number): Buffer =>
                  level === 0
                    ? leafHash(hashes[index]!)
                    : nodeHash(node(level - 1, 2 * index), node(level - 1, 2 * index + 1))
                return nodes.some(({ index, level }) => (index + 1) * 2 ** level > hashes.length)
                  ? Effect.fail(new TreeUnbuildable({ firstSequence: 1, lastSequence: 1 }))
                  : Effect.succeed({ node, eventHash: (index: number) => hashes[index]! })
              })
          }),
          Layer.succeed(PublishedKeys, {
            all: Effect.sync(() => (world.heard ? [published] : [])),
            caughtUp: Effect.sync(() => {
              world.heard = true
            }),
            refusal: (_, { treeSize }) =>
              Effect.succeed(treeSize > world.sizeMax ? "its key was replaced" : undefined)
          })
        ])
      )
    )
  )

describe("signed checkpoints", () => {
  it.effect("are what the store keeps and a published key has signed", () =>
    withStored([signed(3), signed(7)], (checkpoints) =>
      Effect.gen(function* () {
        const { note, root_hash } = signed(7)
        assert.deepStrictEqual(yield* checkpoints.newestAtOrBelow("acme", 9), {
          treeSize: 7,
          rootHash: root_hash,
          note
        })
        assert.strictEqual((yield* checkpoints.newestAtOrBelow("acme", 6))?.treeSize, 3)
        assert.isUndefined(yield* checkpoints.newestAtOrBelow("acme", 2))
      })
    )
  )

  it.effect("are forged where their key was not to sign them any more", () =>
    withStored(
      [signed(3), signed(7)],
      (checkpoints) =>
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* checkpoints.newestAtOrBelow("acme", 9), {
            treeSize: 7,
            problem: "its key was replaced"
          })
          assert.deepStrictEqual(yield* checkpoints.open("acme", signed(5).note), {
            treeSize: 5,
            problem: "its key was replaced"
          })
          assert.notProperty(yield* checkpoints.open("acme", signed(4).note), "problem")
        }),
      { heard: true, sizeMax: 4 }
    )
  )

  it.effect("the newest one on the topic is the newest genuine one, whatever follows it", () =>
    withStored(
      [
        signed(3),
        signed(4),
        signed(7),
        signed(9, OTHERS),
        signed(9, OURS, "globex"),
        { ...signed(9), tree_size: 10 },
        { ...signed(9), note: "" }
      ],
      (checkpoints) =>
        Effect.map(checkpoints.published("acme"), (found) =>
          assert.deepStrictEqual(found, {
            treeSize: 4,
            rootHash: signed(4).root_hash,
            note: signed(4).note
          })
        ),
      { heard: true, sizeMax: 4 }
    )
  )

  it.effect.each([
    ["is one on the topic beyond it", [signed(3), signed(5, OTHERS), signed(9)], [9, 3], []],
    ["is none beyond it", [signed(3), signed(5, OTHERS)], [3], [5]]
  ] as const)("what is forged counts or not: there %s", ([, stored, genuine, forged]) =>
    withStored(stored, (checkpoints) =>
      Effect.gen(function* () {
        const found = yield* checkpointsOf(checkpoints, [], "acme", 6, 1)
        const sizesOf = (some: ReadonlyArray<{ readonly treeSize: number }>) =>
          some.map(({ treeSize }) => treeSize)
        assert.deepStrictEqual([sizesOf(found.signed), sizesOf(found.forged)], [genuine, forged])
      })
    )
  )

  it.effect("are not called forged for a key that is only new", () =>
    withStored(
      [signed(7)],
      (checkpoints) =>
        Effect.map(checkpoints.newestAtOrBelow("acme", 9), (found) =>
          assert.notProperty(found, "problem")
        ),
      { heard: false, sizeMax: Infinity }
    )
  )

  it.effect("are forged by another key, another tenant or another size", () => {
    const forged = [
      signed(5, OTHERS),
      signed(5, OURS, "globex"),
      { ...signed(5), tree_size: 4 },
      { ...signed(5), note: "" },
      { ...signed(5), note: signed(5).note.replace("\n5\n", "\n6\n") },
      { ...signed(5), note: undefined as never }
    ]
    return Effect.forEach(forged, (record) =>
      withStored([record], (checkpoints) =>
        Effect.gen(function* () {
          const found = yield* checkpoints.newestAtOrBelow("acme", 9)
          assert.deepStrictEqual(
            [found !== undefined && "problem" in found, found?.treeSize],
            [true, record.tree_size]
          )
        })
      )
    )
  })

  it.effect("that somebody kept are read, unreadable, or forged", () =>
    withStored([], (checkpoints) =>
      Effect.gen(function* () {
        assert.deepInclude(yield* checkpoints.open("acme", signed(4).note), { treeSize: 4 })
        const other = yield* checkpoints.open("globex", signed(4).note)
        assert.deepInclude(other, { treeSize: 4 })
        assert.property(other, "problem")
        assert.property(yield* checkpoints.open("acme", signed(4, OTHERS).note), "problem")
        for (const text of ["", "a note", "alk/acme\n4\n"]) {
          assert.property(yield* checkpoints.open("acme", text), "unreadable")
        }
      })
    )
  )

  it.effect("come with proofs that verify, where the store can make them", () =>
    withStored([], (checkpoints) =>
      Effect.gen(function* () {
        const root = Buffer.from(signed(7).root_hash, "hex")
        for (const sequence of [1, 4, 7]) {
          const proof = (yield* checkpoints.inclusion("acme", sequence, 7, false))!
          const leaf = leafHash(hashes[sequence - 1]!)
          assert.isTrue(verifyInclusion({ leaf, index: sequence - 1, size: 7, root, proof }))
        }
        assert.isUndefined(yield* checkpoints.inclusion("acme", 3, 50, true))
      })
    )
  )
})
