/**
 * The rules of OpenTelemetry spans: they come in any order, in any number of requests, twice,
 * before their parent, after the end, with other content, and still add up to one execution. What
 * is new of a span is recorded; only a cycle is refused.
 */
import type { DecidedRepair } from "../../../domain/traces/Repairs.ts"
import {
  type OtlpEvent,
  type RecordOtlpEvents,
  type RecordOtlpSpan,
  traceEventKeyOf
} from "../../../domain/traces/TraceOperation.ts"
import { type Introducer, introducesBefore } from "./LocalRoots.ts"
import { otherSpanOf, parentFor, placed } from "./SharedIds.ts"
import {
  causesOf,
  endOf,
  isKnownOther,
  isSameEnd,
  isSameStart,
  outranks,
  wholeContentOf
} from "./SpanVersions.ts"
import { CommandDraft, type TraceDraft } from "./TraceDraft.ts"
import { closesCycle, type ExecutionEntry, type ImpliedEnd } from "./TraceEntry.ts"
import {
  cycleOf,
  cycleRefusal,
  fullRefusal,
  type TraceDecision,
  type TraceRefusal
} from "./TraceRefusals.ts"

/** Spans that a command moves from one parent to another: a fact each, 20 ms of one partition. */
export const MOVED_CHILDREN_MAX = 1_000

/**
 * Facts that say how an execution started, each with all of its details, up to which a log record adds
 * another one. In no order they are rarely the earliest so often.
 */
export const EXECUTION_STARTS_MAX = 32

/** A span of the command on its way through the turns. */
interface Recording {
  readonly sent: RecordOtlpSpan
  /** With the ids that it has here, see SharedIds. */
  operation: RecordOtlpSpan
  refusal: TraceRefusal | undefined
  /** True for a span that was there before: by an earlier command, or earlier in this one. */
  isAgain: boolean
  /** True once a fact of the span was recorded. */
  hasNews: boolean
  repair: DecidedRepair | undefined
}

const introducerOf = ({ parentSpanId, spanId, startedAt }: RecordOtlpSpan): Introducer => ({
  isRoot: parentSpanId === undefined,
  startedAt,
  id: spanId
})

const sourcesOf = (operation: RecordOtlpSpan): ReadonlyArray<string> => {
  const { parentSpanId } = operation
  const causes = causesOf(operation)
  return parentSpanId === undefined ? causes : [parentSpanId, ...causes]
}

/**
 * Records that an execution has ended, ends otherwise, or runs again, as its spans imply it. What is
 * not counted stays as it was said until the clock counts it.
 */
const recordImpliedEnd = (
  command: CommandDraft,
  entry: ExecutionEntry,
  implied: ImpliedEnd | "uncounted" | undefined
): void => {
  const { ended_at, ended_by_client, source, status } = entry.header
  if (source !== "otlp" || ended_by_client) return
  entry.header.isEndOpen = implied === "uncounted" && status !== "RUNNING"
  if (implied === "uncounted") return
  if (implied === undefined) {
    if (status !== "RUNNING") command.record(entry, { type: "execution.resumed" })
  } else if (status !== implied.status || ended_at !== implied.endedAt) {
    const { endedAt } = implied
    command.record(entry, { type: "execution.ended", status: implied.status, ended_at: endedAt })
  }
}

/** The end of an execution whose wait for a parent is over, or whose end was left open. */
export const endDue = (draft: TraceDraft, tenantId: string, executionId: string): CommandDraft => {
  const command = new CommandDraft(draft, { tenantId, operations: [] })
  const entry = command.execution(executionId)!
  const nowMicros = entry.header.isEndOpen ? draft.nowMicros : Number.POSITIVE_INFINITY
  recordImpliedEnd(command, entry, entry.impliedEnd(nowMicros))
  return command
}

