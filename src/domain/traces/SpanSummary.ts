/**
 * What a reader wants to know of a span at once, taken out of its metadata: model, tokens, session.
 * It is derived whenever a span is shown, so it is outside of hash, chain and digest, and is gone
 * when the metadata is erased. Metadata holds the attributes of OpenTelemetry in `attributes`;
 * other clients may use their names in the metadata itself.
 *
 * Sources: OpenTelemetry semantic conventions for generative AI (`gen_ai.*`), OpenInference
 * (`llm.token_count.*`, `llm.model_name`), OpenLLMetry (`llm.usage.*`, `traceloop.*`), the Vercel
 * AI SDK (`ai.*`).
 */
import { Schema } from "effect"
import { defined } from "../Defined.ts"
import { natural } from "../Forms.ts"
import { isObject } from "../json/Json.ts"
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
    + "OpenLLMetry and the Vercel AI SDK have for these; no part of what is hashed."
})
export type SpanSummary = typeof SpanSummary.Type

/** A span as answers show it. */
export const ShownSpan = Schema.Struct({
  ...Span.fields,
  summary: optional(SpanSummary)
}).annotate({ identifier: "Span" })
export type ShownSpan = typeof ShownSpan.Type

/** Names of attributes; the first that has a value of the right kind decides. */
const names = {
  model: [
    "gen_ai.response.model",
    "gen_ai.request.model",
    "llm.model_name",
    "embedding.model_name",
    "reranker.model_name",
    "ai.response.model",
    "ai.model.id"
  ],
  inputTokens: [
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.prompt_tokens",
    "llm.token_count.prompt",
    "llm.usage.prompt_tokens",
    "ai.usage.inputTokens",
    "ai.usage.promptTokens",
    "ai.usage.tokens"
  ],
  outputTokens: [
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "llm.token_count.completion",
    "llm.usage.completion_tokens",
    "ai.usage.outputTokens",
    "ai.usage.completionTokens"
  ],
  finishReasons: ["gen_ai.response.finish_reasons"],
  sessionId: [
    "gen_ai.conversation.id",
    "session.id",
    "traceloop.association.properties.session_id",
    "ai.telemetry.metadata.sessionId"
  ],
  userId: [
    "user.id",
    "enduser.id",
    "traceloop.association.properties.user_id",
    "ai.telemetry.metadata.userId"
  ],
  cost: ["gen_ai.usage.cost", "llm.cost.total"]
} as const

/** The names that tokens have. */
export const TOKEN_NAMES: ReadonlyArray<string> = [...names.inputTokens, ...names.outputTokens]

type Attributes = Readonly<Record<string, unknown>>

const isText = (value: unknown): value is string => typeof value === "string" && value !== ""
const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Number(value) >= 0
const isTexts = (value: unknown): value is ReadonlyArray<string> =>
  Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === "string")
const isAmount = (value: unknown): value is number => Number.isFinite(value) && Number(value) >= 0

/** The first value of a kind, by name. */
const firstOf = <A>(
  places: ReadonlyArray<Attributes>,
  names: ReadonlyArray<string>,
  isOne: (value: unknown) => value is A
): A | undefined => {
  for (const attributes of places) {
    for (const name of names) {
      const value = Object.hasOwn(attributes, name) ? attributes[name] : undefined
      if (isOne(value)) return value
    }
  }
  return undefined
}

/** Undefined if the metadata holds nothing of it. */
export const summaryOf = ({ metadata }: Pick<Span, "metadata">): SpanSummary | undefined => {
  const attributes = metadata["attributes"]
  const places = isObject(attributes) ? [attributes, metadata] : [metadata]
  const summary: SpanSummary = defined({
    model: firstOf(places, names.model, isText),
    input_tokens: firstOf(places, names.inputTokens, isCount),
    output_tokens: firstOf(places, names.outputTokens, isCount),
    finish_reasons: firstOf(places, names.finishReasons, isTexts),
    session_id: firstOf(places, names.sessionId, isText),
    user_id: firstOf(places, names.userId, isText),
    cost: firstOf(places, names.cost, isAmount)
  })
  return Object.keys(summary).length === 0 ? undefined : summary
}

/** A span with its summary, if it has one. */
export const shownSpan = (span: Span): ShownSpan => {
  const summary = summaryOf(span)
  return summary === undefined ? span : { ...span, summary }
}
