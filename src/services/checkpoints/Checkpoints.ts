/**
 * Signed checkpoints and the proofs that refer to them. Asks the sequencer for a checkpoint when
 * the chain has grown since the newest one; makes proofs of what the store holds, and lets none out
 * that does not lead to a root that one of the published keys has signed.
 */
import { Clock, Context, Deferred, Effect, Layer, Option, Redacted, Result, Schema } from "effect"
import { ChainEnds } from "../../actors/chainEnds/ChainEnds.ts"
import {
  newestGenuine,
  openRecord,
  saysItsNote
} from "../../actors/chainEnds/GenuineCheckpoints.ts"
import { isCaughtUp } from "../../actors/follower/CaughtUp.ts"
import { Heads, headOf } from "../../actors/follower/Heads.ts"
import { PublishedKeys } from "../../actors/follower/PublishedKeys.ts"
import type { Receipts } from "../../actors/follower/Receipts.ts"
import type { Visibility } from "../../actors/log/Visibility.ts"
import { type Chain, chainOfTree } from "../../domain/chain/Chains.ts"
import {
  type CheckpointRecord,
  type OpenedNote,
  openNote,
  treeOfCheckpoint
} from "../../domain/chain/Checkpoint.ts"
import {
  consistencyParts,
  hashesOf,
  inclusionParts,
  leafHash,
  type TreeNode,
  verifyConsistency,
  verifyInclusion
} from "../../domain/chain/MerkleTree.ts"
import {
  leavesUpTo,
  nodesBeside,
  nodesOfTile,
  rootWithTile,
  TILE_WIDTH,
  type Tile
} from "../../domain/chain/Tile.ts"
import { makeReceiptId, uuidv7 } from "../../domain/Identifiers.ts"
import type { Command } from "../../domain/records/Command.ts"
import { formatMicros, nowMicros } from "../../domain/Timestamp.ts"
import { CheckpointStore } from "../../ports/CheckpointStore.ts"
import type { EventLog, LogUnavailable } from "../../ports/EventLog.ts"
import { StoreUnavailable } from "../../ports/EventStore.ts"
import { HashTree, type TreeUnbuildable } from "../../ports/HashTree.ts"
import { decided } from "../administration/Decide.ts"
import type { CommandLog } from "../commands/CommandLog.ts"

/** What is asked for can't be proven: it is not there, or not within the checkpoint. */
export class ProofRefused extends Schema.TaggedError<ProofRefused>()("ProofRefused", {
  code: Schema.Literals(["not_found", "invalid_range"]),
  /** The parameter at fault. */
  field: Schema.optionalKey(Schema.String),
  message: Schema.String
}) {}

/**
 * What the store holds does not lead to the signed checkpoint, or the checkpoint in the store was
 * not signed by this service: one of the two was changed. Never answered with a proof.
 */
export class CheckpointMismatch extends Schema.TaggedError<CheckpointMismatch>()(
  "CheckpointMismatch",
  { tree: Schema.String, treeSize: Schema.Int, reason: Schema.String }
) {
  override get message(): string {
    return `checkpoint_mismatch: the checkpoint of size ${this.treeSize}: ${this.reason}`
  }
}

/** The sequencer did not sign in time; it may still do so. */
export class CheckpointTimedOut extends Schema.TaggedError<CheckpointTimedOut>()(
  "CheckpointTimedOut",
  { message: Schema.String }
) {}

/** Time that a request for a checkpoint waits for the sequencer. */
const DECISION_TIMEOUT = "10 seconds"
/** Time that an answer waits for the store to hold what the log holds. */
const VISIBLE_TIMEOUT = "10 seconds"
/** Time that the key of a checkpoint may take to be published. */
const KEY_TIMEOUT = "2 seconds"
const KEY_POLL = "50 millis"
/** Milliseconds in which a key that was waited for in vain is not waited for again. */
const UNKNOWN_KEY_PAUSE_MS = 60_000
/** Milliseconds in which a tree that did not lead to its checkpoint is not computed once more. */
const RECOMPUTE_PAUSE_MS = 60_000
/** Trees whose newest checkpoint, or last mismatch, is remembered, and unknown keys. */
const REMEMBERED_MAX = 10_000

export interface InclusionProof {
  readonly checkpoint: CheckpointRecord
  readonly sequenceNumber: number
  /** `hash` of the event or fact, 64 hex digits. */
  readonly eventHash: string
  /** Siblings from the leaf upwards, 64 hex digits each. */
  readonly proof: ReadonlyArray<string>
}

