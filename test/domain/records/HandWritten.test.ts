/**
 * Hot paths read records by hand, cold ones by the schema. What either takes and refuses must be the
 * same as far as types go; the forms of texts are the schema's alone.
 */

import { Schema } from "effect"
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { readHead } from "../../../src/actors/sequencer/SequencerState.ts"
import { exampleEvent } from "../../../src/contracts/ExampleEvent.ts"
import { exampleFactPlace } from "../../../src/contracts/ExampleFact.ts"
import { AuditEvent } from "../../../src/domain/events/AuditEvent.ts"
import { parseEvent } from "../../../src/domain/events/StoredEvent.ts"
import { canonicalize } from "../../../src/domain/json/CanonicalJson.ts"
import { type Command, CommandHeader } from "../../../src/domain/records/Command.ts"
import { decodeCommand, encodeCommand } from "../../../src/domain/records/CommandBytes.ts"
import { EMPTY_BATCH } from "../../../src/domain/records/EventBatch.ts"
import { Receipt, readReceipt } from "../../../src/domain/records/Receipt.ts"
import { StoredHead } from "../../../src/domain/records/StateRecords.ts"
import { factDetailsHash, parseFact, storeFact } from "../../../src/domain/traces/FactText.ts"
import { type FactCore, StoredFact } from "../../../src/domain/traces/TraceFact.ts"
import {
  decodeOperation,
  encodeOperation,
  TraceOperation
} from "../../../src/domain/traces/TraceOperation.ts"
import { commandWithHead } from "../../support/Events.ts"

const NOW = "2026-11-21T12:00:00.000000Z"
const HASH = "ab".repeat(32)

type Json = Readonly<Record<string, unknown>>

const receipt: Json = {
  receipt_id: "rcp_1",
  tenant_id: "acme",
  status: "committed",
  accepted: 2,
  rejected: 1,
  ids: ["a", "b"],
  errors: [{ index: 2, code: "invalid_value", message: "id: too long" }],
  warnings: [{ index: 0, field: "actor.shoe_size" }],
  duplicates: [{ index: 1, sequence_number: 4 }],
  first_sequence_number: 7,
  last_sequence_number: 7,
  received_at: NOW,
  committed_at: NOW,
  head_hash: HASH,
  results: [{ index: 0, op: "span.end", outcome: "created", execution_id: "x" }],
  command_offset: 3,
  events_next: 8,
  traces_next: 0
}

const details = (text: string) => ({ text, salt: "0a".repeat(16), hash: factDetailsHash("", text) })

const cores: ReadonlyArray<FactCore> = [
  {
    type: "execution.started",
    execution_id: "x",
    fact_number: 1,
    agent_id: "agent",
    root_span_id: "root",
    source: "otlp",
    started_at: NOW,
    started_at_given: true,
    provisional: true
  },
  { type: "execution.ended", execution_id: "x", fact_number: 2, status: "FAILED", ended_at: NOW },
  { type: "execution.erased", execution_id: "x", fact_number: 3, reason: "r", erased_by: "key" },
  {
    type: "span.started",
    execution_id: "x",
    fact_number: 4,
    span_id: "s",
    parent_span_id: "root",
    caused_by_span_ids: ["root"],
    span_type: "TOOL_CALL",
    started_at: NOW,
    started_at_given: false
  },
  {
    type: "span.ended",
    execution_id: "x",
    fact_number: 5,
    span_id: "s",
    status: "COMPLETED",
    ended_at: NOW
  },
  {
    type: "span.event",
    execution_id: "x",
    fact_number: 6,
    span_id: "s",
    event_id: "e",
    event_type: "tool.request",
    sequence_number: 1,
    timestamp: NOW
  }
]

const detailsOf: Readonly<Record<string, string>> = {
  "execution.started": canonicalize({ agent_name: "A", metadata: { a: 1 } }),
  "span.ended": canonicalize({ error: "timeout" })
}

const facts = cores.map((core): Json => {
  const text = detailsOf[core.type]
  const { body } = storeFact(core, text === undefined ? undefined : details(text), exampleFactPlace)
  return JSON.parse(body) as Json
})

const header: Json = {
  kind: "ingest",
  tenantId: "acme",
  receiptId: "rcp_1",
  attempt: "a",
  receivedAt: NOW,
  errors: [],
  warnings: []
}

const operations: ReadonlyArray<TraceOperation> = [
  {
    op: "execution.start",
    index: 0,
    executionId: "x",
    fresh: true,
    agentId: "agent",
    rootSpanId: "root",
    startedAt: NOW,
    startedAtGiven: false,
    rootDetails: details('{"name":"agent"}')
  },
  {
    op: "otlp.span",
    index: 1,
    executionId: "x",
    syntheticRootId: "root",
    spanId: "s",
    causedBy: ["root"],
    spanType: "LLM_CALL",
    startedAt: NOW,
    status: "COMPLETED",
    details: details('{"name":"s"}'),
    agentId: "agent",
    events: [{ eventId: "e", eventType: "log", timestamp: NOW }]
  },
  { op: "execution.erase", index: 2, executionId: "x", reason: "r", erasedBy: "key" }
]

