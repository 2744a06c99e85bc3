/**
 * Makes the state of a partition from the topics: where its changelog is behind, lost or can't be
 * read.
 */
import { Effect } from "effect"
import type { ChainLink } from "../../domain/chain/ChainLink.ts"
import {
  type Chain,
  chainOfTree,
  chains,
  type Head,
  treeNameOf
} from "../../domain/chain/Chains.ts"
import { digestOfSum, sumOfHeads } from "../../domain/chain/HeadsDigest.ts"
import type { Frontier } from "../../domain/chain/MerkleTree.ts"
import { RecordFields } from "../../domain/json/RecordFields.ts"
import { type Command, dedupKeyOf } from "../../domain/records/Command.ts"
import { decodeCommand, formatIn } from "../../domain/records/CommandBytes.ts"
import { readWriterPosition } from "../../domain/records/CommandWriter.ts"
import { eventsOf } from "../../domain/records/EventBatch.ts"
import { type StrayRange, Strays } from "../../domain/records/OwnOffsets.ts"
import { WRITER_HEADER } from "../../domain/records/RecordHeaders.ts"
import {
  type Adopted,
  OWNER_KEY,
  REPAIR_KEY,
  type WindowEntry
} from "../../domain/records/StateRecords.ts"
import { FORMAT_HEADER } from "../../domain/records/Topics.ts"
import { currentTime, microsOf } from "../../domain/Timestamp.ts"
import { parseFact } from "../../domain/traces/FactText.ts"
import { traceEventKeyOf } from "../../domain/traces/TraceOperation.ts"
import { type LogRecord, LogUnavailable } from "../../ports/EventLog.ts"
import { linkOfRecord } from "../log/ChainRecord.ts"
import { scan, scanAll } from "../log/PartitionScan.ts"
import { readPlacement } from "../log/PlacementOfLog.ts"
import { readApplied } from "./LastApplied.ts"
import { isPlacedHere } from "./Misplaced.ts"
import { PackedWindow } from "./PackedWindow.ts"
import {
  giveUp,
  isNewer,
  newerFormat,
  type PartitionRefused,
  type Restoring,
  writeState
} from "./Restoring.ts"
import {
  emptyReplay,
  emptyState,
  finishReplay,
  headsOf,
  type Replay,
  replay,
  type SequencerState,
  snapshot,
  totalsOf
} from "./SequencerState.ts"
import { checkRoots, readSignedTrees, rootName, type SignedTrees } from "./SignedHistory.ts"
import { placesBeside } from "./StraysByHeads.ts"
import { ChainWalk, reportPassedOver } from "./TopicComparison.ts"

/** What the window of client ids remembers of a record; without a key nothing. */
interface RememberedId {
  readonly key?: string
  readonly number: number
}

/** Undefined for a record that no sequencer has written. */
const rememberedEvent = ({ value }: LogRecord): RememberedId | undefined => {
  try {
    const fields = RecordFields.of(value ?? "", "event")
    for (const name of ["prev_hash", "hash", "created_at"]) fields.text(name)
    const key = dedupKeyOf(fields.text("tenant_id"), fields.text("id"))
    return { key, number: fields.integer("sequence_number", 1) }
  } catch {
    // The caller decides what that means.
    return undefined
  }
}

/** The same of a fact: only trace events have ids of clients. */
const rememberedFact = ({ value }: LogRecord): RememberedId | undefined => {
  const fact = parseFact(value?.toString() ?? "")
  return fact?.type === "span.event"
    ? { key: traceEventKeyOf(fact.tenant_id, fact.event_id), number: fact.sequence_number }
    : fact && { number: 0 }
}

/** True of the link that a head is, and of the one after it. */
const leadsTo = ({ hash, prevHash, sequenceNumber }: ChainLink, head: Head | undefined): boolean =>
  (sequenceNumber === head?.sequence_number && hash === head.hash)
  || (sequenceNumber - 1 === head?.sequence_number && prevHash === head.hash)

type IsOwn = (chain: Chain, offset: number) => boolean

/**
 * Read every chain of a topic again, checking each link. Adds to `byId` the number of each client id
 * that is still in the topic. Executions are not remembered: what is asked for is loaded from the
 * store once that has caught up.
 */
