/**
 * A change of the signing key on a real broker: the old key endorses the new one and hands over every
 * tree, and what it signs afterwards is refused; so is a key that nothing endorses.
 */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Redacted } from "effect"
import { layerLogFollower } from "../../src/actors/follower/LogFollower.ts"
import { PublishedKeys } from "../../src/actors/follower/PublishedKeys.ts"
import { runSequencer } from "../../src/actors/sequencer/Sequencer.ts"
import {
  type CheckpointRecord,
  makeCheckpoint,
  openNote,
  type Signer,
  signerOf
} from "../../src/domain/chain/Checkpoint.ts"
import { nextKeyOf } from "../../src/domain/chain/KeyStandings.ts"
import { Frontier } from "../../src/domain/chain/MerkleTree.ts"
import {
  keyChanged,
  layerPublishedKeys,
  publishSigningKey
} from "../../src/services/checkpoints/SigningKeys.ts"
import { layerCommandLog } from "../../src/services/commands/CommandLog.ts"
import { asService } from "../support/Authenticated.ts"
import { commandRecord, ingestCommand } from "../support/Events.ts"
import { eventually } from "../support/Eventually.ts"
import { append, loseTopic, readAll } from "../support/Log.ts"
import { TEST_SECRET } from "../support/Program.ts"
import { topicCheckpoints, topicEvents, withView } from "./support/Evidence.ts"

const [a, b, c] = [1, 2, 3].map((seed) => signerOf("alk", Buffer.alloc(32, seed))) as [
  Signer,
  Signer,
  Signer
]
const secret = Redacted.make(TEST_SECRET)
const windows = { dedup: 100, idempotency: 100 }

/** A start of the service with a key, until so many events are there and the key is published. */
const started = (signer: Signer, events: number, previous?: Signer) =>
  Effect.raceFirst(
    runSequencer(
      0,
      { serviceName: "alk", signer, windows, ...(previous === undefined ? {} : { previous }) },
      () => Effect.void
    ),
    Effect.gen(function* () {
      yield* publishSigningKey(signer, secret, previous).pipe(Effect.provide(layerCommandLog))
      yield* eventually(
        `${events} events in the topic`,
        Effect.map(topicEvents, (all) =>
          all.filter(({ tenant_id }) => tenant_id !== "_system").map(({ id }) => id)
        ),
        ({ length }) => length >= events
      )
      yield* eventually(
        `the registry has the key ${signer.keyId}`,
        Effect.map(readAll("registry"), (records) => records.map(({ key }) => key?.toString())),
        (keys) => keys.includes(`signing_key/${signer.keyId}`)
      )
      yield* eventually(
        `the changelog says that ${signer.vkey} signs`,
        Effect.map(readAll("state"), (records) =>
          records
            .filter(({ key }) => key?.toString() === "signer")
            .map(({ value }) => value?.toString())
        ),
        (signers) => signers.some((one) => one?.includes(signer.vkey) === true)
      )
      if (previous !== undefined) yield* keyChanged(signer, previous)
    })
  )

const write = (tenantId: string, count: number) =>
  append([commandRecord(ingestCommand(tenantId, count))])

/** The hash of each event of a tenant. */
const treeOf = Effect.fnUntraced(function* (tenantId: string, size: number) {
  const tree = Frontier.empty()
  const own = (yield* topicEvents).filter(({ tenant_id }) => tenant_id === tenantId)
  for (const { hash } of own.slice(0, size)) tree.append(hash)
  return tree
})

/** What an API process says of a checkpoint by this key. */
const refusalOf = Effect.fnUntraced(function* (
  signer: Signer,
  tenantId: string,
  tree: Frontier,
  trusted: ReadonlyArray<string> = []
) {
  const keys = yield* Layer.build(
    Layer.fresh(layerPublishedKeys(trusted)).pipe(Layer.provide(Layer.fresh(layerLogFollower)))
  )
  const { note } = makeCheckpoint(signer, "alk", tenantId, tree, "2026-11-22T00:00:00.000000Z")
  const opened = openNote(note, [signer.vkey])
  assert("checkpoint" in opened)
  return yield* Context.get(keys, PublishedKeys).refusal(tenantId, opened.checkpoint)
}, Effect.scoped)

