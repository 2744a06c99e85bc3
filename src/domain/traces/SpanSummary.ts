/**
 * What a reader wants to know of a span at once, taken out of its metadata: model, tokens, session.
 * It is derived whenever a span is shown, so it is outside of hash, chain and digest, and is gone
 * when the metadata is erased. Metadata holds the attributes of OpenTelemetry in `attributes`;
 * other clients may use their names in the metadata itself.
 *
 * The names are those of the common conventions of MappingTable.ts.
 */
import { Schema } from "effect"
import { defined } from "../Defined.ts"
import { natural } from "../Forms.ts"
import { isObject, type JsonObject } from "../json/Json.ts"
import { commonConventions, type FieldName } from "./MappingTable.ts"
import { Span } from "./TraceResources.ts"

const optional = Schema.optionalKey

export const SpanSummary = Schema.Struct({
  model: optional(
    Schema.String.annotate({ description: "The model that answered, else the one asked for." })
  ),
  input_tokens: optional(natural("Tokens that the model has read.")),
  output_tokens: optional(natural("Tokens that the model has written.")),
  finish_reasons: optional(
    Schema.Array(Schema.String).annotate({ description: "Why the model stopped, per answer." })
  ),
  session_id: optional(
    Schema.String.annotate({ description: "The session or conversation that it belongs to." })
  ),
  user_id: optional(Schema.String.annotate({ description: "On whose behalf it was." })),
  cost: optional(
    Schema.Finite.annotate({
      description: "What it has cost, as the client said, in its currency."
    })
  )
}).annotate({
  identifier: "SpanSummary",
  description:
    "Taken out of `metadata` when it is shown, by the names that OpenTelemetry, OpenInference, "
    + "OpenLLMetry and the Vercel AI SDK have for these, and by `alk.model`, `alk.input_tokens` and so "
    + "on; no part of what is hashed."
})
export type SpanSummary = typeof SpanSummary.Type

/** A span as answers show it. */
export const ShownSpan = Schema.Struct({
  ...Span.fields,
  summary: optional(SpanSummary)
}).annotate({ identifier: "Span" })
export type ShownSpan = typeof ShownSpan.Type

const namesOf = (field: FieldName): ReadonlyArray<string> =>
  commonConventions.flatMap(
    ({ fields }) => fields?.[field]?.filter((path) => typeof path === "string") ?? []
  )

/** Names of attributes; the first that has a value of the right kind decides. */
export const summaryNames = {
  model: namesOf("model"),
  inputTokens: namesOf("inputTokens"),
  outputTokens: namesOf("outputTokens"),
  finishReasons: namesOf("finishReasons"),
  sessionId: namesOf("sessionId"),
  userId: namesOf("userId"),
  cost: namesOf("cost")
} as const

/** The names that tokens have. */
export const TOKEN_NAMES: ReadonlyArray<string> = [
  ...summaryNames.inputTokens,
  ...summaryNames.outputTokens
]

type Attributes = Readonly<Record<string, unknown>>

/**
 * Forms of values, as regular expressions. A text that begins as an object or a list does is none:
 * so begins a reference to a value. Numbers may have been sent as texts.
 */
export const summaryForms = {
  text: "[^{[][^]*",
  count: "[0-9]{1,15}",
  amount: "[0-9]{1,40}(?:[.][0-9]{1,40})?(?:[eE][-+]?[0-9]{1,2})?"
}

const formOf = (form: string) => new RegExp(`^(${form})$`, "u")
const isText = formOf(summaryForms.text)
const isCount = formOf(summaryForms.count)
const isAmount = formOf(summaryForms.amount)

/** As ClickHouse writes it; undefined for what is no text, number or boolean. */
const textOf = (value: unknown): string | undefined => {
  if (typeof value === "number") return String(value).replace("e+", "e")
  return typeof value === "string" || typeof value === "boolean" ? String(value) : undefined
}

const asForm =
  <A>(form: RegExp, read: (text: string) => A) =>
  (value: unknown): A | undefined => {
    const text = textOf(value)
    return text !== undefined && form.test(text) ? read(text) : undefined
  }

const asText = asForm(isText, String)
const asCount = asForm(isCount, Number)
const asAmount = asForm(isAmount, Number)

const asTexts = (value: unknown): ReadonlyArray<string> | undefined =>
  typeof value === "string" && value !== ""
    ? [value]
    : Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === "string")
      ? value
      : undefined

/** The first value of a kind, by name. */
const firstOf = <A>(
  places: ReadonlyArray<Attributes>,
  names: ReadonlyArray<string>,
  as: (value: unknown) => A | undefined
): A | undefined => {
  for (const attributes of places) {
    for (const name of names) {
      const value = Object.hasOwn(attributes, name) ? as(attributes[name]) : undefined
      if (value !== undefined) return value
    }
  }
  return undefined
}

/** Undefined if the metadata holds nothing of it. */
export const summaryOf = ({ metadata }: Pick<Span, "metadata">): SpanSummary | undefined => {
  const attributes = metadata["attributes"]
  const places = isObject(attributes) ? [attributes, metadata] : [metadata]
  const summary: SpanSummary = defined({
    model: firstOf(places, summaryNames.model, asText),
    input_tokens: firstOf(places, summaryNames.inputTokens, asCount),
    output_tokens: firstOf(places, summaryNames.outputTokens, asCount),
    finish_reasons: firstOf(places, summaryNames.finishReasons, asTexts),
    session_id: firstOf(places, summaryNames.sessionId, asText),
    user_id: firstOf(places, summaryNames.userId, asText),
    cost: firstOf(places, summaryNames.cost, asAmount)
  })
  return Object.keys(summary).length === 0 ? undefined : summary
}

const saidNames = {
  model: "alk.model",
  input_tokens: "alk.input_tokens",
  output_tokens: "alk.output_tokens",
  finish_reasons: "alk.finish_reasons",
  session_id: "alk.session_id",
  user_id: "alk.user_id",
  cost: "alk.cost"
} as const

/**
 * A summary as members of metadata, which say it even where the values that said it are stored
 * elsewhere, or say it inside of others; without what is known from them anyway.
 */
export const namedSummary = (said: SpanSummary, known: SpanSummary = {}): JsonObject =>
  Object.fromEntries(
    (Object.keys(said) as Array<keyof SpanSummary>)
      .filter((name) => known[name] === undefined)
      .map((name) => [saidNames[name], said[name]!])
  )

/** A span with its summary, if it has one. */
export const shownSpan = (span: Span): ShownSpan => {
  const summary = summaryOf(span)
  return summary === undefined ? span : { ...span, summary }
}
