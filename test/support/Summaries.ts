/** Summaries of executions by plain arithmetic over their facts, and which texts are chosen. */
import { defined } from "../../src/domain/Defined.ts"
import type { ExecutionSummary } from "../../src/domain/traces/ExecutionSummary.ts"
import { type SpanSummary, summaryOf } from "../../src/domain/traces/SpanSummary.ts"
import type { TraceFact } from "../../src/domain/traces/TraceFact.ts"
import type { TextChoice } from "../../src/ports/TraceStore.ts"

/** What one fact says by itself. */
const saidBy = (fact: TraceFact): SpanSummary =>
  summaryOf({ metadata: fact.details?.metadata ?? {} }) ?? {}

const MODELS_MAX = 10

/** Facts by number; those of spans that are in there twice count once. */
export const summaryOfFacts = (facts: ReadonlyArray<TraceFact>): ExecutionSummary => {
  const ordered = facts.toSorted((left, right) => left.fact_number - right.fact_number)
  const said = ordered.map(saidBy)
  const spans = [
    ...Map.groupBy(
      ordered.flatMap((fact) =>
        fact.type === "span.started" || fact.type === "span.ended" ? [fact] : []
      ),
      ({ span_id }) => span_id
    ).values()
  ]
  const calls = spans.filter((own) =>
    own.some(
      (fact) => fact.type === "span.started" && /^(LLM_CALL|EMBEDDING)$/.test(fact.span_type)
    )
  )
  const sum = (name: "input_tokens" | "output_tokens" | "cost") => {
    const numbersOf = (of: typeof spans) =>
      of.flatMap((own) => own.map(saidBy).findLast((one) => name in one)?.[name] ?? [])
    const [ofCalls, ofAll] = [numbersOf(calls), numbersOf(spans)]
    if (ofCalls.length > 0) return ofCalls.reduce((left, right) => left + right)
    return ofAll.length === 0 ? undefined : Math.max(...ofAll)
  }
  const cost = sum("cost")
  const models = [...new Set(said.flatMap(({ model }) => model ?? []))].sort((left, right) =>
    Buffer.compare(Buffer.from(left), Buffer.from(right))
  )
  return defined({
    spans: spans.filter((own) => own.some(({ type }) => type === "span.started")).length,
    errors: spans.filter((own) =>
      own.some((fact) => fact.type === "span.ended" && fact.status === "FAILED")
    ).length,
    calls: calls.length,
    input_tokens: sum("input_tokens"),
    output_tokens: sum("output_tokens"),
    cost: cost === undefined ? undefined : Number(cost.toPrecision(12)),
    models: models.length === 0 ? undefined : models.slice(0, MODELS_MAX),
    session_id: said.find(({ session_id }) => session_id !== undefined)?.session_id,
    user_id: said.find(({ user_id }) => user_id !== undefined)?.user_id
  })
}

const isChosen = (choice: TextChoice, text: string): boolean =>
  choice.some((value) =>
    value.isOpen ? text !== "" && text.startsWith(value.text) : text === value.text
  )

interface Asked {
  readonly model?: TextChoice
  readonly sessionId?: TextChoice
  readonly userId?: TextChoice
  readonly agentId?: TextChoice
  readonly agentName?: TextChoice
  readonly minTokens?: number
}

/** Whether texts and tokens of an execution are those that are asked for. */
export const hasAsked = (
  { agentId, agentName, minTokens, model, sessionId, userId }: Asked,
  execution: { readonly agent_id: string; readonly agent_name: string },
  facts: ReadonlyArray<TraceFact>
): boolean => {
  const said = facts.map(saidBy)
  const { input_tokens = 0, output_tokens = 0 } = summaryOfFacts(facts)
  const says = (choice: TextChoice | undefined, name: "model" | "session_id" | "user_id") =>
    choice === undefined || said.some((one) => isChosen(choice, one[name] ?? ""))
  return (
    says(model, "model")
    && says(sessionId, "session_id")
    && says(userId, "user_id")
    && (agentId === undefined || isChosen(agentId, execution.agent_id))
    && (agentName === undefined || isChosen(agentName, execution.agent_name))
    && (minTokens === undefined || input_tokens + output_tokens >= minTokens)
  )
}
