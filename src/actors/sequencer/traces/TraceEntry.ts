/**
 * What the sequencer remembers of one execution and its spans: what the facts said, as far as later
 * operations depend on it. Entries stack: one on top of another holds only what has changed, so
 * that a chunk and a command can be taken back by forgetting theirs. Decides nothing.
 */

import { addTo } from "../../../domain/Lists.ts"
import { finish, type Sliced } from "../../../domain/Slices.ts"
import { microsOf } from "../../../domain/Timestamp.ts"
import type { StoredExecution, StoredSpan } from "../../../domain/traces/StoredTrace.ts"
import type {
  FactCore,
  PreparedDetails,
  SpanStartedCore,
  TerminalStatus
} from "../../../domain/traces/TraceFact.ts"
import type { Side } from "../../../domain/traces/TraceOperation.ts"
import {
  EXECUTION_WEIGHT_MAX,
  type LinkBudget,
  rootsWithin,
  SEARCH_LINKS_MAX,
  takeForRoots
} from "./LinkBudgets.ts"
import {
  type Introducer,
  introducesBefore,
  type LocalRoots,
  NO_ROOTS,
  PARENT_WAIT_MICROS,
  withEnd,
  withRoot
} from "./LocalRoots.ts"
import { placeHash } from "./SpanVersions.ts"
import { laterOf } from "./TraceTimes.ts"

/** What is kept of the details of a span: enough to know them again. */
export interface DetailsHash extends Pick<PreparedDetails, "salt" | "hash"> {
  /** Of their text, in UTF-8. */
  readonly bytes: number
}

/** Other contents of a span that are remembered. */
const OTHERS_MAX = 16
/** Links, and other contents, that take as much memory as a span without them: about a kilobyte. */
const LINKS_PER_SPAN = 8
const OTHERS_PER_SPAN = 3

/** Values of an execution that are remembered, about 100 bytes each. */
const PAYLOADS_MAX = 100

type Mutable<A> = { -readonly [Name in keyof A]: A[Name] }

/** Where the changelog has an execution. */
export type ChangelogCoverage =
  /** Nowhere: it was loaded, or came and ended in one chunk, and has not changed since. */
  | "nowhere"
  /** What has changed since it was loaded; the rest is in the store. */
  | "in part"
  | "whole"

/** As the changelog has it, and what follows from the rest of an entry. */
export interface ExecutionHeader
  extends Mutable<Omit<StoredExecution, "end_is_open" | "partial" | "starts">> {
  spanCount: number
  /** Of the spans: what is kept of them, in spans without links and other contents. */
  weight: number
  /** Offset on `alk.traces` before which it has no events. */
  events_from: number
  logged: ChangelogCoverage
  /** False if spans are missing here that only the store has. */
  complete: boolean
  /** Undefined once the parent of a local root has come: then they are counted anew. */
  roots: LocalRoots | undefined
  /** Its facts that say how it started. */
  starts: number
  /** It has ended, and what came since was not counted: the clock finds out whether that stays. */
  isEndOpen: boolean
  /** The span that says what the execution is. */
  introducer: Introducer | undefined
}

/** How an execution has ended by its spans. */
export interface ImpliedEnd {
  readonly status: TerminalStatus
  readonly endedAt: string
}

/** Local roots that are counted in one step. */
const ROOTS_AT_ONCE = 4_096

/** Spans that name no parent are found under this. */
const NO_PARENT = ""

/** `last_offset` is -1 while the last fact is being written. */
const emptyHeader = (touchedAt: number): ExecutionHeader => ({
  status: "RUNNING",
  source: "api",
  provisional: false,
  root_span_id: "",
  started_at: "",
  started_at_given: false,
  ended_at: null,
  ended_by_client: false,
  fact_count: 0,
  event_count: 0,
  erased_through: 0,
  last_offset: -1,
  touched_at: touchedAt,
  spanCount: 0,
  weight: 0,
  events_from: 0,
  logged: "whole",
  complete: true,
  roots: NO_ROOTS,
  starts: 0,
  isEndOpen: false,
  introducer: undefined
})

