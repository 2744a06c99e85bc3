/** What becomes of spans as frameworks send them: one row of frameworks.json for each kind. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { hintsOf } from "../../../../src/domain/traces/GraphHints.ts"
import { summaryOf } from "../../../../src/domain/traces/SpanSummary.ts"
import { exportOf, type Json, operationsOf, plain, span } from "./support/Exports.ts"

interface Row {
  readonly of: string
  readonly name?: string
  readonly attributes: Json
  readonly type: string
  /** The name that is shown, if it is another. */
  readonly shown?: string
  readonly summary?: Json
  readonly tool_call_id?: string
  readonly agent_name?: string
}

const rows: ReadonlyArray<Row> = JSON.parse(
  readFileSync(new URL("./frameworks.json", import.meta.url), "utf8")
)

const anyValue = (value: unknown): Json => {
  if (typeof value === "string") return { stringValue: value }
  if (typeof value === "boolean") return { boolValue: value }
  if (typeof value === "number") {
    return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value }
  }
  if (Array.isArray(value)) return { arrayValue: { values: value.map(anyValue) } }
  return { kvlistValue: { values: pairsOf(value as Json) } }
}

const pairsOf = (attributes: Json): ReadonlyArray<Json> =>
  Object.entries(attributes).map(([key, value]) => ({ key, value: anyValue(value) }))

/** Attributes beside those of a row that leave no room for them all in a span. */
const manyMessages = Object.fromEntries(
  Array.from({ length: 400 }, (_, at) => [
    `llm.input_messages.${at}.message.content`,
    "x".repeat(200)
  ])
)

const spanOf = ({ attributes, name = "span" }: Row) => {
  const [operation] = operationsOf(exportOf([span({ name, attributes: pairsOf(attributes) })]))
  return plain(operation!) as Json
}

describe("a span of a framework", () => {
  for (const row of rows) {
    it(`has type, name, model, tokens and session: ${row.of}`, () => {
      const { details, executionDetails, spanType } = spanOf(row)
      assert.strictEqual(spanType, row.type)
      assert.strictEqual(details.name, row.shown ?? row.name ?? "span")
      assert.deepStrictEqual(summaryOf({ metadata: details.metadata }), row.summary)
      const { toolCallId } = hintsOf({ metadata: details.metadata })
      assert.strictEqual(toolCallId, row.tool_call_id)
      assert.strictEqual(executionDetails.agent_name, row.agent_name)
      for (const [name, value] of Object.entries(row.attributes)) {
        assert.deepStrictEqual(details.metadata.attributes[name], value, "an attribute was changed")
      }
    })
  }

  it("says the same where its attributes have no room in it", () => {
    for (const row of rows) {
      const { attributes, summary, tool_call_id, type } = row
      const large = { ...row, attributes: { ...manyMessages, ...attributes } }
      const { details, spanType } = spanOf(large)
      assert.strictEqual(spanType, type, row.of)
      assert.property(details.metadata.attributes, "$ref", row.of)
      assert.deepStrictEqual(summaryOf({ metadata: details.metadata }), summary, row.of)
      if (tool_call_id === undefined) continue
      const { toolCallId } = hintsOf({ metadata: details.metadata })
      assert.strictEqual(toolCallId, tool_call_id, row.of)
    }
  })
})
