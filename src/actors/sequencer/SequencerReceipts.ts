/** The receipts that a step writes: what became of a command, before offsets are known. */

import type { Head } from "../../domain/chain/Chains.ts"
import type { Command, ItemError } from "../../domain/records/Command.ts"
import type { Duplicate } from "../../domain/records/Receipt.ts"
import type { WindowEntry } from "../../domain/records/StateRecords.ts"
import type { Draft, ReceiptDraft } from "./SequencerDraft.ts"
import type { TraceOutcome } from "./traces/TraceStep.ts"

/** What one `ingest` or granted `registry` command does to its tenant's chain. */
export interface Outcome {
  /** Events of the run, the last one at the head. */
  readonly appended: number
  readonly head: Head | undefined
  readonly ids: ReceiptDraft["ids"]
  readonly errors: ReadonlyArray<ItemError>
  /** Those of the errors that validation has not found. */
  readonly conflicts: ReadonlyArray<ItemError>
  readonly duplicates: ReadonlyArray<Duplicate>
  readonly dedup: ReadonlyArray<WindowEntry>
}

/** The errors of validation and of the step, by their place in the request. */
export const withErrors = (
  command: Command,
  more: ReadonlyArray<ItemError>
): ReadonlyArray<ItemError> =>
  more.length === 0
    ? command.errors
    : [...command.errors, ...more].sort((left, right) => left.index - right.index)

/** The receipt of a command that was applied. */
export const committed = (
  command: Command,
  offset: number,
  outcome: Outcome,
  now: string
): ReceiptDraft => {
  const { appended, head } = outcome
  const last = appended === 0 ? undefined : head
  return {
    receipt_id: command.receiptId,
    tenant_id: command.tenantId,
    status: "committed",
    accepted: outcome.ids.length,
    rejected: outcome.errors.length,
    ids: outcome.ids,
    errors: outcome.errors,
    ...(command.warnings.length === 0 ? {} : { warnings: command.warnings }),
    ...(outcome.duplicates.length === 0 ? {} : { duplicates: outcome.duplicates }),
    ...(last === undefined
      ? {}
      : {
          first_sequence_number: last.sequence_number - appended + 1,
          last_sequence_number: last.sequence_number
        }),
    received_at: command.receivedAt,
    committed_at: last?.created_at ?? now,
    ...(head === undefined ? {} : { head_hash: head.hash }),
    command_offset: offset
  }
}

/** The receipt of a command with operations on traces. */
export const committedTraces = (
  command: Command,
  offset: number,
  { errors, results }: TraceOutcome,
  now: string
): ReceiptDraft => {
  const all = withErrors(command, errors)
  return {
    receipt_id: command.receiptId,
    tenant_id: command.tenantId,
    status: "committed",
    accepted: results.length,
    rejected: all.length,
    // The start of an execution is about the execution, not about its root span.
    ids: results.map(({ event_id, execution_id, op, span_id }) =>
      op.startsWith("execution.") ? execution_id : (event_id ?? span_id ?? execution_id)
    ),
    errors: all,
    ...(command.warnings.length === 0 ? {} : { warnings: command.warnings }),
    results,
    received_at: command.receivedAt,
    committed_at: now,
    command_offset: offset
  }
}

/** The receipt of a command of which nothing was applied. */
export const failed = (
  { receiptId, receivedAt, tenantId }: Pick<Command, "receiptId" | "receivedAt" | "tenantId">,
  offset: number,
  rejected: number,
  error: { readonly code: string; readonly message: string }
): ReceiptDraft => ({
  receipt_id: receiptId,
  tenant_id: tenantId,
  status: "failed",
  accepted: 0,
  rejected,
  ids: [],
  errors: [],
  received_at: receivedAt,
  error,
  command_offset: offset
})

/** Write a receipt, with what the chunk holds by now. */
export const addReceipt = (
  draft: Draft,
  attempt: string,
  receipt: ReceiptDraft,
  probe = false
): void => {
  draft.receipts.push({
    receipt,
    attempt,
    probe,
    eventsBefore: draft.events.count,
    factsBefore: draft.traces.facts.length
  })
}
