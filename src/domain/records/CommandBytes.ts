/**
 * Hot path: measured in test/bench/Bench.ts (ingest, sequencing). The value of a command's record:
 * JSON with what concerns the whole request, then the events as a batch of bytes (EventBatch), or, in
 * a command of the kind `trace`, a line of JSON per operation. Numbers are little-endian:
 *
 *     u32 length of the JSON, JSON, u32 number of events, entries, bodies
 *     u32 length of the JSON, JSON, lines of operations with a line feed between two of them
 */
import { Schema } from "effect"
import { parseJson } from "../json/Json.ts"
import { RegistryOperation } from "../registry/RegistryEntry.ts"
import { decodeOperation, encodeOperation, type TraceOperation } from "../traces/TraceOperation.ts"
import {
  COMMAND_FORMAT,
  type Command,
  type CommandHeader,
  type CommandKind,
  commandKinds
} from "./Command.ts"
import { BatchUnreadable, batchBytes, EMPTY_BATCH, readEventBatch } from "./EventBatch.ts"
import { EventValues } from "./EventValues.ts"

/** A record of `alk.commands` that is not what this program writes. */
export class CommandUnreadable extends Error {
  override readonly name = "CommandUnreadable"
}

const LENGTH_BYTES = 4

/**
 * The value of the command's record. Compact JSON holds no raw line feed.
 * @throws Error if the command has events and operations on traces
 */
export const encodeCommand = (command: Command): Buffer => {
  const { events, traces, ...rest } = command
  const header = JSON.stringify(rest)
  const headerBytes = Buffer.byteLength(header)
  const isTrace = command.kind === "trace"
  if (isTrace ? events.count > 0 : traces !== undefined) {
    throw new Error(`a command of the kind ${command.kind} with events and operations`)
  }
  const lines = isTrace ? (traces ?? []).map(encodeOperation).join("\n") : ""
  const restBytes = isTrace ? Buffer.byteLength(lines) : LENGTH_BYTES + batchBytes(events)
  const value = Buffer.allocUnsafe(LENGTH_BYTES + headerBytes + restBytes)
  let at = value.writeUInt32LE(headerBytes, 0)
  at += value.write(header, at)
  if (isTrace) {
    value.write(lines, at)
    return value
  }
  at = value.writeUInt32LE(events.count, at)
  at += events.entries.copy(value, at)
  events.bodies.copy(value, at)
  return value
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

const decodeBytes = (value: Buffer): Command => {
  const headerEnd = value.length < LENGTH_BYTES ? NaN : LENGTH_BYTES + value.readUInt32LE(0)
  if (!(headerEnd <= value.length)) throw new CommandUnreadable("it is cut off in its head")
  const header = decodeHeader(value.toString("utf8", LENGTH_BYTES, headerEnd))
  if (header.kind === "trace") {
    const lines = headerEnd === value.length ? [] : value.toString("utf8", headerEnd).split("\n")
    return { ...header, events: EMPTY_BATCH, traces: lines.map(decodeTrace) }
  }
  const eventsAt = headerEnd + LENGTH_BYTES
  if (eventsAt > value.length) throw new CommandUnreadable("it is cut off before its events")
  const count = value.readUInt32LE(headerEnd)
  return { ...header, events: readEventBatch(count, value.subarray(eventsAt)) }
}

/** The format that the header `alk-format` names; NaN for what is not a number. */
export const formatIn = (header: Buffer | undefined): number => Number(header?.toString())

/**
 * Read a command back. Keeps the bytes of a value with events.
 * @throws CommandUnreadable on anything that the program does not write in this format
 */
export const decodeCommand = (value: Buffer | null, format = COMMAND_FORMAT): Command => {
  if (value === null) throw new CommandUnreadable("a command without a value")
  if (format !== COMMAND_FORMAT) throw new CommandUnreadable("it is in no known format")
  try {
    return decodeBytes(value)
  } catch (error) {
    if (!(error instanceof BatchUnreadable)) throw error
    throw new CommandUnreadable(error.message, { cause: error })
  }
}
