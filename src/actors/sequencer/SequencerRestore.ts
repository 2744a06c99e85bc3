/**
 * How a sequencer comes to its state: from the changelog if that agrees with the topics, from the
 * topics if the changelog is lost or unreadable, and not at all if the topics are behind.
 * Runs after the writer has fenced every other one, so nothing below moves while it reads.
 */
import { Effect } from "effect"
import { digestOfSum } from "../../domain/chain/HeadsDigest.ts"
import { SYSTEM_TENANT } from "../../domain/Identifiers.ts"
import { RecordUnreadable } from "../../domain/json/RecordFields.ts"
import { APPLIED_KEY, REPAIR_KEY } from "../../domain/records/StateRecords.ts"
import type {
  LogRecord,
  LogUnavailable,
  OffsetOutOfRange,
  WriterFenced
} from "../../ports/EventLog.ts"
import { type Malformed, reportMalformed, takeEach } from "../log/Malformed.ts"
import { scanUntil } from "../log/PartitionScan.ts"
import { readPlacement } from "../log/PlacementOfLog.ts"
import { RegistryIncomplete } from "../log/RegistryChanges.ts"
import { placeIn } from "./LastApplied.ts"
import {
  giveUp,
  type PartitionRefused,
  type Restoring,
  readRegistry,
  refuse,
  writeState
} from "./Restoring.ts"
import { type Outdated, rebuild } from "./SequencerRebuild.ts"
import {
  appliedRecord,
  emptyReplay,
  finishReplay,
  hasWindows,
  metaRecord,
  ownerRecord,
  type Replay,
  repairRecord,
  replay,
  type SequencerState,
  totalsOf,
  windowEnds
} from "./SequencerState.ts"
import { checkSigned } from "./SignedHistory.ts"
import { compareWithTopics } from "./TopicComparison.ts"

type RestoreFailure = LogUnavailable | OffsetOutOfRange | WriterFenced | PartitionRefused

/** Replay the changelog up to the record that this owner has just written. */
const readChangelog = (restoring: Restoring) =>
  Effect.gen(function* () {
    const { log, partition, reader, windows } = restoring
    const owner = crypto.randomUUID()
    yield* writeState(restoring, [ownerRecord(owner)])
    const gathered = emptyReplay(partition, log.partitions, windows)
    const keys = new Set<string>()
    /**
     * Keys of which compaction may have removed the record that counts: no good one has followed.
     */
    const doubtful = new Set<string>()
    const malformed: Array<Malformed> = []
    /** Another owner, who is not fenced yet, may write that it is one behind this record. */
    let isOwnRead = false
    const { start } = yield* log.bounds("state", partition)
    const position = { topic: "state" as const, partition, offset: start }
    const take = ({ key, value }: LogRecord) => {
      if (key === null) throw new RecordUnreadable("it has no key")
      const name = key.toString()
      if (value === null) keys.delete(name)
      else keys.add(name)
      replay(gathered, name, value)
      isOwnRead ||= gathered.owner === owner
      doubtful.delete(name)
    }
    const takeAll = (records: ReadonlyArray<LogRecord>) => {
      for (const record of records) {
        const refused = takeEach(position, [record], take)
        malformed.push(...refused)
        if (refused.length === 0 || record.key === null) continue
        doubtful.add(record.key.toString())
        keys.add(record.key.toString())
      }
    }
    yield* scanUntil(reader, position, takeAll, () => isOwnRead)
    yield* reportMalformed(malformed)
    const found = yield* compareTotals(gathered)
    return { gathered, keys, ...found, isDoubtful: doubtful.size > 0 }
  })

/**
 * What of the changelog is whole: another program's record of the same key makes compaction remove a
 * genuine one, and may be gone itself later.
 */
