/**
 * The executions that the sequencer of one partition has in memory, and their changelog form on
 * `alk.state`. It grows with what is running, not with history: what has ended or rests leaves as
 * soon as the store shows it, and is loaded from there when it is named again. Knows no operations.
 */
import { recordDecoder } from "../../../domain/json/RecordDecoder.ts"
import { RecordUnreadable } from "../../../domain/json/RecordFields.ts"
import {
  EXECUTION_PREFIX,
  SPAN_PREFIX,
  type StateRecord
} from "../../../domain/records/StateRecords.ts"
import { StoredExecution, StoredSpan } from "../../../domain/traces/StoredTrace.ts"
import { parseFact } from "../../../domain/traces/TraceFact.ts"
import type { LoadedExecution } from "../../../ports/TraceStore.ts"
import {
  ExecutionEntry,
  type ExecutionHeader,
  type SpanEntry,
  spanEntryOf,
  storedSpanOf
} from "./TraceEntry.ts"

/** Executions and spans in memory, per partition; about 500 bytes each. */
export const TRACE_ENTRIES_MAX = 250_000
/** Executions and spans that leave at once: each may need a tombstone in one transaction. */
export const EVICTED_ENTRIES_MAX = 10_000
/** Executions looked at in search of some that may leave. */
const EVICTION_STEPS_MAX = 10_000

const readExecution = recordDecoder(StoredExecution, "execution")
const readSpan = recordDecoder(StoredSpan, "span")

/** True for the keys of `alk.state` that `TraceState.replay` understands. */
export const isTraceKey = (key: string): boolean =>
  key.startsWith(EXECUTION_PREFIX) || key.startsWith(SPAN_PREFIX)

/** Ids may hold any character; in a key a slash separates them. */
const escapeId = (id: string): string =>
  id.includes("%") || id.includes("/") ? id.replaceAll("%", "%25").replaceAll("/", "%2F") : id

const unescapeId = (text: string): string =>
  text.includes("%") ? text.replaceAll("%2F", "/").replaceAll("%25", "%") : text

const executionKey = (tenantId: string, executionId: string): string =>
  `${EXECUTION_PREFIX}${tenantId}/${escapeId(executionId)}`

const spanKey = ({ executionId, tenantId }: ExecutionEntry, spanId: string): string =>
  `${SPAN_PREFIX}${tenantId}/${escapeId(executionId)}/${escapeId(spanId)}`

const executionRecord = (entry: ExecutionEntry, lastOffset: number): StateRecord => {
  const { header } = entry
  const stored: StoredExecution = {
    status: header.status,
    source: header.source,
    provisional: header.provisional,
    root_span_id: header.rootSpanId,
    started_at: header.startedAt,
    started_at_given: header.startedAtGiven,
    ended_at: header.endedAt ?? null,
    fact_count: header.factCount,
    event_count: header.eventCount,
    erased_through: header.erasedThrough,
    last_offset: lastOffset,
    touched_at: header.touchedAt,
    partial: header.logged !== "whole"
  }
  return { key: executionKey(entry.tenantId, entry.executionId), value: JSON.stringify(stored) }
}

const toHeader = (stored: StoredExecution): ExecutionHeader => ({
  status: stored.status,
  source: stored.source,
  provisional: stored.provisional,
  rootSpanId: stored.root_span_id,
  startedAt: stored.started_at,
  startedAtGiven: stored.started_at_given,
  endedAt: stored.ended_at ?? undefined,
  factCount: stored.fact_count,
  eventCount: stored.event_count,
  spanCount: 0,
  erasedThrough: stored.erased_through,
  lastOffset: stored.last_offset,
  touchedAt: stored.touched_at,
  logged: stored.partial ? "in part" : "whole",
  complete: !stored.partial
})

const spanRecord = (entry: ExecutionEntry, spanId: string, span: SpanEntry): StateRecord => ({
  key: spanKey(entry, spanId),
  value: JSON.stringify(storedSpanOf(span))
})

/** What a chunk has changed in executions; see TraceDraft. */
export interface TraceEntryChanges {
  readonly entries: Iterable<ExecutionEntry>
}

/** The records of `alk.state` for a chunk whose first fact is at `firstOffset`. */
export const traceRecords = (
  changes: TraceEntryChanges,
  firstOffset: number
): ReadonlyArray<StateRecord> => {
  const records: Array<StateRecord> = []
  for (const entry of changes.entries) {
    if (entry.lastFact === -1) continue
    records.push(executionRecord(entry, firstOffset + entry.lastFact))
    for (const [id, span] of entry.spans) records.push(spanRecord(entry, id, span))
  }
  return records
}

