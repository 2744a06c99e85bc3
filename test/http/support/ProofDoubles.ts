/**
 * Checkpoints and proofs of a test server: the real service over the chain of the world, with
 * stores in memory and switches for what may have been changed in them.
 */
import { Effect, Layer, type Redacted } from "effect"
import { PublishedKeys } from "../../../src/actors/follower/PublishedKeys.ts"
import { type CheckpointRecord, signerOf } from "../../../src/domain/chain/Checkpoint.ts"
import { leafHash, nodeHash } from "../../../src/domain/chain/MerkleTree.ts"
import { CheckpointStore } from "../../../src/ports/CheckpointStore.ts"
import { EventLog } from "../../../src/ports/EventLog.ts"
import { StoreUnavailable } from "../../../src/ports/EventStore.ts"
import { HashTree, TreeUnbuildable } from "../../../src/ports/HashTree.ts"
import { layerCheckpoints } from "../../../src/services/checkpoints/Checkpoints.ts"

export const SIGNER = signerOf("alk", Buffer.alloc(32, 1))
export const OTHER_SIGNER = signerOf("alk", Buffer.alloc(32, 2))

/** What the stores of the test hold. */
export class ProofWorld {
  /** What the projection has stored, in the order of the topic. */
  readonly stored: Array<CheckpointRecord> = []
  /** `hash` of each event by tenant, as it stands in the store. */
  readonly hashes = new Map<string, Array<string>>()
  /** Wrong nodes that were kept earlier. */
  readonly kept = new Map<string, Buffer>()
  readonly vkeys = [SIGNER.vkey]
  /** Published, but not known to this process yet. */
  readonly arrivingKeys: Array<string> = []
  /** How often a tree was dropped to be computed anew. */
  forgotten = 0
  /** How often the store was waited for. */
  waited = 0
  storeDown = false
  /** Runs when the store is waited for: what the projection does meanwhile. */
  catchUp: () => void = () => {}
}

const guarded = <A>(world: ProofWorld, answer: () => A) =>
  Effect.suspend(() =>
    world.storeDown
      ? Effect.fail(new StoreUnavailable({ operation: "test", cause: new Error("down") }))
      : Effect.sync(answer)
  )

const checkpointStore = (world: ProofWorld) => {
  const of = (tenantId: string) =>
    // The newest of a size first.
    world.stored
      .filter(({ tenant_id }) => tenant_id === tenantId)
      .toReversed()
      .toSorted((left, right) => right.tree_size - left.tree_size)
  return Layer.mock(CheckpointStore, {
    latest: (tenantId) => guarded(world, () => of(tenantId)[0]),
    ofSize: (tenantId, size) =>
      guarded(world, () => of(tenantId).filter(({ tree_size }) => tree_size === size)),
    list: (tenantId, { beforeSize = Infinity, limit }) =>
      guarded(world, () =>
        of(tenantId)
          .filter(({ tree_size }) => tree_size < beforeSize)
          .filter((one, index, all) => one.tree_size !== all[index - 1]?.tree_size)
          .slice(0, limit)
      )
  })
}

const hashTree = (world: ProofWorld) =>
  Layer.mock(HashTree, {
    nodes: (tenantId, nodes) =>
      Effect.suspend(() => {
        const hashes = world.hashes.get(tenantId) ?? []
        const missing = nodes.find(({ index, level }) => (index + 1) * 2 ** level > hashes.length)
        if (missing !== undefined) {
          const lastSequence = (missing.index + 1) * 2 ** missing.level
          return Effect.fail(new TreeUnbuildable({ firstSequence: lastSequence, lastSequence }))
        }
        const node = (level: number, index: number): Buffer =>
          world.kept.get(`${level}/${index}`)
          ?? (level === 0
            ? leafHash(hashes[index]!)
            : nodeHash(node(level - 1, 2 * index), node(level - 1, 2 * index + 1)))
        return Effect.succeed({ node, eventHash: (index: number) => hashes[index]! })
      }),
    leaves: (tree, first, end) =>
      Effect.suspend(() => {
        const hashes = (world.hashes.get(tree) ?? []).slice(first, end)
        return hashes.length === end - first
          ? Effect.succeed(hashes)
          : Effect.fail(
              new TreeUnbuildable({ firstSequence: first + hashes.length + 1, lastSequence: end })
            )
      }),
    forget: () =>
      Effect.sync(() => {
        world.forgotten += 1
        world.kept.clear()
      })
  })

const keysOf = (world: ProofWorld) =>
  Layer.succeed(PublishedKeys, {
    caughtUp: Effect.sync(() => {
      world.vkeys.push(...world.arrivingKeys.splice(0))
    }),
    all: Effect.sync(() =>
      world.vkeys.map((vkey) => {
        const [, keyId = "", base64 = ""] = vkey.split("+")
        const publicKey = Buffer.from(base64, "base64").subarray(1).toString("base64")
        const addedAt = "2026-01-01T00:00:00.000000Z"
        return { keyId, vkey, publicKey, trusted: "root" as const, addedAt }
      })
    ),
    refusal: () => Effect.succeed(undefined)
  })

/** A log that is asked where it ends: waiting for the store then lets the projection work. */
const logOf = (world: ProofWorld) =>
  Layer.mock(EventLog, {
    partitions: 1,
    bootstrap: "127.0.0.1:9092",
    partitionOf: () => 0,
    ends: (positions) =>
      Effect.sync(() => {
        world.waited += 1
        world.catchUp()
        return positions.map(() => 0)
      })
  })

/** Needs what the service asks the sequencer by, and the projection of the store. */
export const layerProofs = (world: ProofWorld, secret: Redacted.Redacted) => {
  const keys = keysOf(world)
  return layerCheckpoints({ secret, serviceName: "alk" }).pipe(
    Layer.provide([checkpointStore(world), hashTree(world), logOf(world)]),
    Layer.provideMerge(keys)
  )
}