export class ExecutionEntry {
  readonly tenantId: string
  readonly executionId: string
  readonly header: ExecutionHeader
  /** Without those of the entry below. */
  readonly spans = new Map<string, StoredSpan>()
  /** Index of its last fact among those of the chunk; -1 if the chunk says nothing of it. */
  lastFact = -1
  /** It took long to be loaded. */
  wasLate = false
  /** Spans that only the store has, not the changelog; only of the lowest entry. */
  unlogged: Set<string> | undefined
  readonly #below: ExecutionEntry | undefined
  /** Values that are in facts already; not all of them after a restart. */
  #payloads: Set<string> | undefined
  #forgotPayloads = false
  /** Ids named as a parent or cause: true until a span with the id has come. */
  #missing: Map<string, boolean> | undefined
  /** Spans by the parent that they name, as long as that has not come. */
  #orphans: Map<string, Array<string>> | undefined
  /** Spans by the parent that they name; some may have another one since. */
  #children: Map<string, Array<string>> | undefined

  private constructor(
    tenantId: string,
    executionId: string,
    header: ExecutionHeader,
    below: ExecutionEntry | undefined
  ) {
    this.tenantId = tenantId
    this.executionId = executionId
    this.header = header
    this.#below = below
  }

  static empty(tenantId: string, executionId: string, touchedAt: number): ExecutionEntry {
    return new ExecutionEntry(tenantId, executionId, emptyHeader(touchedAt), undefined)
  }

  static of(tenantId: string, executionId: string, header: ExecutionHeader): ExecutionEntry {
    return new ExecutionEntry(tenantId, executionId, header, undefined)
  }

  /** An entry on top of this one, which stays as it is until it absorbs that. */
  above(touchedAt: number): ExecutionEntry {
    const entry = new ExecutionEntry(
      this.tenantId,
      this.executionId,
      { ...this.header, touched_at: touchedAt },
      this
    )
    entry.lastFact = this.lastFact
    return entry
  }

  /** True in a chunk that has made the execution. */
  get isNew(): boolean {
    return this.#below === undefined
  }

  span(id: string): StoredSpan | undefined {
    return this.spans.get(id) ?? this.#below?.span(id)
  }

  /** True for ids known so far only as a parent or cause of other spans. */
  isMissing(id: string): boolean {
    return this.#missing?.get(id) ?? this.#below?.isMissing(id) ?? false
  }

  /** True if a value is known to be in facts of the execution, and not erased. */
  hasPayload(hash: string): boolean {
    if (this.#payloads?.has(hash) === true) return true
    return !this.#forgotPayloads && this.#below?.hasPayload(hash) === true
  }

  /**
   * The end that the spans imply, undefined while one of them runs, or a parent is waited for that
   * may still come. See LocalRoots.
   */
  impliedEnd(nowMicros: number): ImpliedEnd | undefined {
    const { header } = this
    const roots =
      header.spanCount === 0 ? this.#silence() : (header.roots ?? finish(this.countRoots()))
    if (roots === undefined || roots.running > 0 || roots.endedAt === "") return undefined
    if (nowMicros < this.#waitsUntil(roots)) return undefined
    return { status: roots.status, endedAt: laterOf(roots.endedAt, header.started_at) }
  }

  /** The same, or `uncounted` where the roots would have to be counted and the budget is used up. */
  impliedEndWithin(nowMicros: number, budget: LinkBudget): ImpliedEnd | "uncounted" | undefined {
    const isCounted = this.header.spanCount === 0 || finish(this.countRoots(budget)) !== undefined
    return isCounted ? this.impliedEnd(nowMicros) : "uncounted"
  }

  /** Microseconds; in the past without a wait. */
  #waitsUntil({ awaitedSince }: LocalRoots): number {
    const { provisional, touched_at } = this.header
    if (!provisional || awaitedSince === "") return Number.NEGATIVE_INFINITY
    // A clock that is ahead makes no wait longer.
    return Math.min(microsOf(awaitedSince), touched_at) + PARENT_WAIT_MICROS
  }

  /** Of one that waits, from when on it has to be looked at; in microseconds. */
  get dueMicros(): number {
    const { complete, roots, spanCount, touched_at } = this.header
    if (!complete) return touched_at + PARENT_WAIT_MICROS
    const counted = spanCount === 0 ? this.#silence() : roots
    return counted === undefined ? Number.NEGATIVE_INFINITY : this.#waitsUntil(counted)
  }

  /** Log records without spans: as a local root that has ended with the latest of them. */
  #silence(): LocalRoots {
    const { last_event_at: at } = this.header
    return at === undefined ? NO_ROOTS : { ...NO_ROOTS, endedAt: at, awaitedSince: at }
  }

