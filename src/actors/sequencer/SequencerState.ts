/**
 * What the sequencer of one partition knows, and the changelog form of it on `alk.state`. Restoring
 * is replaying these records; nothing here decides anything.
 */

import type { Head } from "../../domain/chain/Chains.ts"
import { type Chain, chains, treeNameOf } from "../../domain/chain/Chains.ts"
import {
  type CheckpointRecord,
  readCheckpoint,
  treeOfCheckpoint
} from "../../domain/chain/Checkpoint.ts"
import { digestOfSum, sumOfHeads } from "../../domain/chain/HeadsDigest.ts"
import { Frontier } from "../../domain/chain/MerkleTree.ts"
import { defined } from "../../domain/Defined.ts"
import { RecordFields, RecordUnreadable } from "../../domain/json/RecordFields.ts"
import { isWriter } from "../../domain/records/CommandWriter.ts"
import { type StrayRange, Strays, straysKey } from "../../domain/records/OwnOffsets.ts"
import {
  type Adopted,
  APPLIED_KEY,
  CHECKPOINT_PREFIX,
  DEDUP_PREFIX,
  ENTRY_BYTES,
  GIVEN_UP_PREFIX,
  HAND_OVER_PREFIX,
  HEAD_PREFIX,
  IDEMPOTENCY_PREFIX,
  META_KEY,
  OWNER_KEY,
  REPAIR_KEY,
  readApplied,
  readMeta,
  readOwner,
  readTreeSigner,
  readWriter,
  SIGNER_KEY,
  STRAYS_PREFIX,
  type StateRecord,
  type StoredHead,
  type StoredProgress,
  TRACE_HEAD_PREFIX,
  type TreeSigner,
  type WindowEntry,
  WRITER_PREFIX
} from "../../domain/records/StateRecords.ts"
import { RegistryContent } from "../../domain/registry/RegistryContent.ts"
import { RegistryTable } from "../../domain/registry/RegistryTable.ts"
import type { NewRecord } from "../../ports/EventLog.ts"
import { PackedWindow, packEntries, unpackEntries } from "./PackedWindow.ts"
import { ForgottenEvents } from "./traces/ForgottenEvents.ts"
import { isTraceKey } from "./traces/TraceRecords.ts"
import { TraceState } from "./traces/TraceState.ts"

/** Window entries in one record of a snapshot; 40 bytes each. */
const SNAPSHOT_ENTRIES = 5_000

export interface Windows {
  /** Client ids kept for duplicate detection, per partition. */
  readonly dedup: number
  /** Idempotency keys kept, per partition. */
  readonly idempotency: number
}

/** Ordinals that one window record holds. */
export interface StoredRange {
  readonly first: number
  readonly count: number
}

export interface SequencerState {
  readonly partition: number
  readonly partitions: number
  readonly heads: Map<string, Head>
  /**
   * The Merkle trees over both chains by their names; of a chain whose start has left its topic
   * there is none.
   */
  readonly trees: Map<string, Frontier>
  /** The newest checkpoint of each tree, by its name. */
  readonly checkpoints: Map<string, CheckpointRecord>
  /** The ends of the chains of trace facts. */
  readonly traceHeads: Map<string, Head>
  readonly traces: TraceState
  readonly dedup: PackedWindow
  readonly idempotency: PackedWindow
  /** The window records that are on `alk.state`, oldest first: tombstoned as they leave. */
  readonly stored: {
    readonly dedup: Array<StoredRange>
    readonly idempotency: Array<StoredRange>
  }
  /** The last checkpoints of keys that were replaced, by `handOverName`. */
  readonly handOvers: Map<string, CheckpointRecord>
  /** The largest checkpoint of each tree that an operator has accepted as lost, by its name. */
  readonly givenUp: Map<string, CheckpointRecord>
  /** The key that signs the trees of this partition; undefined before the first start. */
  signer: TreeSigner | undefined
  /** Number of the last command applied of each writer of commands. */
  readonly writers: Map<string, number>
  /** When the newest command that was applied was received, in microseconds; 0 before the first. */
  receivedUpTo: number
  /**
   * `writers` may say too little of commands that were received up to then: they are taken for copies.
   * 0 where it says all.
   */
  copiesUpTo: number
  /** Tenants and keys; only the partition of the system tenant holds any. */
  readonly registry: RegistryTable
  /** What its topic adds up to. */
  registryContent: RegistryContent
  /** Offset of the last command applied; -1 before the first. */
  applied: number
  /** Offset after the last record on `alk.events`. */
  eventsNext: number
  /** Offset after the last record on `alk.traces`. */
  tracesNext: number
  /** Offsets before these two that hold nothing of this sequencer. */
  readonly strays: Strays
  /** Where the next record of a chain will be, if no other program has written to its topic. */
  readonly expected: Record<Chain, number>
  /** When the topics were last taken for what a sequencer has written; undefined if never. */
  adopted: Adopted | undefined
  /**
   * An execution whose last fact is below this offset may have been evicted from `traces`. It can
   * be loaded from the store once the projection has passed this offset.
   */
  evictedBelow: number
  /**
   * Like the above, for executions in memory that are not in the changelog. They are lost on a
   * restart.
   */
  unloggedBelow: number
  readonly forgottenEvents: ForgottenEvents
  totals: Totals
}

