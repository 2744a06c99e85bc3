/** What is lifted out of the metadata of a span, whoever has named it, and what is not. */
import { readFileSync } from "node:fs"
import { Schema } from "effect"
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import type { JsonObject } from "../../../src/domain/json/Json.ts"
import { SpanSummary, summaryOf } from "../../../src/domain/traces/SpanSummary.ts"
import { fromJsonText, operationsOf, plain } from "../../services/ingest/otlp/support/Exports.ts"

const example = (name: string): string =>
  readFileSync(new URL(`../../services/ingest/otlp/examples/${name}.json`, import.meta.url), "utf8")

/** The summaries of the spans of an export, by the names of the spans. */
const summaries = (name: string): Record<string, unknown> => {
  const body = JSON.parse(example(name))
  assert.isNotEmpty(fromJsonText(body).resourceSpans)
  return Object.fromEntries(
    operationsOf(body)
      .map(plain)
      .map(({ details }) => [details.name, summaryOf({ metadata: details.metadata })])
  )
}

describe("the summary of a span", () => {
  it("has what the conventions of OpenTelemetry, OpenInference and OpenLLMetry say", () => {
    for (const name of ["genai", "genai-1.36", "openinference", "openllmetry"]) {
      const found = Object.values(summaries(name)).filter((one) => one !== undefined)
      assert.isNotEmpty(found, name)
    }
    const attributes = {
      "gen_ai.request.model": "asked",
      "gen_ai.response.model": "answered",
      "gen_ai.usage.input_tokens": 297,
      "gen_ai.usage.output_tokens": 65,
      "gen_ai.response.finish_reasons": ["stop"],
      "gen_ai.conversation.id": "conv",
      "user.id": "alice",
      "llm.cost.total": 0.25
    }
    const expected = {
      model: "answered",
      input_tokens: 297,
      output_tokens: 65,
      finish_reasons: ["stop"],
      session_id: "conv",
      user_id: "alice",
      cost: 0.25
    }
    assert.deepStrictEqual(summaryOf({ metadata: { attributes } }), expected)
    assert.deepStrictEqual(summaryOf({ metadata: attributes }), expected)
    assert.deepStrictEqual(
      summaryOf({
        metadata: {
          attributes: {
            "llm.model_name": "m",
            "llm.token_count.prompt": 3,
            "llm.token_count.completion": 0,
            "session.id": "s"
          }
        }
      }),
      { model: "m", input_tokens: 3, output_tokens: 0, session_id: "s" }
    )
  })

  it("is absent without any of it, and passes over values of another kind", () => {
    assert.isUndefined(summaryOf({ metadata: {} }))
    assert.isUndefined(summaryOf({ metadata: { attributes: [1], tool: "search" } }))
    const odd = {
      "gen_ai.response.model": "",
      "gen_ai.request.model": ["n"],
      "llm.model_name": "m",
      "gen_ai.usage.input_tokens": "12k",
      "gen_ai.usage.output_tokens": -1,
      "gen_ai.usage.cost": "1e999",
      "session.id": { $ref: "sha256:00", bytes: 9, preview: "" },
      "gen_ai.response.finish_reasons": ["stop", 1],
      "user.id": null
    }
    assert.deepStrictEqual(summaryOf({ metadata: { attributes: odd } }), { model: "m" })
  })

  it("takes numbers that were sent as texts, and names that are numbers", () => {
    const attributes = {
      "gen_ai.request.model": 7,
      "gen_ai.usage.input_tokens": "12",
      "gen_ai.usage.cost": "1.5e-3",
      "session.id": 4711
    }
    const expected = { model: "7", input_tokens: 12, cost: 0.0015, session_id: "4711" }
    assert.deepStrictEqual(summaryOf({ metadata: { attributes } }), expected)
  })

  it("has the form of its schema, whatever the metadata is", () => {
    const isSummary = Schema.is(SpanSummary)
    const name = fc.constantFrom(
      "gen_ai.response.model",
      "gen_ai.usage.input_tokens",
      "llm.usage.completion_tokens",
      "gen_ai.response.finish_reasons",
      "session.id",
      "enduser.id",
      "gen_ai.usage.cost",
      "__proto__"
    )
    const attributes = fc.dictionary(name, fc.jsonValue())
    fc.assert(
      fc.property(attributes, attributes, (inner, outer) => {
        const metadata = { ...outer, attributes: inner } as JsonObject
        const summary = summaryOf({ metadata })
        assert.isTrue(summary === undefined || isSummary(summary))
      })
    )
  })
})
