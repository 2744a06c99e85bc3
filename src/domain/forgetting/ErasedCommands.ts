/**
 * Which records of a partition of `alk.commands` go: those that were applied and hold what was erased
 * since, whether they brought it or only repeated it. Their details are covered by a MAC, so they go as
 * a whole. A command that was not applied yet always stays.
 */
import type { Command } from "../records/Command.ts"
import { CommandUnreadable, decodeCommand, formatIn } from "../records/CommandBytes.ts"
import { idsOf } from "../records/EventBatch.ts"
import type { RecordFate } from "../records/RecordFate.ts"
import { FORMAT_HEADER } from "../records/Topics.ts"
import type { TraceOperation } from "../traces/TraceOperation.ts"
import type { ErasedEvents } from "./ErasedEvents.ts"
import type { ErasedFacts } from "./ErasedFacts.ts"
import type { ForgettingTopic, TopicRecord } from "./ForgettingTopic.ts"

const commandOf = ({ headers, value }: TopicRecord): Command | undefined => {
  try {
    return decodeCommand(value, formatIn(headers[FORMAT_HEADER]))
  } catch (error) {
    // It is in quarantine: nothing of it is in a chain.
    if (error instanceof CommandUnreadable) return undefined
    throw error
  }
}

export class ErasedCommands implements ForgettingTopic {
  /** Offset of the last command that was applied; -1 before the first. */
  readonly #applied: number
  readonly #events: ErasedEvents
  readonly #facts: ErasedFacts

  constructor(applied: number, events: ErasedEvents, facts: ErasedFacts) {
    this.#applied = applied
    this.#events = events
    this.#facts = facts
  }

  learn(): void {}

  fateOf(record: TopicRecord): RecordFate {
    if (record.offset > this.#applied) return "keep"
    const command = commandOf(record)
    if (command === undefined) return "keep"
    const { events, tenantId, traces = [] } = command
    const isErased =
      idsOf(events).some((id) => this.#events.isErased(tenantId, id))
      || traces.some((operation) => this.#isErasedOperation(tenantId, operation))
    return isErased ? "drop" : "keep"
  }

  #isErasedOperation(tenantId: string, operation: TraceOperation): boolean {
    if ("executionId" in operation && this.#facts.isErased(tenantId, operation.executionId)) {
      return operation.op !== "execution.erase"
    }
    return "spanId" in operation && this.#facts.isErasedSpan(tenantId, operation.spanId)
  }
}
