/**
 * Commands as bytes: format 2 is read back as what was written, format 1 as an earlier version has
 * written it, and nothing else is read as a command.
 */
import { readFileSync } from "node:fs"
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import type { Command } from "../../../src/domain/records/Command.ts"
import {
  CommandUnreadable,
  decodeCommand,
  encodeCommand,
  formatIn
} from "../../../src/domain/records/CommandBytes.ts"
import { eventsOf, type PreparedEvent } from "../../../src/domain/records/EventBatch.ts"
import { ingestCommand } from "../../support/Events.ts"

/** Values that the version before format 2 has written. */
const stored = JSON.parse(
  readFileSync(new URL("commandsOfFormat1.json", import.meta.url), "utf8")
) as ReadonlyArray<string>

/** An event line of format 1, read by other code than the program's. */
const eventOfLine = (line: string): PreparedEvent => {
  const [index, contentHash, salt, detailsHash, dedupKey, fingerprint, id, body] = line.split("\t")
  return {
    index: Number(index),
    id: JSON.parse(id!) as string,
    body: body!,
    contentHash: contentHash!,
    ...(salt === "-" ? {} : { detailsSalt: salt, detailsHash }),
    ...(dedupKey === "-" ? {} : { dedupKey, fingerprint })
  }
}

const bytesOf = (command: Command): Buffer => {
  const { format, value } = encodeCommand(command)
  assert.strictEqual(format, 2)
  return value as Buffer
}

const refuses = (value: Buffer | null, format: number, reason = ""): void =>
  assert.throws(() => decodeCommand(value, format), CommandUnreadable, reason)

describe("commands of format 1", () => {
  it("are read as an earlier version has written them", () => {
    for (const value of stored) {
      const { events, traces, ...header } = decodeCommand(Buffer.from(value), 1)
      const [first, ...lines] = value.split("\n")
      assert.deepStrictEqual(header, JSON.parse(first!))
      if (header.kind === "trace") {
        assert.strictEqual(events.count, 0)
        assert.deepStrictEqual<unknown>(
          traces,
          lines.map((line) => JSON.parse(line))
        )
      } else assert.deepStrictEqual(eventsOf(events), lines.map(eventOfLine))
    }
  })

  it("are the same commands in format 2, where they have events", () => {
    for (const value of stored) {
      const command = decodeCommand(Buffer.from(value), 1)
      const encoded = encodeCommand(command)
      const isBinary = ["ingest", "registry"].includes(command.kind)
      assert.strictEqual(encoded.format, isBinary ? 2 : 1)
      if (!isBinary) assert.strictEqual(encoded.value, value)
      const again = decodeCommand(Buffer.from(encoded.value), encoded.format)
      assert.deepStrictEqual(eventsOf(again.events), eventsOf(command.events))
      assert.deepStrictEqual({ ...again, events: 0 }, { ...command, events: 0 })
    }
  })

  it("are refused with an event that no version has written", () => {
    const [first, line] = stored[0]!.split("\n") as [string, string]
    const fields = line.split("\t")
    const wrong: ReadonlyArray<ReadonlyArray<string>> = [
      fields.slice(1),
      [...fields, ""],
      fields.with(0, "-1"),
      fields.with(0, ""),
      ...[1, 2, 3, 4, 5].map((field) => fields.with(field, "none")),
      fields.with(2, "-"),
      fields.with(6, "1"),
      fields.with(6, '"another id"'),
      fields.with(7, "{}")
    ]
    for (const changed of wrong) {
      const value = Buffer.from(`${first}\n${changed.join("\t")}`)
      refuses(value, 1)
    }
    refuses(Buffer.from("null"), 1, "its head is not that of a command")
    refuses(Buffer.from("{"), 1, "its head is not JSON")
  })
})

