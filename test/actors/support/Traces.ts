/**
 * A partition's traces without a log or a store: commands go through the step in chunks, the facts
 * land in a model of the store that shows them late and erases them, and the changelog keeps what a
 * restart would find. Also makers of operations with as little said as a test needs.
 */
import { ExecutionLoad, LoadTimes } from "../../../src/actors/sequencer/traces/ExecutionLoads.ts"
import { ForgottenEvents } from "../../../src/actors/sequencer/traces/ForgottenEvents.ts"
import { loadedEntry } from "../../../src/actors/sequencer/traces/LoadedEntry.ts"
import {
  type MissingExecutions,
  missingExecutionsOf,
  soughtEventsOf,
  type TraceCommand
} from "../../../src/actors/sequencer/traces/MissingExecutions.ts"
import { endDue } from "../../../src/actors/sequencer/traces/OtlpStep.ts"
import { type KnownEvent, TraceDraft } from "../../../src/actors/sequencer/traces/TraceDraft.ts"
import type { ExecutionEntry } from "../../../src/actors/sequencer/traces/TraceEntry.ts"
import { traceRecords, unloggedUpTo } from "../../../src/actors/sequencer/traces/TraceRecords.ts"
import { type EvictionLimits, TraceState } from "../../../src/actors/sequencer/traces/TraceState.ts"
import { applyTraces, type TraceOutcome } from "../../../src/actors/sequencer/traces/TraceStep.ts"
import type { Head } from "../../../src/domain/chain/Chains.ts"
import { sha256Hex } from "../../../src/domain/Identifiers.ts"
import { eventsCountBefore, factPlaceOf } from "../../../src/domain/records/FactPlace.ts"
import type { StateRecord } from "../../../src/domain/records/StateRecords.ts"
import { finish } from "../../../src/domain/Slices.ts"
import { microsOf } from "../../../src/domain/Timestamp.ts"
import { eraseFact, factDetailsHash, parseFact } from "../../../src/domain/traces/FactText.ts"
import { chunksOf, type PreparedPayload } from "../../../src/domain/traces/Payload.ts"
import type {
  FactDetails,
  PreparedDetails,
  TraceFact
} from "../../../src/domain/traces/TraceFact.ts"
import {
  type AddSpanEvent,
  type EndExecution,
  type EndSpan,
  type EraseExecution,
  type OtlpEvent,
  type RecordOtlpEvents,
  type RecordOtlpSpan,
  type StartExecution,
  type StartSpan,
  traceEventKeyOf
} from "../../../src/domain/traces/TraceOperation.ts"
import { foldFacts, type TraceView } from "../../../src/domain/traces/TraceView.ts"
import type { LoadedExecution, LoadedFact, TraceKey } from "../../../src/ports/TraceStore.ts"

export const NOW = "2026-11-21T12:00:00.000000Z"
export const TENANT = "acme"

/** Seconds after NOW, or before it. */
export const at = (seconds: number): string =>
  new Date(Date.parse(NOW) + seconds * 1_000).toISOString().replace("Z", "000Z")

let salts = 0

export const details = (said: FactDetails): PreparedDetails => {
  const text = JSON.stringify(said)
  const salt = (salts++).toString(16).padStart(32, "0")
  return { text, salt, hash: factDetailsHash(salt, text) }
}

/** A value as an operation brings it. */
export const payloadOf = (value: string): PreparedPayload => ({
  sha256: sha256Hex(value),
  chunks: chunksOf(value).map((payload) => details({ payload }))
})

/** 32 hex digits of whatever a request says. */
const print = (said: unknown): string => sha256Hex(JSON.stringify(said)).slice(0, 32)

export const startExecution = (
  executionId: string,
  more: Partial<StartExecution> = {}
): StartExecution => ({
  op: "execution.start",
  index: 0,
  executionId,
  fresh: false,
  agentId: "agent",
  rootSpanId: `root-${executionId}`,
  startedAt: NOW,
  startedAtGiven: false,
  rootDetails: details({ name: "agent" }),
  ...more
})

