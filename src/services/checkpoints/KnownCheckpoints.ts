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
import { defined } from "../../domain/Defined.ts"
import { nextTurn } from "../../domain/InSlices.ts"
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
/** Sizes of which the newest record is not genuine, after which a page ends short. */
const FORGED_MAX = 100
/** Time that an answer waits for the store to hold what the log holds. */
const VISIBLE_TIMEOUT = "10 seconds"

export interface CheckpointPage {
  /** The newest genuine one of each size, largest tree first. */
  readonly checkpoints: ReadonlyArray<CheckpointRecord>
  /** Where the next page begins; none where this is the last. A page may be short before that. */
  readonly beforeSize?: number
}

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

  /** The first that is genuine as far as keys are known; with a turn for others after each. */
  const firstGenuine = Effect.fnUntraced(function* (
    tree: string,
    records: ReadonlyArray<CheckpointRecord>
  ) {
    const vkeys = (yield* keys.all).map(({ vkey }) => vkey)
    for (const record of records) {
      const opened = openRecord(serviceName, tree, record, vkeys)
      if (opened !== undefined && (yield* keys.refusal(tree, opened)) === undefined) return record
      yield* nextTurn
    }
    return undefined
  })

  const ofSizeInStore = Effect.fnUntraced(function* (tree: string, treeSize: number) {
    const records = yield* store.ofSize(tree, treeSize)
    // The key of the newest may be about to be published.
    const record = (yield* firstGenuine(tree, records)) ?? records[0]
    return record && (yield* checked(tree, record))
  })

  /** The checkpoint of a size; one that was just made may still be on its way. */
  const ofSize = Effect.fnUntraced(function* (tree: string, treeSize: number, field: string) {
    const own = signed.get(tree)
    if (own?.tree_size === treeSize) return yield* checked(tree, own)
    const known = yield* ofSizeInStore(tree, treeSize)
    if (known !== undefined) return known
    yield* storeCaughtUp(chainOfTree(tree).tenantId, "checkpoints")
    const arrived = yield* ofSizeInStore(tree, treeSize)
    return arrived ?? (yield* noSuchCheckpoint(field, treeSize))
  }, Effect.provideContext(context))

  /** Records of this tree that are not genuine are left out, and logged. */
  const list = Effect.fn("Checkpoints.list")(function* (
    tree: string,
    { beforeSize, limit }: { readonly beforeSize?: number; readonly limit: number }
  ): Effect.fn.Return<CheckpointPage, LogUnavailable | StoreUnavailable> {
    yield* keys.caughtUp
    const checkpoints: Array<CheckpointRecord> = []
    let before = beforeSize
    let forged = 0
    let isOver = false
    while (!isOver && checkpoints.length < limit && forged < FORGED_MAX) {
      const page = yield* store.list(tree, { limit, ...defined({ beforeSize: before }) })
      isOver = page.length < limit
      for (const record of page.slice(0, limit - checkpoints.length)) {
        if (forged >= FORGED_MAX) break
        before = record.tree_size
        let genuine = yield* firstGenuine(tree, [record])
        if (genuine === undefined) {
          forged += 1
          genuine = yield* firstGenuine(tree, yield* store.ofSize(tree, record.tree_size))
        }
        if (genuine !== undefined) checkpoints.push(genuine)
      }
      // What a page before this one has left over comes again.
      isOver &&= page.at(-1)?.tree_size === before || page.length === 0
    }
    if (forged > 0) {
      yield* Effect.logError("checkpoints in the store are not signed by this service", {
        tree,
        forged
      })
    }
    return { checkpoints, ...(isOver ? {} : defined({ beforeSize: before })) }
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
