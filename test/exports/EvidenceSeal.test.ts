/** What the seal of a running service tells packs of its keys. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { PublishedKeys } from "../../src/actors/follower/PublishedKeys.ts"
import { TreeSigners } from "../../src/actors/follower/TreeSigners.ts"
import { type Signer, signerOf } from "../../src/domain/chain/Checkpoint.ts"
import { endorse } from "../../src/domain/chain/KeyLine.ts"
import { EvidenceSeal, layerEvidenceSeal } from "../../src/exports/EvidenceSeal.ts"
import { CheckpointStore } from "../../src/ports/CheckpointStore.ts"
import { HashTree } from "../../src/ports/HashTree.ts"
import { Checkpoints } from "../../src/services/checkpoints/Checkpoints.ts"
import { publishedKeys } from "../../src/services/checkpoints/SigningKeys.ts"

const [a, b, c, x] = [1, 2, 3, 9].map((seed) => signerOf("alk", Buffer.alloc(32, seed))) as [
  Signer,
  Signer,
  Signer,
  Signer
]
const T = "2026-11-20T00:00:00.000000Z"

const registered = ({ keyId, publicKey, vkey }: Signer, at: number, endorsement?: string) => ({
  key_id: keyId,
  vkey,
  public_key: publicKey,
  added_at: `2026-11-1${at}T00:00:00.000000Z`,
  root: at === 0,
  ...(endorsement === undefined ? {} : { endorsement })
})

/** a, then b, then c; nothing endorses x. */
const keys = publishedKeys(
  [
    registered(a, 0),
    registered(b, 1, endorse(a, b.vkey, T)),
    registered(x, 2),
    registered(c, 3, endorse(b, c.vkey, T))
  ],
  []
)

const sealed = (signer: Signer, handOvers: Readonly<Record<string, string>>, treeSigner?: Signer) =>
  layerEvidenceSeal(signer).pipe(
    Layer.provide([
      Layer.mock(Checkpoints, {}),
      Layer.mock(CheckpointStore, {}),
      Layer.mock(HashTree, {}),
      Layer.mock(PublishedKeys, { all: Effect.succeed(keys) }),
      Layer.mock(TreeSigners, {
        of: (tree, keyIds) =>
          Effect.succeed({
            handOvers: keyIds
              .map((keyId) => handOvers[`${keyId} ${tree}`])
              .filter((note) => note !== undefined),
            ...(treeSigner === undefined ? {} : { signer: treeSigner.vkey })
          })
      })
    ])
  )

describe("the seal", () => {
  it.effect("gives the keys that count in their order, with their endorsements", () =>
    Effect.gen(function* () {
      const seal = yield* EvidenceSeal
      assert.deepStrictEqual(yield* seal.keys, [
        { vkey: a.vkey },
        { vkey: b.vkey, endorsement: endorse(a, b.vkey, T) },
        { vkey: c.vkey, endorsement: endorse(b, c.vkey, T) }
      ])
    }).pipe(Effect.provide(sealed(c, {})))
  )

  it.effect("adds the key of this process while the registry does not know it", () =>
    Effect.gen(function* () {
      const seal = yield* EvidenceSeal
      assert.deepStrictEqual((yield* seal.keys).at(-1), { vkey: x.vkey })
    }).pipe(Effect.provide(sealed(x, {})))
  )

  it.effect("gives what each replaced key handed over of a tree, and who signs it now", () =>
    Effect.gen(function* () {
      const seal = yield* EvidenceSeal
      assert.deepStrictEqual(yield* seal.signers("acme"), {
        handOvers: [
          { vkey: a.vkey, note: "of a" },
          { vkey: b.vkey, note: "of b" }
        ],
        signer: c.vkey
      })
      assert.deepStrictEqual(yield* seal.signers("acme/traces"), {
        handOvers: [{ vkey: b.vkey, note: "of b's traces" }],
        signer: c.vkey
      })
    }).pipe(
      Effect.provide(
        sealed(
          c,
          {
            [`${a.keyId} acme`]: "of a",
            [`${b.keyId} acme`]: "of b",
            [`${c.keyId} acme`]: "of c, which nothing has replaced",
            [`${b.keyId} acme/traces`]: "of b's traces"
          },
          c
        )
      )
    )
  )

  it.effect("names the first key while no sequencer has said who signs", () =>
    Effect.gen(function* () {
      const seal = yield* EvidenceSeal
      assert.deepStrictEqual(yield* seal.signers("acme"), { handOvers: [], signer: a.vkey })
    }).pipe(Effect.provide(sealed(a, {})))
  )
})