export const endExecution = (
  executionId: string,
  more: Partial<EndExecution> = {}
): EndExecution => ({
  op: "execution.end",
  index: 0,
  executionId,
  status: "COMPLETED",
  endedAt: NOW,
  endedAtGiven: false,
  ...more
})

export const startSpan = (
  executionId: string,
  spanId: string,
  more: Partial<StartSpan> = {}
): StartSpan => ({
  op: "span.start",
  index: 0,
  executionId,
  spanId,
  fresh: false,
  causedBy: [],
  spanType: "TOOL_CALL",
  startedAt: NOW,
  startedAtGiven: false,
  details: details({ name: `span ${spanId}` }),
  ...more
})

export const endSpan = (spanId: string, more: Partial<EndSpan> = {}): EndSpan => ({
  op: "span.end",
  index: 0,
  spanId,
  status: "COMPLETED",
  endedAt: NOW,
  endedAtGiven: false,
  ...more
})

/** An event without an id of the client's. */
export const addEvent = (
  spanId: string,
  eventId: string,
  more: Partial<AddSpanEvent> = {}
): AddSpanEvent => ({
  op: "span.event",
  index: 0,
  spanId,
  eventId,
  eventType: "tool.response",
  timestamp: NOW,
  ...more
})

/** An event whose id the client gave. */
export const addNamedEvent = (
  tenantId: string,
  spanId: string,
  eventId: string,
  eventType: string
): AddSpanEvent =>
  addEvent(spanId, eventId, {
    eventType,
    dedupKey: traceEventKeyOf(tenantId, eventId),
    fingerprint: print([spanId, eventId, eventType])
  })

export const otlpSpan = (
  trace: string,
  spanId: string,
  more: Partial<RecordOtlpSpan> = {}
): RecordOtlpSpan => ({
  op: "otlp.span",
  index: 0,
  executionId: trace,
  syntheticRootId: `synthetic-${trace}`,
  spanId,
  causedBy: [],
  spanType: "LLM_CALL",
  startedAt: at(0),
  endedAt: at(1),
  status: "COMPLETED",
  details: details({ name: spanId }),
  agentId: `agent of ${spanId}`,
  events: [],
  ...more
})

export const otlpEvents = (
  trace: string,
  spanId: string,
  events: ReadonlyArray<OtlpEvent>,
  more: Partial<RecordOtlpEvents> = {}
): RecordOtlpEvents => ({
  op: "otlp.events",
  index: 0,
  executionId: trace,
  syntheticRootId: `synthetic-${trace}`,
  spanId,
  startedAt: at(0),
  agentId: `agent of ${spanId}`,
  events,
  ...more
})

export const erase = (executionId: string): EraseExecution => ({
  op: "execution.erase",
  index: 0,
  executionId,
  reason: "asked for",
  erasedBy: "key"
})

/** Operations as one command, numbered in their order. */
export const command = (
  tenantId: string,
  operations: TraceCommand["operations"]
): TraceCommand => ({
  tenantId,
  operations: operations.map((operation, index) => ({ ...operation, index }))
})

interface StoredRow {
  readonly offset: number
  readonly fact: TraceFact
  readonly body: string
}

/** What becomes of a chunk, and of the partition before it. */
export interface Moment {
  /** Commands of the chunk. */
  readonly size: number
  readonly restart: boolean
  /** Whatever can leave does: not only what has ended. */
  readonly evict: "nothing" | "ended" | "everything"
  /** The projection shows everything. */
  readonly catchUp: boolean
  readonly loadFails: boolean
  /** The chunk does not wait for a load, unless one is late already. */
  readonly loadIsLate: boolean
  /** Before the chunk what is late has come. */
  readonly arrives: boolean
}

export const calm: Moment = {
  size: 1,
  restart: false,
  evict: "nothing",
  catchUp: false,
  loadFails: false,
  loadIsLate: false,
  arrives: true
}

