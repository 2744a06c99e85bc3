/**
 * Executions and spans as records of `alk.state`: their keys, their values, and what the records of
 * one execution add up to. Which of them there are is not decided here.
 */

import { recordDecoder } from "../../../domain/json/RecordDecoder.ts"
import { RecordUnreadable } from "../../../domain/json/RecordFields.ts"
import {
  EXECUTION_PREFIX,
  SPAN_PREFIX,
  type StateRecord
} from "../../../domain/records/StateRecords.ts"
import { finish } from "../../../domain/Slices.ts"
import { StoredExecution, StoredSpan } from "../../../domain/traces/StoredTrace.ts"
import { ExecutionEntry } from "./TraceEntry.ts"

const readExecution = recordDecoder(StoredExecution, "execution")
const readSpan = recordDecoder(StoredSpan, "span")

/** True for the keys of `alk.state` that `StagedTraces` understands. */
export const isTraceKey = (key: string): boolean =>
  key.startsWith(EXECUTION_PREFIX) || key.startsWith(SPAN_PREFIX)

/** Ids may hold any character; in a key a slash separates them. */
const escapeId = (id: string): string =>
  id.includes("%") || id.includes("/") ? id.replaceAll("%", "%25").replaceAll("/", "%2F") : id

const unescapeId = (text: string): string =>
  text.includes("%") ? text.replaceAll("%2F", "/").replaceAll("%25", "%") : text

const executionKey = ({ executionId, tenantId }: ExecutionEntry): string =>
  `${EXECUTION_PREFIX}${tenantId}/${escapeId(executionId)}`

const spanKey = ({ executionId, tenantId }: ExecutionEntry, spanId: string): string =>
  `${SPAN_PREFIX}${tenantId}/${escapeId(executionId)}/${escapeId(spanId)}`

/** The record of an execution, its last fact at an offset. */
const executionRecord = (entry: ExecutionEntry, lastOffset: number): StateRecord => {
  const {
    complete,
    events_from,
    introducer,
    isEndOpen,
    logged,
    roots,
    spanCount,
    starts,
    weight,
    ...stored
  } = entry.header
  const value: StoredExecution = {
    ...stored,
    last_offset: lastOffset,
    partial: logged !== "whole",
    ...(starts === 1 ? {} : { starts }),
    ...(isEndOpen ? { end_is_open: true } : {})
  }
  return { key: executionKey(entry), value: JSON.stringify(value) }
}

/** What a chunk has changed in executions; see TraceDraft. */
export interface TraceEntryChanges {
  readonly entries: Iterable<ExecutionEntry>
  /** The store answers for executions that are neither in memory nor in the changelog. */
  readonly hasStore: boolean
}

/**
 * True for executions that came and ended within a chunk: the changelog never has them. They stay
 * in memory until the store shows them; after a restart they are looked for there.
 */
export const staysUnlogged = ({ hasStore }: TraceEntryChanges, entry: ExecutionEntry): boolean =>
  hasStore && entry.isNew && entry.header.status !== "RUNNING" && !entry.header.isEndOpen

/** Offset after the last fact of those; 0 if there are none. */
export const unloggedUpTo = (changes: TraceEntryChanges, firstOffset: number): number => {
  let end = 0
  for (const entry of changes.entries) {
    if (staysUnlogged(changes, entry)) end = Math.max(end, firstOffset + entry.lastFact + 1)
  }
  return end
}

/** The records of `alk.state` for a chunk whose first fact is at `firstOffset`. */
export const traceRecords = (
  changes: TraceEntryChanges,
  firstOffset: number
): ReadonlyArray<StateRecord> => {
  const records: Array<StateRecord> = []
  for (const entry of changes.entries) {
    if (entry.lastFact === -1 || staysUnlogged(changes, entry)) continue
    records.push(executionRecord(entry, firstOffset + entry.lastFact))
    for (const [id, span] of entry.spans) {
      records.push({ key: spanKey(entry, id), value: JSON.stringify(span) })
    }
  }
  return records
}

const loggedSpans = ({ spans, unlogged }: ExecutionEntry) =>
  [...spans].filter(([id]) => unlogged?.has(id) !== true)

/** All that the changelog has to hold of an execution. */
export const recordsOf = (entry: ExecutionEntry): ReadonlyArray<StateRecord> =>
  entry.header.logged === "nowhere"
    ? []
    : [
        executionRecord(entry, entry.header.last_offset),
        ...loggedSpans(entry).map(([id, span]) => ({
          key: spanKey(entry, id),
          value: JSON.stringify(span)
        }))
      ]

/** The records that remove it from the changelog. */
export const tombstonesOf = (entry: ExecutionEntry): ReadonlyArray<StateRecord> =>
  entry.header.logged === "nowhere"
    ? []
    : [
        { key: executionKey(entry), value: null },
        ...loggedSpans(entry).map(([id]) => ({ key: spanKey(entry, id), value: null }))
      ]

/** Records of one execution that wait until all of the changelog is read. */
interface Staged {
  readonly tenantId: string
  readonly executionId: string
  execution: StoredExecution | undefined
  readonly spans: Map<string, StoredSpan>
}

const entryOf = (
  { executionId, spans, tenantId }: Staged,
  { end_is_open, partial, starts = 1, ...stored }: StoredExecution
): ExecutionEntry => {
  const entry = ExecutionEntry.of(tenantId, executionId, {
    ...stored,
    spanCount: 0,
    weight: 0,
    events_from: 0,
    logged: partial ? "in part" : "whole",
    complete: !partial,
    roots: undefined,
    starts,
    isEndOpen: end_is_open === true,
    introducer: undefined
  })
  for (const [id, span] of spans) entry.put(id, span)
  finish(entry.findMissing())
  return entry
}

/** Records as they are replayed: a span may come before its execution. */
export class StagedTraces {
  readonly #staged = new Map<string, Staged>()

  get isEmpty(): boolean {
    return this.#staged.size === 0
  }

  /**
   * Take one record of the changelog into account, in the order of the log.
   * @throws RecordUnreadable
   */
  replay(key: string, value: Buffer | null): void {
    const [prefix, tenantId, execution, span] = key.split("/")
    const isSpan = prefix === "s"
    if (!tenantId || execution === undefined || (isSpan && span === undefined)) {
      throw new RecordUnreadable(`its key does not name ${isSpan ? "a span" : "an execution"}`)
    }
    // Read before anything changes.
    const stored = value === null ? undefined : isSpan ? readSpan(value) : readExecution(value)
    const name = `${tenantId}/${execution}`
    let staged = this.#staged.get(name)
    if (staged === undefined) {
      if (value === null) return
      const executionId = unescapeId(execution)
      staged = { tenantId, executionId, execution: undefined, spans: new Map() }
      this.#staged.set(name, staged)
    }
    if (!isSpan) staged.execution = stored as StoredExecution | undefined
    else if (stored === undefined) staged.spans.delete(unescapeId(span!))
    else staged.spans.set(unescapeId(span!), stored as StoredSpan)
    if (staged.execution === undefined && staged.spans.size === 0) this.#staged.delete(name)
  }

  /** The executions that the records add up to, least recently touched first; none remain here. */
  takeAll(): ReadonlyArray<ExecutionEntry> {
    const entries = [...this.#staged.values()].flatMap((staged) =>
      staged.execution === undefined ? [] : [entryOf(staged, staged.execution)]
    )
    this.#staged.clear()
    return entries.sort((left, right) => left.header.touched_at - right.header.touched_at)
  }
}
