/**
 * One accepted request on its way to the sequencer, and its form on `alk.commands`: a line of JSON
 * with what concerns the whole request, then one line of tab-separated fields per event, or one of
 * JSON per operation on traces. Events are already canonical and hashed; nobody parses their JSON
 * again before they are stored.
 */
import { hash } from "node:crypto"
import { parseJson } from "../json/Json.ts"
import type { RegistryOperation } from "../registry/Registry.ts"
import { decodeOperation, encodeOperation, type TraceOperation } from "../traces/TraceOperation.ts"

/** An event that has passed validation: canonical, hashed, ready to be given its place. */
export interface PreparedEvent {
  /** Place in the request, from 0. */
  readonly index: number
  readonly id: string
  /** The stored JSON up to and including `metadata`, without the closing brace. */
  readonly body: string
  readonly contentHash: string
  readonly detailsSalt?: string
  readonly detailsHash?: string
  /** 32 hex digits naming tenant and id; only if the client gave the id. */
  readonly dedupKey?: string
  /** 32 hex digits that two items share only if they were sent with the same content. */
  readonly fingerprint?: string
}

export interface ItemError {
  readonly index: number
  readonly code: string
  readonly message: string
}

export interface ItemWarning {
  readonly index: number
  readonly field: string
}

/** What makes a request repeatable: see `Idempotency-Key`. */
export interface IdempotencyMark {
  /** 32 hex digits of tenant, method, path and key. */
  readonly key: string
  /**
   * 32 hex digits of the body after decompression, but for the last bit, which says whether the
   * client waits for the commit.
   */
  readonly body: string
  /** A single synchronous event that conflicts is answered 409, and only 2xx is remembered. */
  readonly forgetConflict: boolean
}

/** The last of the hex digits with its last bit set or cleared. */
export const bodyMark = (digits: string, waits: boolean): string => {
  const last = Number.parseInt(digits.slice(-1), 16)
  return digits.slice(0, -1) + ((last & ~1) | (waits ? 1 : 0)).toString(16)
}

/** True if two marks are of the same body, waited for or not. */
export const isSameBody = (left: string, right: string): boolean =>
  bodyMark(left, false) === bodyMark(right, false)

/** True if the request of this mark waited for its commit. */
export const hasWaited = (mark: string): boolean => bodyMark(mark, true) === mark

export const commandKinds = ["ingest", "trace", "registry", "checkpoint", "probe"] as const
export type CommandKind = (typeof commandKinds)[number]

export interface Command {
  readonly kind: CommandKind
  readonly tenantId: string
  readonly receiptId: string
  /** Names this attempt; a repeated request has the receipt id of the first one. */
  readonly attempt: string
  /** Canonical microsecond form. */
  readonly receivedAt: string
  readonly events: ReadonlyArray<PreparedEvent>
  readonly errors: ReadonlyArray<ItemError>
  readonly warnings: ReadonlyArray<ItemWarning>
  readonly idempotency?: IdempotencyMark
  /** What a `registry` command wants; its one event is appended only if it is granted. */
  readonly operation?: RegistryOperation
  /** What a `trace` command wants, in the order of the request. */
  readonly traces?: ReadonlyArray<TraceOperation>
}

/** 32 hex digits that name an event by tenant and id. */
export const dedupKeyOf = (tenantId: string, id: string): string =>
  hash("sha256", `alk-dedup\n${tenantId}\n${id}`, "hex").slice(0, 32)

/** A record of `alk.commands` that is not what this program writes. */
export class CommandUnreadable extends Error {
  override readonly name = "CommandUnreadable"
}

/** Kafka headers of a command, readable even where its value is not. */
export const RECEIPT_HEADER = "alk-receipt"
export const TENANT_HEADER = "alk-tenant"
/** Which writer wrote the command, and its number there: `<writer>/<number>`. */
export const WRITER_HEADER = "alk-writer"

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

const decodeEvent = (line: string): PreparedEvent => {
  const fields = line.split("\t")
  const [index, contentHash, salt, hash, dedup, print, id, body] = fields
  if (fields.length !== FIELDS || body === undefined || !HEX_64.test(contentHash!)) {
    throw new CommandUnreadable(`an event line with ${fields.length} fields`)
  }
  const detailsSalt = optional(salt!, HEX_32)
  const detailsHash = optional(hash!, HEX_64)
  const dedupKey = optional(dedup!, HEX_32)
  const fingerprint = optional(print!, HEX_32)
  return {
    index: Number(index),
    id: parseJson(id!) as string,
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

/** The first line of a command. */
export type CommandHeader = Omit<Command, "events" | "traces">

const isHeader = (value: unknown): value is CommandHeader => {
  if (typeof value !== "object" || value === null) return false
  const header = value as Partial<Record<keyof Command, unknown>>
  return (
    commandKinds.includes(header.kind as CommandKind)
    && typeof header.tenantId === "string"
    && typeof header.receiptId === "string"
    && typeof header.attempt === "string"
    && typeof header.receivedAt === "string"
    && MICROS_FORM.test(header.receivedAt)
    && Array.isArray(header.errors)
    && Array.isArray(header.warnings)
  )
}

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