const readChains = Effect.fnUntraced(function* (
  { log, partition, reader }: Restoring,
  chain: Chain,
  isOwn: IsOwn,
  byId: Map<string, number>,
  { ends, sizes, state }: SignedTrees
) {
  const known = headsOf(state, chain)
  const isHere = isPlacedHere(log, partition, state)
  /** Tenants whose chains lead to the heads that are known. */
  const met = new Set<string>()
  const walk = new ChainWalk()
  const strays: Array<StrayRange> = []
  const trees = new Map<string, Frontier>()
  const roots = new Map<string, string>()
  const numberedOf = chain === "events" ? rememberedEvent : rememberedFact
  let others = 0
  let next: number | undefined
  const place = { topic: chain, partition }
  const { start } = yield* scanAll(log, reader, place, (records, { start }) => {
    for (const record of records) {
      if (!isOwn(chain, record.offset)) {
        others += 1
        continue
      }
      const numbered = numberedOf(record)
      const found = numbered && linkOfRecord(chain, record)
      const link = found && isHere(found.tenantId) ? found : undefined
      if (!walk.take(link, record.offset, start > 0)) {
        strays.push({ chain, first: record.offset, next: record.offset + 1 })
        continue
      }
      if (leadsTo(link, known.get(link.tenantId))) met.add(link.tenantId)
      const name = treeNameOf(link.tenantId, chain)
      const tree = ends.grow(name, trees.get(name), link)
      if (tree !== undefined) {
        trees.set(name, tree)
        const isAsked = sizes.get(name)?.has(tree.size) === true
        if (isAsked) roots.set(rootName(name, tree.size), tree.root().toString("hex"))
      }
      if (numbered?.key !== undefined) byId.set(numbered.key, numbered.number)
      next = record.offset + 1
    }
  })
  // A chain that has left a topic whose start is gone goes on from the head that is known.
  for (const [tenantId, head] of start > 0 ? known : []) {
    if (walk.heads.has(tenantId)) continue
    walk.heads.set(tenantId, head)
    met.add(tenantId)
    const name = treeNameOf(tenantId, chain)
    const tree = state.trees.get(name)
    if (tree !== undefined) trees.set(name, tree)
  }
  const passedOver = others + strays.length
  return { chain, walk, met, trees, roots, start, strays, next: next ?? start, others: passedOver }
})

type ReadChain = Effect.Success<ReturnType<typeof readChains>>

const readBoth = Effect.fnUntraced(function* (
  restoring: Restoring,
  isOwn: IsOwn,
  signed: SignedTrees
) {
  const byId = new Map<string, number>()
  const events = yield* readChains(restoring, "events", isOwn, byId, signed)
  const traces = yield* readChains(restoring, "traces", isOwn, byId, signed)
  return { events, traces, byId }
})

const digestOf = ({ events, traces }: Record<Chain, ReadChain>): string =>
  digestOfSum(sumOfHeads(events.walk.heads, traces.walk.heads))

/**
 * The chains as the topics have them. Where the changelog says at which offsets a sequencer has
 * written, and chains that end with the heads of its digest are there, only these count. Else everything
 * that links is adopted, unless a part of a chain is missing before it; a chain without a beginning in
 * a topic that has its own was written by another program.
 */
const readTopics = Effect.fnUntraced(function* (
  restoring: Restoring,
  outdated: Outdated,
  signed: SignedTrees
) {
  const { partition } = restoring
  const { acceptsLoss, progress, state } = outdated.gathered
  const { hasHeads, hasStrays } = outdated
  const nexts = { events: state.eventsNext, traces: state.tracesNext }
  const strays = yield* straysOf(restoring, outdated)
  const isOwn: IsOwn = (chain, offset) => !strays.has(chain, offset)
  const bounded =
    hasHeads || hasStrays
      ? yield* readBoth(
          restoring,
          (chain, offset) => offset < nexts[chain] && isOwn(chain, offset),
          signed
        )
      : undefined
  const isProven = bounded !== undefined && digestOf(bounded) === progress?.heads_digest
  const isBounded = bounded !== undefined && (isProven || hasHeads)
  const read = isBounded ? bounded : yield* readBoth(restoring, isOwn, signed)
  const chainsRead = [read.events, read.traces] satisfies Array<ReadChain>
  for (const one of chainsRead) {
    const missing = isProven ? undefined : missingOf(one, state)
    if (missing !== undefined) yield* giveUp(partition, acceptsLoss, missing)
    yield* reportPassedOver(partition, one.chain, one.others)
  }
  if (!(isProven || signed.isAll || acceptsLoss)) {
    const cause = new Error("alk.state is lost, and the store does not say what was signed")
    return yield* new LogUnavailable({ operation: "restore", cause })
  }
  yield* checkRoots(partition, acceptsLoss, state, signed, {
    isProven,
    roots: new Map([...read.events.roots, ...read.traces.roots]),
    sizeOf: (tree) => {
      const { chain, tenantId } = chainOfTree(tree)
      return read[chain].walk.heads.get(tenantId)?.sequence_number ?? 0
    }
  })
  if (isProven) return { ...read, isProven, strays }
  const passed = chainsRead.flatMap((one) => one.strays)
  return { ...read, isProven, strays: Strays.of([...strays.all, ...passed]) }
})

