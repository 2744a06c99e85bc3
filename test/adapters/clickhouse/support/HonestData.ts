/**
 * A small log and a few executions whose answers are written down in HonestAnswers.json: what is in
 * it is fixed, down to the hashes.
 */
import { Effect } from "effect"
import type { AuditEvent } from "../../../../src/domain/events/AuditEvent.ts"
import type { JsonObject } from "../../../../src/domain/json/Json.ts"
import { EventStore } from "../../../../src/ports/EventStore.ts"
import { TraceStore } from "../../../../src/ports/TraceStore.ts"
import { chainOf, rowsOf, type Sample, timeAt } from "./StoredBodies.ts"
import { FactChain, factRows, type Told } from "./StoredFacts.ts"

export const HONEST_TENANT = "honest"

const EVENTS = 40
/** Seconds between two events: the log is of four days. */
const SECONDS_APART = 9_000
const ERASED = 13

const pick = <A>(from: ReadonlyArray<A>, n: number): A => from[n % from.length]!

const actors: ReadonlyArray<AuditEvent["actor"]> = [
  { id: "user_1", type: "human", email: "ann@example.com" },
  { id: "user_2", type: "human", email: "bo@example.org" },
  { id: "user_3", type: "human" },
  { id: "agent-7", type: "agent" },
  { id: "cron", type: "system" }
]

/** Each as often as no other, so that an order by counts has no ties. */
const actions = Object.entries({
  "document.read": 13,
  "document.share": 9,
  "user.login": 7,
  "order.paid": 5,
  "user.deleted": 4,
  "order.refunded": 2
}).flatMap(([action, times]) => Array.from({ length: times }, () => action))

const names = ["Plan", "Größe 5", "it's", "日本語", 'a "b" \\ c', "100% _sure_"]

const resourceOf = (n: number): AuditEvent["resource"] => {
  const type = pick(["document", "user", "order"], n)
  const resource = { id: `${type}_${n % 6}`, type }
  return n % 4 === 0 ? resource : { ...resource, name: pick(names, n) }
}

const metadataOf = (n: number): JsonObject | undefined => {
  switch (n % 5) {
    case 0:
      return undefined
    case 1:
      return {
        amount: n * 10.5,
        currency: n % 2 === 0 ? "EUR" : "USD",
        region: pick(["eu", "us"], n)
      }
    case 2:
      return { with: ["carol", `user_${n % 4}`], pages: n, ip: `10.0.${n}.1`, region: "eu" }
    case 3:
      return {
        request: {
          method: pick(["GET", "POST"], n),
          path: `/v1/items/${n}?q=${n}&x=é`,
          tags: ["a", "ü"]
        },
        ok: n % 2 === 0,
        none: null,
        amount: n
      }
    default:
      return {
        "dotted.key": n,
        text: `line ${n}\nit's "quoted" 日本`,
        list: [
          { id: 1, score: n / 4 },
          { id: 2, score: n / 8 }
        ],
        counts: { a: n, b: n % 3 }
      }
  }
}

const sampleOf = (n: number): Sample => {
  const metadata = metadataOf(n)
  return {
    timestamp: timeAt(n * SECONDS_APART),
    created_at: timeAt(n * SECONDS_APART + (n % 3)),
    actor: actors[pick([0, 0, 0, 1, 1, 2, 3, 4], n * 3 + Math.floor(n / 8))]!,
    action: pick(actions, n * 7),
    resource: resourceOf(n),
    outcome: pick(["success", "success", "failure", "success", "error"] as const, n + (n % 7)),
    ...(metadata === undefined ? {} : { metadata })
  }
}

interface SpanSample {
  readonly id: string
  readonly parent?: string
  readonly type: string
  readonly from: number
  readonly to?: number
  readonly status?: "COMPLETED" | "FAILED"
  readonly metadata?: JsonObject
  readonly ended?: JsonObject
  readonly error?: string | JsonObject
}

const llm = (model: string, input: number, output: number, cost?: number): JsonObject => ({
  attributes: {
    "llm.model_name": model,
    "gen_ai.usage.input_tokens": input,
    "gen_ai.usage.output_tokens": output,
    ...(cost === undefined ? {} : { "llm.cost.total": cost }),
    "session.id": "s-1",
    "user.id": "user_1"
  }
})