/** Before a span without a parent has come, the root has a synthetic id. */
const recordExecution = (
  command: CommandDraft,
  entry: ExecutionEntry,
  operation: RecordOtlpEvents | RecordOtlpSpan
): void => {
  const { agentId, executionDetails, spanId, startedAt, syntheticRootId } = operation
  const isRoot = operation.op === "otlp.span" && operation.parentSpanId === undefined
  command.record(
    entry,
    {
      type: "execution.started",
      agent_id: agentId,
      root_span_id: isRoot ? spanId : syntheticRootId,
      source: "otlp",
      started_at: startedAt,
      started_at_given: true,
      ...(isRoot ? {} : { provisional: true })
    },
    executionDetails
  )
}

/** Record what is new of the events of a span; true if something is. */
const addEvents = (
  command: CommandDraft,
  entry: ExecutionEntry,
  spanId: string,
  events: ReadonlyArray<OtlpEvent>
): boolean => {
  let hasNews = false
  for (const event of events) {
    const key = traceEventKeyOf(command.tenantId, event.eventId)
    if (command.hasEvent(key)) continue
    const number = command.recordEvent(entry, spanId, event)
    // A derived id says all there is to compare: two events with one id are the same event.
    command.rememberEvent({ key, fingerprint: key, number })
    hasNews = true
  }
  return hasNews
}

/** Log records come apart from their spans: before them, after them, and after the end. */
export const addOtlpEvents = (
  command: CommandDraft,
  operation: RecordOtlpEvents
): TraceDecision => {
  const { events, executionId, payloads, spanId } = operation
  const known = command.execution(executionId)
  const entry = known ?? command.create(executionId)
  const { provisional, source, spanCount, started_at, starts } = entry.header
  const isEarlier =
    source === "otlp"
    && provisional
    && spanCount === 0
    && starts < EXECUTION_STARTS_MAX
    && operation.startedAt < started_at
  // As long as there is no span, the first of the records says what the execution is.
  if (known === undefined || isEarlier) recordExecution(command, entry, operation)
  const hasNews = addEvents(command, entry, spanId, events)
  if (hasNews) command.recordPayloads(entry, spanId, payloads)
  const outcome = hasNews ? "created" : "existing"
  return { outcome, execution_id: executionId, span_id: spanId }
}

export class OtlpSpans {
  readonly #command: CommandDraft
  readonly #recordings: ReadonlyArray<Recording>
  /** By execution the ids that were found to be of two spans. */
  readonly #shared = new Map<string, Set<string>>()