/** What the topic has lost of its chains; undefined if it is whole. */
const missingOf = ({ chain, met, walk }: ReadChain, state: SequencerState) => {
  let missing: string | undefined
  for (const [tenantId, head] of headsOf(state, chain)) {
    const found = walk.heads.get(tenantId)
    if ((found?.sequence_number ?? 0) < head.sequence_number) {
      missing =
        `alk.${chain} is behind alk.state: the head of ${tenantId} is ${head.sequence_number} there, `
        + `and ${found?.sequence_number ?? 0} in the topic`
    } else if (!met.has(tenantId)) {
      missing =
        `alk.${chain} is another history than alk.state says: the head of ${tenantId} there is `
        + `${head.sequence_number}, and the topic does not lead to its hash`
    }
  }
  const offset = walk.missingBefore
  return offset === undefined
    ? missing
    : `alk.${chain} is damaged: offset ${offset} does not link to the record before it`
}

/**
 * Which offsets of the topics are not the sequencer's. A head is the last one that was written: where
 * records that say more are gone, what it does not lead back to is not the sequencer's.
 */
const straysOf = Effect.fnUntraced(function* (
  restoring: Restoring,
  { gathered: { state }, hasHeads, hasStrays }: Outdated
) {
  if (hasStrays) return state.strays
  const ranges = [state.strays.all]
  for (const chain of chains) {
    const heads = headsOf(state, chain)
    if (hasHeads || heads.size > 0) {
      ranges.push(yield* placesBeside(restoring, chain, heads, hasHeads))
    }
  }
  return Strays.of(ranges.flat())
})

/** What is said for good of topics that were adopted; nothing of empty ones. */
const adoptedOf = (events: ReadChain, traces: ReadChain): Adopted | undefined =>
  events.walk.heads.size + traces.walk.heads.size === 0
    ? undefined
    : { at: currentTime(), events_next: events.next, traces_next: traces.next }

/** Mark of an event whose command has expired: equal to no fingerprint, so its id is taken. */
const UNKNOWN_FINGERPRINT = "0".repeat(32)

/** What the commands still in the topic say of client ids, idempotency keys and writers. */
const readCommands = (
  { log, partition, reader }: Restoring,
  byId: ReadonlyMap<string, number>,
  applied: number
) =>
  Effect.gen(function* () {
    const dedup = new Map<string, WindowEntry>()
    const idempotency: Array<WindowEntry> = []
    const writers = new Map<string, number>()
    const takeWriter = ({ headers }: LogRecord) => {
      const position = readWriterPosition(headers[WRITER_HEADER]?.toString() ?? "")
      if (position === undefined) return
      writers.set(position.writer, Math.max(position.number, writers.get(position.writer) ?? 0))
    }
    const take = (command: Command) => {
      let conflict = false
      const items = [...eventsOf(command.events), ...(command.traces ?? [])] as ReadonlyArray<{
        readonly dedupKey?: string
        readonly fingerprint?: string
      }>
      for (const { dedupKey, fingerprint } of items) {
        if (dedupKey === undefined || fingerprint === undefined) continue
        const number = byId.get(dedupKey)
        const known = dedup.get(dedupKey)
        if (known !== undefined) conflict ||= known.fingerprint !== fingerprint
        else if (number !== undefined) {
          dedup.set(dedupKey, { key: dedupKey, fingerprint, number })
        }
      }
      const identity = command.idempotency
      if (identity !== undefined && !(identity.forgetConflict && conflict)) {
        const number = microsOf(command.receivedAt)
        idempotency.push({ key: identity.key, fingerprint: identity.body, number })
      }
    }
    let newer: PartitionRefused | undefined
    const { end, start } = yield* log.bounds("commands", partition)
    const stop = Math.min(end, applied + 1)
    yield* scan(reader, { topic: "commands", partition, offset: start }, stop, (records) => {
      for (const record of records) {
        if (record.refused !== undefined) continue
        const format = formatIn(record.headers[FORMAT_HEADER])
        if (isNewer(format)) newer ??= newerFormat(partition, record.offset, format)
        takeWriter(record)
        try {
          take(decodeCommand(record.value, format))
        } catch {
          // Set aside when it was applied.
        }
      }
    })
    if (newer !== undefined) return yield* newer
    const older = [...byId]
      .filter(([key]) => !dedup.has(key))
      .map(([key, number]) => ({ key, fingerprint: UNKNOWN_FINGERPRINT, number }))
    return { dedup: [...older, ...dedup.values()], idempotency, writers }
  })

