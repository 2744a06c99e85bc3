/**
 * The column `summary` of the `facts` table: what a fact says of models, tokens, costs, sessions and
 * users, by the names that `summaryOf` knows, and what lists of executions are filtered by. Taken
 * out of the stored bytes by ClickHouse itself, as every column.
 */
import { callTypes } from "../../../domain/traces/ExecutionSummary.ts"
import { summaryForms, summaryNames } from "../../../domain/traces/SpanSummary.ts"
import { field, type NamedExpression } from "../client/JsonColumns.ts"

const quoted = (texts: ReadonlyArray<string>): string => texts.map((one) => `'${one}'`).join(", ")

/** In the place of a number that a fact does not say. */
const NO_NUMBER = -1

const { cost, inputTokens, model, outputTokens, sessionId, userId } = summaryNames
/** Those of one kind stand together. */
const KINDS: ReadonlyArray<ReadonlyArray<string>> = [
  model,
  inputTokens,
  outputTokens,
  sessionId,
  userId,
  cost
]
const NAMES = KINDS.flat()

/** A member of any kind is read as a text: of a string what it says, of the rest its JSON. */
const MEMBERS = `Tuple(${NAMES.map((name) => `\`${name}\` String`).join(", ")})`

/** The texts of these members of an object in the body, in the order of their names. */
const textsAt = (...path: ReadonlyArray<string>): string =>
  `tupleElement(tupleToNameValuePairs(JSONExtract(readable, ${quoted(path)}, '${MEMBERS}')), 2)`

/** What the column is made of beside the fields of the fact. */
export const summaryTemporaries: ReadonlyArray<NamedExpression> = [
  ["attribute_texts", textsAt("details", "metadata", "attributes")],
  ["metadata_texts", textsAt("details", "metadata")]
]

/** No stored text holds it. */
const BETWEEN = "\\0"

/**
 * The first text of a form under some names, in the attributes and then in the metadata; else an
 * empty one. A lambda for each would take 10 ms of every insert before a row is looked at.
 */
const firstOf = (names: ReadonlyArray<string>, form: string): string => {
  const at = KINDS.slice(0, KINDS.indexOf(names)).flat().length + 1
  const slices = summaryTemporaries.map(([texts]) => `arraySlice(${texts}, ${at}, ${names.length})`)
  const texts = `arrayStringConcat(arrayConcat(${slices.join(", ")}), '${BETWEEN}${BETWEEN}')`
  return `extract(concat('${BETWEEN}', ${texts}, '${BETWEEN}'), '${BETWEEN}(${form})${BETWEEN}')`
}

const textOf = (names: ReadonlyArray<string>): string =>
  firstOf(names, `[^{[${BETWEEN}][^${BETWEEN}]*`)

const countOf = (names: ReadonlyArray<string>): string =>
  `ifNull(toInt64OrNull(${firstOf(names, summaryForms.count)}), ${NO_NUMBER})`

const amountOf = (names: ReadonlyArray<string>): string =>
  `ifNull(toFloat64OrNull(${firstOf(names, summaryForms.amount)}), ${NO_NUMBER})`

/** Members of the column, their types and what they hold. */
const parts: ReadonlyArray<readonly [name: string, type: string, is: string]> = [
  ["is_call", "UInt8", `type = 'span.started' AND ${field("span_type")} IN (${quoted(callTypes)})`],
  ["input_tokens", "Int64", countOf(inputTokens)],
  ["output_tokens", "Int64", countOf(outputTokens)],
  ["cost", "Float64", amountOf(cost)],
  ["model", "LowCardinality(String)", textOf(model)],
  ["session_id", "String", textOf(sessionId)],
  ["user_id", "String", textOf(userId)],
  ["agent_name", "String", field("details", "agent_name")]
]

export const SUMMARY_TYPE = `Tuple(${parts.map(([name, type]) => `${name} ${type}`).join(", ")})`

export const summaryColumn: NamedExpression = [
  "summary",
  `CAST(tuple(${parts.map(([, , is]) => is).join(", ")}), '${SUMMARY_TYPE}')`
]