  /** True while nothing runs but the wait for a parent; or where that is not known. */
  get isWaiting(): boolean {
    const { complete, ended_by_client, isEndOpen, provisional, source, status } = this.header
    if (isEndOpen) return true
    if (status !== "RUNNING" || source !== "otlp" || ended_by_client) return false
    if (!complete) return provisional
    const roots = this.header.spanCount === 0 ? this.#silence() : this.header.roots
    if (roots === undefined) return true
    return provisional && roots.running === 0 && roots.endedAt !== ""
  }

  noteSide(id: string, side: Side): void {
    const span = this.span(id)
    if (span !== undefined) this.put(id, { ...span, side })
  }

  /** The parent of a span is of another process. */
  noteRemoteParent(id: string): void {
    const span = this.span(id)
    if (span !== undefined) this.put(id, { ...span, parent_is_remote: true })
  }

  /**
   * Count the local roots where it depends on them whether the execution waits. Where there may be
   * many of them the clock finds it out.
   */
  findRoots(): void {
    const { complete, spanCount } = this.header
    if (complete && this.isWaiting && spanCount <= ROOTS_AT_ONCE) finish(this.countRoots())
  }

  #isLocalRoot({ parent_span_id }: StoredSpan): boolean {
    return parent_span_id === null || this.span(parent_span_id) === undefined
  }

  /** Of a span that was erased nothing says that its parent is of another process. */
  #asRoot(span: StoredSpan): StoredSpan {
    const isErased = span.fact_number < this.header.erased_through
    return isErased ? { ...span, parent_is_remote: false } : span
  }

  *#localRoots(): Generator<StoredSpan> {
    const seen = new Set<string>()
    for (let level: ExecutionEntry | undefined = this; level; level = level.#below) {
      for (const [parent, ids] of level.#orphans ?? []) {
        if (parent !== NO_PARENT && this.span(parent) !== undefined) continue
        for (const id of ids) {
          const span = this.span(id)!
          // Sent again, it may have named another parent since.
          if ((span.parent_span_id ?? NO_PARENT) !== parent || seen.has(id)) continue
          seen.add(id)
          yield span
        }
      }
    }
  }

  /** The local roots, counted where they are not; undefined if the budget has no room for them. */
  *countRoots(budget?: LinkBudget): Sliced<LocalRoots | undefined> {
    const { header } = this
    if (header.roots !== undefined) return header.roots
    if (budget !== undefined && budget.left <= 0) return undefined
    let [roots, count] = [NO_ROOTS, 0]
    for (const span of this.#localRoots()) {
      roots = withRoot(roots, this.#asRoot(span))
      count += 1
      if (count % ROOTS_AT_ONCE === 0) yield
      if (budget === undefined || count <= rootsWithin(budget)) continue
      takeForRoots(budget, count)
      return undefined
    }
    if (budget !== undefined) takeForRoots(budget, count)
    header.roots = roots
    return roots
  }

  #addOrphan(parent: string, id: string): void {
    addTo((this.#orphans ??= new Map()), parent, id)
  }

  #addChild(parent: string, id: string): void {
    addTo((this.#children ??= new Map()), parent, id)
  }

  /** The spans that name this parent, each as it is now. */
  *childrenOf(parent: string): Generator<readonly [string, StoredSpan]> {
    const seen = new Set<string>()
    for (let level: ExecutionEntry | undefined = this; level; level = level.#below) {
      for (const id of level.#children?.get(parent) ?? []) {
        const span = this.span(id)!
        if (span.parent_span_id !== parent || seen.has(id)) continue
        seen.add(id)
        yield [id, span]
      }
    }
  }

  /** It only holds values of an event: it has ended, and no fact says that it started. */
  holdValues(now: string): void {
    const root_span_id = this.executionId
    Object.assign(this.header, {
      status: "COMPLETED",
      root_span_id,
      started_at: now,
      ended_at: now
    })
  }

  /** True if that is all that it is. */
  get holdsValues(): boolean {
    return this.header.root_span_id === this.executionId
  }

  notePayload(hash: string): void {
    this.#payloads ??= new Set()
    // Beyond that a value is stored again.
    if (this.#payloads.size === PAYLOADS_MAX) this.#payloads.clear()
    this.#payloads.add(hash)
  }

  #forgetPayloads(): void {
    this.#payloads = undefined
    this.#forgotPayloads = true
  }

  /** Take over what an entry above this one has changed. */
  absorb(above: ExecutionEntry): void {
    Object.assign(this.header, above.header)
    for (const [id, span] of above.spans) this.spans.set(id, span)
    for (const [parent, ids] of above.#orphans ?? []) {
      for (const id of ids) this.#addOrphan(parent, id)
    }
    for (const [parent, ids] of above.#children ?? []) {
      for (const id of ids) this.#addChild(parent, id)
    }
    for (const [id, missing] of above.#missing ?? []) this.#setMissing(id, missing)
    if (above.#forgotPayloads) this.#forgetPayloads()
    for (const hash of above.#payloads ?? []) this.notePayload(hash)
    this.lastFact = above.lastFact
  }

  get #remembersMore(): boolean {
    return this.header.weight < EXECUTION_WEIGHT_MAX
  }

  /** Add a span, or put it in the place of what is known of it. */
  put(id: string, span: StoredSpan): void {
    const before = this.span(id)
    if (before === undefined) this.header.spanCount += 1
    this.header.weight += weightOf(span) - (before === undefined ? 0 : weightOf(before))
    this.spans.set(id, span)
  }

  /** Find again which ids are known only as a parent or cause, and what follows from the spans. */
  *findMissing(): Sliced<void> {
    this.#missing = undefined
    this.#orphans = undefined
    this.#children = undefined
    this.header.roots = undefined
    this.header.introducer = undefined
    for (const [id, span] of this.spans) {
      yield
      this.#expectSources(span)
      if (this.#isLocalRoot(span)) this.#addOrphan(span.parent_span_id ?? NO_PARENT, id)
      if (span.parent_span_id !== null) this.#addChild(span.parent_span_id, id)
      this.#introduce(id, span)
    }
  }

  /** Take a fact into account; what decided on it has checked it. */
  fold(core: FactCore, details: DetailsHash | undefined): void {
    const { header } = this
    header.fact_count = core.fact_number
    switch (core.type) {
      case "execution.started":
        header.source = core.source
        header.provisional = core.provisional === true
        header.root_span_id = core.root_span_id
        header.started_at = core.started_at
        header.started_at_given = core.started_at_given
        header.starts += 1
        return
      case "execution.ended": {
        const implied = this.impliedEnd(Number.POSITIVE_INFINITY)
        header.ended_by_client =
          implied?.status !== core.status || implied.endedAt !== core.ended_at
        header.status = core.status
        header.ended_at = core.ended_at
        return
      }
      case "execution.resumed":
        header.status = "RUNNING"
        header.ended_at = null
        return
      case "execution.erased":
        header.erased_through = core.fact_number
        header.roots = undefined
        this.#forgetPayloads()
        return
      case "span.started":
        return this.#startSpan(core, details)
      case "span.ended": {
        const { ended_at, span_id, status } = core
        const span = this.span(span_id)
        if (span === undefined) return
        const ended = { ...span, status, ended_at }
        this.put(span_id, ended)
        const { roots } = header
        if (roots !== undefined && this.#isLocalRoot(ended))
          header.roots = withEnd(roots, this.#asRoot(ended))
        return
      }
      case "span.amended": {
        const span = this.span(core.span_id)
        if (span === undefined) return
        const { hash, salt } = details ?? {}
        const isOther = hash !== undefined && salt !== undefined
        this.put(core.span_id, {
          ...(isOther && this.#remembersMore ? withOther(span, { salt, hash }) : span),
          ...(core.shared_span_id === undefined ? {} : { shared: true })
        })
        if (core.parent_span_id !== undefined) this.#move(core.span_id, core.parent_span_id)
        return
      }
      case "span.event":
        header.event_count = core.sequence_number
        if (header.spanCount === 0) {
          header.last_event_at = laterOf(header.last_event_at ?? "", core.timestamp)
        }
    }
  }

  #startSpan(core: SpanStartedCore, details: DetailsHash | undefined): void {
    const { span_id } = core
    const before = this.span(span_id)
    const span: StoredSpan = {
      parent_span_id: core.parent_span_id ?? null,
      parent_is_remote: false,
      caused_by_span_ids: core.caused_by_span_ids,
      span_type: core.span_type,
      started_at: core.started_at,
      status: "RUNNING",
      started_at_given: core.started_at_given,
      ended_at: null,
      fact_number: core.fact_number,
      details: storedDetailsOf(details),
      ...(before === undefined
        ? {}
        : { others: this.#remembersMore ? othersWith(before) : (before.others ?? []) }),
      ...(before?.shared === true ? { shared: true } : {})
    }
    this.put(span_id, span)
    const { parent_span_id: parent } = span
    if (parent !== null && before?.parent_span_id !== parent) this.#addChild(parent, span_id)
    if (before !== undefined) {
      // Whatever it was before counts no more; the ids that it named are still known.
      this.header.roots = undefined
      this.header.weight += Math.floor(before.caused_by_span_ids.length / LINKS_PER_SPAN)
    }
    if (this.isMissing(span_id)) {
      this.#setMissing(span_id, false)
      // Its children are no local roots any more.
      this.header.roots = undefined
    }
    this.#expectSources(span)
    this.#introduce(span_id, span)
    if (!this.#isLocalRoot(span)) return
    this.#addOrphan(span.parent_span_id ?? NO_PARENT, span_id)
    const { roots } = this.header
    if (roots !== undefined) this.header.roots = withRoot(roots, this.#asRoot(span))
  }

  /** The span is below another one from now on; what it introduced, that one does. */
  #move(id: string, parent: string): void {
    const { introducer } = this.header
    const moved = { ...this.span(id)!, parent_span_id: parent }
    this.put(id, moved)
    this.header.roots = undefined
    this.#expect(parent)
    if (this.#isLocalRoot(moved)) this.#addOrphan(parent, id)
    this.#addChild(parent, id)
    const above = this.span(parent)
    if (introducer?.id !== id || !introducer.isRoot || above === undefined) return
    const { parent_span_id, started_at: startedAt } = above
    this.header.introducer = { isRoot: parent_span_id === null, startedAt, id: parent }
  }

  #introduce(id: string, { parent_span_id, started_at }: StoredSpan): void {
    const one = { isRoot: parent_span_id === null, startedAt: started_at, id }
    if (introducesBefore(one, this.header.introducer)) this.header.introducer = one
  }

  #expectSources(span: StoredSpan): void {
    for (const source of sourcesOf(span)) this.#expect(source)
  }

  #expect(id: string): void {
    if (this.span(id) === undefined) this.#setMissing(id, true)
  }

  #setMissing(id: string, missing: boolean): void {
    if (missing || this.#below !== undefined) (this.#missing ??= new Map()).set(id, missing)
    else {
      this.#missing?.delete(id)
      this.#orphans?.delete(id)
    }
  }
}

const storedDetailsOf = (details: DetailsHash | undefined): StoredSpan["details"] =>
  details === undefined ? null : { salt: details.salt, hash: details.hash, bytes: details.bytes }

type Others = NonNullable<StoredSpan["others"]>

const withOther = (span: StoredSpan, other: Others[number]): StoredSpan => ({
  ...span,
  others: [...(span.others ?? []), other].slice(-OTHERS_MAX)
})

/** The other contents of a span that is about to get a new one. */
const othersWith = (span: StoredSpan): Others => {
  const { details, ended_at, others = [], status } = span
  if (details === null) return others
  const { hash, salt } = details
  const was = { place: placeHash(span), status, ended_at }
  return withOther(span, { salt, hash, was }).others ?? []
}

const weightOf = ({ caused_by_span_ids: links, others = [] }: StoredSpan): number =>
  1 + Math.floor(links.length / LINKS_PER_SPAN) + Math.floor(others.length / OTHERS_PER_SPAN)

/** What a span follows from: its parent, and its causes. */
const sourcesOf = ({ caused_by_span_ids, parent_span_id }: StoredSpan): ReadonlyArray<string> =>
  parent_span_id === null ? caused_by_span_ids : [parent_span_id, ...caused_by_span_ids]

/**
 * Would a span that follows from `sources` (its parent and its causes) close a cycle? Only if
 * one of them follows from it, and nothing follows from a new one that was not named. Undefined if
 * that takes more links than one search may follow, or, as its `left` then says, than are left.
 */
export const closesCycle = (
  entry: ExecutionEntry,
  spanId: string,
  sources: ReadonlyArray<string>,
  budget: LinkBudget
): boolean | undefined => {
  if (sources.includes(spanId)) return true
  if (entry.span(spanId) === undefined && !entry.isMissing(spanId)) return false
  const seen = new Set(sources)
  const waiting = [...sources]
  let left = SEARCH_LINKS_MAX
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
    const span = entry.span(id)
    if (span === undefined) continue
    const links = 1 + span.caused_by_span_ids.length
    budget.left -= links
    left -= links
    if (budget.left < 0 || left < 0) return undefined
    for (const source of sourcesOf(span)) {
      if (source === spanId) return true
      if (seen.has(source)) continue
      seen.add(source)
      waiting.push(source)
    }
  }
  return false
}
