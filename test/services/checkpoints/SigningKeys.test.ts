/** Keys become public once, before they sign, and a sequencer that is silent is not waited for. */
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { ChainEnds } from "../../../src/actors/chainEnds/ChainEnds.ts"
import { Heads } from "../../../src/actors/follower/Heads.ts"
import { RegistryView } from "../../../src/actors/follower/LogFollower.ts"
import { type PublishedKey, PublishedKeys } from "../../../src/actors/follower/PublishedKeys.ts"
import { Receipts } from "../../../src/actors/follower/Receipts.ts"
import { TreeSigners } from "../../../src/actors/follower/TreeSigners.ts"
import { ProjectionProgress } from "../../../src/actors/log/ProjectionProgress.ts"
import { type Signer, signerOf } from "../../../src/domain/chain/Checkpoint.ts"
import { SYSTEM_TENANT } from "../../../src/domain/Identifiers.ts"
import type { Command } from "../../../src/domain/records/Command.ts"
import { noProgress } from "../../../src/domain/records/Progress.ts"
import { decide } from "../../../src/domain/registry/Registry.ts"
import {
  readRegistryRecord,
  registryRecord,
  type SigningKey
} from "../../../src/domain/registry/RegistryEntry.ts"
import { RegistryTable } from "../../../src/domain/registry/RegistryTable.ts"
import { Checkpoints } from "../../../src/services/checkpoints/Checkpoints.ts"
import {
  layerPublishedKeys,
  publishedKeys,
  publishSigningKey
} from "../../../src/services/checkpoints/SigningKeys.ts"
import { CommandLog } from "../../../src/services/commands/CommandLog.ts"
import { layerProofs, ProofWorld } from "../../http/support/ProofDoubles.ts"

const [first, second] = [1, 2].map((seed) => signerOf("alk", Buffer.alloc(32, seed)))
const secret = Redacted.make("a secret of this test, 32 characters")

const nothingHandedOver = Layer.succeed(TreeSigners, {
  of: () => Effect.succeed({ handOvers: [] }),
  caughtUp: () => Effect.void
})

it.effect("a key is published once, and stays when another follows", () => {
  const registry = new RegistryTable()
  const refusals: Array<string> = []
  /** Decided at once, as the sequencer of the system tenant does. */
  const deciding = Layer.succeed(CommandLog, {
    submit: ({ operation, tenantId }: Command) =>
      Effect.sync(() => {
        assert.strictEqual(tenantId, SYSTEM_TENANT)
        const decision = decide(registry, operation!)
        if (decision.granted) registry.take(decision.entries)
        else refusals.push(decision.code)
      })
  })
  const view = Layer.succeed(RegistryView, {
    registry: () => registry,
    until: () => Effect.never,
    caughtUp: Effect.void
  })
  return Effect.gen(function* () {
    for (const signer of [first!, first!, second!, first!]) {
      yield* publishSigningKey(signer, secret)
    }
    const keys = yield* Effect.flatMap(PublishedKeys, ({ all }) => all)
    assert.sameMembers(
      keys.map(({ vkey }) => vkey),
      [first!.vkey, second!.vkey]
    )
    assert.sameMembers(
      keys.map(({ publicKey }) => publicKey),
      [first!.publicKey, second!.publicKey]
    )
    assert.deepStrictEqual(refusals, ["id_conflict", "id_conflict"])
  }).pipe(
    Effect.provide(
      Layer.mergeAll(deciding, layerPublishedKeys().pipe(Layer.provide([view, nothingHandedOver])))
    )
  )
})

/** Keys published one after the other, each by the key before it where that is given. */
const publishedOf = (
  steps: ReadonlyArray<readonly [Signer, Signer?]>,
  trusted: ReadonlyArray<string> = []
) => {
  const registry = new RegistryTable()
  const deciding = Layer.succeed(CommandLog, {
    submit: ({ operation }: Command) =>
      Effect.sync(() => {
        const decision = decide(registry, operation!)
        if (!decision.granted) return
        // As every process reads it back.
        for (const entry of decision.entries) {
          const { key, value } = registryRecord(entry)
          registry.take([readRegistryRecord(Buffer.from(key), Buffer.from(value!))!])
        }
      })
  })
  return Effect.gen(function* () {
    for (const [signer, previous] of steps) yield* publishSigningKey(signer, secret, previous)
    return publishedKeys(registry.signingKeys.values(), trusted)
  }).pipe(Effect.provide(deciding))
}

