/**
 * What committed changes become: records of `alk.state`, and the next state. The only place where a
 * state changes.
 */
import { type Chain, chains } from "../../domain/chain/Chains.ts"
import { treeOfCheckpoint } from "../../domain/chain/Checkpoint.ts"
import type { StrayRange } from "../../domain/records/OwnOffsets.ts"
import type { StateRecord } from "../../domain/records/StateRecords.ts"
import { registryRecord } from "../../domain/registry/RegistryEntry.ts"
import type { StateChanges } from "./SequencerDraft.ts"
import {
  appliedRecord,
  checkpointRecord,
  headRecords,
  type SequencerState,
  straysRecord,
  type WindowEnds,
  type WindowKind,
  windowRecord,
  windows,
  writerRecord
} from "./SequencerState.ts"
import { traceRecords, unloggedUpTo } from "./traces/TraceRecords.ts"

/** How many of the stored window records, oldest first, hold nothing that can still be found. */
const leaving = (state: SequencerState, kind: WindowKind, added: number): number => {
  const window = state[kind]
  const floor = window.next + added - window.capacity
  const kept = state.stored[kind].findIndex(({ count, first }) => first + count > floor)
  return kept === -1 ? state.stored[kind].length : kept
}

/** As the changelog has the windows once a chunk is written. */
const windowEndsAfter = (state: SequencerState, changes: StateChanges): WindowEnds => {
  const endsOf = (kind: WindowKind) => {
    const added = changes[kind].length
    const kept =
      added === 0 ? state.stored[kind][0] : state.stored[kind][leaving(state, kind, added)]
    const { next } = state[kind]
    return { first: kept?.first ?? next, next: next + added }
  }
  return { dedup: endsOf("dedup"), idempotency: endsOf("idempotency") }
}

/** Where the log is once a chunk is written: offsets after the last record. */
export interface LogEnds {
  readonly eventsNext: number
  readonly tracesNext: number
  /** What is between the last record of before and the first of the chunk, where others wrote. */
  readonly strays: ReadonlyArray<StrayRange>
}

/** Offsets that the end of a transaction takes in each topic. */
const MARKER_OFFSETS = 1

/** Where the log is once records are written from these offsets on; a topic without any stays. */
export const endsAfter = (
  {
    eventsNext,
    expected,
    tracesNext
  }: Pick<SequencerState, "eventsNext" | "expected" | "tracesNext">,
  counts: Readonly<Record<Chain, number>>,
  bases: Readonly<Partial<Record<Chain, number>>>
): LogEnds => {
  const before = { events: eventsNext, traces: tracesNext }
  const endOf = (chain: Chain) => {
    const base = bases[chain]
    return base === undefined ? before[chain] : base + counts[chain]
  }
  const strays = chains.flatMap((chain): ReadonlyArray<StrayRange> => {
    const base = bases[chain] ?? 0
    return base > expected[chain] ? [{ chain, first: before[chain], next: base }] : []
  })
  return { eventsNext: endOf("events"), tracesNext: endOf("traces"), strays }
}

/** Offset of the first fact of a chunk. */
const firstFact = ({ traces }: StateChanges, { tracesNext }: LogEnds): number =>
  tracesNext - traces.facts.length

const unloggedAfter = (state: SequencerState, changes: StateChanges, ends: LogEnds): number =>
  Math.max(state.unloggedBelow, unloggedUpTo(changes.traces, firstFact(changes, ends)))

/**
 * What comes first. A reader of a part of the transaction knows up to which record its heads go, and
 * before that which records up to there are not the sequencer's.
 */
export const progressRecords = (
  progress: Parameters<typeof appliedRecord>[0],
  ends: WindowEnds,
  { strays }: LogEnds
): ReadonlyArray<StateRecord> => [
  ...strays.map(straysRecord),
  appliedRecord(progress, ends, strays.length)
]

/** The records of `alk.state` that carry these changes. */
export const stateRecords = (
  state: SequencerState,
  changes: StateChanges,
  ends: LogEnds
): ReadonlyArray<StateRecord> => {
  const { applied, isAwaited, receivedUpTo, totals } = changes
  const unloggedBelow = unloggedAfter(state, changes, ends)
  const { eventsNext, tracesNext } = ends
  const moved = { eventsNext, tracesNext, applied, receivedUpTo, totals, unloggedBelow, isAwaited }
  const progress = { ...state, ...moved }
  const records = [...progressRecords(progress, windowEndsAfter(state, changes), ends)]
  for (const record of headRecords("events", changes.heads, changes.trees)) records.push(record)
  for (const checkpoint of changes.checkpoints) records.push(checkpointRecord(checkpoint))
  for (const record of headRecords("traces", changes.traces.heads, changes.trees)) {
    records.push(record)
  }
  for (const record of traceRecords(changes.traces, firstFact(changes, ends))) records.push(record)
  for (const [kind, prefix] of windows) {
    const added = changes[kind]
    if (added.length === 0) continue
    records.push(windowRecord(prefix, state[kind].next, added))
    for (const { first } of state.stored[kind].slice(0, leaving(state, kind, added.length))) {
      records.push({ key: `${prefix}${first}`, value: null })
    }
  }
  for (const [writer, number] of changes.writers) records.push(writerRecord(writer, number))
  return records
}

/** Take where the log is into the state. */
export const advanceEnds = (
  state: Pick<SequencerState, "eventsNext" | "expected" | "strays" | "tracesNext">,
  { eventsNext, strays, tracesNext }: LogEnds
): void => {
  for (const range of strays) state.strays.add(range)
  if (eventsNext > state.eventsNext) state.expected.events = eventsNext + MARKER_OFFSETS
  if (tracesNext > state.tracesNext) state.expected.traces = tracesNext + MARKER_OFFSETS
  state.eventsNext = eventsNext
  state.tracesNext = tracesNext
}

/** Take committed changes into the state. */
export const advance = (state: SequencerState, changes: StateChanges, ends: LogEnds): void => {
  state.totals = changes.totals
  for (const [tenantId, head] of changes.heads) state.heads.set(tenantId, head)
  for (const [name, tree] of changes.trees) state.trees.set(name, tree)
  for (const checkpoint of changes.checkpoints) {
    state.checkpoints.set(treeOfCheckpoint(checkpoint), checkpoint)
  }
  for (const [tenantId, head] of changes.traces.heads) state.traceHeads.set(tenantId, head)
  state.unloggedBelow = unloggedAfter(state, changes, ends)
  state.traces.advance(changes.traces, firstFact(changes, ends))
  for (const [kind] of windows) {
    const added = changes[kind]
    if (added.length === 0) continue
    state.stored[kind].splice(0, leaving(state, kind, added.length))
    state.stored[kind].push({ first: state[kind].next, count: added.length })
    for (const entry of added) state[kind].append(entry)
  }
  state.registry.take(changes.registry)
  for (const change of changes.registry) state.registryContent.take(registryRecord(change))
  state.applied = changes.applied
  state.receivedUpTo = changes.receivedUpTo
  advanceEnds(state, ends)
  state.forgottenEvents.advance(state.dedup, state.tracesNext)
  for (const [writer, number] of changes.writers) {
    if (number === null) state.writers.delete(writer)
    else state.writers.set(writer, number)
  }
}