interface TenantTraces {
  readonly executions: Map<string, ExecutionEntry>
  readonly executionOf: Map<string, string>
}

/** Records of one execution that wait until all of the changelog is read. */
interface Staged {
  readonly tenantId: string
  readonly executionId: string
  execution: StoredExecution | undefined
  readonly spans: Map<string, StoredSpan>
}

/** The entry that loaded facts add up to; undefined if they are not those of an execution. */
const unpack = (loaded: LoadedExecution, nowMicros: number): ExecutionEntry | undefined => {
  const entry = ExecutionEntry.empty(loaded.tenantId, loaded.executionId, nowMicros)
  for (const body of loaded.facts) {
    const fact = parseFact(body)
    if (fact === undefined || fact.execution_id !== loaded.executionId) return undefined
    const { details_hash: hash, details_salt: salt } = fact
    entry.fold(fact, hash === undefined || salt === undefined ? undefined : { hash, salt })
  }
  if (entry.header.startedAt === "") return undefined
  const { eventCount, factCount, lastOffset } = loaded
  Object.assign(entry.header, { eventCount, factCount, lastOffset, logged: "nowhere" })
  entry.unlogged = new Set(entry.spans.keys())
  return entry
}

export interface Eviction {
  /** Tombstones for `alk.state`; they come before other records of the same transaction. */
  readonly records: ReadonlyArray<StateRecord>
  /** Offset on `alk.traces` after the last fact of what has left; 0 if nothing has. */
  readonly forgotten: number
}

/** Bounds of eviction, for tests to make small. */
export interface EvictionLimits {
  readonly entriesMax: number
  readonly evictedMax: number
}

const DEFAULT_LIMITS: EvictionLimits = {
  entriesMax: TRACE_ENTRIES_MAX,
  evictedMax: EVICTED_ENTRIES_MAX
}

const sizeOf = (entry: ExecutionEntry): number => 1 + entry.spans.size

export class TraceState {
  readonly #tenants = new Map<string, TenantTraces>()
  /** Least recently touched first. */
  readonly #touched = new Set<ExecutionEntry>()
  /** In the order of their last fact, but for those that were loaded. */
  readonly #ended = new Set<ExecutionEntry>()
  readonly #staged = new Map<string, Staged>()
  #size = 0

  /** Executions and spans in memory. */
  get size(): number {
    this.#settle()
    return this.#size
  }

  execution(tenantId: string, executionId: string): ExecutionEntry | undefined {
    this.#settle()
    return this.#tenants.get(tenantId)?.executions.get(executionId)
  }

  /** The execution in memory that a span belongs to. */
  executionOf(tenantId: string, spanId: string): string | undefined {
    this.#settle()
    return this.#tenants.get(tenantId)?.executionOf.get(spanId)
  }

  /** Take one record of the changelog into account, in the order of the log. */
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

  /** Everything that the changelog has to hold, as records. */
  snapshot(): ReadonlyArray<StateRecord> {
    this.#settle()
    const records: Array<StateRecord> = []
    for (const entry of this.#touched) {
      if (entry.header.logged === "nowhere") continue
      records.push(executionRecord(entry, entry.header.lastOffset))
      for (const [id, span] of entry.spans) {
        if (entry.unlogged?.has(id) !== true) records.push(spanRecord(entry, id, span))
      }
    }
    return records
  }

  /**
   * Remember an execution that was loaded from the store. What is in memory knows better than the
   * store, so only what is missing there is taken. False if the facts are not those of an execution
   * (someone has changed the store): then what was wanted has not been loaded.
   */
  take(loaded: LoadedExecution, nowMicros: number): boolean {
    const known = this.execution(loaded.tenantId, loaded.executionId)
    if (known?.header.complete === true) return true
    const entry = unpack(loaded, nowMicros)
    if (entry === undefined) return false
    if (known !== undefined) {
      for (const [id, span] of known.spans) {
        entry.put(id, span)
        entry.unlogged?.delete(id)
      }
      const { spanCount } = entry.header
      Object.assign(entry.header, known.header, { spanCount, touchedAt: nowMicros, complete: true })
      this.#remove(known)
    }
    entry.findMissing()
    this.#insert(entry)
    return true
  }