const trustOf = (keys: ReadonlyArray<PublishedKey>) => keys.map(({ trusted }) => trusted)

it.effect("the first key is the root, later ones count as the key before them says", () =>
  Effect.gen(function* () {
    const [a, b, c] = [first!, second!, signerOf("alk", Buffer.alloc(32, 3))]
    assert.deepStrictEqual(trustOf(yield* publishedOf([[a], [b]])), ["root", "unendorsed"])
    const rotated = yield* publishedOf([[a], [b, a], [c, b]])
    assert.deepStrictEqual(trustOf(rotated), ["root", "endorsed", "endorsed"])
    assert.deepStrictEqual(
      rotated.map(({ endorsedBy }) => endorsedBy),
      [undefined, a.keyId, b.keyId]
    )
    assert.isDefined(rotated[0]!.retiredAt)
    assert.isUndefined(rotated[2]!.retiredAt)
    // A key endorses one other key only, and a lost one can be made up for by the operator.
    assert.deepStrictEqual(trustOf(yield* publishedOf([[a], [b, a], [c, a]])), [
      "root",
      "endorsed",
      "unendorsed"
    ])
    assert.deepStrictEqual(trustOf(yield* publishedOf([[a], [b]], [b.vkey])), ["root", "listed"])
    // Endorsed later than published.
    assert.deepStrictEqual(trustOf(yield* publishedOf([[a], [b], [b, a]])), ["root", "endorsed"])
    // A key that was never published endorses nothing.
    assert.deepStrictEqual(trustOf(yield* publishedOf([[a], [b, c]])), ["root", "unendorsed"])
  })
)

it.effect("keys of a version without endorsements count as they did", () =>
  Effect.sync(() => {
    const added = (signer: Signer, added_at: string): SigningKey => ({
      key_id: signer.keyId,
      vkey: signer.vkey,
      public_key: signer.publicKey,
      added_at
    })
    const keys = [
      added(second!, "2026-01-02T00:00:00.000000Z"),
      added(first!, "2026-01-01T00:00:00.000000Z")
    ]
    assert.deepStrictEqual(trustOf(publishedKeys(keys, [])), ["root", "root"])
    const junk = { ...added(first!, "2026-01-03T00:00:00.000000Z"), vkey: "no key" }
    assert.lengthOf(publishedKeys([...keys, junk], []), 2)
  })
)

it.effect(
  "a checkpoint that nobody signs is given up after 10 seconds, and asked for again",
  () => {
    let submitted = 0
    const silent = Layer.mergeAll(
      Layer.mock(Heads, {
        head: () => Effect.succeed({ sequence_number: 3, hash: "", created_at: "" })
      }),
      Layer.mock(ChainEnds, { checkpoint: () => Effect.succeed(undefined) }),
      Layer.mock(Receipts, { expect: () => Effect.succeed(Effect.never) }),
      Layer.succeed(CommandLog, {
        submit: ({ kind }) =>
          Effect.sync(() => {
            assert.strictEqual(kind, "checkpoint")
            submitted += 1
          })
      }),
      Layer.succeed(ProjectionProgress, {
        of: () => noProgress(0),
        partition: noProgress,
        awaitOffset: () => Effect.void
      })
    )
    return Effect.gen(function* () {
      const { latest } = yield* Checkpoints
      for (const round of [1, 2]) {
        const asking = yield* Effect.forkChild(
          Effect.flip(Effect.all([latest("acme"), latest("acme")], { concurrency: 2 }))
        )
        yield* TestClock.adjust("10 seconds")
        assert.strictEqual((yield* Fiber.join(asking))._tag, "CheckpointTimedOut")
        assert.strictEqual(submitted, round)
      }
    }).pipe(Effect.provide(layerProofs(new ProofWorld(), secret).pipe(Layer.provide(silent))))
  }
)
