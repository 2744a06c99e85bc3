/**
 * One accepted request on its way to the sequencer, and the contract of its record on
 * `alk.commands`. Events are already canonical and hashed; their JSON is not parsed again before
 * they are stored. CommandBytes.ts writes and reads the record.
 */
import { hash } from "node:crypto"
import { Schema } from "effect"
import { form, hex16, natural, sha256, tenantOrProbe, text, time } from "../Forms.ts"
import { RegistryOperation } from "../registry/RegistryEntry.ts"
import { TraceOperation } from "../traces/TraceOperation.ts"
import { EVENT_ENTRY_BYTES, type EventBatch } from "./EventBatch.ts"
import { EventValues } from "./EventValues.ts"
import type { RecordContract } from "./RecordContract.ts"
import {
  MAC_HEADER,
  macHeader,
  RECEIPT_HEADER,
  TENANT_HEADER,
  WRITER_HEADER
} from "./RecordHeaders.ts"
import { FORMAT_HEADER } from "./Topics.ts"

export const ItemError = Schema.Struct({
  index: natural("Place of the item in the request."),
  code: form(/^[a-z]+(?:_[a-z]+)*$/u, "One of the documented codes, such as invalid_value."),
  message: text("What is wrong, naming the field.")
}).annotate({ identifier: "ItemError" })
export type ItemError = typeof ItemError.Type

export const ItemWarning = Schema.Struct({
  index: natural("Place of the item in the request."),
  field: text("Path of a field that was sent but is not stored, or not as it was sent."),
  message: Schema.optionalKey(
    text("How it is stored: a number as text, with `numbers=text`. Without one, it is not.")
  )
}).annotate({ identifier: "ItemWarning" })
export type ItemWarning = typeof ItemWarning.Type

/**
 * What makes a request repeatable: see `Idempotency-Key`. The last bit of `body` says whether the
 * client waits for the commit.
 */
export const IdempotencyFingerprint = Schema.Struct({
  key: hex16("Names tenant, method, path and Idempotency-Key."),
  body: hex16("Names the body after decompression."),
  forgetConflict: Schema.Boolean.annotate({
    description: "True where a conflict is answered 409, which is not remembered."
  })
})
export type IdempotencyFingerprint = typeof IdempotencyFingerprint.Type

/** Hex digits whose last bit says whether the client waits. */
export const bodyFingerprint = (digits: string, waits: boolean): string => {
  const last = Number.parseInt(digits.slice(-1), 16)
  return digits.slice(0, -1) + ((last & ~1) | (waits ? 1 : 0)).toString(16)
}

/** True if two fingerprints are of the same body, whether the client waits or not. */
export const isSameBody = (left: string, right: string): boolean =>
  bodyFingerprint(left, false) === bodyFingerprint(right, false)

/** True if the request with this fingerprint waited for its commit. */
export const hasWaited = (fingerprint: string): boolean =>
  bodyFingerprint(fingerprint, true) === fingerprint

export const commandKinds = ["ingest", "trace", "registry", "checkpoint", "probe"] as const
export type CommandKind = (typeof commandKinds)[number]

/** What concerns the whole request. */
export const CommandHeader = Schema.Struct({
  kind: Schema.Literals(commandKinds),
  tenantId: tenantOrProbe("Whose chain is written."),
  receiptId: text("Receipt that answers the request; of a probe, its attempt."),
  attempt: text("Names this attempt: a repeated request has the receipt of the first one."),
  receivedAt: time("When the request was accepted."),
  errors: Schema.Array(ItemError).annotate({ description: "Items refused at once." }),
  warnings: Schema.Array(ItemWarning),
  waits: Schema.optionalKey(Schema.Literal(true)).annotate({
    description: "The request waits until what it writes is shown."
  }),
  idempotency: Schema.optionalKey(IdempotencyFingerprint),
  operation: Schema.optionalKey(RegistryOperation),
  values: Schema.optionalKey(
    Schema.Array(EventValues).annotate({
      description: "Values that metadata of its events refers to."
    })
  )
})
export type CommandHeader = typeof CommandHeader.Type

/** A `registry` command has an operation; its one event is appended only if that is granted. */
export interface Command extends CommandHeader {
  readonly events: EventBatch
  /** The operations of a `trace` command, in the order of the request. */
  readonly traces?: ReadonlyArray<TraceOperation>
}

/** What is hashed for a dedup key, before the id. */
export const dedupStart = (tenantId: string): string => `alk-dedup\n${tenantId}\n`

/** 32 hex digits that name an event by tenant and id. */
export const dedupKeyOf = (tenantId: string, id: string): string =>
  hash("sha256", dedupStart(tenantId) + id, "hex").slice(0, 32)

/** Events of one batch. */
export const BATCH_ITEMS_MAX = 1_000

/** Version of a command's record, in the header `alk-format`: the one that this program knows. */
export const COMMAND_FORMAT: number = 1

/** What the entry of an event and its body unpack to. */
const UnpackedEvent = Schema.Struct({
  index: natural("Bytes 8 to 11: place of the item in the request."),
  id_length: natural(
    "Bytes 12 and 13: bytes of the id's JSON text without its quotes, which follows the first 7 "
      + "bytes of the body."
  ),
  details_salt: Schema.optionalKey(hex16("Bytes 16 to 31, if bit 0 of byte 14 is set.")),
  details_hash: Schema.optionalKey(sha256("Bytes 32 to 63, if bit 0 of byte 14 is set.")),
  content_hash: sha256("Bytes 64 to 95."),
  dedup_key: Schema.optionalKey(hex16("Bytes 96 to 111, if bit 1 of byte 14 is set.")),
  fingerprint: Schema.optionalKey(hex16("Bytes 112 to 127, if bit 1 of byte 14 is set.")),
  body: form(
    /^\{"id":"[^\t\n]+$/u,
    "As many bytes of the bodies as bytes 4 to 7 say, from the offset in bytes 0 to 3: the stored "
      + "JSON up to and including metadata, without its closing brace."
  )
}).annotate({
  description:
    `One event, unpacked: an entry of ${EVENT_ENTRY_BYTES} bytes, numbers `
    + "little-endian, what is absent zero, and its body."
})

const descriptionOfRecord = [
  "One accepted request of up to 1000 events, validated and hashed. The value is the length of the",
  "JSON described here (4 bytes, unsigned, little-endian), that JSON, and in a command of the kind",
  "trace a line like $defs/traceLine for each operation, in the order of the request, separated by",
  "one line feed. In the others the number of events follows (4 bytes), their entries, and their",
  "bodies one after the other; each event unpacks to $defs/event."
].join(" ")

export const commandRecord: RecordContract = {
  name: "command",
  topic: "commands",
  title: "Command",
  description: descriptionOfRecord,
  key: tenantOrProbe("The tenant; probes are written to each partition explicitly."),
  headers: Schema.Struct({
    [FORMAT_HEADER]: Schema.Literal(String(COMMAND_FORMAT)).annotate({
      description: "Version of the record's form. A reader stops at a version above its own."
    }),
    [RECEIPT_HEADER]: text("The receiptId, readable even where the value is not."),
    [TENANT_HEADER]: tenantOrProbe("The tenantId, readable even where the value is not."),
    [WRITER_HEADER]: form(
      /^[0-9]{1,16}-[0-9a-f]{8}\/[1-9][0-9]*$/u,
      "Which writer wrote it, `/`, its number there: by this a copy is known."
    ),
    [MAC_HEADER]: macHeader
  }),
  value: CommandHeader,
  parts: { event: UnpackedEvent, traceLine: TraceOperation }
}
