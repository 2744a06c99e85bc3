/**
 * What the sequencer remembers of one execution and its spans: what the facts said, as far as later
 * operations depend on it. Entries stack: one on top of another holds only what has changed, so
 * that a chunk and a command can be taken back by forgetting theirs. Decides nothing.
 */
import type { StoredSpan } from "../../../domain/traces/StoredTrace.ts"
import type {
  FactCore,
  PreparedDetails,
  SpanStartedCore,
  TraceStatus
} from "../../../domain/traces/TraceFact.ts"

/** What is kept of the details of a span: enough to know them again. */
export type DetailsMark = Pick<PreparedDetails, "salt" | "hash">

export interface SpanEntry {
  /** Undefined on the root. */
  readonly parent: string | undefined
  readonly causes: ReadonlyArray<string>
  readonly spanType: string
  /** By facts of its own: the end of the execution leaves it RUNNING. */
  readonly status: TraceStatus
  readonly startedAt: string
  readonly startedAtGiven: boolean
  readonly endedAt: string | undefined
  /** Number of the fact that started it. */
  readonly factNumber: number
  /** Undefined if the details were erased before it was loaded. */
  readonly details: DetailsMark | undefined
}

/** As the changelog has it. */
export const storedSpanOf = (span: SpanEntry): StoredSpan => ({
  parent_span_id: span.parent ?? null,
  caused_by_span_ids: span.causes,
  span_type: span.spanType,
  status: span.status,
  started_at: span.startedAt,
  started_at_given: span.startedAtGiven,
  ended_at: span.endedAt ?? null,
  fact_number: span.factNumber,
  details: span.details ?? null
})

export const spanEntryOf = (stored: StoredSpan): SpanEntry => ({
  parent: stored.parent_span_id ?? undefined,
  causes: stored.caused_by_span_ids,
  spanType: stored.span_type,
  status: stored.status,
  startedAt: stored.started_at,
  startedAtGiven: stored.started_at_given,
  endedAt: stored.ended_at ?? undefined,
  factNumber: stored.fact_number,
  details: stored.details ?? undefined
})

/** What an operation says of a span that it starts. */
type SpanStart = Pick<SpanEntry, "parent" | "causes" | "spanType" | "startedAt" | "startedAtGiven">

/** Where the changelog has an execution. */
export type Logged =
  /** Nowhere: it was loaded and has not changed since. */
  | "nowhere"
  /** What has changed since it was loaded; the rest is in the store. */
  | "in part"
  | "whole"

export interface ExecutionHeader {
  status: TraceStatus
  source: "api" | "otlp"
  provisional: boolean
  rootSpanId: string
  startedAt: string
  startedAtGiven: boolean
  endedAt: string | undefined
  /** Facts so far: number of the last one. */
  factCount: number
  /** Trace events so far: sequence number of the last one. */
  eventCount: number
  spanCount: number
  /** Number of the last `execution.erased`; 0 if there is none. */
  erasedThrough: number
  /** Offset on `alk.traces` of its last fact; -1 while that is being written. */
  lastOffset: number
  /** Microseconds since the epoch of the last command that named it. */
  touchedAt: number
  logged: Logged
  /** False if spans are missing here that the store has to tell. */
  complete: boolean
}

const emptyHeader = (touchedAt: number): ExecutionHeader => ({
  status: "RUNNING",
  source: "api",
  provisional: false,
  rootSpanId: "",
  startedAt: "",
  startedAtGiven: false,
  endedAt: undefined,
  factCount: 0,
  eventCount: 0,
  spanCount: 0,
  erasedThrough: 0,
  lastOffset: -1,
  touchedAt,
  logged: "whole",
  complete: true
})

