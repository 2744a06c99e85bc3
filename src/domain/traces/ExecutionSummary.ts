/**
 * What a reader wants to know of an execution at once: how much its spans have done, and what they
 * have cost. It is added up whenever an execution is shown, so it is outside of hash, chain and
 * digest; what comes from metadata is gone when that is erased.
 */
import { Schema } from "effect"
import { natural, text } from "../Forms.ts"
import { Execution } from "./TraceResources.ts"

const optional = Schema.optionalKey

/**
 * Types of spans that are calls of models. Spans of agents repeat the tokens and costs of what is
 * below them, so only calls are added up. Where no call says a number, the largest that a span says
 * counts: some instrumentations tell of an agent, and of no call.
 */
export const callTypes: ReadonlyArray<string> = ["LLM_CALL", "EMBEDDING"]

/** Models that are named at most. */
export const SUMMARY_MODELS_MAX = 10

export const ExecutionSummary = Schema.Struct({
  spans: natural("Its spans that have arrived."),
  errors: natural("Spans that were ended as FAILED."),
  calls: natural("Spans of type LLM_CALL or EMBEDDING."),
  input_tokens: optional(
    natural("Tokens that the calls have read; where no call says it, the most that a span says.")
  ),
  output_tokens: optional(natural("Tokens that the calls have written, in the same way.")),
  cost: optional(
    Schema.Finite.annotate({
      description: "What the calls have cost, as the client said, in the same way."
    })
  ),
  models: optional(
    Schema.Array(Schema.String).annotate({
      description: `Models that it and its spans name, in the order of their names; at most ${SUMMARY_MODELS_MAX}.`
    })
  ),
  session_id: optional(text("The session that the first of its facts names.")),
  user_id: optional(text("The user that the first of its facts names."))
}).annotate({
  identifier: "ExecutionSummary",
  description:
    "Added up out of its spans when it is shown; no part of what is hashed. Sums end at "
    + "9007199254740991, and are absent where no span says anything."
})
export type ExecutionSummary = typeof ExecutionSummary.Type

/** An execution as answers show it. */
export const ShownExecution = Schema.Struct({
  ...Execution.fields,
  summary: optional(ExecutionSummary)
}).annotate({ identifier: "Execution" })
export type ShownExecution = typeof ShownExecution.Type