const filled = (capacity: number, entries: ReadonlyArray<WindowEntry>): PackedWindow => {
  const window = new PackedWindow(capacity)
  for (const entry of entries) window.append(entry)
  return window
}

/** What the changelog said, with the keys of its records. */
export interface Outdated {
  readonly gathered: Replay
  readonly keys: ReadonlySet<string>
  /** Its heads are those that were written, and none is gone. */
  readonly hasHeads: boolean
  /** The same of the numbers of the writers of commands. */
  readonly hasWriters: boolean
  /** The same of what it says of offsets of other programs. */
  readonly hasStrays: boolean
}

/** Make the changelog again from the topics, `applied` last: it counts only when it is complete. */
export const rebuild = (restoring: Restoring, outdated: Outdated) =>
  Effect.gen(function* () {
    const { log, partition, windows } = restoring
    const { gathered, hasWriters, keys } = outdated
    const { state: before } = gathered
    yield* Effect.logWarning("rebuilding the sequencer's state from the topics", { partition })
    yield* readPlacement(log)
    const signed = yield* readSignedTrees(restoring, before)
    const { checkpoints, handOvers } = signed
    const read = yield* readTopics(restoring, outdated, signed)
    const { byId, events, isProven, strays, traces } = read
    const { heads } = events.walk
    const { heads: traceHeads } = traces.walk
    const ofHeads = [...heads.values(), ...traceHeads.values()]
    const { applied, receivedUpTo } = yield* readApplied(restoring, gathered, ofHeads)
    const remembered = yield* readCommands(restoring, byId, applied)
    const writers = new Map(before.writers)
    for (const [writer, number] of hasWriters ? [] : remembered.writers) {
      writers.set(writer, Math.max(number, writers.get(writer) ?? 0))
    }
    const trees = new Map([...events.trees, ...traces.trees])
    const [eventsNext, tracesNext] = isProven
      ? [before.eventsNext, before.tracesNext]
      : [events.next, traces.next]
    // What is beyond the end is said when something is written behind it.
    const ends = { events: eventsNext, traces: tracesNext }
    const written = strays.all.flatMap((range) => {
      const next = Math.min(range.next, ends[range.chain])
      return range.first < next ? [{ ...range, next }] : []
    })
    const adopted = isProven ? before.adopted : (adoptedOf(events, traces) ?? before.adopted)
    const state: SequencerState = {
      ...emptyState(partition, log.partitions, windows),
      heads,
      trees,
      checkpoints,
      traceHeads,
      dedup: filled(windows.dedup, remembered.dedup),
      idempotency: filled(windows.idempotency, remembered.idempotency),
      handOvers,
      givenUp: before.givenUp,
      signer: before.signer,
      writers,
      receivedUpTo,
      // Commands that are left may be copies, so the numbers in them may be too small.
      copiesUpTo: Math.max(before.copiesUpTo, hasWriters ? 0 : receivedUpTo),
      applied,
      eventsNext,
      tracesNext,
      strays: Strays.of(written),
      adopted,
      evictedBelow: tracesNext,
      totals: totalsOf({ heads, traceHeads, writers })
    }
    const records = snapshot(state)
    const kept = new Set(records.map(({ key }) => key))
    const stay = [OWNER_KEY, REPAIR_KEY]
    const gone = [...keys].filter((key) => !kept.has(key) && !stay.includes(key))
    yield* writeState(restoring, [...gone.map((key) => ({ key, value: null })), ...records])
    yield* Effect.logWarning("the sequencer's state is rebuilt", {
      partition,
      applied,
      tenants: state.heads.size
    })
    if (!isProven && adopted !== undefined) {
      yield* Effect.logError(
        "alk.state was lost: what links in the topics counts as written by a sequencer",
        { partition, ...adopted }
      )
    }
    const replayed = emptyReplay(partition, log.partitions, windows)
    for (const { key, value } of records) {
      replay(replayed, key, typeof value === "string" ? Buffer.from(value) : value)
    }
    const rebuilt = finishReplay(replayed)
    Object.assign(rebuilt.expected, { events: eventsNext, traces: tracesNext })
    return rebuilt
  })