/** Take what the store says of an execution; false if it is not what was written. */
export const takeLoaded = (state: TraceState, loaded: LoadedExecution, now = NOW): boolean => {
  const entry = finish(loadedEntry(loaded, microsOf(now)))
  if (entry !== undefined) finish(state.take(entry, microsOf(now)))
  return entry !== undefined
}

const HOUR_MICROS = 3_600_000_000
const LIMITS: EvictionLimits = { entriesMax: 1_000_000, evictedMax: 1_000_000 }

export class Partition {
  readonly bodies: Array<string> = []
  /** Results and errors of each command, in their order. */
  readonly outcomes: Array<Pick<TraceOutcome, "results" | "errors" | "unavailable">> = []
  readonly heads = new Map<string, Head>()
  /** Offset of alk.traces that the store shows up to, exclusive. */
  visible = 0
  loads = 0
  lateLoads = 0
  evictions = 0
  now = NOW
  state = new TraceState()
  readonly #rows: Array<StoredRow> = []
  readonly #changelog = new Map<string, Buffer>()
  /** Events of OpenTelemetry that are remembered, those of clients aside. */
  windowMax = Number.POSITIVE_INFINITY
  lookUps = 0
  readonly #window = new Map<string, KnownEvent>()
  /** Entries of the window that were forgotten, and all there ever were. */
  readonly #ordinals = { first: 0, next: 0 }
  #forgottenEvents = new ForgottenEvents(0)
  #next = 0
  #late:
    | { readonly load: ExecutionLoad; readonly entries: ReadonlyArray<ExecutionEntry> }
    | undefined
  /** Offset up to which the changelog does not have all executions. */
  #unlogged = 0
  /** Offset that the store has to show before it is asked. */
  #forgotten = 0

  get changelogSize(): number {
    return this.#changelog.size
  }

  /** One command, one chunk. */
  run(...operations: TraceCommand["operations"]): TraceOutcome {
    return this.chunk([command(TENANT, operations)], calm)[0]!
  }

  chunk(commands: ReadonlyArray<TraceCommand>, moment: Moment): ReadonlyArray<TraceOutcome> {
    if (moment.catchUp) this.visible = this.#next
    if (moment.restart) this.restart()
    if (moment.evict !== "nothing") this.evict(moment.evict === "everything")
    if (moment.arrives) this.#takeLate()
    const unloaded = this.#load(missingExecutionsOf(this.state, commands), moment)
    const events = this.#lookUp(commands, moment.loadFails)
    const draft = new TraceDraft(this.state, this.heads, this.now, {
      unloaded: { ...unloaded, executions: [...unloaded.executions, ...events.executions] },
      storedEvents: events.storedEvents,
      hasStore: true
    })
    const window = {
      findDuplicate: (key: string) => this.#window.get(key),
      holdsDuplicate: (key: string) => this.#window.has(key)
    }
    const applied = commands.map((one) => {
      const done = applyTraces(draft, one, window)
      draft.merge(done.command)
      for (const { key, fingerprint, number } of done.dedup)
        this.#window.set(key, { fingerprint, number })
      this.#ordinals.next += done.dedup.filter(({ key, fingerprint }) => key === fingerprint).length
      this.outcomes.push({
        results: done.results,
        errors: done.errors,
        unavailable: done.unavailable
      })
      return done
    })
    this.#commit(draft)
    this.#forgetEvents()
    return applied
  }

  #forgetEvents(): void {
    const own = [...this.#window].filter(([key, { fingerprint }]) => key === fingerprint)
    for (const [key] of own.slice(0, Math.max(0, own.length - this.windowMax))) {
      this.#window.delete(key)
      this.#ordinals.first += 1
    }
    const { first, next } = this.#ordinals
    this.#forgottenEvents.advance({ capacity: this.windowMax, first, next }, this.#next)
  }

