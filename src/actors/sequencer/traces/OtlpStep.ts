/**
 * The rules of OpenTelemetry spans: they come in any order, in any number of requests, twice,
 * before their parent, after the end, and still add up to one execution. What is new of a span
 * is recorded; only a cycle is refused.
 */
import {
  type OtlpEvent,
  type RecordOtlpEvents,
  type RecordOtlpSpan,
  traceEventKeyOf
} from "../../../domain/traces/TraceOperation.ts"
import type { CommandDraft } from "./TraceDraft.ts"
import { closesCycle, type ExecutionEntry } from "./TraceEntry.ts"
import {
  cycleOf,
  SPANS_MAX,
  type TraceDecision,
  type TraceRefusal,
  tooManyLinks,
  tooManySpans
} from "./TraceRefusals.ts"
import { laterOf } from "./TraceTimes.ts"

/** A span of the command on its way through the turns. */
interface Recording {
  readonly operation: RecordOtlpSpan
  refusal: TraceRefusal | undefined
  /** True once a fact of the span was recorded. */
  hasNews: boolean
}

/**
 * The parent to record: an execution has one root, the first span without a parent; the next ones
 * are its children. Undefined for the span that becomes the root.
 */
const parentOf = (
  entry: ExecutionEntry | undefined,
  { parentSpanId }: RecordOtlpSpan
): string | undefined =>
  parentSpanId
  ?? (entry === undefined || entry.header.provisional ? undefined : entry.header.root_span_id)

/** Before a span without a parent has come, the root has a synthetic id. */
const recordExecution = (
  command: CommandDraft,
  entry: ExecutionEntry,
  operation: RecordOtlpEvents | RecordOtlpSpan,
  isRoot: boolean
): void => {
  const { agentId, executionDetails, spanId, startedAt, syntheticRootId } = operation
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
    if (command.findEvent(key) !== undefined) continue
    const number = command.recordEvent(entry, spanId, event)
    // A derived id says all there is to compare: two events with one id are the same event.
    command.rememberEvent({ key, mark: key, number })
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
  if (known === undefined) recordExecution(command, entry, operation, false)
  const hasNews = addEvents(command, entry, spanId, events)
  if (hasNews) command.recordPayloads(entry, spanId, payloads)
  const outcome = hasNews ? "created" : "existing"
  return { outcome, execution_id: executionId, span_id: spanId }
}

export class OtlpSpans {
  readonly #command: CommandDraft
  readonly #recordings: ReadonlyArray<Recording>

  constructor(command: CommandDraft, operations: ReadonlyArray<RecordOtlpSpan>) {
    this.#command = command
    this.#recordings = operations.map((operation) => ({
      operation,
      refusal: undefined,
      hasNews: false
    }))
  }

  /** Roots first: an execution whose root comes in the same request is never provisional. */
  start(): void {
    for (const recording of this.#recordings) {
      if (recording.operation.parentSpanId === undefined) this.#start(recording)
    }
    for (const recording of this.#recordings) {
      if (recording.operation.parentSpanId !== undefined) this.#start(recording)
    }
  }

  /** Events are accepted after the end too: exporters send a span's when it has ended. */
  addEvents(): void {
    for (const recording of this.#accepted()) {
      const { events, executionId, spanId } = recording.operation
      const entry = this.#command.execution(executionId)!
      if (addEvents(this.#command, entry, spanId, events)) recording.hasNews = true
    }
  }

  /** A real end also follows one that was only implied by the execution's. */
  end(): void {
    for (const recording of this.#accepted()) {
      const { endDetails, endedAt, executionId, spanId, status } = recording.operation
      const entry = this.#command.execution(executionId)!
      const span = entry.span(spanId)!
      if (endedAt === undefined || span.status !== "RUNNING") continue
      this.#command.record(
        entry,
        {
          type: "span.ended",
          span_id: spanId,
          status,
          ended_at: laterOf(endedAt, span.started_at)
        },
        endDetails
      )
      recording.hasNews = true
    }
  }

  /** What a span refers to, once something of the span is new. */
  addPayloads(): void {
    for (const { hasNews, operation } of this.#accepted()) {
      const { executionId, payloads, spanId } = operation
      if (!hasNews) continue
      this.#command.recordPayloads(this.#command.execution(executionId)!, spanId, payloads)
    }
  }

  /** An execution ends as its root has ended. */
  endExecutions(): void {
    for (const { operation } of this.#accepted()) {
      const { executionId } = operation
      const entry = this.#command.execution(executionId)!
      const { header } = entry
      if (header.status !== "RUNNING" || header.source !== "otlp") continue
      // Nothing is under the id of a root that has not arrived.
      const root = entry.span(header.root_span_id)
      if (root === undefined || root.status === "RUNNING") continue
      this.#command.record(entry, {
        type: "execution.ended",
        status: root.status,
        ended_at: laterOf(root.ended_at ?? header.started_at, header.started_at)
      })
    }
  }

  /** Ends the execution of a refused root as the root ended; otherwise it would run without an end. */
  endRefused(): void {
    for (const { operation, refusal } of this.#recordings) {
      const { endedAt, executionId, parentSpanId, status } = operation
      if (refusal === undefined || parentSpanId !== undefined || endedAt === undefined) continue
      const entry = this.#command.execution(executionId)
      if (entry?.header.status !== "RUNNING" || entry.header.provisional !== true) continue
      this.#command.record(entry, {
        type: "execution.ended",
        status,
        ended_at: laterOf(endedAt, entry.header.started_at)
      })
    }
  }

  *decisions(): Generator<readonly [RecordOtlpSpan, TraceDecision]> {
    for (const { hasNews, operation, refusal } of this.#recordings) {
      const { executionId, spanId } = operation
      const outcome = hasNews ? "created" : "existing"
      yield [operation, refusal ?? { outcome, execution_id: executionId, span_id: spanId }]
    }
  }

  #refusalOf(
    { executionId, spanId }: RecordOtlpSpan,
    known: ExecutionEntry | undefined,
    sources: ReadonlyArray<string>
  ): TraceRefusal | undefined {
    if (known === undefined) return sources.includes(spanId) ? cycleOf(spanId) : undefined
    const closes = closesCycle(known, spanId, sources, this.#command.links)
    if (closes !== false) return closes === true ? cycleOf(spanId) : tooManyLinks(spanId)
    return known.header.spanCount >= SPANS_MAX ? tooManySpans(executionId) : undefined
  }

  #accepted(): ReadonlyArray<Recording> {
    return this.#recordings.filter(({ refusal }) => refusal === undefined)
  }

  #start(recording: Recording): void {
    const { operation } = recording
    const { causedBy, executionId, spanId } = operation
    const known = this.#command.execution(executionId)
    if (known?.span(spanId) !== undefined) return
    const parent = parentOf(known, operation)
    const causes = [...new Set(causedBy)]
    const sources = parent === undefined ? causes : [parent, ...causes]
    recording.refusal = this.#refusalOf(operation, known, sources)
    if (recording.refusal !== undefined) return
    const entry = known ?? this.#command.create(executionId)
    if (known === undefined || parent === undefined) {
      recordExecution(this.#command, entry, operation, parent === undefined)
    }
    this.#command.recordSpan(entry, spanId, { ...operation, startedAtGiven: true, parent, causes })
    recording.hasNews = true
  }
}
