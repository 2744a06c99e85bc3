/** What becomes of spans as frameworks send them: one row of frameworks.json for each kind. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { hintsOf } from "../../../../src/domain/traces/GraphHints.ts"
import {
  ANY,
  conventions,
  type FieldName,
  type FieldPath
} from "../../../../src/domain/traces/MappingTable.ts"
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

  it("is there for each convention of the table", () => {
    const sent = new Set(rows.flatMap(({ attributes }) => Object.keys(attributes)))
    for (const { fields = {}, of, present = {}, rows: own = [], types = {} } of conventions) {
      const paths = Object.values(fields).flat()
      const names = [
        ...[types, present, ...own.map(([when]) => when)].flatMap(Object.keys),
        ...paths.map((path) => (typeof path === "string" ? path : path[0]))
      ]
      assert.isTrue(
        names.some((name) => sent.has(name)),
        of
      )
    }
  })

  it("has each field by each attribute alone that the table has for it", () => {
    const said: Readonly<Record<FieldName, unknown>> = {
      model: "m",
      inputTokens: 7,
      outputTokens: 7,
      finishReasons: "stop",
      sessionId: "s",
      userId: "u",
      cost: 0.5,
      agentId: "a",
      agentName: "n"
    }
    const attributeOf = (path: FieldPath, value: unknown): Json => {
      if (typeof path === "string") return { [path]: value }
      const [attribute, ...members] = path
      const inner = members.reduceRight((held, member) => ({ [member]: held }), value)
      return { [attribute]: JSON.stringify(inner) }
    }
    for (const { fields = {}, of, when = {} } of conventions) {
      const met = Object.entries(when).map(([name, value]) => {
        const one = typeof value === "string" ? value : value[0]!
        return [name, one === ANY ? "x" : one.replaceAll("*", "x")]
      })
      for (const [field, paths] of Object.entries(fields)) {
        for (const path of paths) {
          const attributes = {
            ...Object.fromEntries(met),
            ...attributeOf(path, said[field as FieldName])
          }
          const { agentId, details, executionDetails } = spanOf({ of, attributes, type: "" })
          const { finish_reasons, ...summary } = summaryOf({ metadata: details.metadata }) ?? {}
          const found = {
            model: summary.model,
            inputTokens: summary.input_tokens,
            outputTokens: summary.output_tokens,
            finishReasons: finish_reasons?.join(),
            sessionId: summary.session_id,
            userId: summary.user_id,
            cost: summary.cost,
            agentId,
            agentName: executionDetails.agent_name
          }
          assert.strictEqual(found[field as FieldName], said[field as FieldName], `${of}: ${path}`)
        }
      }
    }
  })

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
