/**
 * What a chunk of commands, and one command of it, has done to executions so far, on top of a state
 * that stays as it was. A command's draft is forgotten or taken over as a whole. Chains facts and
 * folds them; which facts there are is not decided here.
 */

import type { Head } from "../../../domain/chain/Chains.ts"
import { GENESIS_HASH } from "../../../domain/chain/Chains.ts"
import type { WindowEntry } from "../../../domain/records/StateRecords.ts"
import { microsOf } from "../../../domain/Timestamp.ts"
import { type FactType, storeFact } from "../../../domain/traces/FactText.ts"
import type { PreparedPayload } from "../../../domain/traces/Payload.ts"
import type { FactCore, PreparedDetails } from "../../../domain/traces/TraceFact.ts"
import type { OtlpEvent, StartSpan } from "../../../domain/traces/TraceOperation.ts"
import type { LinkBudget, LinkChanges } from "./LinkBudgets.ts"
import {
  idsNamedBy,
  keyText,
  type MissingExecutions,
  type TraceCommand,
  type TraceMemory
} from "./MissingExecutions.ts"
import { type DetailsHash, ExecutionEntry } from "./TraceEntry.ts"
import type { TraceState } from "./TraceState.ts"

/** A fact in its place, ready for `alk.traces`. */
export interface ChainedFact {
  readonly tenantId: string
  readonly type: FactType
  readonly executionId: string
  readonly chainSequence: number
  readonly createdAt: string
  readonly hash: string
  /** The stored JSON, whole. */
  readonly body: string
}

/** What the sequencer remembers of a trace event's id: its fingerprint and sequence number. */
export type KnownEvent = Pick<WindowEntry, "fingerprint" | "number">

/** The duplicate window. */
export interface DuplicateWindow {
  /** With `more` entries of the running command not yet taken over. */
  findDuplicate(key: string, more: number): KnownEvent | undefined
  holdsDuplicate(key: string): boolean
}

/** Of what names no events. */
const NO_WINDOW: DuplicateWindow = {
  findDuplicate: () => undefined,
  holdsDuplicate: () => false
}

/** What a chunk changes; nothing has happened until it is committed and taken over by the state. */
export interface TraceChanges extends LinkChanges {
  readonly facts: ReadonlyArray<ChainedFact>
  /** The ends of the chains that have grown. */
  readonly heads: ReadonlyMap<string, Head>
  readonly entries: Iterable<ExecutionEntry>
  readonly hasStore: boolean
}

/** What is known of the store when a chunk begins. */
export interface TraceContext {
  /** Executions and spans that it was asked for in vain. */
  readonly unloaded?: MissingExecutions
  /** Keys of events that it has, of those that may have left the duplicate window. */
  readonly storedEvents?: ReadonlySet<string>
  /** It answers for executions that are neither in memory nor in the changelog. */
  readonly hasStore?: boolean
}

/** A fact of which the draft knows the execution and the number. */
export type NewFact = FactCore extends infer Core
  ? Core extends FactCore
    ? Omit<Core, "execution_id" | "fact_number">
    : never
  : never

/** What an operation says of a span that it starts, and what was found out about its place. */
export interface SpanStart
  extends Pick<StartSpan, "spanType" | "startedAt" | "startedAtGiven" | "details"> {
  /** Undefined on the root. */
  readonly parent: string | undefined
  readonly causes: ReadonlyArray<string>
}

const NOTHING_MISSING: MissingExecutions = { executions: [], spans: [] }

const keysOf = (missing: MissingExecutions["executions"]): ReadonlySet<string> =>
  new Set(missing.map(({ id, tenantId }) => keyText(tenantId, id)))

/** One chunk's changes. */
export class TraceDraft implements TraceMemory, TraceChanges {
  readonly facts: Array<ChainedFact> = []
  readonly heads = new Map<string, Head>()
  readonly links = new Map<string, LinkBudget>()
  /** Canonical time of the chunk. */
  readonly now: string
  readonly nowMicros: number
  readonly hasStore: boolean
  readonly storedEvents: ReadonlySet<string>
  readonly #state: TraceState
  readonly #stateHeads: ReadonlyMap<string, Head>
  readonly #unloadedExecutions: ReadonlySet<string>
  readonly #unloadedSpans: ReadonlySet<string>
  readonly #entries = new Map<string, ExecutionEntry>()
  readonly #executionOf = new Map<string, string>()

