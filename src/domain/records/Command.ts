/**
 * One accepted request on its way to the sequencer, and its form on `alk.commands`: a line of JSON
 * with what concerns the whole request, then one line of tab-separated fields per event, or one of
 * JSON per operation on traces. Events are already canonical and hashed; their JSON is not parsed
 * again before they are stored.
 */
import { hash } from "node:crypto"
import { Schema } from "effect"
import { form, hex16, natural, tenantOrProbe, text, time } from "../Forms.ts"
import { parseJson } from "../json/Json.ts"
import { RegistryOperation } from "../registry/RegistryEntry.ts"
import { decodeOperation, encodeOperation, TraceOperation } from "../traces/TraceOperation.ts"
import type { PreparedEvent } from "./EventBatch.ts"
import type { RecordContract } from "./RecordContract.ts"
import {
  formatHeader,
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
  field: text("Path of a field that was sent but is not stored.")
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

/** The first line of a command. */
export const CommandHeader = Schema.Struct({
  kind: Schema.Literals(commandKinds),
  tenantId: tenantOrProbe("Whose chain is written."),
  receiptId: text("Receipt that answers the request; of a probe, its attempt."),
  attempt: text("Names this attempt: a repeated request has the receipt of the first one."),
  receivedAt: time("When the request was accepted."),
  errors: Schema.Array(ItemError).annotate({ description: "Items refused at once." }),
  warnings: Schema.Array(ItemWarning),
  idempotency: Schema.optionalKey(IdempotencyFingerprint),
  operation: Schema.optionalKey(RegistryOperation)
})
export type CommandHeader = typeof CommandHeader.Type

/** A `registry` command has an operation; its one event is appended only if that is granted. */
export interface Command extends CommandHeader {
  readonly events: ReadonlyArray<PreparedEvent>
  /** The operations of a `trace` command, in the order of the request. */
  readonly traces?: ReadonlyArray<TraceOperation>
}

/** 32 hex digits that name an event by tenant and id. */
export const dedupKeyOf = (tenantId: string, id: string): string =>
  hash("sha256", `alk-dedup\n${tenantId}\n${id}`, "hex").slice(0, 32)

/** A record of `alk.commands` that is not what this program writes. */
export class CommandUnreadable extends Error {
  override readonly name = "CommandUnreadable"
}

const NONE = "-"
const FIELDS = 8

const encodeEvent = (event: PreparedEvent): string =>
  `${event.index}\t${event.contentHash}\t${event.detailsSalt ?? NONE}\t${event.detailsHash ?? NONE}`
  + `\t${event.dedupKey ?? NONE}\t${event.fingerprint ?? NONE}\t${JSON.stringify(event.id)}`
  + `\t${event.body}`

/** The value of the command's record. Compact JSON holds no raw tab or line feed. */
export const encodeCommand = (command: Command): string => {
  const { events, traces, ...header } = command
  const lines = [JSON.stringify(header)]
  for (const event of events) lines.push(encodeEvent(event))
  for (const operation of traces ?? []) lines.push(encodeOperation(operation))
  return lines.join("\n")
}

const HEX_64 = /^[0-9a-f]{64}$/
const HEX_32 = /^[0-9a-f]{32}$/

const optional = (field: string, form: RegExp): string | undefined => {
  if (field === NONE) return undefined
  if (!form.test(field)) throw new CommandUnreadable(`unexpected field ${field.slice(0, 80)}`)
  return field
}

/** Hot path: by hand, once per event. */
const decodeEvent = (line: string): PreparedEvent => {
  const fields = line.split("\t")
  const [index, contentHash, salt, hash, dedup, print, id, body] = fields
  if (fields.length !== FIELDS || body === undefined || !HEX_64.test(contentHash!)) {
    throw new CommandUnreadable(`an event line with ${fields.length} fields`)
  }
  const name: unknown = parseJson(id!)
  if (typeof name !== "string") throw new CommandUnreadable("an event whose id is no text")
  const detailsSalt = optional(salt!, HEX_32)
  const detailsHash = optional(hash!, HEX_64)
  const dedupKey = optional(dedup!, HEX_32)
  const fingerprint = optional(print!, HEX_32)
  return {
    index: Number(index),
    id: name,
    body,
    contentHash: contentHash!,
    ...(detailsSalt === undefined ? {} : { detailsSalt }),
    ...(detailsHash === undefined ? {} : { detailsHash }),
    ...(dedupKey === undefined ? {} : { dedupKey }),
    ...(fingerprint === undefined ? {} : { fingerprint })
  }
}

const decodeTrace = (line: string): TraceOperation => {
  const operation = decodeOperation(line)
  if (operation === undefined) throw new CommandUnreadable("a line without an operation")
  return operation
}

/** The canonical microsecond form of a time. */
const MICROS_FORM = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/

/** Hot path: what the MAC can't say by itself, checked by hand. Operations are rare. */
const isHeader = (value: unknown): value is CommandHeader => {
  if (typeof value !== "object" || value === null) return false
  const header = value as Partial<Record<keyof CommandHeader, unknown>>
  return (
    commandKinds.includes(header.kind as CommandKind)
    && typeof header.tenantId === "string"
    && typeof header.receiptId === "string"
    && typeof header.attempt === "string"
    && typeof header.receivedAt === "string"
    && MICROS_FORM.test(header.receivedAt)
    && Array.isArray(header.errors)
    && Array.isArray(header.warnings)
    && (header.operation === undefined || isOperation(header.operation))
  )
}

const isOperation = Schema.is(RegistryOperation)

/** Read a command back. Throws CommandUnreadable on anything that `encodeCommand` didn't write. */
export const decodeCommand = (value: Buffer | null): Command => {
  if (value === null) throw new CommandUnreadable("a command without a value")
  const lines = value.toString("utf8").split("\n")
  let header: unknown
  try {
    header = parseJson(lines[0]!)
  } catch (cause) {
    throw new CommandUnreadable("the first line is not JSON", { cause })
  }
  if (!isHeader(header)) throw new CommandUnreadable("the first line is not a command")
  if (header.kind === "trace") {
    return { ...header, events: [], traces: lines.slice(1).map(decodeTrace) }
  }
  const events: Array<PreparedEvent> = []
  for (let line = 1; line < lines.length; line++) events.push(decodeEvent(lines[line]!))
  return { ...header, events }
}

/** Events of one batch. */
export const BATCH_ITEMS_MAX = 1_000

const eventFields = [
  "index",
  "content_hash",
  "details_salt or -",
  "details_hash or -",
  "dedup key or -",
  "fingerprint or -",
  "id as JSON",
  "the stored JSON up to and including metadata, without its closing brace"
]

/** The line of an event. */
const EventLine = form(
  new RegExp(
    String.raw`^(?:0|[1-9][0-9]*)\t[0-9a-f]{64}\t(?:-|[0-9a-f]{32})\t(?:-|[0-9a-f]{64})`
      + String.raw`\t(?:-|[0-9a-f]{32})\t(?:-|[0-9a-f]{32})\t"[^\t\n]+"\t\{"id":[^\t\n]+$`,
    "u"
  ),
  `One event: ${eventFields.join(", ")}; with one tab between two fields.`
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
  value: CommandHeader,
  parts: { eventLine: EventLine, traceLine: TraceOperation }
}
