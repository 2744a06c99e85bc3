/**
 * Hot path: measured in test/bench/Bench.ts (ingest, sequencing). The value of a command's record,
 * in four formats. Format 1 is text: a line of JSON with what concerns the whole request, then one
 * line of tab-separated fields per event, or one of JSON per operation on traces. Format 2 has the
 * same JSON and the events as a batch of bytes (EventBatch), numbers little-endian:
 *
 *     u32 length of the JSON, JSON, u32 number of events, entries, bodies
 *
 * Format 3 is format 1 with operations that bring values, format 4 is format 2 with events that do: a
 * program that knows no values would lose them.
 */
import { Schema } from "effect"
import { parseJson } from "../json/Json.ts"
import { RegistryOperation } from "../registry/RegistryEntry.ts"
import { decodeOperation, encodeOperation, type TraceOperation } from "../traces/TraceOperation.ts"
import {
  type Command,
  type CommandFormat,
  type CommandHeader,
  type CommandKind,
  commandKinds,
  formatOf
} from "./Command.ts"
import {
  BatchUnreadable,
  batchBytes,
  EMPTY_BATCH,
  type EventBatch,
  EventBatchBuilder,
  type PreparedEvent,
  readEventBatch
} from "./EventBatch.ts"
import { EventValues } from "./EventValues.ts"

/** A record of `alk.commands` that is not what this program writes. */
export class CommandUnreadable extends Error {
  override readonly name = "CommandUnreadable"
}

/** The value of a command's record, and the format it is in. */
export interface EncodedCommand {
  readonly format: CommandFormat
  readonly value: string | Buffer
}

const LENGTH_BYTES = 4

const encodeLines = (header: string, traces: ReadonlyArray<TraceOperation>): string =>
  [header, ...traces.map(encodeOperation)].join("\n")

const encodeBytes = (header: string, events: EventBatch): Buffer => {
  const headerBytes = Buffer.byteLength(header)
  const value = Buffer.allocUnsafe(2 * LENGTH_BYTES + headerBytes + batchBytes(events))
  let at = value.writeUInt32LE(headerBytes, 0)
  at += value.write(header, at)
  at = value.writeUInt32LE(events.count, at)
  at += events.entries.copy(value, at)
  events.bodies.copy(value, at)
  return value
}

/** The value of the command's record. Compact JSON holds no raw tab or line feed. */
export const encodeCommand = (command: Command): EncodedCommand => {
  const { events, traces = [], ...rest } = command
  const header = JSON.stringify(rest)
  const format = formatOf[command.kind]
  if (format === 2) {
    return { format: rest.values === undefined ? 2 : 4, value: encodeBytes(header, events) }
  }
  if (events.count > 0) throw new Error(`a command of the kind ${command.kind} has events`)
  const hasValues = traces.some((operation) => "payloads" in operation)
  return { format: hasValues ? 3 : format, value: encodeLines(header, traces) }
}

const NONE = "-"
const FIELDS = 8

const optional = (field: string): string | undefined => (field === NONE ? undefined : field)

const decodeEvent = (line: string): PreparedEvent => {
  const fields = line.split("\t")
  const [index, contentHash, salt, hash, dedup, print, id, body] = fields
  if (fields.length !== FIELDS || body === undefined || !/^[0-9]{1,9}$/.test(index!)) {
    throw new CommandUnreadable(`an event line with ${fields.length} fields`)
  }
  const name: unknown = parseJson(id!)
  if (typeof name !== "string") throw new CommandUnreadable("an event whose id is no text")
  return {
    index: Number(index),
    id: name,
    body,
    contentHash: contentHash!,
    detailsSalt: optional(salt!),
    detailsHash: optional(hash!),
    dedupKey: optional(dedup!),
    fingerprint: optional(print!)
  }
}

const decodeTrace = (line: string): TraceOperation => {
  const operation = decodeOperation(line)
  if (operation === undefined) throw new CommandUnreadable("a line without an operation")
  return operation
}

/** The canonical microsecond form of a time. */
const MICROS_FORM = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/

const isOperation = Schema.is(RegistryOperation)
const areValues = Schema.is(Schema.Array(EventValues))

/** What the MAC can't say by itself, checked by hand. Operations are rare. */
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
    && (header.values === undefined || areValues(header.values))
  )
}

const decodeHeader = (json: string): CommandHeader => {
  let header: unknown
  try {
    header = parseJson(json)
  } catch (cause) {
    throw new CommandUnreadable("its head is not JSON", { cause })
  }
  if (!isHeader(header)) throw new CommandUnreadable("its head is not that of a command")
  return header
}

const decodeLines = (value: Buffer): Command => {
  const [first, ...lines] = value.toString("utf8").split("\n")
  const header = decodeHeader(first!)
  if (header.kind === "trace") {
    return { ...header, events: EMPTY_BATCH, traces: lines.map(decodeTrace) }
  }
  const builder = new EventBatchBuilder()
  for (const line of lines) builder.add(decodeEvent(line))
  return { ...header, events: builder.build() }
}

const decodeWithValues = (value: Buffer): Command => {
  const command = decodeLines(value)
  if (command.kind !== "trace") throw new CommandUnreadable("events in format 3")
  return command
}

const decodeBytes = (value: Buffer, hasValues: boolean): Command => {
  const headerEnd = value.length < LENGTH_BYTES ? NaN : LENGTH_BYTES + value.readUInt32LE(0)
  const eventsAt = headerEnd + LENGTH_BYTES
  if (!(eventsAt <= value.length)) throw new CommandUnreadable("it is cut off in its head")
  const header = decodeHeader(value.toString("utf8", LENGTH_BYTES, headerEnd))
  if (header.kind === "trace") throw new CommandUnreadable("operations on traces in format 2")
  if ((header.values !== undefined) !== hasValues) {
    throw new CommandUnreadable("values in format 2, or none in format 4")
  }
  const count = value.readUInt32LE(headerEnd)
  return { ...header, events: readEventBatch(count, value.subarray(eventsAt)) }
}

/** The format that the header `alk-format` names; NaN for what is no number. */
export const formatIn = (header: Buffer | undefined): number =>
  header === undefined ? 1 : Number(header.toString())

/**
 * Read a command back. Keeps the bytes of a value of format 2 or 4.
 * @throws CommandUnreadable on anything that no version has written in this format
 */
export const decodeCommand = (value: Buffer | null, format: number): Command => {
  if (value === null) throw new CommandUnreadable("a command without a value")
  try {
    if (format === 1) return decodeLines(value)
    if (format === 2 || format === 4) return decodeBytes(value, format === 4)
    if (format === 3) return decodeWithValues(value)
    throw new CommandUnreadable("it is in no known format")
  } catch (error) {
    if (!(error instanceof BatchUnreadable)) throw error
    throw new CommandUnreadable(error.message, { cause: error })
  }
}
