/**
 * The records of `alk.receipts`: what became of each command, and the sequencer's word on attempts
 * that repeat an Idempotency-Key. The header `alk-kind` tells them apart.
 */
import { Schema } from "effect"
import { RECEIPT_HEADER, TENANT_HEADER } from "../domain/records/Command.ts"
import {
  ATTEMPT_HEADER,
  type AttemptVerdict,
  COMMAND_HEADER,
  type Duplicate,
  KIND_HEADER,
  type Receipt,
  type ReceiptError,
  type ReceiptRecordKind
} from "../domain/records/Receipt.ts"
import { FORMAT_HEADER } from "../domain/records/Topics.ts"
import { type TraceResult, traceOperations } from "../domain/traces/TraceOperation.ts"
import { CheckpointValue } from "./CheckpointRecord.ts"
import { ItemErrorValue, ItemWarningValue } from "./CommandRecord.ts"
import {
  digits,
  formatHeader,
  natural,
  sequence,
  sha256,
  tenantOrProbe,
  text,
  time
} from "./Forms.ts"
import { exactly, type RecordContract } from "./RecordContract.ts"

const headers = (kinds: ReadonlyArray<ReceiptRecordKind>) =>
  Schema.Struct({
    [FORMAT_HEADER]: formatHeader,
    [KIND_HEADER]: Schema.Literals(kinds).annotate({ description: "Which record this is." }),
    [ATTEMPT_HEADER]: text("The attempt that is answered."),
    [COMMAND_HEADER]: digits("Offset on alk.commands up to which this record answers."),
    [RECEIPT_HEADER]: text("The receipt_id."),
    [TENANT_HEADER]: tenantOrProbe("The tenant_id.")
  })

const DuplicateValue = exactly<Duplicate>()(
  Schema.Struct({
    index: natural("Place of the item in the request."),
    sequence_number: sequence("Where the first event with this id and content stands.")
  })
)

const ErrorValue = exactly<ReceiptError>()(
  Schema.Struct({ code: text("Such as unreadable_command."), message: text("What happened.") })
)

const TraceResultValue = exactly<TraceResult>()(
  Schema.Struct({
    index: natural("Place of the operation in the request."),
    op: Schema.Literals(traceOperations),
    outcome: Schema.Literals(["created", "existing"]).annotate({
      description: "existing: it was there already and stays as it is."
    }),
    execution_id: text("The execution it belongs to."),
    span_id: Schema.optionalKey(text("The span it belongs to.")),
    event_id: Schema.optionalKey(text("The trace event.")),
    sequence_number: Schema.optionalKey(sequence("Of the trace event, per execution."))
  })
)

const ReceiptValue = exactly<Receipt>()(
  Schema.Struct({
    receipt_id: text("What the 202 answer named; of a probe, its attempt."),
    tenant_id: tenantOrProbe("Whose receipt it is."),
    status: Schema.Literals(["committed", "failed"]),
    accepted: natural("Items that stand in the chain, duplicates included."),
    rejected: natural("Items that don't."),
    ids: Schema.Array(Schema.String).annotate({
      description: "Ids of the accepted items in the order of the request."
    }),
    errors: Schema.Array(ItemErrorValue).annotate({ description: "One per rejected item." }),
    warnings: Schema.optionalKey(Schema.Array(ItemWarningValue)),
    duplicates: Schema.optionalKey(Schema.Array(DuplicateValue)),
    first_sequence_number: Schema.optionalKey(sequence("Of the events that this command added.")),
    last_sequence_number: Schema.optionalKey(sequence("Of the events that this command added.")),
    received_at: time("When the request was accepted."),
    committed_at: Schema.optionalKey(
      time("created_at of the last event added, or when it was decided.")
    ),
    head_hash: Schema.optionalKey(sha256("Hash of the tenant's chain behind this command.")),
    error: Schema.optionalKey(ErrorValue),
    results: Schema.optionalKey(
      Schema.Array(TraceResultValue).annotate({
        description: "One per operation on traces that was not refused."
      })
    ),
    checkpoint: Schema.optionalKey(CheckpointValue),
    trace_checkpoint: Schema.optionalKey(CheckpointValue),
    command_offset: natural("Offset of the command on alk.commands, same partition."),
    events_next: natural("Visible once alk.events can be queried up to here, exclusive."),
    traces_next: Schema.optionalKey(
      natural("Visible once alk.traces can be queried up to here, too.")
    )
  })
)

export const receiptRecord: RecordContract = {
  name: "receipt",
  topic: "receipts",
  title: "Receipt",
  description:
    "The final outcome of one command, written in the transaction that appended its events. Of "
    + "the kind probe it answers a readiness probe, which appends nothing.",
  key: tenantOrProbe("The tenant_id."),
  headers: headers(["outcome", "probe"]),
  value: ReceiptValue
}

const VerdictValue = exactly<AttemptVerdict>()(
  Schema.Struct({
    receipt_id: text("Receipt of the first attempt."),
    tenant_id: tenantOrProbe("Whose request it was."),
    attempt: text("The attempt that repeated the key."),
    verdict: Schema.Literals(["repeat", "mismatch"]).annotate({
      description: "repeat: the first answer stands. mismatch: the body was another one."
    }),
    waited: Schema.optionalKey(Schema.Boolean).annotate({
      description: "Of a repeat: whether the first request waited for its commit."
    })
  })
)

export const verdictRecord: RecordContract = {
  name: "attempt-verdict",
  topic: "receipts",
  title: "Attempt verdict",
  description: "The sequencer's word on an attempt that repeats an Idempotency-Key.",
  key: tenantOrProbe("The tenant_id."),
  headers: headers(["verdict"]),
  value: VerdictValue
}