export interface ConsistencyProof {
  readonly first: CheckpointRecord
  readonly second: CheckpointRecord
  /** As RFC 9162 orders them, 64 hex digits each. */
  readonly proof: ReadonlyArray<string>
}

export interface ProvenTile {
  /** One per place of the tile, from the first one on. */
  readonly hashes: ReadonlyArray<Buffer>
  /** The stored `hash`, 64 hex digits, behind each leaf of a tile of level 0; else empty. */
  readonly entries: ReadonlyArray<string>
}

type Failure =
  | CheckpointMismatch
  | CheckpointTimedOut
  | LogUnavailable
  | ProofRefused
  | StoreUnavailable

/** A part of a tree as the store holds it. */
type StoreRead<S> = Effect.Effect<S, StoreUnavailable | TreeUnbuildable>

type Answer<A> = Effect.Effect<A, Failure>

/** `tree` is the name of a tree, see domain/Chains. */
export class Checkpoints extends Context.Service<
  Checkpoints,
  {
    /** The newest one that there is; undefined if there is none. Signs nothing. */
    held(tree: string): Answer<CheckpointRecord | undefined>
    /** One of the whole chain as it is, signed now if need be. */
    latest(tree: string): Answer<CheckpointRecord>
    /** Largest tree first; `beforeSize` is exclusive. */
    list(
      tree: string,
      page: { readonly beforeSize?: number; readonly limit: number }
    ): Answer<ReadonlyArray<CheckpointRecord>>
    /** That a leaf is part of the tree of a checkpoint, the newest one if no size is given. */
    inclusion(tree: string, sequenceNumber: number, treeSize?: number): Answer<InclusionProof>
    /** A tile as the store holds it now, which leads to the root of a signed checkpoint. */
    tile(tree: string, tile: Tile): Answer<ProvenTile>
    /** That one checkpoint's tree is the beginning of the other's, the newest one if not given. */
    consistency(tree: string, first: number, second?: number): Answer<ConsistencyProof>
  }
>()("alk/Checkpoints") {}

export interface CheckpointSettings {
  readonly secret: Redacted.Redacted
  readonly serviceName: string
}

/** The last `REMEMBERED_MAX` values. */
class Remembered<A> {
  readonly #values = new Map<string, A>()

  get(key: string): A | undefined {
    return this.#values.get(key)
  }

