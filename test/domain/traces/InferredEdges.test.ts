/** Which edges metadata and times tell of, by whose names, and that they contradict nothing. */

import { readFileSync } from "node:fs"
import fc from "fast-check"
import { assert, describe, it, vi } from "vitest"
import type { JsonObject, JsonValue } from "../../../src/domain/json/Json.ts"
import { finish } from "../../../src/domain/Slices.ts"
import { HINT_IDS_MAX, hintMembers, hintsOf } from "../../../src/domain/traces/GraphHints.ts"
import { INFERRED_EDGES_MAX, inferEdges } from "../../../src/domain/traces/InferredEdges.ts"
import { JSON_TEXT_MAX } from "../../../src/domain/traces/JsonTexts.ts"
import { ordered, spanGraphOf } from "../../../src/domain/traces/SpanGraph.ts"
import { fromJsonText, operationsOf, plain } from "../../services/ingest/otlp/support/Exports.ts"
import { attributes, conventions } from "./support/Conventions.ts"
import { acyclic, type Shape, spanOf } from "./support/Spans.ts"

const graphOf = (shapes: ReadonlyArray<Shape>, rootSpanId = "r") =>
  finish(spanGraphOf({ rootSpanId, spans: shapes.map(spanOf), eventCounts: new Map() }))

const inferred = (...shapes: ReadonlyArray<Shape>) =>
  finish(inferEdges(graphOf([{ id: "r", end: 1_000 }, ...shapes]))).edges.map(
    ({ rule, source, target }) => `${rule} ${source} ${target}`
  )

const step = (step: number, node: string, triggers?: JsonObject[string]): JsonObject =>
  attributes({
    langgraph_step: step,
    langgraph_node: node,
    ...(triggers === undefined ? {} : { langgraph_triggers: triggers })
  })