const handedOver = Effect.map(topicCheckpoints, (all) =>
  all.filter(({ note }) => note.includes("alk-next-key"))
)

const nextOf = (checkpoint: CheckpointRecord, signer: Signer): string | undefined => {
  const opened = openNote(checkpoint.note, [signer.vkey])
  return "checkpoint" in opened ? nextKeyOf(opened.checkpoint) : undefined
}

describe("a change of the signing key", () => {
  it.live("hands every tree over, and ends what the old key may sign", () =>
    withView((prefix) =>
      asService(
        { prefix },
        Effect.gen(function* () {
          yield* write("acme", 3)
          yield* write("other", 2)
          yield* started(a, 5)
          assert.isUndefined(yield* refusalOf(a, "acme", yield* treeOf("acme", 3)))
          yield* started(b, 5, a)
          const last = yield* handedOver
          assert.sameDeepMembers(
            last.map(({ key_id, tenant_id, tree_size }) => [tenant_id, tree_size, key_id]),
            [
              ["acme", 3, a.keyId],
              ["other", 2, a.keyId],
              ["_system", 1, a.keyId]
            ]
          )
          for (const one of last) assert.strictEqual(nextOf(one, a), b.vkey)
          yield* write("acme", 2)
          yield* write("late", 1)
          yield* started(b, 8, a)
          // Once only, whatever else starts with the same two keys.
          assert.lengthOf(yield* handedOver, 3)
          const [before, after] = [yield* treeOf("acme", 3), yield* treeOf("acme", 5)]
          assert.isUndefined(yield* refusalOf(a, "acme", before))
          assert.include(yield* refusalOf(a, "acme", after), "when the tree had 3 leaves, not 5")
          assert.include(
            yield* refusalOf(a, "late", yield* treeOf("late", 1)),
            "never signed this tree"
          )
          assert.isUndefined(yield* refusalOf(b, "acme", after))
          assert.isUndefined(yield* refusalOf(b, "late", yield* treeOf("late", 1)))
          // The trees are known to be handed over after the changelog is lost, too.
          yield* loseTopic(prefix, "state")
          yield* started(b, 8)
          assert.isUndefined(yield* refusalOf(a, "acme", before))
          assert.include(yield* refusalOf(a, "acme", after), "was replaced")
          const back = yield* Effect.flip(
            runSequencer(0, { serviceName: "alk", signer: a, windows }, () => Effect.void)
          )
          assert.include(String(back), "start this process with the newest key")
          yield* started(c, 8, b)
          assert.include(yield* refusalOf(a, "acme", after), "was replaced")
          assert.isUndefined(yield* refusalOf(b, "acme", after))
          assert.isUndefined(yield* refusalOf(c, "acme", after))
        })
      )
    )
  )

  it.live("without the old key is refused until the operator lists the new one", () =>
    withView((prefix) =>
      asService(
        { prefix },
        Effect.gen(function* () {
          yield* write("acme", 3)
          yield* started(a, 3)
          yield* started(b, 3)
          const tree = yield* treeOf("acme", 3)
          assert.include(yield* refusalOf(b, "acme", tree), "not endorsed by the key before it")
          assert.isUndefined(yield* refusalOf(b, "acme", tree, [b.vkey]))
          assert.isUndefined(yield* refusalOf(a, "acme", tree))
          assert.lengthOf(yield* handedOver, 0)
          // The old key is found again.
          yield* started(b, 3, a)
          assert.isUndefined(yield* refusalOf(b, "acme", tree))
          assert.lengthOf(yield* handedOver, 2)
        })
      )
    )
  )

  it.live(
    "leaves only the newest key believed where the registry with the line of keys is lost",
    () =>
      withView((prefix) =>
        asService(
          { prefix },
          Effect.gen(function* () {
            yield* write("acme", 3)
            yield* started(a, 3)
            yield* started(b, 3, a)
            yield* loseTopic(prefix, "registry")
            yield* write("acme", 1)
            yield* started(b, 4)
            const [before, after] = [yield* treeOf("acme", 3), yield* treeOf("acme", 4)]
            assert.isUndefined(yield* refusalOf(b, "acme", after))
            // Nothing says any more what the first key was.
            assert.isDefined(yield* refusalOf(a, "acme", before))
            assert.isDefined(yield* refusalOf(a, "acme", after))
          })
        )
      )
  )
})