/** Sums by which a changelog is known to be whole. */
export interface Totals {
  /** Of the heads of both chains, as `HeadsDigest` adds them up. */
  readonly heads: bigint
  /** Sum of the last numbers of the writers of commands. */
  readonly writers: number
}

/** The ends of one of the chains by tenant. */
export const headsOf = (
  { heads, traceHeads }: Pick<SequencerState, "heads" | "traceHeads">,
  chain: Chain
): Map<string, Head> => (chain === "events" ? heads : traceHeads)

export const emptyState = (
  partition: number,
  partitions: number,
  windows: Windows
): SequencerState => ({
  partition,
  partitions,
  heads: new Map(),
  trees: new Map(),
  checkpoints: new Map(),
  traceHeads: new Map(),
  traces: new TraceState(),
  dedup: new PackedWindow(windows.dedup),
  idempotency: new PackedWindow(windows.idempotency),
  stored: { dedup: [], idempotency: [] },
  handOvers: new Map(),
  givenUp: new Map(),
  signer: undefined,
  writers: new Map(),
  receivedUpTo: 0,
  copiesUpTo: 0,
  registry: new RegistryTable(),
  registryContent: new RegistryContent(),
  applied: -1,
  eventsNext: 0,
  tracesNext: 0,
  strays: new Strays(),
  expected: { events: 0, traces: 0 },
  adopted: undefined,
  evictedBelow: 0,
  unloggedBelow: 0,
  forgottenEvents: new ForgottenEvents(0),
  totals: { heads: 0n, writers: 0 }
})

/** A record of the changelog, ready to be written. */
export const newStateRecord = (partition: number, { key, value }: StateRecord): NewRecord => ({
  topic: "state",
  partition,
  key,
  value
})

/** A record of JSON; null removes it. */
const jsonRecord = (key: string, value: object | null): StateRecord => ({
  key,
  value: value === null ? null : JSON.stringify(value)
})

export const metaRecord = (partitions: number) => jsonRecord(META_KEY, { format: 1, partitions })

export const repairRecord = (at: string | undefined) =>
  jsonRecord(REPAIR_KEY, at === undefined ? null : { at })

export const ownerRecord = (owner: string) => jsonRecord(OWNER_KEY, { owner })

/** Ordinals that the stored records of a window cover; `next` is exclusive. */
export interface StoredEnds {
  readonly first: number
  readonly next: number
}

/** The windows, each with what the keys of its records begin with. */
export const windows = [
  ["dedup", DEDUP_PREFIX],
  ["idempotency", IDEMPOTENCY_PREFIX]
] as const
export type WindowKind = (typeof windows)[number][0]

export type WindowEnds = Readonly<Record<WindowKind, StoredEnds>>

/** As the changelog has the windows of a state. */
export const windowEnds = (state: Pick<SequencerState, WindowKind | "stored">): WindowEnds => {
  const endsOf = (kind: WindowKind): StoredEnds => {
    const { next } = state[kind]
    return { first: state.stored[kind][0]?.first ?? next, next }
  }
  return { dedup: endsOf("dedup"), idempotency: endsOf("idempotency") }
}