  set(key: string, value: A): void {
    this.#values.delete(key)
    if (this.#values.size >= REMEMBERED_MAX) this.#values.delete(this.#values.keys().next().value!)
    this.#values.set(key, value)
  }

  delete(key: string): void {
    this.#values.delete(key)
  }
}

const larger = (
  left: CheckpointRecord | undefined,
  right: CheckpointRecord | undefined
): CheckpointRecord | undefined =>
  (right?.tree_size ?? -1) > (left?.tree_size ?? -1) ? right : left

const toHex = (hashes: ReadonlyArray<Buffer>): ReadonlyArray<string> =>
  hashes.map((hash) => hash.toString("hex"))

const rootOf = ({ root_hash }: CheckpointRecord): Buffer => Buffer.from(root_hash, "hex")

/** What the leaves of a tree are. */
const nounOf = (tree: string): string =>
  chainOfTree(tree).chain === "events" ? "event" : "trace fact"

const noSuchCheckpoint = (field: string, treeSize: number): ProofRefused =>
  new ProofRefused({
    code: "not_found",
    field,
    message: `there is no checkpoint of size ${treeSize}; /v1/chain/checkpoints lists them`
  })

const make = Effect.fnUntraced(function* (settings: CheckpointSettings) {
  const context = yield* Effect.context<CommandLog | EventLog | Receipts | Visibility>()
  const ends = yield* ChainEnds
  const heads = yield* Heads
  const keys = yield* PublishedKeys
  const store = yield* CheckpointStore
  const hashTree = yield* HashTree
  const secret = Redacted.value(settings.secret)
  /** What the sequencer has just signed may not have reached the store. */
  const signed = new Remembered<CheckpointRecord>()
  /** The largest checkpoint of a tree that was found to be genuine. */
  const genuine = new Remembered<CheckpointRecord>()
  const asking = new Map<string, Deferred.Deferred<CheckpointRecord, Failure>>()
  const mismatches = new Remembered<number>()
  const unknownKeys = new Remembered<number>()

  const mismatch = Effect.fnUntraced(function* (tree: string, treeSize: number, reason: string) {
    const failure = new CheckpointMismatch({ tree, treeSize, reason })
    yield* Effect.logError(failure.message, { tree })
    return yield* failure
  })

  /** A checkpoint that a published key has signed, and may have, for this tree, as it says. */
  const checked = Effect.fnUntraced(function* (
    tree: string,
    record: CheckpointRecord
  ): Effect.fn.Return<CheckpointRecord, CheckpointMismatch | LogUnavailable> {
    const open = Effect.map(keys.all, (all) =>
      openNote(
        record.note,
        all.map(({ vkey }) => vkey)
      )
    )
    const isUnknown = (opened: OpenedNote) =>
      "refusal" in opened && opened.refusal === "unknown_key"
    let opened = yield* open
    if (isUnknown(opened)) {
      yield* keys.caughtUp
      opened = yield* open
    }
    const now = yield* Clock.currentTimeMillis
    if (isUnknown(opened) && (unknownKeys.get(record.key_id) ?? 0) + UNKNOWN_KEY_PAUSE_MS < now) {
      // A new key may be about to be published: those that sign do not wait for that.
      yield* Effect.sleep(KEY_POLL).pipe(
        Effect.andThen(open),
        Effect.repeat({ until: (again) => !isUnknown(again) }),
        Effect.timeoutOption(KEY_TIMEOUT)
      )
      opened = yield* open
      if (isUnknown(opened)) unknownKeys.set(record.key_id, now)
    }
    if ("refusal" in opened) {
      return yield* mismatch(tree, record.tree_size, `its note is refused: ${opened.message}`)
    }
    if (!saysItsNote(settings.serviceName, tree, record, opened.checkpoint)) {
      return yield* mismatch(tree, record.tree_size, "it says other things than its signed note")
    }
    const refusal = yield* keys.refusal(tree, opened.checkpoint)
    if (refusal !== undefined) return yield* mismatch(tree, record.tree_size, refusal)
    genuine.set(tree, larger(genuine.get(tree), record) ?? record)
    return record
  })

  const held = (tree: string) =>
    Effect.gen(function* () {
      const published = yield* newestGenuine(ends, keys, settings.serviceName, tree)
      const newest = larger(published?.record, signed.get(tree))
      return newest === undefined ? undefined : yield* checked(tree, newest)
    })

  const sign = Effect.fnUntraced(function* (tree: string) {
    const { chain, tenantId } = chainOfTree(tree)
    const command: Command = {
      kind: "checkpoint",
      tenantId,
      receiptId: makeReceiptId(secret, tenantId, uuidv7()),
      attempt: crypto.randomUUID(),
      receivedAt: formatMicros(nowMicros()),
      events: [],
      errors: [],
      warnings: []
    }
    const receipt = yield* decided(command, "checkpoint", DECISION_TIMEOUT).pipe(
      Effect.provideContext(context)
    )
    if (Option.isNone(receipt)) {
      return yield* new CheckpointTimedOut({ message: "no sequencer has signed in time" })
    }
    const { checkpoint: ofEvents, trace_checkpoint: ofTraces } = receipt.value
    for (const made of [ofEvents, ofTraces]) {
      if (made !== undefined) signed.set(treeOfCheckpoint(made), made)
    }
    const checkpoint = chain === "events" ? ofEvents : ofTraces
    if (checkpoint === undefined) {
      const message = "no checkpoint of this chain can be made: its start has left the log"
      return yield* new ProofRefused({ code: "not_found", message })
    }
    return yield* checked(tree, checkpoint)
  })

  /** One command at a time and tree; requests that come meanwhile share its answer. */
  const ask = (tree: string): Answer<CheckpointRecord> =>
    Effect.suspend(() => {
      const running = asking.get(tree)
      if (running !== undefined) return Deferred.await(running)
      const answer = Deferred.makeUnsafe<CheckpointRecord, Failure>()
      asking.set(tree, answer)
      return sign(tree).pipe(
        Effect.ensuring(Effect.sync(() => asking.delete(tree))),
        Deferred.into(answer),
        // Not a child: others may wait for it when the first one has gone.
        Effect.forkDetach,
        Effect.andThen(Deferred.await(answer))
      )
    })

  const latest = Effect.fn("Checkpoints.latest")(function* (
    tree: string
  ): Effect.fn.Return<CheckpointRecord, Failure> {
    const head = yield* headOf(heads, chainOfTree(tree))
    if (head === undefined) {
      return yield* new ProofRefused({ code: "not_found", message: "the chain is empty" })
    }
    const newest = yield* held(tree)
    if (newest !== undefined && newest.tree_size >= head.sequence_number) return newest
    const asked = yield* ask(tree)
    // Another request may have asked before this chain had grown.
    return asked.tree_size >= head.sequence_number ? asked : yield* ask(tree)
  })

  /** The store holds what the log holds of this tenant now. */
  const caughtUp = Effect.fnUntraced(function* (tenantId: string, topic: "checkpoints" | Chain) {
    if (yield* isCaughtUp(tenantId, topic, VISIBLE_TIMEOUT)) return
    const cause = new Error(`the store has not caught up with the ${topic}`)
    return yield* new StoreUnavailable({ operation: "proof", cause })
  }, Effect.provideContext(context))

  /** The checkpoint of a size; one that was just made may still be on its way. */
  const ofSize = Effect.fnUntraced(function* (tree: string, treeSize: number, field: string) {
    const own = signed.get(tree)
    const known = own?.tree_size === treeSize ? own : yield* store.ofSize(tree, treeSize)
    if (known !== undefined) return yield* checked(tree, known)
    yield* caughtUp(chainOfTree(tree).tenantId, "checkpoints")
    const arrived = yield* store.ofSize(tree, treeSize)
    if (arrived === undefined) return yield* noSuchCheckpoint(field, treeSize)
    return yield* checked(tree, arrived)
  })

  /** The newest checkpoint, or if it doesn't reach this far, one that is made now. */
  const reaching = Effect.fnUntraced(function* (tree: string, sequenceNumber: number) {
    const newest = yield* held(tree)
    if (newest !== undefined && newest.tree_size >= sequenceNumber) return newest
    return yield* latest(tree)
  })

  /** What `build` makes of what is read, or why that does not hold. */
  const attempt = <S, A>(tree: string, read: StoreRead<S>, build: (stored: S) => A | undefined) =>
    read.pipe(
      Effect.map((stored) => {
        const built = build(stored)
        return built === undefined
          ? Result.fail(`the stored ${chainOfTree(tree).chain} do not lead to its root`)
          : Result.succeed(built)
      }),
      Effect.catchTag("TreeUnbuildable", ({ firstSequence, lastSequence }) =>
        Effect.succeed(
          Result.fail(
            `the store does not hold one hash for each of ${firstSequence} to ${lastSequence}`
          )
        )
      )
    )

  /** A proof that holds: of what is stored, else of what is stored once it is all there, anew. */
  const proven = Effect.fnUntraced(function* <S, A>(
    tree: string,
    { tree_size }: CheckpointRecord,
    read: StoreRead<S>,
    build: (stored: S) => A | undefined
  ): Effect.fn.Return<A, Failure> {
    const first = yield* attempt(tree, read, build)
    if (Result.isSuccess(first)) return first.success
    const { chain, tenantId } = chainOfTree(tree)
    yield* caughtUp(tenantId, chain)
    const second = yield* attempt(tree, read, build)
    if (Result.isSuccess(second)) return second.success
    const now = yield* Clock.currentTimeMillis
    if ((mismatches.get(tree) ?? 0) + RECOMPUTE_PAUSE_MS > now) {
      return yield* mismatch(tree, tree_size, second.failure)
    }
    yield* hashTree.forget(tree)
    const third = yield* attempt(tree, read, build)
    if (Result.isFailure(third)) {
      mismatches.set(tree, now)
      return yield* mismatch(tree, tree_size, third.failure)
    }
    mismatches.delete(tree)
    yield* Effect.logError("what was kept of a Merkle tree was wrong and has been made anew", {
      tree
    })
    return third.success
  })

  const inclusion: Checkpoints["Service"]["inclusion"] = Effect.fn("Checkpoints.inclusion")(
    function* (tree, sequenceNumber, treeSize) {
      const checkpoint =
        treeSize === undefined
          ? yield* reaching(tree, sequenceNumber)
          : yield* ofSize(tree, treeSize, "tree_size")
      const size = checkpoint.tree_size
      if (sequenceNumber > size) {
        return yield* treeSize === undefined
          ? new ProofRefused({ code: "not_found", message: `there is no such ${nounOf(tree)}` })
          : new ProofRefused({
              code: "invalid_range",
              field: "sequence_number",
              message: `lies behind the ${size} ${nounOf(tree)}s of the checkpoint`
            })
      }
      const index = sequenceNumber - 1
      const parts = inclusionParts(index, size)
      const root = rootOf(checkpoint)
      const nodes = [{ level: 0, index }, ...parts.flat()]
      const read = hashTree.nodes(tree, nodes)
      const { eventHash, proof } = yield* proven(tree, checkpoint, read, (stored) => {
        const proof = hashesOf(parts, stored.node)
        const eventHash = stored.eventHash(index)
        return verifyInclusion({ leaf: leafHash(eventHash), index, size, root, proof })
          ? { eventHash, proof: toHex(proof) }
          : undefined
      })
      return { checkpoint, sequenceNumber, eventHash, proof }
    }
  )

  const consistency: Checkpoints["Service"]["consistency"] = Effect.fn("Checkpoints.consistency")(
    function* (tree, firstSize, secondSize) {
      if (secondSize !== undefined && firstSize > secondSize) {
        return yield* new ProofRefused({
          code: "invalid_range",
          field: "first",
          message: "is larger than second"
        })
      }
      const first = yield* ofSize(tree, firstSize, "first")
      const second =
        secondSize === undefined
          ? ((yield* held(tree)) ?? first)
          : yield* ofSize(tree, secondSize, "second")
      const parts = consistencyParts(first.tree_size, second.tree_size)
      const read = hashTree.nodes(tree, parts.flat())
      const proof = yield* proven(tree, second, read, (stored) => {
        const proof = hashesOf(parts, stored.node)
        const isConsistent = verifyConsistency({
          first: first.tree_size,
          firstRoot: rootOf(first),
          second: second.tree_size,
          secondRoot: rootOf(second),
          proof
        })
        return isConsistent ? toHex(proof) : undefined
      })
      return { first, second, proof }
    }
  )

  /** A checkpoint whose tree has the tile, not necessarily the newest one. */
  const covering = Effect.fnUntraced(function* (tree: string, tile: Tile) {
    const known = genuine.get(tree)
    if (known !== undefined && known.tree_size >= leavesUpTo(tile)) return known
    const newest = yield* held(tree)
    if (newest !== undefined && newest.tree_size >= leavesUpTo(tile)) return newest
    const size = newest?.tree_size ?? 0
    const message = `the newest signed checkpoint is of size ${size}, which has no such tile`
    return yield* new ProofRefused({ code: "not_found", message })
  })

  /** The hashes of a tile and of the nodes beside it. */
  const readTile = (tree: string, tile: Tile, beside: ReadonlyArray<TreeNode>) => {
    if (tile.level > 0) {
      const own = nodesOfTile(tile)
      return Effect.map(hashTree.nodes(tree, [...own, ...beside]), ({ node }) => {
        const hashes = own.map(({ index, level }) => node(level, index))
        return { hashes, entries: [], node }
      })
    }
    // Not from memory: a reader of entries wants to know what is stored.
    const first = tile.index * TILE_WIDTH
    const entries = hashTree.leaves(tree, first, first + tile.width)
    return Effect.zipWith(entries, hashTree.nodes(tree, beside), (entries, { node }) => ({
      hashes: entries.map(leafHash),
      entries,
      node
    }))
  }

  const tile: Checkpoints["Service"]["tile"] = Effect.fn("Checkpoints.tile")(
    function* (tree, asked) {
      const checkpoint = yield* covering(tree, asked)
      const size = checkpoint.tree_size
      const read = readTile(tree, asked, nodesBeside(asked, size))
      return yield* proven(tree, checkpoint, read, ({ entries, hashes, node }) =>
        rootWithTile(asked, hashes, size, node).equals(rootOf(checkpoint))
          ? { hashes, entries }
          : undefined
      )
    }
  )

  /** Rows that are no checkpoints of this tree are left out, and logged. */
  const list: Checkpoints["Service"]["list"] = Effect.fn("Checkpoints.list")(
    function* (tree, page) {
      yield* keys.caughtUp
      const vkeys = (yield* keys.all).map(({ vkey }) => vkey)
      const records = yield* store.list(tree, page)
      const genuine: Array<CheckpointRecord> = []
      for (const record of records) {
        const opened = openRecord(settings.serviceName, tree, record, vkeys)
        const refusal = opened && (yield* keys.refusal(tree, opened))
        if (opened !== undefined && refusal === undefined) genuine.push(record)
      }
      const forged = records.length - genuine.length
      if (forged > 0) {
        yield* Effect.logError("checkpoints in the store are not signed by this service", {
          tree,
          forged
        })
      }
      return genuine
    }
  )

  return Checkpoints.of({
    held,
    latest,
    list,
    inclusion,
    tile,
    consistency
  })
})

/** Checkpoints signed by the sequencers, proofs made of the store. */
export const layerCheckpoints = (
  settings: CheckpointSettings
): Layer.Layer<
  Checkpoints,
  never,
  | ChainEnds
  | CheckpointStore
  | CommandLog
  | EventLog
  | HashTree
  | Heads
  | PublishedKeys
  | Receipts
  | Visibility
> => Layer.effect(Checkpoints, make(settings))
