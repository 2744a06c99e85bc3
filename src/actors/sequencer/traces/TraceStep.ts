/**
 * The rules of traces: what the operations of one command make of the executions that there are. No
 * clock, no log, no effects. The order of operations in a command matters only between operations
 * of one kind, and a command that throws has changed nothing.
 */
import type { ItemError } from "../../../domain/records/Command.ts"
import type { WindowEntry } from "../../../domain/records/StateRecords.ts"
import { factDetailsHash } from "../../../domain/traces/FactText.ts"
import type { StoredSpan } from "../../../domain/traces/StoredTrace.ts"
import type {
  AddSpanEvent,
  EndExecution,
  EndSpan,
  EraseExecution,
  StartExecution,
  StartSpan,
  TraceOperation,
  TraceResult
} from "../../../domain/traces/TraceOperation.ts"
import type { TraceCommand } from "./MissingExecutions.ts"
import { addOtlpEvents, OtlpSpans } from "./OtlpStep.ts"
import { orderSpans } from "./SpanOrder.ts"
import { CommandDraft, type DuplicateWindow, type TraceDraft } from "./TraceDraft.ts"
import { closesCycle, type ExecutionEntry } from "./TraceEntry.ts"
import {
  cycleOf,
  cycleRefusal,
  endedOtherwise,
  executionHasEnded,
  fullRefusal,
  holdsValuesOnly,
  named,
  noExecution,
  noSpan,
  refuse,
  spanHasEnded,
  type TraceDecision
} from "./TraceRefusals.ts"
import { endOf } from "./TraceTimes.ts"

/** What one command does; nothing has happened until the draft has taken it over. */
export interface TraceOutcome {
  /** In the order of the request, as the errors. */
  readonly results: ReadonlyArray<TraceResult>
  readonly errors: ReadonlyArray<ItemError>
  /** For the duplicate window. */
  readonly dedup: ReadonlyArray<WindowEntry>
  /** True if the whole command was refused because something could not be loaded. */
  readonly unavailable: boolean
  readonly command: CommandDraft
}

const startExecution = (command: CommandDraft, operation: StartExecution): TraceDecision => {
  const { agentId, details, executionId, rootDetails, rootSpanId } = operation
  const { startedAt, startedAtGiven } = operation
  const known = command.execution(executionId)
  if (known?.holdsValues) {
    return refuse("id_conflict", `id: ${named(executionId)} is taken; send another one`)
  }
  if (known !== undefined) {
    const { header } = known
    if (startedAtGiven && header.started_at_given && startedAt !== header.started_at) {
      return refuse(
        "idempotency_conflict",
        `started_at: execution ${named(executionId)} was started with ${header.started_at}; `
          + "send that, or start another one under a new idempotency_key or id"
      )
    }
    return { outcome: "existing", execution_id: executionId, span_id: header.root_span_id }
  }
  const entry = command.create(executionId)
  command.record(
    entry,
    {
      type: "execution.started",
      agent_id: agentId,
      root_span_id: rootSpanId,
      source: "api",
      started_at: startedAt,
      started_at_given: startedAtGiven
    },
    details
  )
  command.recordSpan(entry, rootSpanId, {
    parent: undefined,
    causes: [],
    spanType: "AGENT",
    startedAt,
    startedAtGiven,
    details: rootDetails
  })
  command.recordPayloads(entry, rootSpanId, operation.payloads)
  return { outcome: "created", execution_id: executionId, span_id: rootSpanId }
}

/** Spans that are still running end with it: that follows from this one fact. */
const endExecution = (command: CommandDraft, operation: EndExecution): TraceDecision => {
  const { details, executionId, status } = operation
  const entry = command.execution(executionId)
  if (entry === undefined) return noExecution(executionId)
  if (entry.holdsValues) return holdsValuesOnly(executionId)
  const { header } = entry
  if (header.status === status) return { outcome: "existing", execution_id: executionId }
  if (header.status !== "RUNNING") return endedOtherwise("execution", executionId, header.status)
  const endedAt = endOf(operation, header)
  if (typeof endedAt !== "string") return endedAt
  command.record(entry, { type: "execution.ended", status, ended_at: endedAt }, details)
  command.recordPayloads(entry, header.root_span_id, operation.payloads)
  return { outcome: "created", execution_id: executionId }
}

/**
 * A running execution may be erased too. Facts that follow bring details again; asking once more
 * then erases those, while a repetition with nothing in between finds it done.
 */
