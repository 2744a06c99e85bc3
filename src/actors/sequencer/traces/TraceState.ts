/**
 * The executions that the sequencer of one partition has in memory. It grows with what is running,
 * not with history: what has ended or is idle leaves as soon as the store shows it, and is loaded
 * from there when it is named again.
 */
import type { StateRecord } from "../../../domain/records/StateRecords.ts"
import type { Sliced } from "../../../domain/Slices.ts"
import { LinkBudgets, type LinkChanges } from "./LinkBudgets.ts"
import type { ExecutionEntry } from "./TraceEntry.ts"
import {
  recordsOf,
  StagedTraces,
  staysUnlogged,
  type TraceEntryChanges,
  tombstonesOf
} from "./TraceRecords.ts"
import { WaitingExecutions } from "./WaitingExecutions.ts"

/** Executions and spans in memory, per partition; about 500 bytes each. */
const TRACE_ENTRIES_MAX = 250_000
/** Executions and spans that leave at once: each may need a tombstone in one transaction. */
export const EVICTED_ENTRIES_MAX = 10_000
/**
 * Executions that take seconds to be loaded, of so many facts or as it was seen, stay for a while when they
 * have ended.
 */
const LARGE_FACTS = 5_000
const LARGE_STAY_MICROS = 60_000_000
/** Executions looked at in search of some that may leave. */
const EVICTION_STEPS_MAX = 10_000

interface TenantTraces {
  readonly executions: Map<string, ExecutionEntry>
  readonly executionOf: Map<string, string>
}

export interface Eviction {
  /** Tombstones for `alk.state`; they come before other records of the same transaction. */
  readonly records: ReadonlyArray<StateRecord>
  /** Offset on `alk.traces` after the last fact of what has left; 0 if nothing has. */
  readonly forgotten: number
  /** Executions and spans that have left. */
  readonly size: number
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

const sizeOf = ({ header }: ExecutionEntry): number => 1 + header.weight

export class TraceState {
  readonly #tenants = new Map<string, TenantTraces>()
  /** Least recently touched first, without those that wait. */
  readonly #touched = new Set<ExecutionEntry>()
  /** In the order of their last fact, but for those that were loaded. */
  readonly #ended = new Set<ExecutionEntry>()
  /**
   * Executions that end by the clock alone, and do not leave before: nothing runs in them, and a
   * parent may still come. Or it has to be found out whether that is so.
   */
  readonly #waiting = new WaitingExecutions()
  /** Those of them that are not in memory as a whole. */
  readonly #inPart = new WaitingExecutions()
  readonly #staged = new StagedTraces()
  readonly #links = new LinkBudgets()
  #size = 0

  /** Executions and spans in memory, by their weight. */
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

  /** Links between spans that searches for cycles of a tenant may follow now. */
  linksLeft(tenantId: string, nowMicros: number): number {
    return this.#links.left(tenantId, nowMicros)
  }

  /** Take one record of the changelog into account, in the order of the log. */
  replay(key: string, value: Buffer | null): void {
    this.#staged.replay(key, value)
  }