  #lookUp(commands: ReadonlyArray<TraceCommand>, fails: boolean) {
    const { upTo } = this.#forgottenEvents
    const holds = (key: string) => this.#window.has(key)
    const sought = upTo === 0 ? [] : soughtEventsOf(this.state, commands, upTo, holds)
    if (sought.length === 0) return { executions: [], storedEvents: new Set<string>() }
    this.lookUps += 1
    if (fails) {
      const executions = sought.map(({ executionId: id, tenantId }) => ({ tenantId, id }))
      return { executions, storedEvents: new Set<string>() }
    }
    this.visible = Math.max(this.visible, upTo)
    const keys = this.#rows.flatMap(({ fact, offset }) =>
      offset < this.visible
      && fact.type === "span.event"
      && sought.some(
        ({ eventIds, executionId, spanIds, tenantId }) =>
          tenantId === fact.tenant_id
          && executionId === fact.execution_id
          && spanIds.includes(fact.span_id)
          && eventIds.includes(fact.event_id)
      )
        ? [traceEventKeyOf(fact.tenant_id, fact.event_id)]
        : []
    )
    return { executions: [], storedEvents: new Set(keys) }
  }

  /** Time passes, and what ends by the clock ends. */
  pass(seconds: number): void {
    this.now = at((Date.parse(this.now) - Date.parse(NOW)) / 1_000 + seconds)
    const nowMicros = microsOf(this.now)
    const inPart = this.state.dueInPart(nowMicros, Number.POSITIVE_INFINITY)
    const executions = inPart.map(({ executionId: id, tenantId }) => ({ tenantId, id }))
    this.#takeLate()
    this.#load({ executions, spans: [] }, calm)
    const draft = new TraceDraft(this.state, this.heads, this.now, { hasStore: true })
    for (const entry of finish(this.state.due(nowMicros, Number.POSITIVE_INFINITY))) {
      draft.merge(endDue(draft, entry.tenantId, entry.executionId))
    }
    this.#commit(draft)
  }

  #commit(draft: TraceDraft): void {
    const firstOffset = this.#next
    this.#write(traceRecords(draft, firstOffset))
    this.#unlogged = Math.max(this.#unlogged, unloggedUpTo(draft, firstOffset))
    for (const [index, { body }] of draft.facts.entries()) {
      this.bodies.push(body)
      this.#rows.push({ offset: firstOffset + index, fact: parseFact(body)!, body })
    }
    // A transaction leaves a marker of its own behind.
    if (draft.facts.length > 0) this.#next += draft.facts.length + 1
    for (const [tenantId, head] of draft.heads) this.heads.set(tenantId, head)
    this.state.advance(draft, firstOffset)
  }

  /** Run commands through the given moments, over and over. */
  runAll(commands: ReadonlyArray<TraceCommand>, moments: ReadonlyArray<Moment> = [calm]): this {
    let done = 0
    for (let turn = 0; done < commands.length; turn++) {
      const moment = moments[turn % moments.length]!
      this.chunk(commands.slice(done, done + moment.size), moment)
      done += moment.size
    }
    return this
  }

  restart(): void {
    this.state = new TraceState()
    this.#late = undefined
    this.#forgotten = this.#unlogged
    this.#forgottenEvents = ForgottenEvents.restored(this.#ordinals, this.#forgotten, this.#next)
    // Compaction keeps the last record of each key; that of a span may come before its execution's.
    for (const [key, value] of [...this.#changelog].reverse()) this.state.replay(key, value)
  }

  /** Everything that has been shown leaves memory, but for what is running. */
  evict(runningToo: boolean): void {
    const idle = runningToo ? 0 : HOUR_MICROS
    const leaving = this.state.evictable(this.visible, microsOf(this.now), idle, LIMITS)
    this.evictions += leaving.length
    this.#late?.load.noteLeaving(leaving)
    this.#write(this.state.evict(leaving).records)
  }

  show(): void {
    this.visible = this.#next
  }

  view(executionId: string, tenantId = TENANT): TraceView {
    return foldFacts(this.factsOf(executionId, tenantId))
  }

  factsOf(executionId: string, tenantId = TENANT): ReadonlyArray<TraceFact> {
    return this.#rows
      .map(({ fact }) => fact)
      .filter((fact) => fact.execution_id === executionId && fact.tenant_id === tenantId)
  }

  #write(records: ReadonlyArray<StateRecord>): void {
    for (const { key, value } of records) {
      this.#changelog.delete(key)
      if (value !== null) this.#changelog.set(key, Buffer.from(value))
    }
  }

  #load(wanted: MissingExecutions, { loadFails, loadIsLate }: Moment): MissingExecutions {
    const isHeld = (key: TraceKey) => this.#late?.load.names(key) === true
    const { held, plans } = new LoadTimes().plan(wanted, 0, isHeld)
    const asked = plans[0]?.missing
    if (asked === undefined) return held
    this.loads += 1
    if (loadFails) return wanted
    const load = new ExecutionLoad(asked, 0)
    const entries = this.#stored(asked).map((rows) => {
      const entry = finish(loadedEntry(toLoaded(rows), microsOf(this.now)))
      if (entry === undefined) throw new Error("not as it was written")
      return entry
    })
    if (loadIsLate && this.#late === undefined) {
      this.lateLoads += 1
      this.#late = { load, entries }
      return wanted
    }
    finish(load.take(this.state, entries, microsOf(this.now)))
    return held
  }

  #takeLate(): void {
    const late = this.#late
    this.#late = undefined
    if (late !== undefined) {
      finish(late.load.take(this.state, late.entries, microsOf(this.now)))
    }
  }

  /** The rows of each execution that is wanted, as the store has them now. */
  #stored(wanted: MissingExecutions): ReadonlyArray<ReadonlyArray<StoredRow>> {
    this.visible = Math.max(this.visible, this.#forgotten)
    const shown = this.#rows.filter(({ offset }) => offset < this.visible)
    const found = new Map<string, Array<StoredRow>>()
    for (const row of shown) {
      const { execution_id, tenant_id } = row.fact
      const isWanted = (fact: TraceFact) =>
        fact.tenant_id === tenant_id
        && (wanted.executions.some((key) => key.id === execution_id && key.tenantId === tenant_id)
          || (fact.type === "span.started"
            && fact.execution_id === execution_id
            && wanted.spans.some((key) => key.id === fact.span_id && key.tenantId === tenant_id)))
      if (!shown.some(({ fact }) => isWanted(fact))) continue
      const name = `${tenant_id} ${execution_id}`
      found.set(name, [...(found.get(name) ?? []), row])
    }
    return [...found.values()]
  }
}

