/** Keys become public once, before they sign, and a sequencer that is silent is not waited for. */
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { RegistryView } from "../../src/actors/Follower.ts"
import { ChainEnds } from "../../src/actors/ChainEnds.ts"
import { Heads } from "../../src/actors/Heads.ts"
import { PublishedKeys } from "../../src/actors/PublishedKeys.ts"
import { Receipts } from "../../src/actors/Receipts.ts"
import { noProgress, Visibility } from "../../src/actors/Visibility.ts"
import { signerOf } from "../../src/domain/Checkpoint.ts"
import type { Command } from "../../src/domain/Command.ts"
import { SYSTEM_TENANT } from "../../src/domain/Identifiers.ts"
import { decide } from "../../src/domain/Registry.ts"
import { RegistryTable } from "../../src/domain/RegistryTable.ts"
import { Checkpoints } from "../../src/pipeline/Checkpoints.ts"
import { CommandLog } from "../../src/pipeline/CommandLog.ts"
import { layerPublishedKeys, publishSigningKey } from "../../src/pipeline/SigningKeys.ts"
import { layerProofs, ProofWorld } from "../http/support/ProofDoubles.ts"

const [first, second] = [1, 2].map((seed) => signerOf("alk", Buffer.alloc(32, seed)))
const secret = Redacted.make("a secret of this test, 32 characters")

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
  return Effect.gen(function*() {
    for (const signer of [first!, first!, second!, first!]) {
      yield* publishSigningKey(signer, secret)
    }
    const keys = yield* Effect.flatMap(PublishedKeys, ({ all }) => all)
    assert.sameMembers(keys.map(({ vkey }) => vkey), [first!.vkey, second!.vkey])
    assert.sameMembers(keys.map(({ publicKey }) => publicKey), [
      first!.publicKey,
      second!.publicKey
    ])
    assert.deepStrictEqual(refusals, ["id_conflict", "id_conflict"])
  }).pipe(
    Effect.provide(Layer.mergeAll(deciding, layerPublishedKeys.pipe(Layer.provide(view))))
  )
})

it.effect("a checkpoint that nobody signs is given up after 10 seconds, and asked for again", () => {
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
    Layer.succeed(Visibility, {
      of: () => noProgress(0),
      partition: noProgress,
      reached: () => Effect.void
    })
  )
  return Effect.gen(function*() {
    const { latest } = yield* Checkpoints
    for (const round of [1, 2]) {
      const asking = yield* Effect.forkChild(
        Effect.flip(Effect.all([latest("acme"), latest("acme")], { concurrency: 2 }))
      )
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual((yield* Fiber.join(asking))._tag, "CheckpointTimedOut")
      assert.strictEqual(submitted, round)
    }
  }).pipe(
    Effect.provide(
      layerProofs(new ProofWorld(), secret).pipe(
        Layer.provide(silent)
      )
    )
  )
})
