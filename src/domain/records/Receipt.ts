/**
 * The outcome of one command, as it stands on `alk.receipts` and in the store. What a client sees of
 * it is `toAnswer`; whether it may be called committed yet depends on what the projection has shown.
 */
import type { CheckpointRecord } from "../chain/Checkpoint.ts"
import { RecordFields } from "../json/RecordFields.ts"
import type { TraceResult } from "../traces/TraceOperation.ts"
import type { ItemError, ItemWarning } from "./Command.ts"

export interface Duplicate {
  /** Place in the request, from 0. */
  readonly index: number
  /** Where the first event with this id and content stands. */
  readonly sequence_number: number
}

export interface ReceiptError {
  readonly code: string
  readonly message: string
}

/** A final receipt: the record of `alk.receipts`, compact JSON. */
export interface Receipt {
  readonly receipt_id: string
  readonly tenant_id: string
  readonly status: "committed" | "failed"
  readonly accepted: number
  readonly rejected: number
  /** Ids of the accepted items, duplicates included, in the order of the request. */
  readonly ids: ReadonlyArray<string>
  readonly errors: ReadonlyArray<ItemError>
  readonly warnings?: ReadonlyArray<ItemWarning>
  readonly duplicates?: ReadonlyArray<Duplicate>
  readonly first_sequence_number?: number
  readonly last_sequence_number?: number
  readonly received_at: string
  readonly committed_at?: string
  /** Hash of the tenant's chain behind this command. */
  readonly head_hash?: string
  /** Why the command as a whole could not be applied. */
  readonly error?: ReceiptError
  /** What became of the operations on traces that were not refused. */
  readonly results?: ReadonlyArray<TraceResult>
  /** The newest checkpoints of the tenant's chains, for a command that asked for them. */
  readonly checkpoint?: CheckpointRecord
  readonly trace_checkpoint?: CheckpointRecord
  /** Offset of the command on `alk.commands`. */
  readonly command_offset: number
  /** Visible once the store holds `alk.events` of the partition up to here, exclusive. */
  readonly events_next: number
  /** Visible once the store also holds `alk.traces` up to here, exclusive. */
  readonly traces_next?: number
}

/**
 * The sequencer's word on an attempt that repeats an `Idempotency-Key`: the first answer stands
 * (`repeat`), or the body is another one (`mismatch`). Never projected.
 */
export interface AttemptVerdict {
  readonly receipt_id: string
  readonly tenant_id: string
  readonly attempt: string
  readonly verdict: "repeat" | "mismatch"
  /** Of a repeat: whether the first request waited for its commit, and so how it was answered. */
  readonly waited?: boolean
}

/** Header that tells the records of `alk.receipts` apart without parsing them. */
export const KIND_HEADER = "alk-kind"
/** Header with the attempt that a record answers. */
export const ATTEMPT_HEADER = "alk-attempt"
/** Header with the offset of the command that a record answers: what a rebuild goes by. */
export const COMMAND_HEADER = "alk-command"
export type ReceiptRecordKind = "outcome" | "verdict" | "probe"

/**
 * A final receipt, checked as far as anybody relies on it.
 * @throws RecordUnreadable
 */
export const readReceipt = (value: Buffer | string): Receipt => {
  const fields = RecordFields.of(value, "receipt")
  for (const name of ["receipt_id", "tenant_id", "received_at"]) fields.anyText(name)
  fields.oneOf("status", ["committed", "failed"])
  for (const name of ["accepted", "rejected", "events_next"]) fields.integer(name)
  fields.integer("command_offset", -1)
  fields.texts("ids")
  fields.optional(["traces_next"], (name) => fields.integer(name))
  fields.optional(["committed_at", "head_hash"], (name) => fields.anyText(name))
  const sequences = ["first_sequence_number", "last_sequence_number"]
  fields.optional(sequences, (name) => fields.integer(name))
  const items = ["errors", "warnings", "duplicates", "results"].filter((name) => fields.has(name))
  for (const name of items) {
    for (const item of fields.list(name))
      new RecordFields(item, `receipt: ${name}`).integer("index")
  }
  fields.list("errors")
  for (const name of ["error", "checkpoint", "trace_checkpoint"].filter((name) => fields.has(name)))
    fields.object(name)
  return fields.value as unknown as Receipt
}

/**
 * The word on an attempt.
 * @throws RecordUnreadable
 */
export const readVerdict = (value: Buffer): AttemptVerdict => {
  const fields = RecordFields.of(value, "verdict")
  for (const name of ["receipt_id", "tenant_id", "attempt"]) fields.anyText(name)
  fields.oneOf("verdict", ["repeat", "mismatch"])
  const { waited } = fields.value
  if (waited !== undefined && typeof waited !== "boolean") throw fields.wrong("waited", "a boolean")
  return fields.value as unknown as AttemptVerdict
}

export type ReceiptStatus = "pending" | "committed" | "failed"

/** What `GET /v1/receipts/{id}` shows of a final receipt. */
export const toAnswer = (receipt: Receipt): Record<string, unknown> => {
  const {
    command_offset: _command,
    events_next: _events,
    tenant_id: _tenant,
    traces_next: _traces,
    ...shown
  } = receipt
  return shown
}
