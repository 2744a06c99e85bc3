/**
 * The outcome of one command, as it is on `alk.receipts` and in the store. What a client sees of
 * it is `toAnswer`; whether it may be called committed yet depends on what the projection has shown.
 */
import { Schema } from "effect"
import { CheckpointMember } from "../chain/Checkpoint.ts"
import { digits, natural, sequence, sha256, tenantOrProbe, text, time } from "../Forms.ts"
import { recordDecoder } from "../json/RecordDecoder.ts"
import { RecordFields } from "../json/RecordFields.ts"
import { TraceResult } from "../traces/TraceOperation.ts"
import { ItemError, ItemWarning } from "./Command.ts"
import type { RecordContract } from "./RecordContract.ts"
import {
  ATTEMPT_HEADER,
  COMMAND_HEADER,
  formatHeader,
  KIND_HEADER,
  MAC_HEADER,
  macHeader,
  RECEIPT_HEADER,
  TENANT_HEADER
} from "./RecordHeaders.ts"
import { FORMAT_HEADER } from "./Topics.ts"

export const Duplicate = Schema.Struct({
  index: natural("Place of the item in the request."),
  sequence_number: sequence("Of the first event with this id and content.")
})
export type Duplicate = typeof Duplicate.Type

export const ReceiptError = Schema.Struct({
  code: text("Such as unreadable_command."),
  message: text("What happened.")
})
export type ReceiptError = typeof ReceiptError.Type

/** A final receipt: the record of `alk.receipts`, compact JSON. */
export const Receipt = Schema.Struct({
  receipt_id: text("What the 202 answer named; of a probe, its attempt."),
  tenant_id: tenantOrProbe("Whose receipt it is."),
  status: Schema.Literals(["committed", "failed"]),
  accepted: natural("Items that are in the chain, duplicates included."),
  rejected: natural("Items that are not."),
  ids: Schema.Array(Schema.String).annotate({
    description: "Ids of the accepted items, duplicates included, in the order of the request."
  }),
  errors: Schema.Array(ItemError).annotate({ description: "One per rejected item." }),
  warnings: Schema.optionalKey(Schema.Array(ItemWarning)),
  duplicates: Schema.optionalKey(Schema.Array(Duplicate)),
  first_sequence_number: Schema.optionalKey(sequence("Of the events that this command added.")),
  last_sequence_number: Schema.optionalKey(sequence("Of the events that this command added.")),
  received_at: time("When the request was accepted."),
  committed_at: Schema.optionalKey(
    time("created_at of the last event added, or when it was decided.")
  ),
  head_hash: Schema.optionalKey(sha256("Hash of the tenant's chain after this command.")),
  error: Schema.optionalKey(ReceiptError).annotateKey({
    description: "Why the command as a whole could not be applied."
  }),
  results: Schema.optionalKey(
    Schema.Array(TraceResult).annotate({
      description: "One per operation on traces that was not refused."
    })
  ),
  checkpoint: Schema.optionalKey(CheckpointMember).annotateKey({
    description: "The newest of the chain of events, for a command that asked for it."
  }),
  trace_checkpoint: Schema.optionalKey(CheckpointMember).annotateKey({
    description: "The newest of the chain of trace facts, for a command that asked for it."
  }),
  command_offset: natural("Offset of the command on alk.commands, same partition."),
  events_next: natural("Visible once alk.events can be queried up to here, exclusive."),
  traces_next: Schema.optionalKey(
    natural("Visible once alk.traces can be queried up to here, too.")
  )
})
export type Receipt = typeof Receipt.Type

/** The decision on an attempt that repeats an `Idempotency-Key`. Never projected. */
export const AttemptVerdict = Schema.Struct({
  receipt_id: text("Receipt of the first attempt."),
  tenant_id: tenantOrProbe("Whose request it was."),
  attempt: text("The attempt that repeated the key."),
  verdict: Schema.Literals(["repeat", "mismatch"]).annotate({
    description: "repeat: the first answer is repeated. mismatch: the body was another one."
  }),
  waited: Schema.optionalKey(Schema.Boolean).annotate({
    description: "Of a repeat: whether the first request waited for its commit."
  })
})
export type AttemptVerdict = typeof AttemptVerdict.Type

export type ReceiptRecordKind = "outcome" | "verdict" | "probe"

/** What every item of the lists of a receipt has. */
const receiptLists = [
  { list: "errors", integers: ["index"], texts: ["code", "message"] },
  { list: "warnings", integers: ["index"], texts: ["field"] },
  { list: "duplicates", integers: ["index", "sequence_number"], texts: [] },
  { list: "results", integers: ["index"], texts: ["op", "outcome", "execution_id"] }
] as const

/**
 * A final receipt, checked as far as anything relies on it. Hot path: by hand, once per receipt.
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
  for (const { integers, list, texts } of receiptLists) {
    for (const item of fields.has(list) ? fields.list(list) : []) {
      const own = new RecordFields(item, `receipt: ${list}`)
      for (const name of integers) own.integer(name)
      for (const name of texts) own.anyText(name)
    }
  }
  fields.list("errors")
  for (const name of ["error", "checkpoint", "trace_checkpoint"].filter((name) => fields.has(name)))
    fields.object(name)
  return fields.value as unknown as Receipt
}

/** @throws RecordUnreadable */
export const readVerdict: (value: Buffer) => AttemptVerdict = recordDecoder(
  AttemptVerdict,
  "verdict"
)

const headers = (kinds: ReadonlyArray<ReceiptRecordKind>) =>
  Schema.Struct({
    [FORMAT_HEADER]: formatHeader,
    [KIND_HEADER]: Schema.Literals(kinds).annotate({ description: "Which record this is." }),
    [ATTEMPT_HEADER]: text("The attempt that is answered."),
    [COMMAND_HEADER]: digits("Offset on alk.commands up to which this record answers."),
    [RECEIPT_HEADER]: text("The receipt_id."),
    [TENANT_HEADER]: tenantOrProbe("The tenant_id."),
    [MAC_HEADER]: macHeader
  })

export const receiptRecords: ReadonlyArray<RecordContract> = [
  {
    name: "receipt",
    topic: "receipts",
    title: "Receipt",
    description:
      "The final outcome of one command, written in the transaction that appended its events. Of "
      + "the kind probe it answers a readiness probe, which appends nothing.",
    key: tenantOrProbe("The tenant_id."),
    headers: headers(["outcome", "probe"]),
    value: Receipt
  },
  {
    name: "attempt-verdict",
    topic: "receipts",
    title: "Attempt verdict",
    description: "The sequencer's decision on an attempt that repeats an Idempotency-Key.",
    key: tenantOrProbe("The tenant_id."),
    headers: headers(["verdict"]),
    value: AttemptVerdict
  }
]

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