describe("inferred edges", () => {
  for (const [name, shapes] of Object.entries(conventions)) {
    it(`lead from the asking to the call, and on to the first with its result: ${name}`, () => {
      assert.sameMembers(inferred(...shapes), ["tool_call ask call", "tool_result call again"])
    })
  }

  it("take the nearest call where models use ids again", () => {
    const asks = { tool_calls: ["call_0"], tool_results: ["call_0"] }
    const does = { tool_call_id: "call_0" }
    const overlapping: Shape = { id: "o", parent: "r", start: 0, end: 99 }
    assert.sameMembers(
      inferred(
        overlapping,
        { id: "l1", parent: "r", type: "LLM_CALL", start: 1, end: 2, metadata: asks },
        { id: "t1", parent: "r", type: "TOOL_CALL", start: 3, end: 4, metadata: does },
        { id: "l2", parent: "r", type: "LLM_CALL", start: 5, end: 6, metadata: asks },
        { id: "t2", parent: "r", type: "TOOL_CALL", start: 7, end: 8, metadata: does },
        { id: "l3", parent: "r", type: "LLM_CALL", start: 9, end: 10, metadata: asks }
      ),
      ["tool_call l1 t1", "tool_result t1 l2", "tool_call l2 t2", "tool_result t2 l3"]
    )
  })

  it("stay within an agent where others beside it use the same ids", () => {
    const agent = (name: string, start: number): ReadonlyArray<Shape> => [
      { id: name, parent: "r", type: "AGENT", start: 0, end: 20 },
      { id: `${name} node`, parent: name, start: 0, end: 20 },
      {
        id: `${name} ask`,
        parent: `${name} node`,
        type: "LLM_CALL",
        start,
        end: start + 2,
        metadata: { tool_calls: ["call_0"] }
      },
      {
        id: `${name} tool`,
        parent: name,
        type: "TOOL_CALL",
        start: start + 3,
        end: start + 4,
        metadata: { tool_call_id: "call_0" }
      },
      {
        id: `${name} again`,
        parent: `${name} node`,
        type: "LLM_CALL",
        start: start + 6,
        end: start + 7,
        metadata: { tool_results: ["call_0"] }
      }
    ]
    const edges = inferred(...agent("a", 0), ...agent("b", 1), ...agent("c", 2))
    assert.includeMembers(
      edges,
      ["a", "b", "c"].flatMap((name) => [
        `tool_call ${name} ask ${name} tool`,
        `tool_result ${name} tool ${name} again`
      ])
    )
    assert.strictEqual(edges.filter((edge) => edge.startsWith("tool_")).length, 6)
  })

  it("come from a call that had ended rather than from one that still ran", () => {
    const asks = { tool_calls: ["call_0"] }
    assert.include(
      inferred(
        { id: "l1", parent: "r", type: "LLM_CALL", start: 0, end: 2, metadata: asks },
        { id: "l2", parent: "r", type: "LLM_CALL", start: 1, end: 9, metadata: asks },
        {
          id: "t",
          parent: "r",
          type: "TOOL_CALL",
          start: 3,
          end: 4,
          metadata: { tool_call_id: "call_0" }
        }
      ),
      "tool_call l1 t"
    )
  })

  it("are not repeated where they are recorded, as a parent or as a cause", () => {
    const [ask, other, call, again] = conventions["OpenInference"]!
    assert.deepStrictEqual(
      inferred(ask!, other!, { ...call!, parent: "ask" }, { ...again!, causes: ["call"] }),
      []
    )
  })

  it("follow spans that start at the same moment, whatever their ids are", () => {
    const [ask, , call] = conventions["OpenInference"]!
    const at = { start: 5, end: 5 }
    assert.deepStrictEqual(inferred({ ...ask!, ...at, id: "z" }, { ...call!, ...at, id: "a" }), [
      "tool_call z a"
    ])
  })

  it("follow the nodes of a graph, the last time that the parent ran", () => {
    const node = (id: string, parent?: string) =>
      attributes({
        "graph.node.id": id,
        ...(parent === undefined ? {} : { "graph.node.parent_id": parent })
      })
    assert.sameMembers(
      inferred(
        { id: "o", parent: "r", start: 0, end: 99 },
        { id: "p1", parent: "r", start: 1, end: 2, metadata: node("plan") },
        { id: "inner", parent: "p1", start: 1, end: 2, metadata: node("plan") },
        { id: "w1", parent: "r", start: 3, end: 4, metadata: node("work", "plan") },
        { id: "p2", parent: "r", start: 5, end: 6, metadata: node("plan", "work") },
        { id: "w2", parent: "r", start: 7, end: 8, metadata: node("work", "plan") }
      ),
      ["graph_node p1 w1", "graph_node w1 p2", "graph_node p2 w2"]
    )
  })

  it("follow LangGraph's triggers where they name a node, else its steps", () => {
    assert.sameMembers(
      inferred(
        { id: "s1", parent: "r", start: 1, end: 9, metadata: step(1, "plan", ["__start__"]) },
        { id: "in", parent: "s1", type: "LLM_CALL", start: 2, end: 3, metadata: step(1, "plan") },
        { id: "a", parent: "r", start: 10, end: 19, metadata: step(2, "a", ["branch:to:a"]) },
        { id: "b", parent: "r", start: 10, end: 15, metadata: step(2, "b", ["branch:plan:x:b"]) },
        { id: "j", parent: "r", start: 20, end: 29, metadata: step(3, "j", ["join:a+b:j"]) },
        { id: "e", parent: "r", start: 30, end: 31, metadata: step(4, "e", "('plan',)") }
      ),
      [
        "langgraph_step s1 a",
        "langgraph_trigger s1 b",
        "langgraph_trigger a j",
        "langgraph_trigger b j",
        "langgraph_trigger s1 e"
      ]
    )
  })

  it("find LangGraph's metadata where OpenInference, OpenLLMetry and LangSmith put it", () => {
    const run = { langgraph_step: 2, langgraph_node: "tools", langgraph_triggers: ["agent"] }
    const prefixed = (prefix: string) => ({
      [`${prefix}langgraph_step`]: "2",
      [`${prefix}langgraph_node`]: "tools",
      [`${prefix}langgraph_triggers`]: '["agent"]'
    })
    for (const metadata of [
      run,
      attributes(run),
      attributes({ metadata: JSON.stringify(run) }),
      attributes(prefixed("metadata.")),
      attributes(prefixed("traceloop.association.properties.")),
      attributes(prefixed("langsmith.metadata."))
    ]) {
      const expected = { step: 2, node: "tools", triggers: ["agent"] }
      assert.deepStrictEqual(hintsOf({ metadata }).langGraph, expected, JSON.stringify(metadata))
    }
  })

  it("follow times between siblings that ran alone, as long as nothing else is known", () => {
    const one: Shape = { id: "a", parent: "r", start: 1, end: 3 }
    const two: Shape = { id: "b", parent: "r", start: 3, end: 5 }
    const three: Shape = { id: "c", parent: "r", start: 6 }
    assert.deepStrictEqual(inferred(one, two, three), ["timing a b", "timing b c"])
    assert.deepStrictEqual(inferred(one, { ...two, causes: ["a"] }, three), ["timing b c"])
    assert.deepStrictEqual(inferred(one, { ...two, causes: ["r"] }, three), ["timing b c"])
    const beside: Shape = { id: "d", parent: "r", start: 2, end: 4 }
    assert.deepStrictEqual(inferred(one, two, beside, three), [])
    assert.deepStrictEqual(inferred({ ...one, end: 1 }, { ...two, start: 1 }), [])
    const running: Shape = { id: "a", parent: "r", start: 1 }
    assert.deepStrictEqual(inferred(running, two, three), [])
    assert.deepStrictEqual(inferred({ ...one, parent: "x" }, { ...two, parent: "y" }), [])
  })

  it("take the id of a call out of what OpenTelemetry's example says", () => {
    const url = new URL("../../services/ingest/otlp/examples/genai.json", import.meta.url)
    const body = JSON.parse(readFileSync(url, "utf8"))
    assert.isNotEmpty(fromJsonText(body).resourceSpans)
    const hints = operationsOf(body)
      .map(plain)
      .map(({ details }) => hintsOf({ metadata: details.metadata }))
    const called = hints.flatMap(({ toolCallId }) => toolCallId ?? [])
    assert.deepStrictEqual(called, ["call_mszuSIzqtI65i1wAUOE8w5H4"])
  })

  const name = fc.constantFrom(
    "gen_ai.output.messages",
    "gen_ai.tool.call.id",
    "llm.input_messages.0.message.tool_call_id",
    "llm.output_messages.0.message.tool_calls.0.tool_call.id",
    "tool_calls",
    "tool_results",
    "metadata",
    "langgraph_step",
    "langgraph_node",
    "langgraph_triggers",
    "graph.node.id",
    "graph.node.parent_id",
    "__proto__"
  )
  const value = fc.oneof(
    fc.constantFrom("a", "b", "c"),
    fc.nat({ max: 4 }),
    fc.constant([{ parts: [{ type: "tool_call", id: "a" }] }]),
    fc.jsonValue(),
    fc.json()
  )
  const hinted = fc
    .tuple(
      acyclic,
      fc.array(
        fc.tuple(
          fc.dictionary(name, value, { maxKeys: 6 }),
          fc.constantFrom("LLM_CALL", "TOOL_CALL")
        ),
        { minLength: 31, maxLength: 31 }
      )
    )
    .map(([shapes, drawn]) =>
      shapes.map((shape, n): Shape => {
        const [metadata, type] = drawn[n]!
        return { ...shape, type, metadata: metadata as JsonObject }
      })
    )

  it("repeat no recorded edge, and have no cycle together with them, whatever is sent", () => {
    fc.assert(
      fc.property(hinted, (shapes) => {
        const graph = graphOf(shapes, "root")
        const { edges, isComplete } = finish(inferEdges(graph))
        assert.isTrue(isComplete)
        const pairs = [...graph.edges, ...edges].map(({ source, target }) => `${source} ${target}`)
        const recorded = new Set(pairs.slice(0, graph.edges.length))
        assert.strictEqual(new Set(pairs).size, recorded.size + edges.length)
        for (const { source, target } of edges) {
          assert.notStrictEqual(source, target)
          assert.isTrue(graph.spans.has(source) && graph.spans.has(target))
        }
        const together = [...graph.edges, ...edges]
        const places = new Map(finish(ordered(graph.spans, together)).map(({ id }, n) => [id, n]))
        for (const { source, target } of together) {
          assert.isBelow(places.get(source)!, places.get(target)!)
        }
      })
    )
  })

  it("look at no other names than those that are read for them", () => {
    const examples = Object.values(conventions).flatMap((shapes) =>
      shapes.map(({ metadata = {} }) => metadata)
    )
    for (const metadata of examples) {
      assert.deepStrictEqual(hintsOf({ metadata: hintMembers(metadata) }), hintsOf({ metadata }))
    }
    fc.assert(
      fc.property(fc.dictionary(name, value), fc.dictionary(name, value), (inner, outer) => {
        const metadata = { ...outer, note: 1, attributes: { ...inner, note: 2 } } as JsonObject
        assert.notInclude(JSON.stringify(hintMembers(metadata)), '"note"')
        assert.deepStrictEqual(hintsOf({ metadata: hintMembers(metadata) }), hintsOf({ metadata }))
      })
    )
  })

  it("are bounded by what their ids add up to, and say so", () => {
    const wide = Array.from({ length: 200 }, (_, n): Shape => {
      const half = n < 100 ? 1 : 2
      const id = `${n}`.padEnd(256, "\u6f22")
      return { id, parent: "r", start: half, end: 9, metadata: step(half, `n${n}`) }
    })
    const { edges, isComplete } = finish(inferEdges(graphOf([{ id: "r", end: 9 }, ...wide])))
    assert.isFalse(isComplete)
    assert.isBelow(JSON.stringify(edges).length, 20 * 1_048_576)
    assert.isAbove(edges.length, 1_000)
  })

  it("are bounded, and say so", () => {
    const wide = Array.from({ length: 600 }, (_, n): Shape => {
      const half = n < 300 ? 1 : 2
      return { id: `s${n}`, parent: "r", start: half, end: 9, metadata: step(half, `n${n}`) }
    })
    const { edges, isComplete } = finish(inferEdges(graphOf([{ id: "r", end: 9 }, ...wide])))
    assert.isFalse(isComplete)
    assert.strictEqual(edges.length, INFERRED_EDGES_MAX)
  })

  describe("of long attributes", () => {
    const filled = (item: string, length: number) =>
      `[${item.repeat(Math.ceil(length / item.length))}{}]`
    /** Characters of JSON that are read for what metadata says. */
    const parsed = (attributes: JsonObject): number => {
      const parse = vi.spyOn(JSON, "parse")
      try {
        hintsOf({ metadata: { attributes } })
        return parse.mock.calls.reduce((sum, [text]) => sum + text.length, 0)
      } finally {
        parse.mockRestore()
      }
    }
    const names = ["gen_ai.input.messages", "gen_ai.output.messages", "metadata", "tool_calls"]

    it.each(names)("read none that is too long, and not all of many: %s", (name) => {
      assert.isAbove(parsed({ [name]: filled("{},", JSON_TEXT_MAX / 2) }), JSON_TEXT_MAX / 2)
      assert.strictEqual(parsed({ [name]: filled("{},", JSON_TEXT_MAX) }), 0)
      const content = filled("{},", JSON_TEXT_MAX / 4)
      const messages = Array.from({ length: 40 }, () => ({ content }))
      assert.isAtMost(parsed({ [name]: messages }), 2 * JSON_TEXT_MAX)
    })

    it("have so many ids and triggers at most", () => {
      const ids = (name: string) =>
        Array.from({ length: 2 * HINT_IDS_MAX }, (_, n) => `${name}${n}`)
      const quotes = "'a'".repeat(JSON_TEXT_MAX / 4)
      const triggers = (text: unknown) =>
        hintsOf({
          metadata: {
            langgraph_node: "n",
            langgraph_step: 1,
            langgraph_triggers: text as JsonValue,
            tool_calls: ids("c"),
            tool_results: [...ids("r"), "x".repeat(20_000)]
          }
        })
      for (const text of [quotes, ids("t"), quotes.repeat(8)]) {
        const { answered, asked, langGraph } = triggers(text)
        const expected = text === quotes.repeat(8) ? 0 : HINT_IDS_MAX
        assert.strictEqual(langGraph?.triggers.length, expected)
        assert.deepStrictEqual([answered.size, asked.size], [HINT_IDS_MAX, HINT_IDS_MAX])
      }
      const { answered } = hintsOf({ metadata: { tool_results: ["x".repeat(20_000), "y"] } })
      assert.deepStrictEqual([...answered], ["y"])
    })
  })
})
