/**
 * The checkpoints that there are, each believed only if a published key has signed it and may have:
 * on the topic, in the store, and those that the sequencer has just signed.
 */
import { Clock, Effect } from "effect"
import { ChainEnds } from "../../actors/chainEnds/ChainEnds.ts"
import { newestGenuine } from "../../actors/chainEnds/GenuineCheckpoints.ts"
import { caughtUpWithin, type ShownTopic } from "../../actors/follower/CaughtUp.ts"
import { PublishedKeys } from "../../actors/follower/PublishedKeys.ts"
import type { ProjectionProgress } from "../../actors/log/ProjectionProgress.ts"
import { BoundedMap } from "../../domain/BoundedMap.ts"
import { chainOfTree } from "../../domain/chain/Chains.ts"
import {
  type CheckpointRecord,
  type OpenedNote,
  openNote,
  treeOfCheckpoint
} from "../../domain/chain/Checkpoint.ts"
import { matchesNote, openRecord } from "../../domain/chain/SignedRecord.ts"
import { CheckpointStore } from "../../ports/CheckpointStore.ts"
import type { EventLog, LogUnavailable } from "../../ports/EventLog.ts"
import { StoreUnavailable } from "../../ports/EventStore.ts"
import { type CheckpointMismatch, mismatch, ProofRefused } from "./CheckpointFailures.ts"

/** Trees whose newest checkpoint is remembered, and unknown keys. */
const REMEMBERED_MAX = 10_000
/** Time that the key of a checkpoint may take to be published. */
const KEY_TIMEOUT = "2 seconds"
const KEY_POLL = "50 millis"
/** Milliseconds in which a key that was waited for in vain is not waited for again. */
const UNKNOWN_KEY_PAUSE_MS = 60_000
/** Time that an answer waits for the store to hold what the log holds. */
const VISIBLE_TIMEOUT = "10 seconds"

const larger = (
  left: CheckpointRecord | undefined,
  right: CheckpointRecord | undefined
): CheckpointRecord | undefined =>
  (right?.tree_size ?? -1) > (left?.tree_size ?? -1) ? right : left

const noSuchCheckpoint = (field: string, treeSize: number): ProofRefused =>
  new ProofRefused({
    code: "not_found",
    field,
    message: `there is no checkpoint of size ${treeSize}; /v1/chain/checkpoints lists them`
  })

/** Succeeds once the store holds what the log holds of this tenant now. */
export const storeCaughtUp = (tenantId: string, topic: ShownTopic) =>
  caughtUpWithin(
    tenantId,
    topic,
    VISIBLE_TIMEOUT,
    (cause) => new StoreUnavailable({ operation: "proof", cause })
  )

const isUnknown = (opened: OpenedNote): boolean =>
  "refusal" in opened && opened.refusal === "unknown_key"

/** Opens notes with the published keys; waits for a new key to be published, if need be. */
const makeOpener = (keys: PublishedKeys["Service"]) => {
  const unknownKeys = new BoundedMap<number>(REMEMBERED_MAX)
  return Effect.fnUntraced(function* ({ key_id, note }: CheckpointRecord) {
    const open = Effect.map(keys.all, (all) =>
      openNote(
        note,
        all.map(({ vkey }) => vkey)
      )
    )
    const opened = yield* open
    if (!isUnknown(opened)) return opened
    yield* keys.caughtUp
    const now = yield* Clock.currentTimeMillis
    const isPaused = (unknownKeys.get(key_id) ?? 0) + UNKNOWN_KEY_PAUSE_MS >= now
    if (isUnknown(yield* open) && !isPaused) {
      // A new key may be about to be published: those that sign do not wait for that.
      yield* Effect.sleep(KEY_POLL).pipe(
        Effect.andThen(open),
        Effect.repeat({ until: (again) => !isUnknown(again) }),
        Effect.timeoutOption(KEY_TIMEOUT)
      )
      if (isUnknown(yield* open)) unknownKeys.set(key_id, now)
    }
    return yield* open
  })
}

