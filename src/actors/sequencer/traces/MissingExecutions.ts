/**
 * Which executions a chunk of commands has to know that are not in memory: they are loaded from the
 * store before the step. What can't exist before the chunk is not loaded; nothing is decided here.
 */
import { type TraceOperation, traceEventKeyOf } from "../../../domain/traces/TraceOperation.ts"
import type { SoughtEvents, TraceKey } from "../../../ports/TraceStore.ts"
import { otherSpanOf } from "./SharedIds.ts"
import type { ExecutionEntry } from "./TraceEntry.ts"

/** Operations of one command. */
export interface TraceCommand {
  readonly tenantId: string
  readonly operations: ReadonlyArray<TraceOperation>
}

/** Executions to load by their own id, and by the id of one of their spans. */
export interface MissingExecutions {
  readonly executions: ReadonlyArray<TraceKey>
  readonly spans: ReadonlyArray<TraceKey>
}

export interface TraceMemory {
  execution(tenantId: string, executionId: string): ExecutionEntry | undefined
  executionOf(tenantId: string, spanId: string): string | undefined
}

/** The ids of what has to be known to decide on an operation. */
export interface NamedIds {
  readonly executionId?: string
  /** A span whose execution is not named, or whose id may be taken anywhere in the tenant. */
  readonly spanId?: string
}

/**
 * Ids of OpenTelemetry spans are derived from their trace, which names the execution: they are not
 * looked for in others.
 */
export const idsNamedBy = (operation: TraceOperation): NamedIds => {
  switch (operation.op) {
    case "execution.start":
      return operation.fresh ? {} : { executionId: operation.executionId }
    case "execution.end":
    case "execution.erase":
    case "otlp.span":
    case "otlp.events":
      return { executionId: operation.executionId }
    case "span.start": {
      const { executionId, fresh, spanId } = operation
      return fresh ? { executionId } : { executionId, spanId }
    }
    case "span.end":
    case "span.event":
      return { spanId: operation.spanId }
  }
}

/** One text for tenant and id; no tenant has a slash in it. */
export const keyText = (tenantId: string, id: string): string => `${tenantId}/${id}`

class MissingFromMemory implements MissingExecutions {
  readonly executions: Array<TraceKey> = []
  readonly spans: Array<TraceKey> = []
  readonly #memory: TraceMemory
  /** Named already, or made by this chunk. */
  readonly #coveredExecutions = new Set<string>()
  readonly #coveredSpans = new Set<string>()

  constructor(memory: TraceMemory) {
    this.#memory = memory
  }

  addExecution(tenantId: string, id: string): void {
    const key = keyText(tenantId, id)
    if (this.#coveredExecutions.has(key)) return
    if (this.#memory.execution(tenantId, id)?.header.complete === true) return
    this.#coveredExecutions.add(key)
    this.executions.push({ tenantId, id })
  }

  addSpan(tenantId: string, id: string): void {
    const key = keyText(tenantId, id)
    if (this.#coveredSpans.has(key)) return
    const executionId = this.#memory.executionOf(tenantId, id)
    if (executionId !== undefined) return this.addExecution(tenantId, executionId)
    this.#coveredSpans.add(key)
    this.spans.push({ tenantId, id })
  }

  /** What an operation makes can be named by any other of its command, and by later ones. */
  cover(tenantId: string, operation: TraceOperation): void {
    if (operation.op === "execution.start" && operation.fresh) {
      this.#coveredExecutions.add(keyText(tenantId, operation.executionId))
      this.#coveredSpans.add(keyText(tenantId, operation.rootSpanId))
    } else if (operation.op === "span.start" && operation.fresh) {
      this.#coveredSpans.add(keyText(tenantId, operation.spanId))
    }
  }
}

/** What must be loaded before the step can take these commands, in this order. */
export const missingExecutionsOf = (
  memory: TraceMemory,
  commands: ReadonlyArray<TraceCommand>
): MissingExecutions => {
  const missing = new MissingFromMemory(memory)
  for (const { operations, tenantId } of commands) {
    for (const operation of operations) missing.cover(tenantId, operation)
    for (const operation of operations) {
      const { executionId, spanId } = idsNamedBy(operation)
      if (executionId !== undefined) missing.addExecution(tenantId, executionId)
      if (spanId !== undefined) missing.addSpan(tenantId, spanId)
    }
  }
  return missing
}

/**
 * Events of OpenTelemetry that may have been recorded and are not remembered: those of executions that
 * had events before the offset `forgotten` of `alk.traces`. `holds` says which keys are remembered.
 */
export const soughtEventsOf = (
  memory: Pick<TraceMemory, "execution">,
  commands: ReadonlyArray<TraceCommand>,
  forgotten: number,
  holds: (key: string) => boolean
): ReadonlyArray<SoughtEvents> => {
  const sought: Array<SoughtEvents> = []
  for (const { operations, tenantId } of commands) {
    for (const operation of operations) {
      if (operation.op !== "otlp.span" && operation.op !== "otlp.events") continue
      const { events, executionId, spanId } = operation
      if (events.length === 0) continue
      const entry = memory.execution(tenantId, executionId)
      const { event_count = 0, events_from = 0 } = entry?.header ?? {}
      if (entry === undefined || event_count === 0 || events_from >= forgotten) continue
      const eventIds = events
        .map(({ eventId }) => eventId)
        .filter((id) => !holds(traceEventKeyOf(tenantId, id)))
      if (eventIds.length === 0) continue
      const other = otherSpanOf(entry, spanId)
      const spanIds = other === undefined ? [spanId] : [spanId, other]
      sought.push({ tenantId, executionId, spanIds, eventIds })
    }
  }
  return sought
}