  /** Everything that the changelog has to hold, as records. */
  snapshot(): ReadonlyArray<StateRecord> {
    this.#settle()
    return [...this.#touched, ...this.#waiting.all, ...this.#inPart.all].flatMap(recordsOf)
  }

  /**
   * Remember an execution that was loaded from the store. What is in memory knows better than the
   * store, so only what is missing there is taken.
   */
  *take(entry: ExecutionEntry, nowMicros: number): Sliced<void> {
    const known = this.execution(entry.tenantId, entry.executionId)
    if (known?.header.complete === true) return
    entry.header.touched_at = nowMicros
    if (known !== undefined) {
      for (const [id, span] of known.spans) {
        yield
        entry.put(id, span)
        entry.unlogged?.delete(id)
      }
      const { spanCount, weight } = entry.header
      Object.assign(entry.header, known.header, {
        spanCount,
        weight,
        touched_at: nowMicros,
        complete: true
      })
      this.#remove(known)
      yield* entry.findMissing()
    }
    this.#insert(entry)
  }

  /**
   * Executions that may leave, now that the store shows `alk.traces` up to `tracesNextVisible`,
   * exclusive: those that have ended, large ones a minute after they were named last; those that no
   * command has named for `idleMicros`; and beyond the limit of memory those that are idle the longest.
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
      if (entry.header.last_offset >= tracesNextVisible || leaving.has(entry)) return
      leaving.add(entry)
      leavingSize += sizeOf(entry)
    }
    const done = () => leavingSize >= limits.evictedMax || steps >= EVICTION_STEPS_MAX
    for (const entry of this.#ended) {
      if (done()) return [...leaving]
      const { fact_count, touched_at } = entry.header
      const isLarge = entry.wasLate || fact_count >= LARGE_FACTS
      if (!isLarge || touched_at <= nowMicros - LARGE_STAY_MICROS) consider(entry)
    }
    for (const entry of this.#touched) {
      const isIdle = entry.header.touched_at <= nowMicros - idleMicros
      const tooMany = this.#size - leavingSize > limits.entriesMax
      if (done() || (!isIdle && !tooMany)) break
      consider(entry)
    }
    return [...leaving]
  }

  /**
   * Executions in memory as a whole whose wait for a parent is over, `most` at most. In steps:
   * nothing else may change the state meanwhile.
   */
  *due(nowMicros: number, most: number): Sliced<ReadonlyArray<ExecutionEntry>> {
    this.#settle()
    const due: Array<ExecutionEntry> = []
    for (const entry of this.#waiting.dueAt(nowMicros)) {
      yield* entry.countRoots()
      const isDue = entry.header.isEndOpen || entry.impliedEnd(nowMicros) !== undefined
      if (!(isDue && entry.isWaiting)) this.#place(entry)
      if (isDue && due.push(entry) === most) break
    }
    return due
  }

  /**
   * Those that may be due, and have to be loaded before that is known. The next time others come
   * first: what can't be loaded holds up no others.
   */
  dueInPart(nowMicros: number, most: number): ReadonlyArray<ExecutionEntry> {
    this.#settle()
    const due: Array<ExecutionEntry> = []
    for (const entry of this.#inPart.dueAt(nowMicros)) if (due.push(entry) === most) break
    for (const entry of due) this.#inPart.put(entry, nowMicros)
    return due
  }

  /** Forget executions that `evictable` has named. */
  evict(entries: ReadonlyArray<ExecutionEntry>): Eviction {
    const records: Array<StateRecord> = []
    const before = this.size
    let forgotten = 0
    for (const entry of entries) {
      this.#remove(entry)
      forgotten = Math.max(forgotten, entry.header.last_offset + 1)
      records.push(...tombstonesOf(entry))
    }
    return { records, forgotten, size: before - this.#size }
  }

  /** Take over what a chunk has changed, once it is committed. */
  advance(changes: TraceEntryChanges & LinkChanges, firstOffset: number): void {
    this.#links.advance(changes)
    for (const changed of changes.entries) {
      const isUnlogged = staysUnlogged(changes, changed)
      const hasFacts = changed.lastFact !== -1
      if (hasFacts) {
        changed.header.last_offset = firstOffset + changed.lastFact
        changed.lastFact = -1
        if (changed.header.logged === "nowhere") changed.header.logged = "in part"
      }
      const known = this.execution(changed.tenantId, changed.executionId)
      if ((known?.header.event_count ?? 0) === 0) changed.header.events_from = firstOffset
      if (known === undefined) {
        if (isUnlogged) {
          changed.header.logged = "nowhere"
          changed.unlogged = new Set(changed.spans.keys())
        }
        this.#insert(changed)
        continue
      }
      const before = sizeOf(known)
      known.absorb(changed)
      this.#size += sizeOf(known) - before
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
    entry.findRoots()
    this.#order(entry, true)
  }

  #indexSpans({ executionId, tenantId }: ExecutionEntry, ids: Iterable<string>): void {
    const { executionOf } = this.#tenant(tenantId)
    for (const id of ids) if (!executionOf.has(id)) executionOf.set(id, executionId)
  }

  #order(entry: ExecutionEntry, hasFacts: boolean): void {
    this.#place(entry)
    if (!hasFacts) return
    this.#ended.delete(entry)
    const { isEndOpen, status } = entry.header
    if (status !== "RUNNING" && !isEndOpen) this.#ended.add(entry)
  }

  /** Among those that wait, or at the end of those that don't. */
  #place(entry: ExecutionEntry): void {
    this.#leave(entry)
    if (!entry.isWaiting) this.#touched.add(entry)
    else (entry.header.complete ? this.#waiting : this.#inPart).put(entry, entry.dueMicros)
  }

  #leave(entry: ExecutionEntry): void {
    this.#touched.delete(entry)
    this.#waiting.delete(entry)
    this.#inPart.delete(entry)
  }

  #remove(entry: ExecutionEntry): void {
    const tenant = this.#tenant(entry.tenantId)
    tenant.executions.delete(entry.executionId)
    for (const id of entry.spans.keys()) {
      if (tenant.executionOf.get(id) === entry.executionId) tenant.executionOf.delete(id)
    }
    if (tenant.executions.size === 0) this.#tenants.delete(entry.tenantId)
    this.#leave(entry)
    this.#ended.delete(entry)
    this.#size -= sizeOf(entry)
  }

  /** Make entries of the records that were replayed. */
  #settle(): void {
    if (this.#staged.isEmpty) return
    for (const entry of this.#staged.takeAll()) this.#insert(entry)
  }
}