/** `serviceName` is the origin of this service's notes. */
export const makeKnownCheckpoints = Effect.fnUntraced(function* (serviceName: string) {
  const context = yield* Effect.context<EventLog | ProjectionProgress>()
  const ends = yield* ChainEnds
  const keys = yield* PublishedKeys
  const store = yield* CheckpointStore
  const open = makeOpener(keys)
  /** What the sequencer has just signed may not have reached the store. */
  const signed = new BoundedMap<CheckpointRecord>(REMEMBERED_MAX)
  /** The largest checkpoint of a tree that was found to be genuine. */
  const genuine = new BoundedMap<CheckpointRecord>(REMEMBERED_MAX)

  /** A checkpoint that a published key has signed, and may have, for this tree, as it says. */
  const checked = Effect.fnUntraced(function* (
    tree: string,
    record: CheckpointRecord
  ): Effect.fn.Return<CheckpointRecord, CheckpointMismatch | LogUnavailable> {
    const opened = yield* open(record)
    if ("refusal" in opened) {
      return yield* mismatch(tree, record.tree_size, `its note is refused: ${opened.message}`)
    }
    if (!matchesNote(serviceName, tree, record, opened.checkpoint)) {
      return yield* mismatch(tree, record.tree_size, "it says other things than its signed note")
    }
    const refusal = yield* keys.refusal(tree, opened.checkpoint)
    if (refusal !== undefined) return yield* mismatch(tree, record.tree_size, refusal)
    genuine.set(tree, larger(genuine.get(tree), record) ?? record)
    return record
  })

  const newest = Effect.fnUntraced(function* (tree: string) {
    const published = yield* newestGenuine(ends, keys, serviceName, tree)
    const newest = larger(published?.record, signed.get(tree))
    return newest === undefined ? undefined : yield* checked(tree, newest)
  })

  /** The checkpoint of a size; one that was just made may still be on its way. */
  const ofSize = Effect.fnUntraced(function* (tree: string, treeSize: number, field: string) {
    const own = signed.get(tree)
    const known = own?.tree_size === treeSize ? own : yield* store.ofSize(tree, treeSize)
    if (known !== undefined) return yield* checked(tree, known)
    yield* storeCaughtUp(chainOfTree(tree).tenantId, "checkpoints")
    const arrived = yield* store.ofSize(tree, treeSize)
    if (arrived === undefined) return yield* noSuchCheckpoint(field, treeSize)
    return yield* checked(tree, arrived)
  }, Effect.provideContext(context))

  /** Rows that are not checkpoints of this tree are left out, and logged. */
  const list = Effect.fn("Checkpoints.list")(function* (
    tree: string,
    page: { readonly beforeSize?: number; readonly limit: number }
  ) {
    yield* keys.caughtUp
    const vkeys = (yield* keys.all).map(({ vkey }) => vkey)
    const records = yield* store.list(tree, page)
    const found: Array<CheckpointRecord> = []
    for (const record of records) {
      const opened = openRecord(serviceName, tree, record, vkeys)
      const refusal = opened && (yield* keys.refusal(tree, opened))
      if (opened !== undefined && refusal === undefined) found.push(record)
    }
    const forged = records.length - found.length
    if (forged > 0) {
      yield* Effect.logError("checkpoints in the store are not signed by this service", {
        tree,
        forged
      })
    }
    return found
  })

  return {
    checked,
    newest,
    ofSize,
    list,
    /** The largest one of a tree that was found to be genuine before; reads nothing. */
    lastGenuine: (tree: string) => genuine.get(tree),
    /** Remembers what the sequencer has just signed. */
    add: (record: CheckpointRecord) => signed.set(treeOfCheckpoint(record), record)
  }
})

export type KnownCheckpoints = Effect.Success<ReturnType<typeof makeKnownCheckpoints>>