  constructor(
    state: TraceState,
    heads: ReadonlyMap<string, Head>,
    now: string,
    { hasStore = false, storedEvents = new Set(), unloaded = NOTHING_MISSING }: TraceContext = {}
  ) {
    this.#state = state
    this.#stateHeads = heads
    this.now = now
    this.nowMicros = microsOf(now)
    this.hasStore = hasStore
    this.storedEvents = storedEvents
    this.#unloadedExecutions = keysOf(unloaded.executions)
    this.#unloadedSpans = keysOf(unloaded.spans)
  }

  /** Executions that the chunk has named, changed or not. */
  get entries(): Iterable<ExecutionEntry> {
    return this.#entries.values()
  }

  head(tenantId: string): Head | undefined {
    return this.heads.get(tenantId) ?? this.#stateHeads.get(tenantId)
  }

  /** What the tenant has left; what is used of it stays used when a command is forgotten. */
  linksOf(tenantId: string): LinkBudget {
    const known = this.links.get(tenantId)
    if (known !== undefined) return known
    const budget = { left: this.#state.linksLeft(tenantId, this.nowMicros) }
    this.links.set(tenantId, budget)
    return budget
  }

  execution(tenantId: string, executionId: string): ExecutionEntry | undefined {
    return (
      this.#entries.get(keyText(tenantId, executionId))
      ?? this.#state.execution(tenantId, executionId)
    )
  }

  executionOf(tenantId: string, spanId: string): string | undefined {
    return (
      this.#state.executionOf(tenantId, spanId) ?? this.#executionOf.get(keyText(tenantId, spanId))
    )
  }

  /** True if a command names something that could not be loaded. */
  namesUnloaded({ operations, tenantId }: TraceCommand): boolean {
    const isUnloaded = (id: string): boolean => {
      const isKnown = this.execution(tenantId, id)?.header.complete !== false
      return !isKnown || this.#unloadedExecutions.has(keyText(tenantId, id))
    }
    return operations.some((operation) => {
      const { executionId, spanId } = idsNamedBy(operation)
      if (executionId !== undefined && isUnloaded(executionId)) return true
      if (spanId === undefined) return false
      const holder = this.executionOf(tenantId, spanId)
      return holder === undefined
        ? this.#unloadedSpans.has(keyText(tenantId, spanId))
        : isUnloaded(holder)
    })
  }

  /** Take over what a command has done. */
  merge(command: CommandDraft): void {
    const { tenantId } = command
    for (const fact of command.facts) this.facts.push(fact)
    if (command.head !== undefined && command.facts.length > 0) {
      this.heads.set(tenantId, command.head)
    }
    for (const [id, entry] of command.entries) {
      const key = keyText(tenantId, id)
      const known = this.#entries.get(key)
      if (known === undefined) this.#entries.set(key, entry)
      else known.absorb(entry)
    }
    for (const [spanId, executionId] of command.started) {
      const key = keyText(tenantId, spanId)
      if (!this.#executionOf.has(key)) this.#executionOf.set(key, executionId)
    }
  }
}

const detailsHashOf = ({ hash, salt, text }: PreparedDetails): DetailsHash => ({
  salt,
  hash,
  bytes: Buffer.byteLength(text)
})

const chunksIn = (
  operations: TraceCommand["operations"]
): ReadonlyMap<string, ReadonlyArray<PreparedDetails>> => {
  const found = new Map<string, ReadonlyArray<PreparedDetails>>()
  for (const operation of operations) {
    if (!("payloads" in operation)) continue
    for (const { chunks, sha256 } of operation.payloads ?? []) {
      if (chunks !== undefined) found.set(sha256, chunks)
    }
  }
  return found
}

/** One command's changes. */
export class CommandDraft {
  readonly tenantId: string
  readonly facts: Array<ChainedFact> = []
  /** Entries for the duplicate window. */
  readonly dedup: Array<WindowEntry> = []
  /** By execution id: every execution that was named. */
  readonly entries = new Map<string, ExecutionEntry>()
  /** Execution by span id: the spans that were started. */
  readonly started = new Map<string, string>()
  /** Of the tenant, shared by its commands of the chunk. */
  readonly links: LinkBudget
  head: Head | undefined
  /** Of the chunk. */
  readonly nowMicros: number
  readonly #draft: TraceDraft
  readonly #window: DuplicateWindow
  readonly ownEvents = new Map<string, KnownEvent>()
  /** Pieces of values, whichever operation has brought them. */
  readonly #chunks: ReadonlyMap<string, ReadonlyArray<PreparedDetails>>

  constructor(
    draft: TraceDraft,
    { operations, tenantId }: TraceCommand,
    window: DuplicateWindow = NO_WINDOW
  ) {
    this.#draft = draft
    this.tenantId = tenantId
    this.nowMicros = draft.nowMicros
    this.links = draft.linksOf(tenantId)
    this.#chunks = chunksIn(operations)
    this.head = draft.head(tenantId)
    this.#window = window
  }

  execution(executionId: string): ExecutionEntry | undefined {
    const own = this.entries.get(executionId)
    if (own !== undefined) return own
    const below = this.#draft.execution(this.tenantId, executionId)
    if (below === undefined) return undefined
    const entry = below.above(this.#draft.nowMicros)
    this.entries.set(executionId, entry)
    return entry
  }

  /** Of several executions with this span, which only OpenTelemetry ids can have, the first. */
  executionOf(spanId: string): string | undefined {
    return this.#draft.executionOf(this.tenantId, spanId) ?? this.started.get(spanId)
  }

  create(executionId: string): ExecutionEntry {
    const entry = ExecutionEntry.empty(this.tenantId, executionId, this.#draft.nowMicros)
    this.entries.set(executionId, entry)
    return entry
  }

  /** Chain the next fact of an execution, and fold it. */
  record(entry: ExecutionEntry, fact: NewFact, details?: PreparedDetails): void {
    const { executionId } = entry
    const core: FactCore = {
      ...fact,
      execution_id: executionId,
      fact_number: entry.header.fact_count + 1
    }
    const { head, tenantId } = this
    const { now } = this.#draft
    const chainSequence = (head?.sequence_number ?? 0) + 1
    const createdAt = head !== undefined && head.created_at > now ? head.created_at : now
    const prevHash = head?.hash ?? GENESIS_HASH
    const { body, hash } = storeFact(core, details, {
      tenantId,
      chainSequence,
      createdAt,
      prevHash
    })
    entry.lastFact = this.#draft.facts.length + this.facts.length
    const { type } = core
    this.facts.push({ tenantId, type, executionId, chainSequence, createdAt, hash, body })
    this.head = { sequence_number: chainSequence, hash, created_at: createdAt }
    entry.fold(core, details && detailsHashOf(details))
    if (core.type === "span.started" && !this.started.has(core.span_id)) {
      this.started.set(core.span_id, executionId)
    }
  }

  /** Record the start of a span: of all kinds of operations the one place that says what it has. */
  recordSpan(entry: ExecutionEntry, spanId: string, start: SpanStart): void {
    const { causes, details, parent, spanType, startedAt, startedAtGiven } = start
    this.record(
      entry,
      {
        type: "span.started",
        span_id: spanId,
        ...(parent === undefined ? {} : { parent_span_id: parent }),
        caused_by_span_ids: causes,
        span_type: spanType,
        started_at: startedAt,
        started_at_given: startedAtGiven
      },
      details
    )
  }

  /** Record an event of a span; its sequence number. */
  recordEvent(
    entry: ExecutionEntry,
    spanId: string,
    { details, eventId, eventType, timestamp }: OtlpEvent
  ): number {
    const sequenceNumber = entry.header.event_count + 1
    this.record(
      entry,
      {
        type: "span.event",
        span_id: spanId,
        event_id: eventId,
        event_type: eventType,
        sequence_number: sequenceNumber,
        timestamp
      },
      details
    )
    return sequenceNumber
  }

  /** Record the values that an operation refers to, as far as the execution has none of them. */
  recordPayloads(
    entry: ExecutionEntry,
    spanId: string,
    payloads: ReadonlyArray<PreparedPayload> | undefined
  ): void {
    for (const { sha256 } of payloads ?? []) {
      const chunks = this.#chunks.get(sha256)
      if (chunks === undefined || entry.hasPayload(sha256)) continue
      for (const chunk of chunks) {
        this.record(entry, { type: "span.payload", span_id: spanId }, chunk)
      }
      entry.notePayload(sha256)
    }
  }

  findEvent(key: string): KnownEvent | undefined {
    return this.ownEvents.get(key) ?? this.#window.findDuplicate(key, this.dedup.length)
  }

  /** Whether an event of OpenTelemetry was recorded, however long ago. */
  hasEvent(key: string): boolean {
    return (
      this.ownEvents.has(key)
      || this.#draft.storedEvents.has(key)
      || this.#window.holdsDuplicate(key)
    )
  }

  rememberEvent(entry: WindowEntry): void {
    this.ownEvents.set(entry.key, entry)
    this.dedup.push(entry)
  }
}