/** The record `applied` of a state. */
export const appliedRecord = (
  {
    adopted,
    applied,
    copiesUpTo,
    eventsNext,
    isAwaited = false,
    receivedUpTo,
    strays,
    totals,
    evictedBelow,
    tracesNext,
    unloggedBelow
  }: Pick<
    SequencerState,
    | "adopted"
    | "applied"
    | "copiesUpTo"
    | "eventsNext"
    | "receivedUpTo"
    | "strays"
    | "tracesNext"
    | "evictedBelow"
    | "unloggedBelow"
    | "totals"
  > & { readonly isAwaited?: boolean },
  { dedup, idempotency }: WindowEnds,
  /** Ranges of strays that are written with it. */
  newStrays = 0
): StateRecord => {
  const record: StoredProgress = {
    command_offset: applied,
    events_next: eventsNext,
    traces_next: tracesNext,
    traces_forgotten: Math.max(evictedBelow, unloggedBelow),
    heads_digest: digestOfSum(totals.heads),
    writers_total: totals.writers,
    strays_total: strays.size + newStrays,
    dedup_first: dedup.first,
    dedup_next: dedup.next,
    idempotency_first: idempotency.first,
    idempotency_next: idempotency.next,
    received_up_to: receivedUpTo,
    copies_up_to: copiesUpTo,
    ...(isAwaited ? { awaited: true } : {}),
    ...defined({ adopted })
  }
  return jsonRecord(APPLIED_KEY, record)
}

/** What the heads and the writers add up to. */
export const totalsOf = ({
  heads,
  traceHeads,
  writers
}: Pick<SequencerState, "heads" | "traceHeads" | "writers">): Totals => ({
  heads: sumOfHeads(heads, traceHeads),
  writers: [...writers.values()].reduce((sum, number) => sum + number, 0)
})

const HASH = /^[0-9a-f]{64}$/

/**
 * The value of a head. Hot path: the follower reads one for every transaction, so it is read by hand.
 * @throws RecordUnreadable
 */
export const readHead = (value: Buffer): StoredHead => {
  const fields = RecordFields.of(value, "head")
  return {
    sequence_number: fields.integer("sequence_number", 1),
    hash: fields.text("hash", HASH),
    created_at: fields.time("created_at"),
    tree: fields.value["tree"] === null ? null : fields.text("tree")
  }
}

/** The ordinal that a window record begins with. */
const readOrdinal = (text: string): number => {
  const ordinal = Number(text)
  if (/^[0-9]+$/.test(text) && Number.isSafeInteger(ordinal)) return ordinal
  throw new RecordUnreadable("its key has no ordinal")
}

const headPrefixes = { events: HEAD_PREFIX, traces: TRACE_HEAD_PREFIX } as const

export const headRecord = (
  chain: Chain,
  tenantId: string,
  { created_at, hash, sequence_number }: Head,
  tree: Frontier | undefined
): StateRecord => {
  const stored: StoredHead = { sequence_number, hash, created_at, tree: tree?.encode() ?? null }
  return jsonRecord(`${headPrefixes[chain]}${tenantId}`, stored)
}

/** The records of the heads of one chain. */
export const headRecords = (
  chain: Chain,
  heads: ReadonlyMap<string, Head>,
  trees: ReadonlyMap<string, Frontier>
): ReadonlyArray<StateRecord> =>
  [...heads].map(([tenantId, head]) =>
    headRecord(chain, tenantId, head, trees.get(treeNameOf(tenantId, chain)))
  )

export const checkpointRecord = (checkpoint: CheckpointRecord): StateRecord =>
  jsonRecord(`${CHECKPOINT_PREFIX}${treeOfCheckpoint(checkpoint)}`, checkpoint)

export const givenUpRecord = (checkpoint: CheckpointRecord): StateRecord =>
  jsonRecord(`${GIVEN_UP_PREFIX}${treeOfCheckpoint(checkpoint)}`, checkpoint)

/** What names the last checkpoint of a tree by a key that was replaced: `<key id>/<tree>`. */
export const handOverName = (keyId: string, tree: string): string => `${keyId}/${tree}`

export const handOverRecord = (checkpoint: CheckpointRecord): StateRecord => {
  const name = handOverName(checkpoint.key_id, treeOfCheckpoint(checkpoint))
  return jsonRecord(`${HAND_OVER_PREFIX}${name}`, checkpoint)
}

export const straysRecord = (range: StrayRange) =>
  jsonRecord(straysKey(range), { next: range.next })

export const signerRecord = (signer: TreeSigner) => jsonRecord(SIGNER_KEY, signer)

/** null: the writer is no longer remembered. */
export const writerRecord = (writer: string, number: number | null): StateRecord =>
  jsonRecord(`${WRITER_PREFIX}${writer}`, number === null ? null : { number })

