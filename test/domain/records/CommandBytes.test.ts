/** Commands as bytes: read back as what was written, and nothing else is read as a command. */
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { COMMAND_FORMAT, type Command } from "../../../src/domain/records/Command.ts"
import {
  CommandUnreadable,
  decodeCommand,
  encodeCommand,
  formatIn
} from "../../../src/domain/records/CommandBytes.ts"
import { EMPTY_BATCH, eventsOf } from "../../../src/domain/records/EventBatch.ts"
import type { TraceOperation } from "../../../src/domain/traces/TraceOperation.ts"
import { commandWithHead, ingestCommand } from "../../support/Events.ts"

const refuses = (value: Buffer | null, reason = "", format = COMMAND_FORMAT): void =>
  assert.throws(() => decodeCommand(value, format), CommandUnreadable, reason)

const values = [
  {
    index: 0,
    executionId: "holder",
    spanId: "evt-1",
    payloads: [
      {
        sha256: "a".repeat(64),
        chunks: [{ text: '{"payload":{}}', salt: "b".repeat(32), hash: "c".repeat(64) }]
      }
    ]
  }
]

const traces: ReadonlyArray<TraceOperation> = [
  { index: 0, op: "span.end", spanId: "s" },
  { index: 1, op: "span.end", spanId: 'é "1"\n' }
] as unknown as ReadonlyArray<TraceOperation>

const { events: _, ...head } = ingestCommand("acme", 1)
const traceCommand = (operations: ReadonlyArray<TraceOperation>): Command => ({
  ...head,
  kind: "trace",
  events: EMPTY_BATCH,
  traces: operations
})

describe("commands with events", () => {
  const command: Command = { ...ingestCommand("acme", 3, { id: 'é "1"' }), values }
  const value = encodeCommand(command)

  it("have the layout that is documented", () => {
    const { events, ...header } = command
    const headerEnd = 4 + value.readUInt32LE(0)
    assert.deepStrictEqual<unknown>(JSON.parse(value.toString("utf8", 4, headerEnd)), header)
    assert.strictEqual(value.readUInt32LE(headerEnd), 3)
    const rest = Buffer.concat([events.entries, events.bodies])
    assert.deepStrictEqual(value.subarray(headerEnd + 4), rest)
  })

  it("are read back without a copy of their events", () => {
    const { events, ...header } = decodeCommand(value)
    assert.deepStrictEqual(eventsOf(events), eventsOf(command.events))
    assert.strictEqual(events.bodies.buffer, value.buffer)
    assert.deepStrictEqual(header.values, values)
  })

  it("are refused wherever they are cut, and with a byte too many", () => {
    for (let cut = 0; cut < value.length; cut++) refuses(value.subarray(0, cut))
    refuses(Buffer.concat([value, Buffer.alloc(1)]), "bytes after the last body")
    refuses(null)
  })

  it("are never read as something else than they are, whatever byte is changed", () => {
    fc.assert(
      fc.property(
        fc.nat({ max: value.length - 1 }),
        fc.integer({ min: 1, max: 255 }),
        (at, bits) => {
          const changed = Buffer.from(value)
          changed[at] = changed[at]! ^ bits
          let read: Command | undefined
          try {
            read = decodeCommand(changed)
          } catch (error) {
            assert.instanceOf(error, CommandUnreadable)
          }
          // What is read has these bytes and no others.
          if (read !== undefined) assert.deepStrictEqual(decodeCommand(encodeCommand(read)), read)
        }
      ),
      { numRuns: 500 }
    )
  })

  it("are refused with a head, or values, that no command has", () => {
    refuses(commandWithHead("null"), "its head is not that of a command")
    refuses(commandWithHead("{"), "its head is not JSON")
    const wrong = [{ ...values[0]!, payloads: [{ sha256: "short" }] }]
    refuses(encodeCommand({ ...ingestCommand("acme", 1), values: wrong }), "its head")
  })
})

describe("commands with operations on traces", () => {
  it("have a line of JSON for each after the head, and are read back", () => {
    for (const operations of [[], traces.slice(1), traces]) {
      const command = traceCommand(operations)
      const value = encodeCommand(command)
      const lines = value.toString("utf8", 4 + value.readUInt32LE(0))
      assert.strictEqual(lines, operations.map((operation) => JSON.stringify(operation)).join("\n"))
      assert.deepStrictEqual(decodeCommand(value), command)
    }
  })

  it("are refused with a line that is not an operation, and never written with events", () => {
    refuses(Buffer.concat([encodeCommand(traceCommand(traces)), Buffer.from("\n{}")]), "a line")
    refuses(Buffer.concat([encodeCommand(traceCommand(traces)), Buffer.from("\n")]), "a line")
    const { events } = ingestCommand("acme", 1)
    assert.throws(() => encodeCommand({ ...traceCommand(traces), events }), "events and operations")
    assert.throws(
      () => encodeCommand({ ...ingestCommand("acme", 1), traces }),
      "events and operations"
    )
  })
})

describe("the format of a command", () => {
  it("is what its header says, and only one is read", () => {
    assert.isNaN(formatIn(undefined))
    assert.isNaN(formatIn(Buffer.from("two")))
    assert.strictEqual(formatIn(Buffer.from("2")), 2)
    const value = encodeCommand(ingestCommand("acme", 1))
    for (const format of [0, COMMAND_FORMAT + 1, 1.5, NaN]) {
      refuses(value, "no known format", format)
    }
  })
})
