/** The contract of an event as schemas: what they take, refuse, and say about themselves. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import {
  AuditEvent,
  AuditEventBatchItem,
  AuditEventInput,
  EMAIL_LENGTH_MAX,
  isText,
  NAME_LENGTH_MAX
} from "../../../src/domain/events/AuditEvent.ts"
import { readVectors } from "../../support/Independent.ts"

const { chain } = readVectors("alk-chain-v1.json") as {
  readonly chain: ReadonlyArray<{ readonly event: unknown }>
}

const single = Schema.is(AuditEventInput)
const batched = Schema.is(AuditEventBatchItem)
const stored = Schema.is(AuditEvent)

const input = {
  actor: { id: "user_1", type: "human" },
  action: "document.read",
  resource: { id: "doc_1", type: "document" },
  outcome: "success"
}

const examplesOf = (schema: unknown): ReadonlyArray<unknown> =>
  typeof schema !== "object" || schema === null
    ? []
    : Object.entries(schema).flatMap(([name, value]) =>
        name === "examples" ? (value as ReadonlyArray<unknown>) : examplesOf(value)
      )

describe("AuditEventInput", () => {
  it("takes the least that is required, and null for the rest", () => {
    assert.isTrue(single(input))
    assert.isTrue(single({ ...input, id: null, timestamp: null, metadata: null }))
    assert.isTrue(single({ ...input, actor: { ...input.actor, email: null } }))
  })

  it.each([
    { ...input, actor: { id: "user_1" } },
    { ...input, outcome: undefined },
    { ...input, outcome: null },
    { ...input, action: "read" },
    { ...input, action: "alk.event.erased" },
    { ...input, action: `a.${"b".repeat(127)}` },
    { ...input, id: "" },
    { ...input, timestamp: "2026-02-30T00:00:00Z" },
    { ...input, metadata: [] },
    { ...input, resource: { ...input.resource, name: "\0" } }
  ])("refuses %j", (event) => assert.isFalse(single(event)))

  it("lets a batch item leave out the actor's type and the outcome", () => {
    const { outcome: _, ...rest } = input
    assert.isTrue(batched({ ...rest, actor: { id: "user_1" } }))
    assert.isFalse(batched({ ...rest, actor: {} }))
  })
})

describe("AuditEvent", () => {
  it.each(chain)("takes the stored events of the vectors", ({ event }) => {
    assert.isTrue(stored(event))
  })

  it("refuses times and hashes in another form", () => {
    const event = chain[0]!.event as AuditEvent
    assert.isFalse(stored({ ...event, timestamp: "2026-11-21T10:00:00Z" }))
    assert.isFalse(stored({ ...event, hash: event.hash.toUpperCase() }))
    assert.isFalse(stored({ ...event, sequence_number: 0 }))
  })
})

describe("the JSON Schema of the contract", () => {
  it.each([
    ["AuditEventInput", AuditEventInput],
    ["AuditEventBatchItem", AuditEventBatchItem],
    ["AuditEvent", AuditEvent]
  ] as const)("of %s keeps the order of the members and gives examples", (name, schema) => {
    const { definitions } = Schema.toJsonSchemaDocument(schema)
    const properties = definitions[name]!["properties"] as Record<string, unknown>
    assert.deepStrictEqual(Object.keys(properties), Object.keys(schema.fields))
    assert.isAbove(examplesOf(properties).length, 2)
  })

  it("uses only regular expressions that other languages share", () => {
    const text = JSON.stringify(
      [AuditEventInput, AuditEvent].map((schema) => Schema.toJsonSchemaDocument(schema))
    )
    const patterns = [...text.matchAll(/"pattern":"((?:[^"\\]|\\.)*)"/g)].map(([, found]) => found!)
    assert.isAbove(patterns.length, 5)
    for (const pattern of patterns) assert.notInclude(pattern, "\\\\u")
  })
})

describe("isText", () => {
  it.each([EMAIL_LENGTH_MAX, NAME_LENGTH_MAX])("counts up to %d characters, not units", (max) => {
    assert.isTrue(isText("", max))
    assert.isTrue(isText("x".repeat(max), max))
    assert.isTrue(isText("😀".repeat(max), max))
    assert.isFalse(isText("x".repeat(max + 1), max))
    assert.isFalse(isText("😀".repeat(max + 1), max))
  })

  it.each(["a\0b", "\ud800", "\udc00x"])("refuses %j", (text) => assert.isFalse(isText(text, 10)))
  it.each(["\t\n", "\u007f", "日本"])("takes %j", (text) => assert.isTrue(isText(text, 10)))
})