interface Reader {
  readonly name: string
  readonly schema: Schema.Codec<unknown, unknown>
  readonly samples: ReadonlyArray<Json>
  /** Undefined, or an error thrown, for what is no such record. */
  readonly read: (json: string) => unknown
}

const readers: ReadonlyArray<Reader> = [
  { name: "receipts", schema: Receipt, samples: [receipt], read: readReceipt },
  {
    name: "stored events",
    schema: AuditEvent,
    samples: [{ ...exampleEvent }],
    read: parseEvent
  },
  {
    name: "facts",
    schema: StoredFact as unknown as Schema.Codec<unknown, unknown>,
    samples: facts,
    read: parseFact
  },
  {
    name: "heads",
    schema: StoredHead,
    samples: [{ sequence_number: 1, hash: HASH, created_at: NOW, tree: "0:" }],
    read: (json) => readHead(Buffer.from(json))
  },
  {
    name: "heads of commands",
    schema: CommandHeader,
    samples: [header],
    read: (json) => decodeCommand(commandWithHead(json))
  }
]

const takes = (read: Reader["read"], value: unknown): boolean => {
  try {
    return read(JSON.stringify(value)) !== undefined
  } catch {
    return false
  }
}

const kindOf = (value: unknown): string =>
  Array.isArray(value) ? "array" : value === null ? "null" : typeof value

/** Places of a value: each member of its objects and each item of its lists. What clients fill is none. */
const placesOf = (
  value: unknown,
  path: ReadonlyArray<string> = []
): Array<ReadonlyArray<string>> =>
  typeof value !== "object" || value === null || path.at(-1) === "metadata"
    ? []
    : Object.entries(value).flatMap(([name, member]) => [
        [...path, name],
        ...placesOf(member, [...path, name])
      ])

/** A copy with another value at a place; undefined removes it. */
const changed = (
  value: unknown,
  [name, ...rest]: ReadonlyArray<string>,
  other: unknown
): unknown => {
  const copy = structuredClone(value) as Record<string, unknown>
  copy[name!] = rest.length === 0 ? other : changed(copy[name!], rest, other)
  return copy
}

const at = (value: unknown, path: ReadonlyArray<string>): unknown =>
  path.reduce<unknown>((inner, name) => (inner as Json)[name], value)

/** Members of facts of which the bytes, compared with what the writer writes, say what they are. */
const FREE = new Set(["details", "details_salt", "details_hash", "provisional", "started_at_given"])

describe.each(readers)("$name, read by hand", ({ read, samples, schema }) => {
  const is = Schema.is(schema)

  it("are read as what they are", () => {
    for (const sample of samples) {
      assert.isTrue(is(sample))
      const value = read(JSON.stringify(sample)) as Json
      for (const [name, member] of Object.entries(sample)) assert.deepEqual(value[name], member)
    }
  })

  it("are refused by hand only where the schema refuses them", () => {
    const places = samples.flatMap((sample) => placesOf(sample).map((path) => ({ sample, path })))
    fc.assert(
      fc.property(
        fc.constantFrom(...places),
        fc.jsonValue({ maxDepth: 1 }),
        ({ path, sample }, other) => {
          const value = changed(sample, path, other)
          if (is(value)) assert.isTrue(takes(read, value), JSON.stringify(value))
        }
      ),
      { numRuns: 300 }
    )
  })

  it("are refused with a member missing, or of another type, as the schema does", () => {
    for (const sample of samples) {
      for (const path of placesOf(sample).filter(([name]) => !FREE.has(name!))) {
        const others = [undefined, null, true, 1, "x", ["x"], { x: 1 }].filter(
          (other) => kindOf(other) !== kindOf(at(sample, path))
        )
        for (const other of others) {
          const value = changed(sample, path, other)
          const plain = JSON.parse(JSON.stringify(value)) as unknown
          // A list whose item was removed has a null in its place.
          assert.strictEqual(
            takes(read, plain),
            is(plain),
            `${path.join(".")}: ${JSON.stringify(other)}`
          )
        }
      }
    }
  })
})

describe("lines of commands", () => {
  it("are read back as what was written, operations too", () => {
    for (const operation of operations) {
      assert.isTrue(Schema.is(TraceOperation)(operation))
      assert.deepStrictEqual(decodeOperation(encodeOperation(operation)), operation)
    }
    const command = {
      ...header,
      kind: "trace",
      events: EMPTY_BATCH,
      traces: operations
    } as unknown as Command
    assert.deepStrictEqual(decodeCommand(encodeCommand(command)), command)
  })

  it("refuse an operation on the registry that is none", () => {
    const operation = { op: "create_tenant", tenant: { id: "acme", created_at: NOW } }
    const line = (value: unknown) =>
      commandWithHead(JSON.stringify({ ...header, kind: "registry", operation: value }))
    assert.deepStrictEqual(decodeCommand(line(operation)).operation as unknown, operation)
    const refused = "not that of a command"
    assert.throws(() => decodeCommand(line({ ...operation, op: "create" })), refused)
    assert.throws(() => decodeCommand(line({ op: "create_tenant" })), refused)
  })
})