const addSpan = (
  facts: FactChain,
  execution: string,
  { ended, error, from, id, metadata = {}, parent, status = "COMPLETED", to, type }: SpanSample
): void => {
  const started: Told = {
    type: "span.started",
    span_id: id,
    ...(parent === undefined ? {} : { parent_span_id: parent }),
    caused_by_span_ids: parent === undefined ? [] : [parent],
    span_type: type,
    started_at: timeAt(from),
    started_at_given: true
  }
  facts.add(execution, started, { name: `${type.toLowerCase()} of ${execution}`, metadata })
  if (to === undefined) return
  facts.add(
    execution,
    { type: "span.ended", span_id: id, status, ended_at: timeAt(to) },
    {
      ...(error === undefined ? {} : { error }),
      ...(ended === undefined ? {} : { metadata: ended })
    }
  )
}

const factsOf = (): FactChain => {
  const facts = new FactChain(HONEST_TENANT)
  const start = (id: string, agent: string, at: number, metadata: JsonObject): void => {
    const details = { agent_name: `Agent ${agent}`, trigger: "schedule", metadata }
    facts.start(
      id,
      { agent_id: agent, root_span_id: `${id}-root`, started_at: timeAt(at) },
      agent === "c" ? { metadata } : details
    )
  }
  start("run-1", "a", 10, { team: "red", tries: 1 })
  addSpan(facts, "run-1", { id: "run-1-root", type: "AGENT", from: 10, to: 40 })
  addSpan(facts, "run-1", {
    id: "run-1-llm",
    parent: "run-1-root",
    type: "LLM_CALL",
    from: 11,
    to: 21,
    metadata: llm("m-large", 1_200, 300, 0.25)
  })
  addSpan(facts, "run-1", {
    id: "run-1-tool",
    parent: "run-1-llm",
    type: "TOOL_CALL",
    from: 21,
    to: 25,
    status: "FAILED",
    error: { message: "no answer", code: 504 },
    ended: { tries: 3 }
  })
  start("run-2", "b", 100, { team: "blue", tries: 2 })
  addSpan(facts, "run-2", { id: "run-2-root", type: "AGENT", from: 100, to: 160 })
  addSpan(facts, "run-2", {
    id: "run-2-llm",
    parent: "run-2-root",
    type: "LLM_CALL",
    from: 101,
    to: 103,
    metadata: llm("m-small", 90, 10)
  })
  addSpan(facts, "run-2", {
    id: "run-2-llm-2",
    parent: "run-2-root",
    type: "LLM_CALL",
    from: 110,
    to: 150,
    status: "FAILED",
    metadata: llm("m-large", 2_000, 5, 0.5),
    error: "it timed out"
  })
  start("run-3", "a", 200, { team: "red", tries: 5 })
  addSpan(facts, "run-3", { id: "run-3-root", type: "AGENT", from: 200 })
  addSpan(facts, "run-3", {
    id: "run-3-llm",
    parent: "run-3-root",
    type: "LLM_CALL",
    from: 205,
    metadata: llm("m-small", 70, 0)
  })
  start("run-4", "c", 300, {})
  facts.event("run-1", "run-1-llm", 1, { text: "hello", tokens: 9 })
  facts.event("run-1", "run-1-tool", 2, { text: "größer", tokens: 10 })
  facts.event("run-2", "run-2-llm", 1, { text: "bye", tokens: 3, nested: { a: [1, 2] } })
  facts.end("run-1", "COMPLETED", timeAt(41))
  facts.end("run-2", "FAILED", timeAt(161))
  return facts
}

/** Stores it once, for the tenant `HONEST_TENANT`. */
export const storeHonestData = Effect.fnUntraced(function* (partition: number) {
  const events = yield* EventStore
  const traces = yield* TraceStore
  yield* events.migrate
  yield* events.insertEvents(rowsOf(chainOf(HONEST_TENANT, EVENTS, sampleOf), partition))
  yield* events.eraseDetails(HONEST_TENANT, [
    { sequenceNumber: ERASED, erasedAt: timeAt(EVENTS * SECONDS_APART + SECONDS_APART) }
  ])
  yield* traces.insertFacts(factRows(factsOf().all, partition))
})