/** @throws RecordUnreadable */
const replayWriter = (writers: Map<string, number>, writer: string, value: Buffer | null): void => {
  if (!isWriter(writer)) throw new RecordUnreadable("its key names no writer")
  if (value === null) writers.delete(writer)
  else writers.set(writer, readWriter(value).number)
}

export const windowRecord = (
  prefix: string,
  firstOrdinal: number,
  entries: ReadonlyArray<WindowEntry>
): StateRecord => ({ key: `${prefix}${firstOrdinal}`, value: packEntries(entries) })

/** What replaying `alk.state` has gathered, before the windows are put in order. */
export interface Replay {
  readonly state: SequencerState
  /** Packed window records by their first ordinal; the owner tombstones them as they leave. */
  readonly dedup: Map<number, Buffer>
  readonly idempotency: Map<number, Buffer>
  /** Partition count that the changelog was written under. */
  partitions: number | undefined
  owner: string | undefined
  /** The newest `applied` record; undefined before the first, and once what it said was given up. */
  progress: StoredProgress | undefined
  /** An operator accepts what the topics have lost. */
  acceptsLoss: boolean
}

export const emptyReplay = (partition: number, partitions: number, windows: Windows): Replay => ({
  state: emptyState(partition, partitions, windows),
  dedup: new Map(),
  idempotency: new Map(),
  partitions: undefined,
  owner: undefined,
  progress: undefined,
  acceptsLoss: false
})

const replayWindow = (records: Map<number, Buffer>, ordinal: number, value: Buffer | null) => {
  if (value !== null && value.length % ENTRY_BYTES !== 0) {
    throw new RecordUnreadable(`its ${value.length} bytes are no entries of ${ENTRY_BYTES}`)
  }
  if (value === null) records.delete(ordinal)
  else records.set(ordinal, value)
}

const replayHead = (into: Replay, chain: Chain, tenantId: string, value: Buffer | null): void => {
  const { trees } = into.state
  const treeName = treeNameOf(tenantId, chain)
  const heads = headsOf(into.state, chain)
  trees.delete(treeName)
  if (value === null) return void heads.delete(tenantId)
  const { tree, ...head } = readHead(value)
  heads.set(tenantId, head)
  if (tree !== null) trees.set(treeName, Frontier.decode(tree))
}

const replayApplied = (into: Replay, value: Buffer | null): void => {
  const applied = value === null ? undefined : readApplied(value)
  into.progress = applied
  into.state.applied = applied?.command_offset ?? -1
  into.state.eventsNext = applied?.events_next ?? 0
  into.state.tracesNext = applied?.traces_next ?? 0
  into.state.evictedBelow = applied?.traces_forgotten ?? 0
  into.state.receivedUpTo = applied?.received_up_to ?? 0
  into.state.copiesUpTo = applied?.copies_up_to ?? 0
  into.state.adopted = applied?.adopted
}

type ReplayRecord = (into: Replay, name: string, value: Buffer | null) => void

/** Keeps what one record of each name says; a record without a value removes it. */
const replayInto =
  <A>(entries: (into: Replay) => Map<string, A>, read: (value: Buffer) => A): ReplayRecord =>
  (into, name, value) => {
    if (value === null) entries(into).delete(name)
    else entries(into).set(name, read(value))
  }

/** By prefix of the key; the name is what follows it. */
const replayers: ReadonlyArray<readonly [prefix: string, ReplayRecord]> = [
  [HEAD_PREFIX, (into, tenantId, value) => replayHead(into, "events", tenantId, value)],
  [TRACE_HEAD_PREFIX, (into, tenantId, value) => replayHead(into, "traces", tenantId, value)],
  [CHECKPOINT_PREFIX, replayInto(({ state }) => state.checkpoints, readCheckpoint)],
  [HAND_OVER_PREFIX, replayInto(({ state }) => state.handOvers, readCheckpoint)],
  [GIVEN_UP_PREFIX, replayInto(({ state }) => state.givenUp, readCheckpoint)],
  [WRITER_PREFIX, ({ state }, writer, value) => replayWriter(state.writers, writer, value)],
  [DEDUP_PREFIX, ({ dedup }, name, value) => replayWindow(dedup, readOrdinal(name), value)],
  [
    IDEMPOTENCY_PREFIX,
    ({ idempotency }, name, value) => replayWindow(idempotency, readOrdinal(name), value)
  ],
  [STRAYS_PREFIX, ({ state }, name, value) => state.strays.replay(`${STRAYS_PREFIX}${name}`, value)]
]