describe("commands of format 2", () => {
  const command = ingestCommand("acme", 3, { id: 'é "1"' })
  const value = bytesOf(command)

  it("have the layout that is documented", () => {
    const { events, ...header } = command
    const headerEnd = 4 + value.readUInt32LE(0)
    assert.deepStrictEqual<unknown>(JSON.parse(value.toString("utf8", 4, headerEnd)), header)
    assert.strictEqual(value.readUInt32LE(headerEnd), 3)
    const rest = Buffer.concat([events.entries, events.bodies])
    assert.deepStrictEqual(value.subarray(headerEnd + 4), rest)
  })

  it("are read back without a copy of their events", () => {
    const { events } = decodeCommand(value, 2)
    assert.deepStrictEqual(eventsOf(events), eventsOf(command.events))
    assert.strictEqual(events.bodies.buffer, value.buffer)
  })

  it("are refused wherever they are cut, and with a byte too many", () => {
    for (let cut = 0; cut < value.length; cut++) refuses(value.subarray(0, cut), 2)
    refuses(Buffer.concat([value, Buffer.alloc(1)]), 2, "bytes after the last body")
    refuses(null, 2)
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
            read = decodeCommand(changed, 2)
          } catch (error) {
            assert.instanceOf(error, CommandUnreadable)
          }
          // What is read has these bytes and no others.
          if (read !== undefined) assert.deepStrictEqual(decodeCommand(bytesOf(read), 2), read)
        }
      ),
      { numRuns: 500 }
    )
  })

  it("have no operations on traces", () => {
    const header = JSON.stringify({ ...decodeCommand(value, 2), kind: "trace", events: undefined })
    const length = Buffer.byteLength(header)
    const bytes = Buffer.alloc(4 + length + 4)
    bytes.writeUInt32LE(length)
    bytes.write(header, 4)
    refuses(bytes, 2, "operations on traces in format 2")
  })
})

describe("commands of format 3", () => {
  const bring = (values: boolean): Command => {
    const trace = stored
      .map((value) => decodeCommand(Buffer.from(value), 1))
      .find(({ kind }) => kind === "trace")!
    const payloads = [{ sha256: "a".repeat(64) }]
    const traces = trace.traces!.map((operation) =>
      values && "spanId" in operation ? { ...operation, payloads } : operation
    )
    return { ...trace, traces }
  }

  it("have operations that bring values, which an earlier version would lose", () => {
    assert.strictEqual(encodeCommand(bring(false)).format, 1)
    const command = bring(true)
    const { format, value } = encodeCommand(command)
    assert.strictEqual(format, 3)
    assert.deepStrictEqual(decodeCommand(Buffer.from(value), 3).traces, command.traces)
  })

  it("have no events", () => {
    const ingest = stored.find((value) => value.includes('"kind":"ingest"'))!
    refuses(Buffer.from(ingest), 3, "events in format 3")
  })
})

describe("commands of format 4", () => {
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

  it("have events that bring values, which an earlier version would lose", () => {
    const command = { ...ingestCommand("acme", 2), values }
    const { format, value } = encodeCommand(command)
    assert.strictEqual(format, 4)
    const read = decodeCommand(value as Buffer, 4)
    assert.deepStrictEqual(read.values, values)
    assert.deepStrictEqual(eventsOf(read.events), eventsOf(command.events))
    refuses(value as Buffer, 2, "values in format 2")
    refuses(bytesOf(ingestCommand("acme", 1)), 4, "none in format 4")
  })

  it("are refused with what is no value", () => {
    const wrong = [{ ...values[0]!, payloads: [{ sha256: "short" }] }]
    const { value } = encodeCommand({ ...ingestCommand("acme", 1), values: wrong })
    refuses(value as Buffer, 4, "its head")
  })
})

describe("the format of a command", () => {
  it("is what its header says, 1 without the header", () => {
    assert.strictEqual(formatIn(undefined), 1)
    assert.strictEqual(formatIn(Buffer.from("2")), 2)
    assert.isNaN(formatIn(Buffer.from("two")))
    for (const format of [0, 5, 1.5, NaN])
      refuses(Buffer.from(stored[0]!), format, "no known format")
    refuses(Buffer.from(stored[0]!), 2)
    refuses(bytesOf(ingestCommand("acme", 1)), 1)
  })
})
