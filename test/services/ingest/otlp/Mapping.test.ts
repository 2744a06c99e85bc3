/** The mapping's tables, row by row, and what decides when several rows would. */
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { conventions } from "../../../../src/domain/traces/MappingTable.ts"
import {
  agentIdOf,
  agentNameOf,
  cancellations,
  eventTypeOf,
  kindOf,
  MAPPING_VERSION,
  outcomeOf,
  spanTypeOf,
  statusOf
} from "../../../../src/services/ingest/otlp/Mapping.ts"

const TYPES = [
  "AGENT",
  "LLM_CALL",
  "TOOL_CALL",
  "RETRIEVAL",
  "RERANK",
  "EMBEDDING",
  "PLANNING",
  "MEMORY",
  "WORKFLOW",
  "GUARDRAIL",
  "EVALUATION",
  "PROMPT",
  "HUMAN_APPROVAL",
  "HANDOFF",
  "CUSTOM"
]

describe("the span type", () => {
  it("is a documented one in every row", () => {
    const types = conventions.flatMap(({ present = {}, rows = [], types = {} }) => [
      ...rows.map(([, type]) => type),
      ...Object.values(types).flatMap(Object.values),
      ...Object.values(present)
    ])
    assert.isNotEmpty(types)
    for (const type of types) assert.include(TYPES, type)
  })

  it("comes from each value alone, whatever its case, also in the quotes of JSON", () => {
    for (const { types = {} } of conventions) {
      for (const [attribute, byValue] of Object.entries(types)) {
        for (const [value, type] of Object.entries(byValue)) {
          for (const written of [value, value.toUpperCase(), JSON.stringify(value)]) {
            assert.strictEqual(spanTypeOf({ [attribute]: written }), type, `${attribute}=${value}`)
          }
        }
      }
    }
  })

  it("comes from an attribute that is there, unless an operation is named", () => {
    for (const { present = {} } of conventions) {
      for (const [attribute, type] of Object.entries(present)) {
        assert.strictEqual(spanTypeOf({ [attribute]: "anything" }), type)
        assert.strictEqual(spanTypeOf({ [attribute]: null }), "CUSTOM")
        const named = { [attribute]: "anything", "gen_ai.operation.name": "my own" }
        assert.strictEqual(spanTypeOf(named), "CUSTOM")
      }
    }
  })

  it("has rows with values in lower case only, and stars at one end", () => {
    const values = conventions.flatMap(({ names = [], rows = [], types = {}, when = {} }) => [
      ...Object.values(types).flatMap(Object.keys),
      ...[when, ...rows.map(([one]) => one), ...names.map(([one]) => one)].flatMap((conditions) =>
        Object.values(conditions).flat()
      )
    ])
    for (const value of values) {
      assert.strictEqual(value, value.toLowerCase())
      assert.match(value, /^[*]?[^*]*$|^[^*]*[*]?$/)
    }
  })

  it("is the sender's own choice before anything else", () => {
    const chat = { "gen_ai.operation.name": "chat" }
    assert.strictEqual(spanTypeOf({ ...chat, "alk.span_type": "HANDOFF" }), "HANDOFF")
    assert.strictEqual(spanTypeOf({ ...chat, "alk.span_type": "MY_OWN_2" }), "MY_OWN_2")
    for (const wrong of ["handoff", "2X", "", "A B", "A".repeat(129), 7, null]) {
      assert.strictEqual(spanTypeOf({ ...chat, "alk.span_type": wrong }), "LLM_CALL")
    }
  })

  it("is HANDOFF where the name says so, unless the sender has chosen", () => {
    const tool = { "openinference.span.kind": "TOOL" }
    assert.strictEqual(spanTypeOf(tool, "handoff to Billing agent"), "HANDOFF")
    assert.strictEqual(spanTypeOf(tool, "handoff to "), "TOOL_CALL")
    assert.strictEqual(spanTypeOf({ ...tool, "alk.span_type": "MINE" }, "handoff to x"), "MINE")
  })

  it("goes by the first convention that knows the value", () => {
    const attributes = { "openinference.span.kind": "RERANKER", "gen_ai.request.model": "m" }
    assert.strictEqual(spanTypeOf(attributes), "RERANK")
    assert.strictEqual(spanTypeOf({ ...attributes, "gen_ai.operation.name": "my own" }), "RERANK")
    assert.strictEqual(spanTypeOf({ ...attributes, "gen_ai.operation.name": "chat" }), "LLM_CALL")
  })

  it("is CUSTOM for everything else, and no attribute of Object counts", () => {
    for (const attributes of [
      {},
      { "http.request.method": "GET" },
      { "openinference.span.kind": "UNKNOWN" },
      { "openinference.span.kind": "toString" },
      { "gen_ai.operation.name": "__proto__" },
      { "gen_ai.operation.name": 5 }
    ]) {
      assert.strictEqual(spanTypeOf(attributes), "CUSTOM")
    }
  })
})