export class ExecutionEntry {
  readonly tenantId: string
  readonly executionId: string
  readonly header: ExecutionHeader
  /** Without those of the entry below. */
  readonly spans = new Map<string, SpanEntry>()
  /** Index of its last fact among those of the chunk; -1 if the chunk says nothing of it. */
  lastFact = -1
  /** Spans that only the store has, not the changelog; only of the lowest entry. */
  unlogged: Set<string> | undefined
  readonly #below: ExecutionEntry | undefined
  /** Ids that are somebody's parent or cause (true), or were that before they came (false). */
  #missing: Map<string, boolean> | undefined

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
      { ...this.header, touchedAt },
      this
    )
    entry.lastFact = this.lastFact
    return entry
  }

  span(id: string): SpanEntry | undefined {
    return this.spans.get(id) ?? this.#below?.span(id)
  }

  /** True for ids known so far only as somebody's parent or cause. */
  isMissing(id: string): boolean {
    return this.#missing?.get(id) ?? this.#below?.isMissing(id) ?? false
  }

  /** Take over what an entry above this one has changed. */
  absorb(above: ExecutionEntry): void {
    Object.assign(this.header, above.header)
    for (const [id, span] of above.spans) this.spans.set(id, span)
    for (const [id, missing] of above.#missing ?? []) this.#setMissing(id, missing)
    this.lastFact = above.lastFact
  }

  /** Add a span that another record tells of. */
  put(id: string, span: SpanEntry): void {
    if (this.span(id) === undefined) this.header.spanCount += 1
    this.spans.set(id, span)
  }

  /** Find anew which ids are known only as somebody's parent or cause. */
  findMissing(): void {
    this.#missing = undefined
    for (const { causes, parent } of this.spans.values()) {
      if (parent !== undefined) this.#expect(parent)
      for (const cause of causes) this.#expect(cause)
    }
  }

  /** The next fact of this execution, if it is the start of a span. */
  spanStart(spanId: string, start: SpanStart): SpanStartedCore {
    return {
      type: "span.started",
      execution_id: this.executionId,
      fact_number: this.header.factCount + 1,
      span_id: spanId,
      ...(start.parent === undefined ? {} : { parent_span_id: start.parent }),
      caused_by_span_ids: start.causes,
      span_type: start.spanType,
      started_at: start.startedAt,
      started_at_given: start.startedAtGiven
    }
  }

  /** Take a fact into account; whatever decided on it has checked it. */
  fold(core: FactCore, details: DetailsMark | undefined): void {
    const { header } = this
    header.factCount = core.fact_number
    switch (core.type) {
      case "execution.started":
        header.source = core.source
        header.provisional = core.provisional === true
        header.rootSpanId = core.root_span_id
        header.startedAt = core.started_at
        header.startedAtGiven = core.started_at_given
        return
      case "execution.ended":
        header.status = core.status
        header.endedAt = core.ended_at
        return
      case "execution.erased":
        header.erasedThrough = core.fact_number
        return
      case "span.started":
        return this.#startSpan(core, details)
      case "span.ended": {
        const span = this.span(core.span_id)
        if (span === undefined) return
        this.spans.set(core.span_id, { ...span, status: core.status, endedAt: core.ended_at })
        return
      }
      case "span.event":
        header.eventCount = core.sequence_number
    }
  }

  #startSpan(core: SpanStartedCore, details: DetailsMark | undefined): void {
    this.put(core.span_id, {
      parent: core.parent_span_id,
      causes: core.caused_by_span_ids,
      spanType: core.span_type,
      status: "RUNNING",
      startedAt: core.started_at,
      startedAtGiven: core.started_at_given,
      endedAt: undefined,
      factNumber: core.fact_number,
      details: details && { salt: details.salt, hash: details.hash }
    })
    if (this.isMissing(core.span_id)) this.#setMissing(core.span_id, false)
    if (core.parent_span_id !== undefined) this.#expect(core.parent_span_id)
    for (const cause of core.caused_by_span_ids) this.#expect(cause)
  }

  #expect(id: string): void {
    if (this.span(id) === undefined) this.#setMissing(id, true)
  }

  #setMissing(id: string, missing: boolean): void {
    if (!missing && this.#below === undefined) this.#missing?.delete(id)
    else (this.#missing ??= new Map()).set(id, missing)
  }
}

/** Links between spans that may still be followed; shared by whoever must not look for ever. */
export interface LinkBudget {
  left: number
}

/**
 * Would a new span that follows from `sources` (its parent and its causes) close a cycle? Only if
 * one of them follows from it, and nothing does unless it has been named before. Undefined if the
 * budget ends before that is known.
 */
export const closesCycle = (
  entry: ExecutionEntry,
  spanId: string,
  sources: ReadonlyArray<string>,
  budget: LinkBudget
): boolean | undefined => {
  if (sources.includes(spanId)) return true
  if (!entry.isMissing(spanId)) return false
  const seen = new Set(sources)
  const waiting = [...sources]
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
    const span = entry.span(id)
    if (span === undefined) continue
    budget.left -= 1 + span.causes.length
    if (budget.left < 0) return undefined
    for (const source of span.parent === undefined ? span.causes : [span.parent, ...span.causes]) {
      if (source === spanId) return true
      if (seen.has(source)) continue
      seen.add(source)
      waiting.push(source)
    }
  }
  return false
}
