/**
 * The record of `alk.commands`: one accepted request. Its value is text of several lines, so the
 * contract has two parts: the JSON of the first line, and the form of the lines behind it.
 */
import { Schema } from "effect"
import {
  type CommandHeader,
  commandKinds,
  type IdempotencyMark,
  type ItemError,
  type ItemWarning,
  RECEIPT_HEADER,
  TENANT_HEADER,
  WRITER_HEADER
} from "../domain/records/Command.ts"
import { MAC_HEADER } from "../domain/records/RecordMac.ts"
import { FORMAT_HEADER } from "../domain/records/Topics.ts"
import type { RegistryOperation } from "../domain/registry/Registry.ts"
import {
  form,
  formatHeader,
  hex16,
  macHeader,
  natural,
  tenant,
  tenantOrProbe,
  text,
  time
} from "./Forms.ts"
import { exactly, type RecordContract } from "./RecordContract.ts"
import { ApiKeyValue, ShareLinkValue, SigningKeyValue, TenantValue } from "./RegistryRecord.ts"
import { TraceLine } from "./TraceLine.ts"

export const ItemErrorValue = exactly<ItemError>()(
  Schema.Struct({
    index: natural("Place of the item in the request."),
    code: form(/^[a-z]+(?:_[a-z]+)*$/u, "One of the documented codes, such as invalid_value."),
    message: text("What is wrong, naming the field.")
  }).annotate({ identifier: "ItemError" })
)

export const ItemWarningValue = exactly<ItemWarning>()(
  Schema.Struct({
    index: natural("Place of the item in the request."),
    field: text("Path of a field that was sent but is not stored.")
  }).annotate({ identifier: "ItemWarning" })
)

const Idempotency = exactly<IdempotencyMark>()(
  Schema.Struct({
    key: hex16("Names tenant, method, path and Idempotency-Key."),
    body: hex16("Names the body after decompression."),
    forgetConflict: Schema.Boolean.annotate({
      description: "True where a conflict is answered 409, which is not remembered."
    })
  })
)

const Operation = exactly<RegistryOperation>()(
  Schema.Union([
    Schema.Struct({ op: Schema.Literal("create_link"), link: ShareLinkValue }),
    Schema.Struct({
      op: Schema.Literal("revoke_link"),
      tenant_id: tenant("Whose link it is."),
      link_id: text("Id of the link."),
      revoked_at: time("From when on it is invalid.")
    }),
    Schema.Struct({
      op: Schema.Literal("use_link"),
      tenant_id: tenant("Whose link it is."),
      link_id: text("Id of the link."),
      used_at: time("When it was used.")
    }),
    Schema.Struct({ op: Schema.Literal("add_signing_key"), signing_key: SigningKeyValue }),
    Schema.Struct({ op: Schema.Literal("create_tenant"), tenant: TenantValue }),
    Schema.Struct({
      op: Schema.Literal("create_key"),
      key: ApiKeyValue,
      tenant: Schema.optionalKey(TenantValue)
    }),
    Schema.Struct({
      op: Schema.Literal("revoke_key"),
      tenant_id: tenant("Whose key it is."),
      key_id: text("Id of the key."),
      revoked_at: time("From when on it is invalid."),
      key: Schema.optionalKey(ApiKeyValue)
    })
  ]).annotate({ description: "What a command of the kind registry wants." })
)

const FirstLine = exactly<CommandHeader>()(
  Schema.Struct({
    kind: Schema.Literals(commandKinds),
    tenantId: tenantOrProbe("Whose chain is written."),
    receiptId: text("Receipt that answers the request; of a probe, its attempt."),
    attempt: text("Names this attempt: a repeated request has the receipt of the first one."),
    receivedAt: time("When the request was accepted."),
    errors: Schema.Array(ItemErrorValue).annotate({ description: "Items refused at once." }),
    warnings: Schema.Array(ItemWarningValue),
    idempotency: Schema.optionalKey(Idempotency),
    operation: Schema.optionalKey(Operation)
  })
)

const FIELDS = [
  "index",
  "content_hash",
  "details_salt or -",
  "details_hash or -",
  "dedup key or -",
  "fingerprint or -",
  "id as JSON",
  "the stored JSON up to and including metadata, without its closing brace"
]

const EventLine = form(
  new RegExp(
    String.raw`^(?:0|[1-9][0-9]*)\t[0-9a-f]{64}\t(?:-|[0-9a-f]{32})\t(?:-|[0-9a-f]{64})`
      + String.raw`\t(?:-|[0-9a-f]{32})\t(?:-|[0-9a-f]{32})\t"[^\t\n]+"\t\{"id":[^\t\n]+$`,
    "u"
  ),
  `One event: ${FIELDS.join(", ")}; with one tab between two fields.`
)

export const commandRecord: RecordContract = {
  name: "command",
  topic: "commands",
  title: "Command",
  description:
    "One accepted request of up to 1000 events, validated and hashed. The value is UTF-8 text: a "
    + "first line of compact JSON, described here, then a line of the form of $defs/eventLine for "
    + "each event, or in a command of the kind trace one like $defs/traceLine for each operation, "
    + "in the order of the request. Lines are separated by one line feed.",
  key: tenantOrProbe("The tenant; probes are written to each partition explicitly."),
  headers: Schema.Struct({
    [FORMAT_HEADER]: formatHeader,
    [RECEIPT_HEADER]: text("The receiptId, readable even where the value is not."),
    [TENANT_HEADER]: tenantOrProbe("The tenantId, readable even where the value is not."),
    [WRITER_HEADER]: form(
      /^[0-9]{1,16}-[0-9a-f]{8}\/[1-9][0-9]*$/u,
      "Which writer wrote it, `/`, its number there: by this a copy is known."
    ),
    [MAC_HEADER]: macHeader
  }),
  value: FirstLine,
  parts: { eventLine: EventLine, traceLine: TraceLine }
}