describe("the agent", () => {
  it("is gen_ai.agent.id, else the service", () => {
    const service = { "service.name": "travel-desk" }
    assert.strictEqual(agentIdOf({ "gen_ai.agent.id": "a1" }, service), "a1")
    assert.strictEqual(agentIdOf({ "gen_ai.agent.name": "A" }, service), "travel-desk")
    assert.strictEqual(agentIdOf({}, {}), "unknown_service")
  })

  it("is never an id that no other client could send", () => {
    for (const id of ["", "a\u0000", "a\n", "x".repeat(257), 7]) {
      assert.strictEqual(agentIdOf({ "gen_ai.agent.id": id }, { "service.name": "s" }), "s")
    }
  })

  it("is named by the newest convention that has a name", () => {
    assert.strictEqual(agentNameOf({ "agent.name": "old", "gen_ai.agent.name": "new" }), "new")
    assert.strictEqual(agentNameOf({ "agent.name": "old" }), "old")
    assert.isUndefined(agentNameOf({ "gen_ai.agent.name": "" }))
    assert.isUndefined(agentNameOf({ "gen_ai.agent.name": "x".repeat(1_025) }))
  })
})

describe("the outcome", () => {
  const exception = (type: string, message = "") => ({
    name: "exception",
    attributes: { "exception.type": type, "exception.message": message }
  })

  it("is COMPLETED unless the status is ERROR", () => {
    for (const code of [0, 1]) {
      const outcome = outcomeOf(code, "", { "error.type": "X" }, [exception("X")])
      assert.deepStrictEqual(outcome, { status: "COMPLETED" })
    }
    assert.isUndefined(outcomeOf(3, "", {}, []))
    assert.isUndefined(outcomeOf(-1, "", {}, []))
  })

  it("has the status message for an error, else the last exception, else the type", () => {
    const other = { name: "x", attributes: {} }
    const events = [exception("First", "one"), exception("Last", "two"), other]
    const of = (message: string, attributes: Record<string, string>, some = events) =>
      outcomeOf(2, message, attributes, some)
    assert.deepStrictEqual(of("why", { "error.type": "T" }), { status: "FAILED", error: "why" })
    assert.deepStrictEqual(of("", { "error.type": "T" }), { status: "FAILED", error: "Last: two" })
    assert.deepStrictEqual(of("", { "error.type": "T" }, []), { status: "FAILED", error: "T" })
    assert.deepStrictEqual(of("", {}, []), { status: "FAILED" })
  })

  it("is CANCELLED where the error says so, and error.type has the last word", () => {
    for (const name of cancellations) {
      const attributes = { "error.type": name.toUpperCase() }
      assert.strictEqual(outcomeOf(2, "", attributes, [])?.status, "CANCELLED")
      assert.strictEqual(outcomeOf(2, "m", {}, [exception(name)])?.status, "CANCELLED")
    }
    const outcome = outcomeOf(2, "", { "error.type": "Timeout" }, [exception("AbortError")])
    assert.strictEqual(outcome?.status, "FAILED")
  })
})

describe("the type of an event", () => {
  it("is its name where that is one already", () => {
    const names = ["exception", "gen_ai.user.message", "gen_ai.choice", "a-b.c_d", "llm.request"]
    for (const name of names) {
      assert.strictEqual(eventTypeOf(name), name)
    }
  })

  it("is made of the name where it is none", () => {
    assert.strictEqual(eventTypeOf("Tool Started!"), "tool_started")
    assert.strictEqual(eventTypeOf("toolCall"), "toolcall")
    assert.strictEqual(eventTypeOf("..a...b.."), "a.b")
    assert.strictEqual(eventTypeOf("日本"), "event")
    assert.strictEqual(eventTypeOf(""), "event")
  })

  it("always has the form, and is its own type", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 300 }), (name) => {
        const type = eventTypeOf(name)
        assert.match(type, /^[a-z0-9._-]{1,128}$/)
        assert.strictEqual(eventTypeOf(eventTypeOf(type)), eventTypeOf(type))
      })
    )
  })
})

describe("metadata", () => {
  it("names kinds and status codes, and keeps numbers without a name", () => {
    assert.deepStrictEqual([0, 1, 5, 9].map(kindOf), [undefined, "INTERNAL", "CONSUMER", 9])
    assert.isUndefined(statusOf(0, ""))
    assert.deepStrictEqual(statusOf(1, ""), { code: "OK" })
    assert.deepStrictEqual(statusOf(0, "m"), { code: "UNSET", message: "m" })
  })

  it("has the version of the tables", () => assert.strictEqual(MAPPING_VERSION, "alk-otlp-3"))
})
