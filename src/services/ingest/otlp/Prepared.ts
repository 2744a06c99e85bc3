/**
 * What the spans or log records of an export have become: operations by command, as many in one as
 * the log takes at once, and what of them was refused, cut or repaired.
 */
import { defined } from "../../../domain/Defined.ts"
import type { Sliced } from "../../../domain/Slices.ts"
import type { RepairCode } from "../../../domain/traces/Repairs.ts"
import type { RecordOtlpSpan } from "../../../domain/traces/TraceOperation.ts"
import type { OffloadedValues } from "../LargeValues.ts"
import { describeRepairs, type RepairLog } from "./RepairLog.ts"
import { charactersOf, type SpanOperation } from "./SpanEvents.ts"
import { COMMAND_CHARACTERS_MAX } from "./SpanParts.ts"
import { Unstorable } from "./Values.ts"

/** Operations of one command, as many as other writes have items. */
export const SPANS_PER_COMMAND_MAX = 1_000

/** Repairs of one item that an answer names. */
const REPAIRS_SAID_MAX = 5

/** A span or log record that is not stored. */
export interface RefusedItem {
  /** Place in the request, from 0, over all resources and scopes. */
  readonly index: number
  /** For counting; OTLP has no place for it. */
  readonly code: string
  /** Which one, and why; for people. */
  readonly message: string
}

/** Something that was repaired: a span or log record, or the resource or scope of several. */
export interface RepairedPart {
  readonly message: string
  readonly counts: ReadonlyMap<RepairCode, number>
}

/** The items of an export. */
export interface PreparedItems<Operation extends SpanOperation = RecordOtlpSpan> {
  /** Operations by command, in the order of the request. */
  readonly commands: ReadonlyArray<ReadonlyArray<Operation>>
  readonly refused: ReadonlyArray<RefusedItem>
  /** Items that are stored without all of what they say, and how many of their values were cut. */
  readonly cut: ReadonlyArray<{ readonly message: string; readonly values: number }>
  readonly repaired: ReadonlyArray<RepairedPart>
  /** Values that are stored apart from their items. */
  readonly apart: number
}

/** An export that is too large as a whole. */
export interface ExportTooLarge {
  readonly tooLarge: string
}

/** Operations of one command, and what its operations have brought. */
class SpanCommand<Operation extends SpanOperation> {
  readonly operations: Array<Operation> = []
  characters = 0
  readonly #brought = new Set<string>()

  /** Whether a value was brought for an execution. */
  has(executionId: string): (hash: string) => boolean {
    return (hash) => this.#brought.has(`${executionId}/${hash}`)
  }

  *add(operation: Operation, apart: OffloadedValues, characters: number): Sliced<void> {
    const { executionId } = operation
    const payloads = yield* apart.payloads(this.has(executionId))
    for (const { sha256 } of payloads ?? []) this.#brought.add(`${executionId}/${sha256}`)
    this.operations.push({ ...operation, ...defined({ payloads }) })
    this.characters += characters
  }
}

/** Cuts operations into commands. */
class Commands<Operation extends SpanOperation = RecordOtlpSpan> {
  readonly #all: Array<SpanCommand<Operation>> = []
  characters = 0

  get all(): ReadonlyArray<ReadonlyArray<Operation>> {
    return this.#all.map(({ operations }) => operations)
  }

  *add(operation: Operation, apart: OffloadedValues): Sliced<void> {
    const own = charactersOf(operation)
    const charactersFor = (command: SpanCommand<Operation>): number =>
      own + apart.charactersIn(command.has(operation.executionId))
    const last = this.#all.at(-1)
    const fits =
      last !== undefined
      && last.operations.length < SPANS_PER_COMMAND_MAX
      && last.characters + charactersFor(last) <= COMMAND_CHARACTERS_MAX
    const command = fits ? last : new SpanCommand<Operation>()
    if (!fits) this.#all.push(command)
    const more = charactersFor(command)
    yield* command.add(operation, apart, more)
    this.characters += more
  }
}

const cutMessage = (label: string, values: number): string => {
  const many = values === 1 ? "1 value is" : `${values} values are`
  return `${label}: ${many} too large; the beginning, size and SHA-256 are kept`
}

/** An operation without the values that it refers to, and these. */
export interface PreparedOperation<Operation extends SpanOperation = RecordOtlpSpan> {
  readonly operation: Operation
  readonly apart: OffloadedValues
}

/** What the items of an export have become, so far. */
export class Prepared<Operation extends SpanOperation = RecordOtlpSpan> {
  readonly #commands = new Commands<Operation>()
  readonly #refused: Array<RefusedItem> = []
  readonly #cut: Array<PreparedItems["cut"][number]> = []
  readonly #repaired: Array<RepairedPart> = []
  #apart = 0

  /** Of all operations, with what they refer to. */
  get characters(): number {
    return this.#commands.characters
  }

  get all(): PreparedItems<Operation> {
    return {
      commands: this.#commands.all,
      refused: this.#refused,
      cut: this.#cut,
      repaired: this.#repaired,
      apart: this.#apart
    }
  }

  /** An item, which may be several operations, and what was repaired of it. */
  *add(
    label: string,
    operations: ReadonlyArray<PreparedOperation<Operation>>,
    repairs: RepairLog
  ): Sliced<void> {
    let cut = 0
    for (const { apart, operation } of operations) {
      yield* this.#commands.add(operation, apart)
      this.#apart += apart.referred
      cut += apart.truncated
    }
    if (cut > 0) this.#cut.push({ message: cutMessage(label, cut), values: cut })
    this.addRepairs(label, repairs)
  }

  addRepairs(label: string, log: RepairLog): void {
    const { all } = log
    if (all === undefined) return
    const message = `${label}: repaired: ${describeRepairs(all, REPAIRS_SAID_MAX)}`
    this.#repaired.push({ message, counts: log.counts() })
  }

  /** An item that was found to be unstorable. */
  refuse(label: string, index: number, error: unknown): void {
    if (!(error instanceof Unstorable)) throw error
    const message = `${label}: ${error.message}`
    this.#refused.push({ index, code: "unstorable_value", message })
  }
}