const compareTotals = Effect.fnUntraced(function* (replayed: Replay) {
  const { progress, state } = replayed
  const { heads, writers } = totalsOf(state)
  const found = { heads: digestOfSum(heads), writers, strays: state.strays.size }
  const written = {
    heads: progress?.heads_digest,
    writers: progress?.writers_total,
    strays: progress?.strays_total
  }
  const isSame = (name: keyof typeof found) => found[name] === written[name]
  const compared = {
    hasHeads: isSame("heads"),
    hasWriters: isSame("writers"),
    hasStrays: isSame("strays")
  }
  const { hasHeads, hasStrays, hasWriters } = compared
  const windows = hasWindows(replayed)
  const isWhole = hasHeads && hasWriters && hasStrays && windows
  if (!isWhole && progress !== undefined) {
    const { partition } = state
    yield* Effect.logError("alk.state does not add up to what was written there", {
      partition,
      found: { ...found, windows },
      written: { ...written, windows: true }
    })
  }
  return { ...compared, isWhole }
})

/** Written with a number of partitions that this installation has, or had. */
const checkPartitions = Effect.fnUntraced(function* (
  { log, partition }: Restoring,
  { partitions }: Replay
) {
  const { counts } = yield* log.placement
  if (partitions === undefined || partitions === log.partitions || counts.includes(partitions))
    return
  return yield* refuse(
    partition,
    `alk.state was written with ${partitions} partitions, the topics have ${log.partitions}: `
      + "set ALK_PARTITIONS back"
  )
})

/** What the changelog says counts no more: it is behind what the topics have lost. */
const giveUpChangelog = Effect.fnUntraced(function* (
  restoring: Restoring,
  { gathered, keys }: Outdated
) {
  const { log, partition, windows } = restoring
  yield* writeState(restoring, [{ key: APPLIED_KEY, value: null }])
  const nothing = emptyReplay(partition, log.partitions, windows)
  nothing.acceptsLoss = gathered.acceptsLoss
  nothing.state.signer = gathered.state.signer
  for (const [tree, one] of gathered.state.givenUp) nothing.state.givenUp.set(tree, one)
  for (const [writer, number] of gathered.state.writers) nothing.state.writers.set(writer, number)
  return { gathered: nothing, keys, hasHeads: false, hasWriters: false, hasStrays: false }
})

/** The state to go on from, agreed with the topics. */
export const restore = (restoring: Restoring): Effect.Effect<SequencerState, RestoreFailure> =>
  Effect.gen(function* () {
    const { log, partition } = restoring
    // A process that does not follow the registry hears of a growth when it gets a new partition.
    if (partition >= log.partitions) yield* readPlacement(log)
    const outdated = yield* readChangelog(restoring)
    const { gathered, isDoubtful, isWhole, keys } = outdated
    const { acceptsLoss } = gathered
    yield* checkPartitions(restoring, gathered)
    let state = finishReplay(gathered)
    const isBegun = gathered.progress !== undefined
    const changelog = !isBegun ? "none" : isWhole ? "whole" : "damaged"
    const comparison = yield* compareWithTopics(restoring, state, changelog)
    const isAhead = typeof comparison === "object"
    if (isAhead) {
      const lost = `the topics are behind alk.state: ${comparison.ahead}`
      yield* giveUp(partition, acceptsLoss, lost)
    }
    const receipts = yield* log.bounds("receipts", partition)
    const lost = !isBegun && receipts.end > 0
    if (isAhead) state = yield* rebuild(restoring, yield* giveUpChangelog(restoring, outdated))
    else if (comparison === "behind" || lost || isDoubtful) {
      state = yield* rebuild(restoring, outdated)
    } else if (!isBegun) {
      // From now on everything in the topics that is not the sequencer's is known as such.
      yield* writeState(restoring, [
        metaRecord(log.partitions),
        appliedRecord(state, windowEnds(state))
      ])
    }
    if (log.partitionOf(SYSTEM_TENANT) === partition) {
      const { registry, registryContent } = state
      yield* readRegistry(restoring, registry, registryContent)
      const { start } = yield* log.bounds("registry", 0)
      if (registryContent.isIncomplete(start)) {
        return yield* refuse(partition, RegistryIncomplete.text)
      }
    }
    yield* checkSigned(restoring, state, acceptsLoss)
    const applied = yield* placeIn(restoring, acceptsLoss, state.applied)
    if (applied !== state.applied) {
      state.applied = applied
      yield* writeState(restoring, [appliedRecord(state, windowEnds(state))])
    }
    if (keys.has(REPAIR_KEY)) yield* writeState(restoring, [repairRecord(undefined)])
    return state
  })
