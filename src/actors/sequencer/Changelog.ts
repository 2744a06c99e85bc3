/**
 * What committed changes become: records of `alk.state`, and the next state. The only place where a
 * state changes.
 */
import { treeOfCheckpoint } from "../../domain/chain/Checkpoint.ts"
import type { StateRecord } from "../../domain/records/StateRecords.ts"
import { DEDUP_PREFIX, IDEMPOTENCY_PREFIX } from "../../domain/records/StateRecords.ts"
import type { StateChanges } from "./SequencerDraft.ts"
import {
  appliedRecord,
  checkpointRecord,
  headRecords,
  type SequencerState,
  type Totals,
  windowRecord,
  writerRecord
} from "./SequencerState.ts"
import { traceRecords, unloggedUpTo } from "./traces/TraceRecords.ts"

const windows = [
  ["dedup", DEDUP_PREFIX],
  ["idempotency", IDEMPOTENCY_PREFIX]
] as const

/** How many of the stored window records, oldest first, hold nothing that can still be found. */
const leaving = (state: SequencerState, kind: "dedup" | "idempotency", added: number): number => {
  const window = state[kind]
  const floor = window.next + added - window.capacity
  const kept = state.stored[kind].findIndex(({ count, first }) => first + count > floor)
  return kept === -1 ? state.stored[kind].length : kept
}

/** Where the log is once a chunk is written: offsets after the last record. */
export interface LogEnds {
  readonly eventsNext: number
  readonly tracesNext: number
}

/** Offset of the first fact of a chunk. */
const firstFact = ({ traces }: StateChanges, { tracesNext }: LogEnds): number =>
  tracesNext - traces.facts.length

const totalsAfter = ({ totals, writers }: SequencerState, changes: StateChanges): Totals => {
  let sum = totals.writers
  for (const [writer, number] of changes.writers) sum += (number ?? 0) - (writers.get(writer) ?? 0)
  return {
    events: totals.events + changes.events.count,
    facts: totals.facts + changes.traces.facts.length,
    writers: sum
  }
}

const unloggedAfter = (state: SequencerState, changes: StateChanges, ends: LogEnds): number =>
  Math.max(state.tracesUnlogged, unloggedUpTo(changes.traces, firstFact(changes, ends)))

/** The records of `alk.state` that carry these changes. */
export const stateRecords = (
  state: SequencerState,
  changes: StateChanges,
  ends: LogEnds
): ReadonlyArray<StateRecord> => {
  const { applied } = changes
  const totals = totalsAfter(state, changes)
  const tracesUnlogged = unloggedAfter(state, changes, ends)
  // First: a reader of a part of the transaction knows up to which record its heads go.
  const records = [appliedRecord({ ...state, ...ends, applied, totals, tracesUnlogged })]
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

/** Take committed changes into the state. */
export const advance = (state: SequencerState, changes: StateChanges, ends: LogEnds): void => {
  for (const [tenantId, head] of changes.heads) state.heads.set(tenantId, head)
  for (const [name, tree] of changes.trees) state.trees.set(name, tree)
  for (const checkpoint of changes.checkpoints) {
    state.checkpoints.set(treeOfCheckpoint(checkpoint), checkpoint)
  }
  for (const [tenantId, head] of changes.traces.heads) state.traceHeads.set(tenantId, head)
  state.tracesUnlogged = unloggedAfter(state, changes, ends)
  state.traces.advance(changes.traces, firstFact(changes, ends))
  for (const [kind] of windows) {
    const added = changes[kind]
    if (added.length === 0) continue
    state.stored[kind].splice(0, leaving(state, kind, added.length))
    state.stored[kind].push({ first: state[kind].next, count: added.length })
    for (const entry of added) state[kind].append(entry)
  }
  state.registry.take(changes.registry)
  state.applied = changes.applied
  state.eventsNext = ends.eventsNext
  state.tracesNext = ends.tracesNext
  state.totals = totalsAfter(state, changes)
  for (const [writer, number] of changes.writers) {
    if (number === null) state.writers.delete(writer)
    else state.writers.set(writer, number)
  }
}