/**
 * Take one record of the changelog into account. Unknown keys belong to newer versions.
 * @throws RecordUnreadable, or what a part of the state throws, for what no version has written
 */
export const replay = (into: Replay, key: string, value: Buffer | null): void => {
  const found = replayers.find(([prefix]) => key.startsWith(prefix))
  if (found !== undefined) {
    const [prefix, replayRecord] = found
    replayRecord(into, key.slice(prefix.length), value)
  } else if (isTraceKey(key)) into.state.traces.replay(key, value)
  else if (key === SIGNER_KEY)
    into.state.signer = value === null ? undefined : readTreeSigner(value)
  else if (key === APPLIED_KEY) replayApplied(into, value)
  else if (key === REPAIR_KEY) into.acceptsLoss = value !== null
  else if (value === null) return
  else if (key === OWNER_KEY) into.owner = readOwner(value).owner
  else if (key === META_KEY) into.partitions = readMeta(value).partitions
}

const rangesOf = (records: Map<number, Buffer>): Array<StoredRange> =>
  [...records]
    .map(([first, packed]) => ({ first, count: packed.length / ENTRY_BYTES }))
    .sort((left, right) => left.first - right.first)

/** True if the stored records of both windows are all there. */
export const hasWindows = (into: Replay): boolean =>
  windows.every(([kind]) => {
    let reached = into.progress?.[`${kind}_first`] ?? 0
    for (const range of rangesOf(into[kind])) {
      if (range.first === reached) reached += range.count
    }
    return reached === (into.progress?.[`${kind}_next`] ?? 0)
  })

const fillWindow = (window: PackedWindow, records: Map<number, Buffer>): PackedWindow => {
  const ordinals = [...records.keys()].sort((left, right) => left - right)
  const filled = new PackedWindow(window.capacity, ordinals[0] ?? 0)
  for (const ordinal of ordinals) {
    filled.dropBefore(ordinal > filled.next ? ordinal : filled.first)
    for (const entry of unpackEntries(records.get(ordinal)!)) filled.append(entry)
  }
  return filled
}

/** The state that the replayed records describe. */
export const finishReplay = (gathered: Replay): SequencerState => {
  const { evictedBelow, tracesNext } = gathered.state
  const dedup = fillWindow(gathered.state.dedup, gathered.dedup)
  return {
    ...gathered.state,
    totals: totalsOf(gathered.state),
    dedup,
    idempotency: fillWindow(gathered.state.idempotency, gathered.idempotency),
    stored: { dedup: rangesOf(gathered.dedup), idempotency: rangesOf(gathered.idempotency) },
    forgottenEvents: ForgottenEvents.restored(dedup, evictedBelow, tracesNext)
  }
}

/** The whole state as records: what a rebuilt partition writes to an empty changelog. */
export const snapshot = (state: SequencerState): ReadonlyArray<StateRecord> => {
  const records: Array<StateRecord> = [metaRecord(state.partitions)]
  for (const chain of chains) {
    for (const record of headRecords(chain, headsOf(state, chain), state.trees))
      records.push(record)
  }
  for (const checkpoint of state.checkpoints.values()) records.push(checkpointRecord(checkpoint))
  for (const checkpoint of state.handOvers.values()) records.push(handOverRecord(checkpoint))
  for (const checkpoint of state.givenUp.values()) records.push(givenUpRecord(checkpoint))
  if (state.signer !== undefined) records.push(signerRecord(state.signer))
  for (const range of state.strays.all) records.push(straysRecord(range))
  for (const [writer, number] of state.writers) records.push(writerRecord(writer, number))
  records.push(...state.traces.snapshot())
  for (const [kind, prefix] of windows) {
    const window = state[kind]
    let chunk: Array<WindowEntry> = []
    let first = window.first
    for (const entry of window.entries()) {
      if (chunk.length === 0) first = entry.ordinal
      chunk.push(entry)
      if (chunk.length === SNAPSHOT_ENTRIES) {
        records.push(windowRecord(prefix, first, chunk))
        chunk = []
      }
    }
    if (chunk.length > 0) records.push(windowRecord(prefix, first, chunk))
  }
  const { dedup, idempotency } = state
  records.push(appliedRecord(state, { dedup, idempotency }))
  return records
}