const saidIn = ({ details, type }: TraceFact): Pick<LoadedFact, "parentIsRemote" | "side"> => {
  const { flags, kind } = details?.metadata ?? {}
  if (type !== "span.started") return {}
  return {
    ...(kind === "CLIENT" || kind === "SERVER" ? { side: kind } : {}),
    ...(flags === 0x300 ? { parentIsRemote: true } : {})
  }
}

/** What the store would tell of an execution; it has erased what was to be erased. */
const toLoaded = (rows: ReadonlyArray<StoredRow>): LoadedExecution => {
  const { fact: last } = rows.at(-1)!
  const marked = rows.map(({ fact, offset }) => ({ ...factPlaceOf(fact, 0, offset), mac: "" }))
  const eventsBefore = eventsCountBefore(marked)
  const erased = rows.findLast(({ fact }) => fact.type === "execution.erased")?.fact
  return {
    tenantId: last.tenant_id,
    executionId: last.execution_id,
    facts: rows
      .filter(
        ({ fact: { fact_number, type } }) =>
          type !== "span.payload" && (type !== "span.event" || fact_number < eventsBefore)
      )
      .map(({ body, fact }) =>
        erased !== undefined && fact.fact_number < erased.fact_number
          ? { body: eraseFact(fact, erased.created_at), detailsBytes: 0 }
          : {
              body,
              detailsBytes: Buffer.byteLength(JSON.stringify(fact.details ?? "")),
              ...saidIn(fact)
            }
      ),
    marked
  }
}