const eraseExecution = (command: CommandDraft, operation: EraseExecution): TraceDecision => {
  const { erasedBy, executionId, holdsValues = false, reason } = operation
  const entry = command.execution(executionId)
  if (entry === undefined) return noExecution(executionId)
  if (entry.holdsValues && !holdsValues) return holdsValuesOnly(executionId)
  const { header } = entry
  if (header.erased_through === header.fact_count) {
    return { outcome: "existing", execution_id: executionId }
  }
  command.record(entry, { type: "execution.erased", reason, erased_by: erasedBy })
  return { outcome: "created", execution_id: executionId }
}

/** A span that is not named to be another's child is the root's. */
const parentOf = (entry: ExecutionEntry, { parentSpanId }: StartSpan): string =>
  parentSpanId ?? entry.header.root_span_id

/**
 * Is this the span as it was started? Compared with its fact, which is the same in memory and in
 * the store; once erased, all but the details.
 */
const isSameSpan = (entry: ExecutionEntry, span: StoredSpan, operation: StartSpan): boolean => {
  const isErased = span.fact_number < entry.header.erased_through
  const { causedBy, details, spanType, startedAt, startedAtGiven } = operation
  const isAlike =
    span.parent_span_id === parentOf(entry, operation)
    && span.span_type === spanType
    && span.caused_by_span_ids.length === causedBy.length
    && span.caused_by_span_ids.every((cause, at) => cause === causedBy[at])
    && span.started_at_given === startedAtGiven
    && (!startedAtGiven || span.started_at === startedAt)
  if (!isAlike || isErased) return isAlike
  return (
    span.details !== null && factDetailsHash(span.details.salt, details.text) === span.details.hash
  )
}

const hasSpan = (entry: ExecutionEntry, spanId: string): boolean =>
  spanId === entry.header.root_span_id || entry.span(spanId) !== undefined

const startSpan = (
  command: CommandDraft,
  operation: StartSpan,
  cyclic: ReadonlySet<string>
): TraceDecision => {
  const { causedBy, executionId, spanId } = operation
  const entry = command.execution(executionId)
  if (entry === undefined) return noExecution(executionId)
  if (entry.holdsValues) return holdsValuesOnly(executionId)
  const { header } = entry
  const holder = command.executionOf(spanId)
  if (holder !== undefined) {
    const span = entry.span(spanId)
    return span !== undefined && isSameSpan(entry, span, operation)
      ? { outcome: "existing", execution_id: executionId, span_id: spanId }
      : refuse("id_conflict", `id: ${named(spanId)} belongs to another span; send a new id`)
  }
  if (header.status !== "RUNNING") return executionHasEnded(executionId, header)
  if (cyclic.has(spanId)) return cycleOf(spanId)
  const parent = parentOf(entry, operation)
  const absent = [parent, ...causedBy].find((id) => !hasSpan(entry, id))
  if (absent !== undefined) {
    const field = absent === parent ? "parent_span_id" : "caused_by_span_ids"
    return refuse(
      "not_found",
      `${field}: ${named(absent)} is no span of execution ${named(executionId)}; start it first, `
        + "or send both in one batch"
    )
  }
  const closes = closesCycle(entry, spanId, [parent, ...causedBy], command.links)
  if (closes !== false) return cycleRefusal(spanId, closes, command.links)
  const full = fullRefusal(executionId, header)
  if (full !== undefined) return full
  command.recordSpan(entry, spanId, { ...operation, parent, causes: causedBy })
  command.recordPayloads(entry, spanId, operation.payloads)
  return { outcome: "created", execution_id: executionId, span_id: spanId }
}

interface FoundSpan {
  readonly entry: ExecutionEntry
  readonly span: StoredSpan
}

const findSpan = (command: CommandDraft, spanId: string): FoundSpan | undefined => {
  const executionId = command.executionOf(spanId)
  const entry = executionId === undefined ? undefined : command.execution(executionId)
  const span = entry?.span(spanId)
  return entry === undefined || span === undefined ? undefined : { entry, span }
}

const endSpan = (command: CommandDraft, operation: EndSpan): TraceDecision => {
  const { details, spanId, status } = operation
  const found = findSpan(command, spanId)
  if (found === undefined) return noSpan(spanId)
  const { entry, span } = found
  const { executionId, header } = entry
  const current = span.status === "RUNNING" ? header.status : span.status
  if (current === status) {
    return { outcome: "existing", execution_id: executionId, span_id: spanId }
  }
  if (current !== "RUNNING") return endedOtherwise("span", spanId, current)
  const endedAt = endOf(operation, span)
  if (typeof endedAt !== "string") return endedAt
  const end = { type: "span.ended", span_id: spanId, status, ended_at: endedAt } as const
  command.record(entry, end, details)
  command.recordPayloads(entry, spanId, operation.payloads)
  return { outcome: "created", execution_id: executionId, span_id: spanId }
}

