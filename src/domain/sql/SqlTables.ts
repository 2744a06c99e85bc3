/** The tables that read-only SQL sees, each of one tenant, and what their columns say. */
import { terminalStatuses } from "../traces/TraceFact.ts"

/** Type of ClickHouse, and what it says. */
type Column = readonly [type: string, description: string]

const TIME = "DateTime64(6, 'UTC')"
const MAYBE_TIME = `Nullable(${TIME})`

const LONG_NUMBERS =
  "integers of 19 digits and more are written with `e0`, so that ClickHouse reads them as doubles"
const METADATA = `JSON; ${LONG_NUMBERS}.`
const STATUS = `RUNNING, ${terminalStatuses.join(", ")}.`

const events = {
  sequence_number: ["UInt64", "Place in the chain: from 1, without gaps."],
  id: ["String", "Id of the event."],
  timestamp: [TIME, "When it happened."],
  created_at: [TIME, "When it was chained; never decreases."],
  actor_id: ["String", "Who did it."],
  actor_type: ["String", "What that is: human, agent or system."],
  actor_email: ["Nullable(String)", "Its e-mail address."],
  action: ["String", "What was done."],
  resource_id: ["String", "What it was done to."],
  resource_type: ["String", "What that is."],
  resource_name: ["Nullable(String)", "Its name."],
  outcome: ["String", "How it went."],
  metadata: ["String", `${METADATA} Empty without any.`],
  erased_at: [MAYBE_TIME, "When its details were erased."],
  hash: ["String", "Its hash, 64 hex digits."],
  prev_hash: ["String", "Hash of the event before."],
  content_hash: ["String", "Hash of its content."]
} as const satisfies Record<string, Column>

const executions = {
  execution_id: ["String", "Id of the execution."],
  agent_id: ["String", "Whose execution it is."],
  agent_name: ["String", "The agent's name; its id without one."],
  status: ["String", STATUS],
  root_span_id: ["String", "Its root span."],
  trigger: ["Nullable(String)", "What started it."],
  source: ["String", "How it came in: api or otlp."],
  started_at: [TIME, "When it started."],
  ended_at: [MAYBE_TIME, "When it ended."],
  duration_ms: ["Nullable(Float64)", "Milliseconds from start to end."],
  metadata: ["String", `${METADATA} What the end brought is in it.`],
  is_erased: ["Bool", "Whether its details were erased."]
} as const satisfies Record<string, Column>

const spans = {
  execution_id: ["String", "Its execution."],
  span_id: ["String", "Id of the span."],
  parent_span_id: ["Nullable(String)", "Its parent; NULL on the root."],
  caused_by_span_ids: ["Array(String)", "Spans that caused it."],
  span_type: ["String", "LLM_CALL, TOOL_CALL, …."],
  name: ["String", "Its name."],
  status: ["String", `${STATUS} That of its execution where that has ended first.`],
  started_at: [TIME, "When it started."],
  ended_at: [MAYBE_TIME, "When it ended, at the latest with its execution."],
  duration_ms: ["Nullable(Float64)", "Milliseconds from start to end."],
  error: ["Nullable(String)", "Its error: a text, or JSON."],
  model: [
    "Nullable(String)",
    "The model that its metadata names; this and what follows as in `summary`."
  ],
  input_tokens: ["Nullable(UInt64)", "Tokens that the model has read."],
  output_tokens: ["Nullable(UInt64)", "Tokens that the model has written."],
  cost: ["Nullable(Float64)", "What it has cost, as the client said."],
  session_id: ["Nullable(String)", "The session that its metadata names."],
  user_id: ["Nullable(String)", "The user that its metadata names."],
  metadata: ["String", `${METADATA} What the end brought is in it.`],
  repairs: ["String", "JSON list of what was repaired when it came in; empty without any."]
} as const satisfies Record<string, Column>

const trace_events = {
  execution_id: ["String", "Its execution."],
  span_id: ["String", "Its span."],
  event_id: ["String", "Id of the trace event."],
  event_type: ["String", "llm.request, tool.response, …."],
  sequence_number: ["UInt64", "From 1 per execution, in the order of arrival."],
  timestamp: [TIME, "When it happened."],
  payload: ["String", `${METADATA} Empty without any.`]
} as const satisfies Record<string, Column>

export const sqlTables = { events, executions, spans, trace_events } as const
export type SqlTable = keyof typeof sqlTables
export type SqlColumn<T extends SqlTable> = keyof (typeof sqlTables)[T] & string

export const sqlTableNames = Object.keys(sqlTables) as ReadonlyArray<SqlTable>

/** What a row of each is. */
export const sqlTableTexts: Readonly<Record<SqlTable, string>> = {
  events: "Audit events.",
  executions: "Executions of agents. One whose root span has not arrived is among them.",
  spans: "Spans that have arrived, of all executions.",
  trace_events: "Events of spans, of all executions."
}