  constructor(command: CommandDraft, operations: ReadonlyArray<RecordOtlpSpan>) {
    this.#command = command
    this.#recordings = operations.map((operation) => ({
      sent: operation,
      operation,
      refusal: undefined,
      isAgain: false,
      hasNews: false,
      repair: undefined
    }))
  }

  /** First the spans that say what their execution is, which is then said once. */
  start(): void {
    const first = new Map<string, Recording>()
    for (const recording of this.#recordings) {
      const { operation } = recording
      const before = first.get(operation.executionId)
      const other = before && introducerOf(before.operation)
      if (introducesBefore(introducerOf(operation), other)) {
        first.set(operation.executionId, recording)
      }
    }
    const introducing = new Set(first.values())
    for (const recording of introducing) this.#start(recording)
    for (const recording of this.#recordings) {
      if (!introducing.has(recording)) this.#start(recording)
    }
    for (const [executionId, ids] of this.#shared) this.#moveChildren(executionId, ids)
  }

  /** Events are accepted after the end too: exporters send a span's when it has ended. */
  addEvents(): void {
    for (const recording of this.#accepted()) {
      const { events, executionId, spanId } = recording.operation
      const entry = this.#command.execution(executionId)!
      if (addEvents(this.#command, entry, spanId, events)) recording.hasNews = true
    }
  }

  /**
   * A real end also follows one that was only implied by the execution's. Then what was sent of spans
   * that were there before.
   */
  end(): void {
    for (const recording of this.#accepted()) if (!recording.isAgain) this.#end(recording)
    for (const recording of this.#accepted()) if (recording.isAgain) this.#amend(recording)
  }

  /** What a span refers to, once something of the span is new. */
  addPayloads(): void {
    for (const { hasNews, operation } of this.#accepted()) {
      const { executionId, payloads, spanId } = operation
      if (!hasNews) continue
      this.#command.recordPayloads(this.#command.execution(executionId)!, spanId, payloads)
    }
  }

  /** Executions end as their spans have ended, also those that only records name; see LocalRoots. */
  endExecutions(records: ReadonlyArray<RecordOtlpEvents>): void {
    const { links, nowMicros } = this.#command
    const named = [...this.#accepted().map(({ operation }) => operation), ...records]
    for (const executionId of new Set(named.map((one) => one.executionId))) {
      const entry = this.#command.execution(executionId)!
      recordImpliedEnd(this.#command, entry, entry.impliedEndWithin(nowMicros, links))
    }
  }

  *decisions(): Generator<readonly [RecordOtlpSpan, TraceDecision]> {
    for (const { hasNews, operation, refusal, repair } of this.#recordings) {
      const { executionId, spanId } = operation
      const outcome = hasNews ? "created" : "existing"
      const repairs = repair === undefined ? {} : { repairs: [repair] }
      yield [
        operation,
        refusal ?? { outcome, execution_id: executionId, span_id: spanId, ...repairs }
      ]
    }
  }

  #refusalOf(
    operation: RecordOtlpSpan,
    known: ExecutionEntry | undefined
  ): TraceRefusal | undefined {
    const { executionId, spanId } = operation
    if (known === undefined) {
      return sourcesOf(operation).includes(spanId) ? cycleOf(spanId) : undefined
    }
    const closes = this.#closes(known, operation)
    if (closes !== false) return cycleRefusal(spanId, closes, this.#command.links)
    return fullRefusal(executionId, known.header)
  }

  #accepted(): ReadonlyArray<Recording> {
    return this.#recordings.filter(({ refusal }) => refusal === undefined)
  }

  #end(recording: Recording): void {
    const { operation } = recording
    const { endDetails, executionId, spanId } = operation
    const entry = this.#command.execution(executionId)!
    const end = endOf(operation)
    if (end === undefined || entry.span(spanId)!.status !== "RUNNING") return
    const { endedAt, status } = end
    this.#command.record(
      entry,
      { type: "span.ended", span_id: spanId, status, ended_at: endedAt },
      endDetails
    )
    recording.hasNews = true
  }

  /** What was erased comes back by no repetition: then only an end may be new. */
  #amend(recording: Recording): void {
    const { executionId } = recording.sent
    const entry = this.#command.execution(executionId)!
    const operation = placed(entry, recording.sent)
    recording.operation = operation
    const { spanId } = operation
    const span = entry.span(spanId)!
    const isErased = span.fact_number < entry.header.erased_through
    const isSame = isErased || isSameStart(span, operation)
    if (isSame && span.status === "RUNNING") return this.#end(recording)
    if (isErased || (isSame && isSameEnd(span, operation))) return
    const whole = wholeContentOf(operation)
    if (isKnownOther(span, operation, whole)) return
    const closes = outranks(operation, span) ? this.#closes(entry, operation) : true
    if (closes === undefined && this.#command.links.left < 0) {
      recording.refusal = cycleRefusal(spanId, closes, this.#command.links)
      return
    }
    recording.hasNews = true
    recording.repair = "other_content"
    if (closes === false) return this.#replace(recording, entry)
    this.#command.record(entry, { type: "span.amended", span_id: spanId }, whole)
  }

  /** Show what was sent last of a span; what was shown stays in its facts. */
  #replace(recording: Recording, entry: ExecutionEntry): void {
    const { operation } = recording
    const { executionDetails, spanId } = operation
    this.#recordSpan(entry, operation)
    this.#command.record(entry, { type: "span.amended", span_id: spanId })
    this.#end(recording)
    const { introducer, source } = entry.header
    if (source === "otlp" && introducer?.id === spanId && executionDetails !== undefined) {
      recordExecution(this.#command, entry, operation)
    }
  }

  #closes(entry: ExecutionEntry, operation: RecordOtlpSpan): boolean | undefined {
    return closesCycle(entry, operation.spanId, sourcesOf(operation), this.#command.links)
  }

  #recordSpan(entry: ExecutionEntry, operation: RecordOtlpSpan): void {
    const { parentIsRemote, parentSpanId: parent, side, spanId } = operation
    const start = { ...operation, startedAtGiven: true, parent, causes: causesOf(operation) }
    this.#command.recordSpan(entry, spanId, start)
    if (parentIsRemote) entry.noteRemoteParent(spanId)
    if (side !== undefined) entry.noteSide(spanId, side)
  }

  /** The span that was just recorded has its id from another one, which was there before. */
  #share(entry: ExecutionEntry, first: string, { side, spanId }: RecordOtlpSpan): void {
    const isBelow = side === "CLIENT" && this.#follows(entry, first, spanId) === false
    this.#command.record(entry, {
      type: "span.amended",
      span_id: first,
      ...(isBelow ? { parent_span_id: spanId } : {}),
      shared_span_id: spanId
    })
    this.#command.record(entry, {
      type: "span.amended",
      span_id: spanId,
      shared_span_id: first
    })
    const ids = this.#shared.get(entry.executionId) ?? new Set()
    this.#shared.set(entry.executionId, ids.add(first))
  }

  /**
   * Children that came before the second of two spans with the id of their parent. Each is a fact, so
   * they move all together or, where they are more than the command may move, not at all.
   */
  #moveChildren(executionId: string, ids: ReadonlySet<string>): void {
    const entry = this.#command.execution(executionId)!
    let left = MOVED_CHILDREN_MAX
    for (const before of ids) {
      const other = otherSpanOf(entry, before)
      const moved: Array<{ readonly id: string; readonly parent: string; readonly at: number }> = []
      for (const [id, { fact_number: at, side }] of entry.childrenOf(before)) {
        const parent = parentFor(entry, before, side, other)
        if (parent !== before && parent !== id && other !== id) moved.push({ id, parent, at })
        if (moved.length > left) break
      }
      if (moved.length > left) continue
      left -= moved.length
      // In one order, however the spans came into memory.
      for (const { id, parent } of moved.sort((one, next) => one.at - next.at)) {
        if (this.#follows(entry, id, parent) !== false) continue
        this.#command.record(entry, { type: "span.amended", span_id: id, parent_span_id: parent })
      }
    }
  }

  /** True if the span would follow from itself below this parent. */
  #follows(entry: ExecutionEntry, spanId: string, parent: string): boolean | undefined {
    return closesCycle(entry, spanId, [parent], this.#command.links)
  }

  #start(recording: Recording): void {
    const { sent } = recording
    const { executionId } = sent
    const known = this.#command.execution(executionId)
    const operation = placed(known, sent)
    recording.operation = operation
    const { side, spanId } = operation
    if (known?.span(spanId) !== undefined) {
      recording.isAgain = true
      return
    }
    recording.refusal = this.#refusalOf(operation, known)
    if (recording.refusal !== undefined) return
    const entry = known ?? this.#command.create(executionId)
    const { introducer, source } = entry.header
    const isShared = spanId !== sent.spanId
    const describesExecution =
      introducesBefore(introducerOf(operation), introducer)
      // The server was the root, and is below this one from now on.
      || (isShared
        && side === "CLIENT"
        && introducer?.isRoot === true
        && introducer.id === sent.spanId)
    if (known === undefined || (source === "otlp" && describesExecution)) {
      recordExecution(this.#command, entry, operation)
    }
    this.#recordSpan(entry, operation)
    if (isShared) {
      this.#share(entry, sent.spanId, operation)
      recording.repair = "shared_id"
    }
    recording.hasNews = true
  }
}