const addEvent = (command: CommandDraft, operation: AddSpanEvent): TraceDecision => {
  const { dedupKey, eventId, fingerprint, spanId } = operation
  const found = findSpan(command, spanId)
  if (found === undefined) return noSpan(spanId)
  const { entry, span } = found
  const { executionId, header } = entry
  const ids = { execution_id: executionId, span_id: spanId, event_id: eventId }
  const earlier = dedupKey === undefined ? undefined : command.findEvent(dedupKey)
  if (earlier !== undefined) {
    return earlier.fingerprint === fingerprint
      ? { outcome: "existing", ...ids, sequence_number: earlier.number }
      : refuse(
          "id_conflict",
          `id: ${named(eventId)} belongs to a trace event with other content `
            + `(sequence_number ${earlier.number}); send a new id`
        )
  }
  if (span.status !== "RUNNING") return spanHasEnded(spanId, span.status)
  if (header.status !== "RUNNING") return executionHasEnded(executionId, header)
  const sequenceNumber = command.recordEvent(entry, spanId, operation)
  command.recordPayloads(entry, spanId, operation.payloads)
  if (dedupKey !== undefined && fingerprint !== undefined) {
    command.rememberEvent({ key: dedupKey, fingerprint, number: sequenceNumber })
  }
  return { outcome: "created", ...ids, sequence_number: sequenceNumber }
}

/** The operations of one kind, in the order of the request. */
const ofKind = <Op extends TraceOperation["op"]>(
  operations: ReadonlyArray<TraceOperation>,
  op: Op
): ReadonlyArray<Extract<TraceOperation, { readonly op: Op }>> =>
  operations.filter(
    (operation): operation is Extract<TraceOperation, { readonly op: Op }> => operation.op === op
  )

/** What became of each operation, in the order in which they were decided. */
class Outcomes {
  readonly results: Array<TraceResult> = []
  readonly errors: Array<ItemError> = []

  note({ index, op }: TraceOperation, decision: TraceDecision): void {
    if ("code" in decision) this.errors.push({ index, ...decision })
    else this.results.push({ index, op, ...decision })
  }

  /** Put into the order of the request. */
  settle(): void {
    this.results.sort((left, right) => left.index - right.index)
    this.errors.sort((left, right) => left.index - right.index)
  }
}

/** The kinds one after the other: what an operation refers to is there before it. */
const applyInTurn = (
  command: CommandDraft,
  operations: ReadonlyArray<TraceOperation>,
  outcomes: Outcomes
): void => {
  const noteAll = <Op extends TraceOperation>(
    some: ReadonlyArray<Op>,
    decide: (command: CommandDraft, operation: Op) => TraceDecision
  ) => {
    for (const operation of some) outcomes.note(operation, decide(command, operation))
  }
  noteAll(ofKind(operations, "execution.start"), startExecution)
  const existed = (spanId: string) => command.executionOf(spanId) !== undefined
  const { cyclic, ordered } = orderSpans(ofKind(operations, "span.start"), existed)
  noteAll(ordered, (_, start) => startSpan(command, start, cyclic))
  const otlp = new OtlpSpans(command, ofKind(operations, "otlp.span"))
  otlp.start()
  noteAll(ofKind(operations, "span.event"), addEvent)
  otlp.addEvents()
  const records = ofKind(operations, "otlp.events")
  noteAll(records, addOtlpEvents)
  noteAll(ofKind(operations, "span.end"), endSpan)
  otlp.end()
  otlp.addPayloads()
  noteAll(ofKind(operations, "execution.end"), endExecution)
  otlp.endExecutions(records)
  for (const [span, decision] of otlp.decisions()) outcomes.note(span, decision)
  noteAll(ofKind(operations, "execution.erase"), eraseExecution)
}

/**
 * Decide on the operations of one command. Changes nothing but what it returns: `draft.merge`
 * makes it part of the chunk. A command that names something that could not be loaded is refused as
 * a whole, so that a retry finds nothing half done.
 */
export const applyTraces = (
  draft: TraceDraft,
  { operations, tenantId }: TraceCommand,
  window?: DuplicateWindow
): TraceOutcome => {
  const command = new CommandDraft(draft, { operations, tenantId }, window)
  const outcomes = new Outcomes()
  const unavailable = draft.namesUnloaded({ operations, tenantId })
  if (unavailable) {
    const refusal = refuse(
      "unavailable",
      "what this names could not be looked up in time, and nothing was done; try again"
    )
    for (const operation of operations) outcomes.note(operation, refusal)
  } else {
    applyInTurn(command, operations, outcomes)
    outcomes.settle()
  }
  const { errors, results } = outcomes
  return { results, errors, dedup: command.dedup, unavailable, command }
}