  /**
   * Executions that may leave, now that the store shows `alk.traces` up to `tracesNextVisible`,
   * exclusive: those that have ended, those that nobody has named for `idleMicros`, and beyond the
   * limit of memory those that rest the longest.
   */
  evictable(
    tracesNextVisible: number,
    nowMicros: number,
    idleMicros: number,
    limits: EvictionLimits = DEFAULT_LIMITS
  ): ReadonlyArray<ExecutionEntry> {
    this.#settle()
    const leaving = new Set<ExecutionEntry>()
    let leavingSize = 0
    let steps = 0
    const consider = (entry: ExecutionEntry): void => {
      steps += 1
      if (entry.header.lastOffset >= tracesNextVisible || leaving.has(entry)) return
      leaving.add(entry)
      leavingSize += sizeOf(entry)
    }
    const done = () => leavingSize >= limits.evictedMax || steps >= EVICTION_STEPS_MAX
    for (const entry of this.#ended) {
      if (done()) return [...leaving]
      consider(entry)
    }
    for (const entry of this.#touched) {
      const isIdle = entry.header.touchedAt <= nowMicros - idleMicros
      const tooMany = this.#size - leavingSize > limits.entriesMax
      if (done() || (!isIdle && !tooMany)) break
      consider(entry)
    }
    return [...leaving]
  }

  /** Forget executions that `evictable` has named. */
  evict(entries: ReadonlyArray<ExecutionEntry>): Eviction {
    const records: Array<StateRecord> = []
    let forgotten = 0
    for (const entry of entries) {
      this.#remove(entry)
      forgotten = Math.max(forgotten, entry.header.lastOffset + 1)
      if (entry.header.logged === "nowhere") continue
      records.push({ key: executionKey(entry.tenantId, entry.executionId), value: null })
      for (const id of entry.spans.keys()) {
        if (entry.unlogged?.has(id) !== true) records.push({ key: spanKey(entry, id), value: null })
      }
    }
    return { records, forgotten }
  }

  /** Take over what a chunk has changed, once it is committed. */
  advance(changes: TraceEntryChanges, firstOffset: number): void {
    for (const changed of changes.entries) {
      const hasFacts = changed.lastFact !== -1
      if (hasFacts) {
        changed.header.lastOffset = firstOffset + changed.lastFact
        changed.lastFact = -1
        if (changed.header.logged === "nowhere") changed.header.logged = "in part"
      }
      const known = this.execution(changed.tenantId, changed.executionId)
      if (known === undefined) {
        this.#insert(changed)
        continue
      }
      const before = known.spans.size
      known.absorb(changed)
      this.#size += known.spans.size - before
      this.#indexSpans(known, changed.spans.keys())
      for (const id of changed.spans.keys()) known.unlogged?.delete(id)
      this.#order(known, hasFacts)
    }
  }

  #tenant(tenantId: string): TenantTraces {
    const known = this.#tenants.get(tenantId)
    if (known !== undefined) return known
    const tenant = { executions: new Map(), executionOf: new Map() }
    this.#tenants.set(tenantId, tenant)
    return tenant
  }

  #insert(entry: ExecutionEntry): void {
    this.#tenant(entry.tenantId).executions.set(entry.executionId, entry)
    this.#size += sizeOf(entry)
    this.#indexSpans(entry, entry.spans.keys())
    this.#order(entry, true)
  }

  #indexSpans({ executionId, tenantId }: ExecutionEntry, ids: Iterable<string>): void {
    const { executionOf } = this.#tenant(tenantId)
    for (const id of ids) if (!executionOf.has(id)) executionOf.set(id, executionId)
  }

  #order(entry: ExecutionEntry, hasFacts: boolean): void {
    this.#touched.delete(entry)
    this.#touched.add(entry)
    if (!hasFacts || entry.header.status === "RUNNING") return
    this.#ended.delete(entry)
    this.#ended.add(entry)
  }

  #remove(entry: ExecutionEntry): void {
    const tenant = this.#tenant(entry.tenantId)
    tenant.executions.delete(entry.executionId)
    for (const id of entry.spans.keys()) {
      if (tenant.executionOf.get(id) === entry.executionId) tenant.executionOf.delete(id)
    }
    if (tenant.executions.size === 0) this.#tenants.delete(entry.tenantId)
    this.#touched.delete(entry)
    this.#ended.delete(entry)
    this.#size -= sizeOf(entry)
  }

  /** Make entries of the records that were replayed: a span may come before its execution. */
  #settle(): void {
    if (this.#staged.size === 0) return
    const entries: Array<ExecutionEntry> = []
    for (const { execution, executionId, spans, tenantId } of this.#staged.values()) {
      if (execution === undefined) continue
      const entry = ExecutionEntry.of(tenantId, executionId, toHeader(execution))
      for (const [id, span] of spans) entry.put(id, spanEntryOf(span))
      entry.findMissing()
      entries.push(entry)
    }
    this.#staged.clear()
    entries.sort((left, right) => left.header.touchedAt - right.header.touchedAt)
    for (const entry of entries) this.#insert(entry)
  }
}
