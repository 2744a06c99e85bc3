/**
 * What every store behind the port `TraceStore` has to do, as tests: run on the engine in this
 * process and on the same engine behind HTTP in another.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Stream } from "effect"
import fc from "fast-check"
import { ClickHouseConnection } from "../../../../src/adapters/clickhouse/client/ClickHouseConnection.ts"
import { layerClickHouse } from "../../../../src/adapters/clickhouse/EventStoreClickHouse.ts"
import { layerStoredTopics } from "../../../../src/adapters/clickhouse/StoredTopicsClickHouse.ts"
import { layerTraceStore } from "../../../../src/adapters/clickhouse/TraceStoreClickHouse.ts"
import { columns } from "../../../../src/adapters/clickhouse/traces/TraceColumns.ts"
import { linkOf } from "../../../../src/domain/chain/ChainLink.ts"
import { defined } from "../../../../src/domain/Defined.ts"
import { derivedUuid, sha256Hex } from "../../../../src/domain/Identifiers.ts"
import { type JsonObject, type JsonValue, parseJson } from "../../../../src/domain/json/Json.ts"
import { microsOf } from "../../../../src/domain/Timestamp.ts"
import { eraseFact, parseFact, recomputeFact } from "../../../../src/domain/traces/FactText.ts"
import { hintsOf } from "../../../../src/domain/traces/GraphHints.ts"
import { chunkOf, wholeValue } from "../../../../src/domain/traces/Payload.ts"
import { summaryOf } from "../../../../src/domain/traces/SpanSummary.ts"
import {
  type FactDetails,
  type TraceStatus,
  terminalStatuses
} from "../../../../src/domain/traces/TraceFact.ts"
import type { Execution } from "../../../../src/domain/traces/TraceResources.ts"
import { foldFacts } from "../../../../src/domain/traces/TraceView.ts"
import { EventStore, type StoreUnavailable } from "../../../../src/ports/EventStore.ts"
import { StoredTopics } from "../../../../src/ports/TopicRows.ts"
import {
  type ExecutionFacts,
  type ExecutionPageQuery,
  executionSorts,
  type FactSelection,
  type PageBounds,
  type SpanPage,
  type SpanPlace,
  type TraceKey,
  TraceStore
} from "../../../../src/ports/TraceStore.ts"
import { attributes, conventions } from "../../../domain/traces/support/Conventions.ts"
import { runs } from "../../../support/Runs.ts"
import {
  allFacts,
  eventsOfSpan,
  loadedFact,
  withoutDetails
} from "../../../support/StoredTraces.ts"
import { hasAsked, summaryOfFacts } from "../../../support/Summaries.ts"
import { hostileTexts } from "./HostileTexts.ts"
import { timeAt } from "./StoredBodies.ts"
import { bodies, FactChain, factRows, GENESIS, markedFact, type Placed } from "./StoredFacts.ts"

const database = "alk_contract"
/** Everything in one page. */
const WHOLE: PageBounds = { itemsMax: 100_000, bytesMax: 100_000_000 }

/** Ids and values of traces, and what a stored fact looks like. */
const allTexts: ReadonlyArray<string> = [
  ...hostileTexts,
  "123456789012345678901234567890",
  ',"details":{',
  '","type":"span.event',
  "execution.started",
  "x".repeat(256)
]

const stored = (facts: ReadonlyArray<Pick<Placed, "body" | "offset">>, partition = 0) =>
  TraceStore.use((store) => store.insertFacts(factRows(facts, partition)))

/** Metadata that says something of the graph, and what looks like it. */
/** Makes a fact a large one, and says nothing to a graph. */
const NO_HINT = { prompt: "x".repeat(5_000) }

const hintingMetadata: ReadonlyArray<JsonObject> = [
  ...Object.values(conventions).flatMap((shapes) => shapes.map(({ metadata = {} }) => metadata)),
  ...allTexts.flatMap((text) => [
    { tool_call_id: text, [text]: text, attributes: { "graph.node.id": text, [text]: [text] } },
    attributes({
      "gen_ai.output.messages": [{ parts: [{ type: "tool_call", id: text, arguments: text }, 1] }],
      "gen_ai.input.messages": JSON.stringify([
        {
          [text]: 1,
          parts: [
            { id: text, type: "tool_call_response" },
            { type: text, id: "no" }
          ]
        },
        text
      ])
    }),
    attributes({ metadata: JSON.stringify({ langgraph_step: 3, langgraph_node: text, x: text }) }),
    attributes({ metadata: text, "gen_ai.output.messages": text, tool_calls: text })
  ]),
  { attributes: "text", "gen_ai.usage.input_tokens": 3 },
  { attributes: [1], langgraph_step: 1, langgraph_node: "a", langgraph_triggers: ["b", "c"] },
  attributes({ "llm.token_count.prompt": 5, "llm.usage.completion_tokens": 7, long: 2 ** 70 }),
  attributes({ "gen_ai.input.messages": { parts: [] }, "gen_ai.output.messages": [{}, null, 1] }),
  attributes({ "gen_ai.output.messages": [{ parts: [{ type: "tool_call" }, { id: 1 }] }] }),
  { metadata: { langgraph_step: "1", langgraph_node: "n" }, tool_results: [{ id: "a" }, "b"] },
  {}
]

/** Statement on the tables themselves: what somebody with access to the database could do. */
const tamper = (sql: string) =>
  ClickHouseConnection.use(({ client }) => Effect.promise(() => client.command({ query: sql })))

const ask = <A>(query: string, query_params: Record<string, string> = {}) =>
  ClickHouseConnection.use(({ client }) =>
    Effect.promise(() =>
      client
        .query({ query, query_params, format: "JSONCompactEachRow" })
        .then((answer) => answer.json<A>())
    )
  )

/** What is inserted meanwhile stays in parts of its own. */
const withoutMerges = <A, E, R>(use: Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    tamper(`SYSTEM STOP MERGES ${database}.facts`),
    () => use,
    () => tamper(`SYSTEM START MERGES ${database}.facts`)
  )

const factsOf = (tenantId: string, executionId: string) =>
  TraceStore.use((store) => allFacts(store, tenantId, executionId))

/** A page as a whole. */
const pageOf = (query: ExecutionPageQuery, final: boolean) =>
  TraceStore.use((store) =>
    Effect.gen(function* () {
      const { executions, total } = yield* store.page(query, final)
      const listed = (yield* Stream.runCollect(executions)).flat()
      return { executions: listed.map(({ facts }) => facts), total }
    })
  )

const rowsOf = (tenantId: string, executionId: string) =>
  TraceStore.use((store) =>
    Stream.runCollect(store.rows(tenantId, executionId)).pipe(Effect.map((chunks) => chunks.flat()))
  )

const everythingOf = (
  tenantId: string,
  over: Partial<ExecutionPageQuery> = {}
): ExecutionPageQuery => ({ tenantId, offset: 0, limit: 1000, ...over })

const byBytes = (left: string, right: string) =>
  Buffer.compare(Buffer.from(left), Buffer.from(right))

/** Of the facts of one execution its own, as far as they count: of what was said again the last. */
const countedOf = (facts: ReadonlyArray<Placed>): ReadonlyArray<Placed> => {
  const isOf =
    (...types: ReadonlyArray<Placed["type"]>) =>
    ({ type }: Placed) =>
      types.includes(type)
  const counted = [
    facts.find(isOf("execution.started")),
    facts.findLast(isOf("execution.started")),
    facts.findLast(isOf("execution.ended", "execution.resumed")),
    facts.findLast(isOf("execution.erased"))
  ]
  return facts.filter((fact) => counted.includes(fact))
}

/** The executions that facts add up to, in the order of lists. */
const executionsIn = (facts: ReadonlyArray<Placed>): ReadonlyArray<Execution> =>
  [...Map.groupBy(facts, ({ executionId }) => executionId).values()]
    .flatMap((own) => foldFacts(own.map(({ body }) => parseFact(body)!)).execution ?? [])
    .sort((left, right) => byBytes(right.started_at, left.started_at) || byBytes(left.id, right.id))

/** How many spans have failed, by execution. */
const failedSpansIn = (facts: ReadonlyArray<Placed>): ReadonlyMap<string, number> => {
  const failed = facts.flatMap(({ body, executionId, type }) => {
    const fact = type === "span.ended" ? parseFact(body) : undefined
    return fact?.type === "span.ended" && fact.status === "FAILED"
      ? [{ executionId, span: fact.span_id }]
      : []
  })
  const spans = Map.groupBy(failed, ({ executionId }) => executionId)
  return new Map([...spans].map(([id, own]) => [id, new Set(own.map(({ span }) => span)).size]))
}

const durationOf = ({ ended_at, started_at }: Execution): number | undefined =>
  ended_at === undefined ? undefined : Math.max(0, microsOf(ended_at) - microsOf(started_at))

/** What a page has to be, by plain arithmetic. */
const modelPage = (facts: ReadonlyArray<Placed>, query: ExecutionPageQuery) => {
  const { from, hasError, limit, minDurationMicros, offset, status, to } = query
  const { order = "desc", sort = "started_at" } = query
  const failed = failedSpansIn(facts)
  const errorsOf = ({ id }: Execution): number => failed.get(id) ?? 0
  const byExecution = Map.groupBy(facts, ({ executionId }) => executionId)
  const factsIn = ({ id }: Execution) => byExecution.get(id)!.map(({ body }) => parseFact(body)!)
  const keyOf = (execution: Execution): number => {
    const { cost = 0, input_tokens = 0, output_tokens = 0 } = summaryOfFacts(factsIn(execution))
    const keys = {
      started_at: microsOf(execution.started_at),
      errors: errorsOf(execution),
      duration: durationOf(execution) ?? 0,
      tokens: input_tokens + output_tokens,
      cost
    }
    return keys[sort]
  }
  const hasNone = (execution: Execution) =>
    (sort === "duration" && execution.ended_at === undefined)
    || (sort === "cost" && summaryOfFacts(factsIn(execution)).cost === undefined)
  const isLast = (execution: Execution) => (hasNone(execution) ? 1 : 0)
  const matching = executionsIn(facts)
    .filter(
      (execution) =>
        (status === undefined || status.includes(execution.status))
        && hasAsked(query, execution, factsIn(execution))
        && (from === undefined || execution.started_at >= from)
        && (to === undefined || execution.started_at <= to)
        && (hasError === undefined
          || hasError === (execution.status === "FAILED" || errorsOf(execution) > 0))
        && (minDurationMicros === undefined || (durationOf(execution) ?? -1) >= minDurationMicros)
    )
    .sort(
      (left, right) =>
        isLast(left) - isLast(right)
        || (order === "asc" ? 1 : -1) * (keyOf(left) - keyOf(right))
        || byBytes(left.id, right.id)
    )
  const own = (id: string) =>
    bodies(countedOf(facts.filter(({ executionId }) => executionId === id)))
  return {
    executions: matching.slice(offset, offset + limit).map(({ id }) => own(id)),
    total: matching.length
  }
}

const agents = ["agent", "Agent", "'", "\\", "", "日本語"]
const models = ["gpt-4.1", "gpt-4.1-mini", "claude", "'\\,*"]
const persons = ["u_1", "u_2", "日本語", "7"]

/** Metadata that says something of models, by one convention or another, and what is none of it. */
const anySaid = fc
  .record(
    {
      "gen_ai.response.model": fc.constantFrom<JsonValue>(...models, "", null, ["gpt-4.1"]),
      "llm.model_name": fc.constantFrom<JsonValue>(...models, 7, { $ref: "x" }),
      "gen_ai.usage.input_tokens": fc.constantFrom<JsonValue>(
        0,
        3,
        12,
        "40",
        -1,
        2.5,
        "x",
        2 ** 60
      ),
      "llm.usage.completion_tokens": fc.constantFrom<JsonValue>(0, 5, 1_000_000, true, null),
      "gen_ai.usage.cost": fc.constantFrom<JsonValue>(0, 0.25, 2, "0.5", -1, "1e999", 1e-7),
      "session.id": fc.constantFrom<JsonValue>(...persons, 7, "{a", ["u_1"]),
      "user.id": fc.constantFrom<JsonValue>(
        ...persons,
        false,
        1e21,
        1.5e-9,
        2 ** 70,
        0.1,
        -7,
        1.5e300
      ),
      large: fc.constantFrom<JsonValue>(2 ** 70, 1e300, "text")
    },
    { requiredKeys: [] }
  )
  .chain((said) =>
    fc.constantFrom<JsonObject>(said, { attributes: said }, { attributes: "none", ...said })
  )

interface Sample {
  readonly id: string
  readonly agent: string
  readonly start: number
  readonly provisional: boolean
  readonly arrived: { readonly agent: string; readonly start: number } | undefined
  readonly status: TraceStatus
  /** Runs again. */
  readonly isResumed: boolean
  readonly spans: number
  /** Of these, how many have failed. */
  readonly failed: number
  readonly duration: number
  readonly events: number
  readonly name: string | undefined
  readonly says: JsonObject
  /** What each of its spans says at its start and at its end. */
  readonly spanSays: ReadonlyArray<{
    readonly type: string
    readonly start: JsonObject
    readonly end: JsonObject | undefined
  }>
}

const start = fc.integer({ min: 0, max: 12 })
const agent = fc.constantFrom(...agents)

/** Executions that have a fair chance to meet a filter, by the api or from OpenTelemetry. */
const anyExecutions = (provisional: boolean) =>
  fc.array(
    fc.record({
      id: fc.uuid(),
      agent,
      start,
      provisional: provisional ? fc.boolean() : fc.constant(false),
      arrived: fc.option(fc.record({ agent, start }), { nil: undefined }),
      status: fc.constantFrom<TraceStatus>("RUNNING", ...terminalStatuses),
      isResumed: fc.constantFrom(false, false, false, true),
      spans: fc.integer({ min: 0, max: 3 }),
      failed: fc.constantFrom(0, 0, 0, 1, 2, 3),
      duration: fc.integer({ min: -2, max: 6 }),
      events: fc.integer({ min: 0, max: 3 }),
      name: fc.option(fc.constantFrom("Agent Smith", "Agent", "'"), { nil: undefined }),
      says: anySaid,
      spanSays: fc.array(
        fc.record({
          type: fc.constantFrom("LLM_CALL", "EMBEDDING", "AGENT"),
          start: anySaid,
          end: fc.option(anySaid, { nil: undefined })
        }),
        { minLength: 3, maxLength: 3 }
      )
    }),
    { minLength: 60, maxLength: 90 }
  )

/** The facts of samples, of all executions at the same time. */
const chainOfSamples = (chain: FactChain, samples: ReadonlyArray<Sample>): FactChain => {
  for (const { agent, id, name, provisional, says, start } of samples) {
    const told = {
      agent_id: agent,
      started_at: timeAt(start),
      ...(provisional ? { provisional: true as const } : {})
    }
    chain.start(id, told, defined({ agent_name: name, metadata: says }))
  }
  for (const { arrived, events, id, provisional, spanSays, spans } of samples) {
    for (const [n, { start, type }] of spanSays.slice(0, spans).entries()) {
      chain.span(id, `${id}-${n + 1}`, timeAt(0), start, type)
    }
    if (provisional && arrived !== undefined) {
      chain.start(id, { agent_id: arrived.agent, started_at: timeAt(arrived.start) })
    }
    for (let n = 1; n <= events; n++) chain.event(id, `${id}-${Math.min(n, spans)}`, n)
  }
  for (const { duration, failed, id, isResumed, spanSays, spans, start, status } of samples) {
    for (let n = 1; n <= Math.min(failed, spans); n++) {
      chain.endSpan(id, `${id}-${n}`, spanSays[n - 1]!.end)
    }
    if (status === "RUNNING") continue
    chain.end(id, status, timeAt(start + duration))
    if (isResumed) chain.add(id, { type: "execution.resumed" })
  }
  return chain
}

const time = fc.integer({ min: -1, max: 14 }).map(timeAt)
/** So that most questions have an answer. */
const rarely = <A>(arbitrary: fc.Arbitrary<A>) => fc.option(arbitrary, { nil: undefined, freq: 1 })
const optional = <A>(arbitrary: fc.Arbitrary<A>) => fc.option(arbitrary, { nil: undefined })

const choiceOf = (...texts: ReadonlyArray<string>) =>
  optional(
    fc.array(
      fc.oneof(
        fc.record({ text: fc.constantFrom(...texts), isOpen: fc.boolean() }),
        fc.constant({ text: "", isOpen: true })
      ),
      { minLength: 1, maxLength: 3 }
    )
  )

const anyQuery = fc
  .record({
    status: optional(
      fc.uniqueArray(fc.constantFrom<TraceStatus>("RUNNING", ...terminalStatuses), { minLength: 1 })
    ),
    agentId: choiceOf(...agents),
    agentName: choiceOf("Agent", "Agent Smith", "agent"),
    model: rarely(choiceOf(...models, "gpt-")),
    sessionId: rarely(choiceOf(...persons)),
    userId: rarely(choiceOf(...persons, "u_", "1e21")),
    minTokens: rarely(fc.constantFrom(0, 1, 12, 1_000_000)),
    from: optional(time),
    to: optional(time),
    hasError: optional(fc.boolean()),
    minDurationMicros: optional(
      fc.integer({ min: 0, max: 7 }).map((n) => microsOf(timeAt(n)) - microsOf(timeAt(0)))
    ),
    sort: optional(fc.constantFrom(...executionSorts)),
    order: optional(fc.constantFrom("asc" as const, "desc" as const)),
    offset: fc.constantFrom(0, 0, 1, 7, 50, 1_990, 5_000),
    limit: fc.constantFrom(0, 1, 5, 50, 1_000)
  })
  .map((made): Omit<ExecutionPageQuery, "tenantId"> => defined(made))

/** Run a law that asks the store. */
const law = <A>(
  arbitrary: fc.Arbitrary<A>,
  numRuns: number,
  check: (value: A) => Effect.Effect<void, StoreUnavailable, TraceStore>
) =>
  Effect.flatMap(Effect.context<TraceStore>(), (context) =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(arbitrary, (value) => Effect.runPromiseWith(context)(check(value))),
        { numRuns: runs(numRuns) }
      )
    )
  )

const oneOf = <A>(arbitrary: fc.Arbitrary<A>): A => fc.sample(arbitrary, 1)[0]!

export const traceStoreContract = <E>(
  name: string,
  /** Generated questions to ask; those of the two suites differ. */
  questions: number,
  connection: (database: string) => Layer.Layer<ClickHouseConnection, E>
): void => {
  const migrated = Layer.effectDiscard(EventStore.use((store) => store.migrate)).pipe(
    Layer.provide(layerClickHouse)
  )
  const stores = migrated.pipe(
    Layer.provideMerge(Layer.mergeAll(layerTraceStore, layerStoredTopics)),
    Layer.provideMerge(connection(database))
  )
  layer(stores, { excludeTestServices: true })(name, (it) => {
    it.effect("gives a graph metadata in chunks of bounded size, until it has enough", () =>
      Effect.gen(function* () {
        const store = yield* TraceStore
        const chain = new FactChain("outlined", 510_000)
        chain.start("large")
        const ids = Array.from({ length: 20 }, (_, n) => `s${n}`)
        for (const id of ids) {
          chain.span("large", id, timeAt(0), { tool_call_id: id.padEnd(1_048_576, "x") })
        }
        yield* stored(chain.all, 9)
        const chunksOf = (withMetadata: () => boolean) =>
          Effect.map(
            Stream.runCollect(store.outlines("outlined", "large", withMetadata)),
            (chunks) => chunks.map((some) => some.map(({ details }) => details!.metadata.length))
          )
        const all = yield* chunksOf(() => true)
        assert.strictEqual(all.flat().length, ids.length)
        assert.isTrue(all.flat().every((length) => length > 1_048_576))
        assert.isTrue(
          all.every((lengths) => lengths.length <= 9),
          JSON.stringify(all)
        )
        let chunks = 0
        const some = yield* chunksOf(() => ++chunks === 1)
        assert.deepStrictEqual(some[0], all[0])
        const rest = some.slice(1).flat()
        assert.strictEqual(rest.length, ids.length - all[0]!.length)
        assert.isTrue(rest.every((length) => length === 0))
      })
    )

    it.effect(
      "gives a graph what it looks at of the metadata, and of the rest nothing",
      () =>
        Effect.gen(function* () {
          const store = yield* TraceStore
          const chain = new FactChain("hints", 500_000)
          chain.start("hinted")
          for (const [n, metadata] of hintingMetadata.entries()) {
            chain.span("hinted", `s${n}`, timeAt(0), { ...metadata, ...NO_HINT })
          }
          chain.endSpan("hinted", "s0", NO_HINT)
          yield* stored(chain.all, 9)
          const found = (yield* Stream.runCollect(
            store.outlines("hints", "hinted", () => true)
          )).flat()
          assert.strictEqual(found.length, hintingMetadata.length + 1)
          assert.strictEqual(found.at(-1)!.details!.metadata, "{}")
          for (const [n, metadata] of hintingMetadata.entries()) {
            const read = { metadata: parseJson(found[n]!.details!.metadata) as JsonObject }
            assert.deepStrictEqual(hintsOf(read), hintsOf({ metadata }), JSON.stringify(metadata))
            const { input_tokens, output_tokens } = summaryOf({ metadata }) ?? {}
            const { input_tokens: input, output_tokens: output } = summaryOf(read) ?? {}
            assert.deepStrictEqual([input, output], [input_tokens, output_tokens])
          }
          const bulk = found.find(({ details }) => details!.metadata.includes('"parts"'))!
          assert.notInclude(bulk.details!.metadata, '"text"')
        }),
      60_000
    )

    it.effect("gives a graph the names and errors of large facts, whatever the texts are", () =>
      Effect.gen(function* () {
        const store = yield* TraceStore
        const chain = new FactChain("large texts", 520_000)
        for (const text of allTexts) {
          chain.start(text)
          chain.span(text, `s ${text}`, timeAt(0), NO_HINT)
          chain.endSpan(text, `s ${text}`, NO_HINT)
        }
        yield* stored(chain.all, 9)
        for (const text of allTexts) {
          const [, started, ended] = chain.all.filter(({ executionId }) => executionId === text)
          const found = yield* Stream.runCollect(store.outlines("large texts", text, () => false))
          assert.deepStrictEqual(
            found.flat().map(({ details, fact }) => [fact, details]),
            [
              [withoutDetails(started!.body), { name: `span s ${text}`, error: "", metadata: "" }],
              [withoutDetails(ended!.body), { name: "", error: '"secret error"', metadata: "" }]
            ]
          )
        }
      })
    )

    it.effect(
      "gives back every byte, on every way out, whatever the texts are",
      () =>
        Effect.gen(function* () {
          const store = yield* TraceStore
          const chain = new FactChain("bytes", 1_000)
          for (const text of allTexts) {
            chain.start(text, { agent_id: text, root_span_id: `root ${text}` })
            chain.span(text, `s ${text}`)
            const payload = {
              [text]: [text, { [text]: text.repeat(2) }],
              n: [1e20, -1e21, 2 ** 64]
            }
            chain.event(text, `s ${text}`, 1, payload)
            chain.endSpan(text, `s ${text}`)
            chain.end(text, "FAILED")
          }
          yield* stored(chain.all, 7)
          for (const text of allTexts) {
            const own = chain.all.filter(({ executionId }) => executionId === text)
            assert.deepStrictEqual(yield* factsOf("bytes", text), bodies(own), text)
            assert.deepStrictEqual(
              (yield* rowsOf("bytes", text)).map(({ body, wrongColumns }) => [body, wrongColumns]),
              own.map(({ body }) => [body, []])
            )
            assert.strictEqual(yield* store.executionOfSpan("bytes", `s ${text}`), text)
            assert.strictEqual(yield* store.executionOfSpan("bytes", `root ${text}`), text)
            const page = yield* pageOf(
              everythingOf("bytes", { agentId: [{ text, isOpen: false }] }),
              false
            )
            assert.deepStrictEqual(page, { executions: [[own[0]!.body, own[4]!.body]], total: 1 })
            const at = { executionId: text, spanId: `s ${text}` }
            assert.deepStrictEqual(yield* eventsOfSpan(store, "bytes", at), [[own[2]!.body]])
            const { spans } = yield* store.spans("bytes", text, undefined, WHOLE)
            assert.deepStrictEqual(
              spans.map(({ facts, id }) => [id, facts]),
              [[`s ${text}`, [own[1]!.body, own[3]!.body]]]
            )
            const outlines = (yield* Stream.runCollect(
              store.outlines("bytes", text, () => false)
            )).flat()
            assert.deepStrictEqual(
              outlines.map(({ fact, factNumber }) => [factNumber, fact]),
              [
                [own[1]!.factNumber, own[1]!.body],
                [own[3]!.factNumber, own[3]!.body]
              ]
            )
            const counts = yield* store.eventCounts("bytes", text)
            assert.deepStrictEqual([...counts], [[`s ${text}`, 1]])
            assert.deepStrictEqual(yield* factsOf(text, text), [])
          }
          const loaded = yield* store.load(
            allTexts.map((id) => ({ tenantId: "bytes", id })),
            []
          )
          assert.strictEqual(loaded.length, allTexts.length)
          for (const { executionId, facts } of loaded) {
            const own = chain.all.filter(
              (fact) => fact.executionId === executionId && fact.type !== "span.event"
            )
            assert.deepStrictEqual(facts, bodies(own).map(loadedFact))
          }
          const last = chain.all.at(-1)!
          const { body, offset } = last
          assert.deepStrictEqual(yield* store.position(7), { offset, body })
          assert.isUndefined(yield* store.position(8))
        }),
      180_000
    )

    it.effect("gives of what was said again and again the last, however much that is", () =>
      Effect.gen(function* () {
        const store = yield* TraceStore
        const chain = new FactChain("again")
        // In details, the names of members are those of anything.
        const other = { payload: { name: "s", metadata: { shared_span_id: "a" } } }
        const amend = (
          said: { readonly parent_span_id?: string; readonly shared_span_id?: string },
          details?: FactDetails
        ) => chain.add("x", { type: "span.amended", span_id: "a", ...said }, details)
        const first = chain.start("x", { provisional: true })
        const begun = chain.span("x", "a")
        for (let n = 0; n < 20; n++) {
          chain.start("x", { provisional: true })
          chain.end("x", "FAILED")
          chain.add("x", { type: "execution.resumed" })
          chain.add("x", { type: "execution.erased", reason: "r", erased_by: "key_1" })
          amend({}, other)
          amend({})
          amend({ parent_span_id: `b${n}` })
          amend({ parent_span_id: `b${n}`, shared_span_id: "c" })
        }
        const shared = amend({ shared_span_id: "c" })
        const erased = chain.add("x", {
          type: "execution.erased",
          reason: "r",
          erased_by: "key_1"
        })
        const moved = amend({ parent_span_id: "b" })
        chain.span("x", "a")
        const start = chain.start("x")
        const span = chain.span("x", "a")
        const content = amend({}, other)
        chain.endSpan("x", "a")
        const ended = chain.endSpan("x", "a")
        const end = chain.end("x")
        yield* stored(chain.all)
        const select = (selection: FactSelection) => store.facts("again", "x", selection, true)
        const shownByItself = bodies([first, erased, start, end])
        assert.deepStrictEqual(yield* select({ kind: "execution" }), shownByItself)
        const of = yield* select({ kind: "span", spanId: "a" })
        const shown = [first, begun, shared, erased, moved, start, span, content, ended, end]
        assert.deepStrictEqual(of, bodies(shown))
        const { created_at } = parseFact(erased.body)!
        const times = [created_at, "2000-01-01T00:00:00.000000Z"]
        const isOfTime = (body: string) =>
          body.includes('"type":"execution.erased"') && parseFact(body)!.created_at === created_at
        const ofTimes = yield* select({ kind: "erasures", times })
        assert.deepStrictEqual(ofTimes, bodies(chain.all).filter(isOfTime))
        // So do lists, and pages of spans of which one is too large by itself.
        const page = yield* pageOf(everythingOf("again"), true)
        assert.deepStrictEqual(page.executions, [shownByItself])
        const query = { tenantId: "again", from: timeAt(0), to: timeAt(9) }
        const overlapping = store.overlapping({ ...query, selection: "execution" })
        const [ran] = (yield* Stream.runCollect(overlapping)).flat()
        assert.deepStrictEqual(ran?.facts, shownByItself)
        const bounds = { itemsMax: 10, bytesMax: 10_000 }
        const { spans } = yield* store.spans("again", "x", undefined, bounds)
        const ofSpan = shown.filter(({ type }) => type.startsWith("span."))
        assert.deepStrictEqual(
          spans.map(({ facts }) => facts),
          [bodies(ofSpan)]
        )
        // What is shown is what all of them add up to.
        const facts = (all: ReadonlyArray<string>) => foldFacts(all.map((body) => parseFact(body)!))
        const whole = facts(bodies(chain.all))
        assert.deepStrictEqual(facts(of).span("a"), whole.span("a"))
        assert.deepStrictEqual(facts(shownByItself).execution, whole.execution)
      })
    )

    it.effect("selects facts by what they are about, in the order of their numbers", () =>
      Effect.gen(function* () {
        const store = yield* TraceStore
        const chain = new FactChain("selections")
        chain.start("x", { provisional: true })
        chain.span("x", "a")
        chain.event("x", "a", 1)
        chain.span("x", "b")
        chain.event("x", "b", 2)
        chain.start("x")
        chain.event("x", "a", 3)
        chain.end("x")
        chain.endSpan("x", "b")
        const other = chain.start("y").body
        yield* stored(chain.all.toReversed())
        const own = chain.all.filter(({ executionId }) => executionId === "x")
        const expected = (wanted: (fact: Placed) => boolean) => bodies(own.filter(wanted))
        for (const final of [false, true]) {
          const select = (selection: Parameters<typeof store.facts>[2]) =>
            store.facts("selections", "x", selection, final)
          assert.deepStrictEqual(yield* factsOf("selections", "x"), bodies(own))
          assert.strictEqual(yield* store.reach("selections", "x"), own.length)
          for (const upTo of [0, 1, 4, own.length]) {
            const scanned = yield* Stream.runCollect(store.scan("selections", "x", upTo))
            assert.deepStrictEqual(
              scanned.flat(),
              expected(({ factNumber, type }) => type !== "span.event" && factNumber <= upTo)
            )
          }
          assert.deepStrictEqual(
            yield* select({ kind: "execution" }),
            expected(({ type }) => type.startsWith("execution."))
          )
          const at = { executionId: "x", spanId: "a" }
          assert.deepStrictEqual(yield* eventsOfSpan(store, "selections", at), [
            [own[2]!.body, own[6]!.body]
          ])
          assert.strictEqual(yield* store.spanCount("selections", "x"), 2)
          assert.deepStrictEqual(yield* select({ kind: "span", spanId: "a" }), [
            own[0]!.body,
            own[1]!.body,
            own[5]!.body,
            own[7]!.body
          ])
          for (const { body } of [own[2]!, own[6]!]) {
            const { sequence_number: sequenceNumber } = JSON.parse(body)
            assert.deepStrictEqual(yield* select({ kind: "event", sequenceNumber }), [body])
          }
          const ofOne = yield* store.eventCounts("selections", "x", "b")
          assert.deepStrictEqual(new Map(ofOne), new Map([["b", 1]]))
          const counts = yield* store.eventCounts("selections", "x")
          assert.deepStrictEqual(
            new Map(counts),
            new Map([
              ["a", 2],
              ["b", 1]
            ])
          )
        }
        assert.deepStrictEqual(yield* factsOf("selections", "y"), [other])
        assert.deepStrictEqual(yield* factsOf("selections", "z"), [])
        assert.isUndefined(yield* store.reach("selections", "z"))
        assert.strictEqual((yield* store.eventCounts("selections", "y")).size, 0)
      })
    )

    it.effect("finds the execution of a span, the first of two", () =>
      Effect.gen(function* () {
        const { executionOfSpan } = yield* TraceStore
        const chain = new FactChain("spans")
        for (const id of ["z", "a"]) {
          chain.start(id)
          chain.span(id, "same")
          chain.event(id, "event only", 1)
        }
        yield* stored(chain.all)
        assert.strictEqual(yield* executionOfSpan("spans", "same"), "z")
        assert.strictEqual(yield* executionOfSpan("spans", "root-a"), "a")
        assert.isUndefined(yield* executionOfSpan("spans", "event only"))
        yield* stored([chain.end("a")])
        assert.isUndefined(yield* executionOfSpan("spans", ""))
        assert.isUndefined(yield* executionOfSpan("others", "same"))
      })
    )

    for (const provisional of [false, true]) {
      const whose = provisional ? "from OpenTelemetry too" : "started by the API"
      it.effect(`lists executions as plain arithmetic does, ${whose}`, () =>
        Effect.gen(function* () {
          const tenant = `law-${provisional}`
          const chain = chainOfSamples(new FactChain(tenant), oneOf(anyExecutions(provisional)))
          const half = Math.floor(chain.all.length / 2)
          const check = (facts: ReadonlyArray<Placed>, finals: ReadonlyArray<boolean>) =>
            law(anyQuery, questions / 4, (made) =>
              Effect.gen(function* () {
                const query = { tenantId: tenant, ...made }
                for (const final of finals) {
                  assert.deepStrictEqual(
                    yield* pageOf(query, final),
                    modelPage(facts, query),
                    JSON.stringify(query)
                  )
                }
              })
            )
          yield* stored(chain.all.slice(0, half))
          yield* check(chain.all.slice(0, half), [false, true])
          yield* stored(chain.all.slice(half))
          yield* check(chain.all, [false, true])
          const store = yield* TraceStore
          const whole = Map.groupBy(chain.all, ({ executionId }) => executionId)
          const summaries = new Map(
            [...whole].map(([id, own]) => [
              id,
              summaryOfFacts(own.map(({ body }) => parseFact(body)!))
            ])
          )
          const summed = store.summaries(tenant, [...whole.keys(), "unknown"])
          assert.deepStrictEqual(
            new Map([...(yield* summed)].sort()),
            new Map([...summaries].sort())
          )
          yield* withoutMerges(
            Effect.gen(function* () {
              yield* stored(chain.all.slice(half - 20, half + 20))
              yield* check(chain.all, [true])
              assert.deepStrictEqual(
                new Map([...(yield* summed)].sort()),
                new Map([...summaries].sort())
              )
            })
          )
        })
      )
    }

    it.effect("answers a page past the end with the same total", () =>
      Effect.gen(function* () {
        const chain = new FactChain("pages")
        for (let n = 0; n < 25; n++) {
          chain.start(`e${n}`, { started_at: timeAt(n) })
          if (n % 5 === 0) chain.end(`e${n}`, "FAILED")
        }
        yield* stored(chain.all)
        for (const final of [false, true]) {
          for (const offset of [25, 100, 5_000]) {
            const past = everythingOf("pages", { offset, limit: 10 })
            assert.deepStrictEqual(yield* pageOf(past, final), { executions: [], total: 25 })
            assert.deepStrictEqual(yield* pageOf({ ...past, status: ["FAILED"] }, final), {
              executions: [],
              total: 5
            })
          }
        }
        const nobody = everythingOf("nobody")
        assert.deepStrictEqual(yield* pageOf(nobody, false), { executions: [], total: 0 })
      })
    )

    it.effect("filters and sorts by errors and durations of the tenant's own executions", () =>
      Effect.gen(function* () {
        const [own, other] = [new FactChain("mine"), new FactChain("theirs", 10_000)]
        for (const chain of [own, other]) {
          const failed = chain === own ? { a: 0, b: 2, c: 1 } : { a: 3, b: 0, c: 3 }
          for (const [id, errors] of Object.entries(failed)) {
            chain.start(id)
            for (let n = 1; n <= 3; n++) chain.span(id, `${id}${n}`)
            for (let n = 1; n <= errors; n++) chain.endSpan(id, `${id}${n}`)
          }
        }
        own.end("c", "COMPLETED", timeAt(5))
        own.end("b", "COMPLETED", timeAt(2))
        yield* stored([...own.all, ...own.all.slice(0, 5), ...other.all])
        const ids = (over: Partial<ExecutionPageQuery>) =>
          Effect.map(pageOf(everythingOf("mine", over), true), ({ executions }) =>
            executions.map(([body]) => parseFact(body!)!.execution_id)
          )
        assert.deepStrictEqual(yield* ids({ hasError: true }), ["b", "c"])
        assert.deepStrictEqual(yield* ids({ hasError: false }), ["a"])
        assert.deepStrictEqual(yield* ids({ sort: "errors" }), ["b", "c", "a"])
        assert.deepStrictEqual(yield* ids({ sort: "errors", order: "asc" }), ["a", "c", "b"])
        assert.deepStrictEqual(yield* ids({ sort: "duration" }), ["c", "b", "a"])
        assert.deepStrictEqual(yield* ids({ sort: "duration", order: "asc" }), ["b", "c", "a"])
        assert.deepStrictEqual(yield* ids({ minDurationMicros: 0 }), ["b", "c"])
      })
    )

    it.effect("keeps every order on the pages beyond the first thousands", () =>
      Effect.gen(function* () {
        const chain = new FactChain("far")
        for (let n = 0; n < 2_200; n++) {
          const id = `e${String(n).padStart(4, "0")}`
          chain.start(id, { started_at: timeAt(n % 7) })
          if (n % 5 === 0) {
            chain.span(id, `s${n}`)
            chain.endSpan(id, `s${n}`)
          }
          if (n % 3 === 0) chain.end(id, "COMPLETED", timeAt((n % 7) + (n % 4)))
        }
        yield* stored(chain.all)
        for (const sort of executionSorts) {
          for (const order of ["asc", "desc"] as const) {
            const query = everythingOf("far", { sort, order, offset: 1_990, limit: 20 })
            assert.deepStrictEqual(yield* pageOf(query, true), modelPage(chain.all, query))
          }
        }
      })
    )

    it.effect("counts and shows one moment while executions keep arriving", () =>
      Effect.gen(function* () {
        const chain = new FactChain("arriving")
        for (let n = 0; n < 30; n++) {
          chain.start(`e${n}`, { started_at: timeAt(n) })
          chain.end(`e${n}`)
        }
        yield* stored(chain.all.slice(0, 1))
        const arriving = yield* Effect.forkChild(
          Effect.forEach(chain.all.slice(1), (fact) => stored([fact]), { discard: true })
        )
        const newest = everythingOf("arriving", { limit: 3 })
        for (let total = 0; total < 30; ) {
          const page = yield* pageOf(newest, false)
          assert.strictEqual(parseFact(page.executions[0]![0]!)!.execution_id, `e${page.total - 1}`)
          assert.isAtLeast(page.total, total)
          total = page.total
          const running = yield* pageOf({ ...newest, status: ["RUNNING"] }, false)
          for (const facts of running.executions) assert.strictEqual(facts.length, 1)
        }
        yield* Fiber.join(arriving)
      })
    )

    it.effect("loads what a sequencer has forgotten, as plain arithmetic does", () =>
      Effect.gen(function* () {
        const store = yield* TraceStore
        const tenants = ["load-a", "load-b"]
        const chains = tenants.map((tenant) =>
          chainOfSamples(new FactChain(tenant, 500), oneOf(anyExecutions(true)))
        )
        for (const chain of chains) yield* stored(chain.all, 3)
        const known = chains.flatMap((chain) =>
          chain.all.map(({ body, executionId }) => {
            const fact = parseFact(body)!
            return {
              execution: { tenantId: chain.tenantId, id: executionId },
              span: "span_id" in fact ? { tenantId: chain.tenantId, id: fact.span_id } : undefined
            }
          })
        )
        const key = (keys: ReadonlyArray<TraceKey>): fc.Arbitrary<TraceKey> =>
          fc.oneof(
            { weight: 5, arbitrary: fc.constantFrom(...keys) },
            fc.record({
              tenantId: fc.constantFrom(...tenants, "nobody"),
              id: fc.constantFrom("", "x")
            })
          )
        const wanted = fc.record({
          executions: fc.array(key(known.map(({ execution }) => execution)), { maxLength: 20 }),
          spans: fc.array(key(known.flatMap(({ span }) => span ?? [])), { maxLength: 20 })
        })
        const holds = (keys: ReadonlyArray<TraceKey>, tenantId: string, id: string) =>
          keys.some((wanted) => wanted.tenantId === tenantId && wanted.id === id)
        yield* law(wanted, questions / 4, ({ executions, spans }) =>
          Effect.gen(function* () {
            const expected = chains.flatMap(({ all, tenantId }) =>
              [...Map.groupBy(all, ({ executionId }) => executionId)].flatMap(([id, facts]) => {
                const parsed = facts.map(({ body }) => parseFact(body)!)
                const found =
                  holds(executions, tenantId, id)
                  || parsed.some(
                    (fact) =>
                      (fact.type === "span.started" && holds(spans, tenantId, fact.span_id))
                      || (fact.type === "execution.started"
                        && holds(spans, tenantId, fact.root_span_id))
                  )
                return found
                  ? [
                      {
                        tenantId,
                        executionId: id,
                        facts: bodies(facts.filter(({ type }) => type !== "span.event")).map(
                          loadedFact
                        ),
                        marked: facts.map((fact) => markedFact(fact, 3))
                      }
                    ]
                  : []
              })
            )
            const inOrder = <A extends { readonly executionId: string }>(all: ReadonlyArray<A>) =>
              all.toSorted((left, right) => byBytes(left.executionId, right.executionId))
            const loaded = yield* store.load(executions, spans)
            assert.deepStrictEqual(inOrder(loaded), inOrder(expected))
          })
        )
      })
    )

    it.effect(
      "finds events by their ids, and loads those that say how an execution has ended",
      () =>
        Effect.gen(function* () {
          const store = yield* TraceStore
          const chain = new FactChain("events")
          for (const id of ["records", "spans"]) {
            chain.start(id)
            if (id === "spans") chain.span(id, "s")
            chain.event(id, "s", 1, { event_id: "event-records-3", details: { event_id: "é" } })
            chain.end(id)
            if (id === "records") chain.span(id, "s")
            chain.event(id, "s", 2)
            chain.event(id, "other", 3)
          }
          yield* stored(chain.all)
          const loaded = yield* store.load(
            ["records", "spans"].map((id) => ({ tenantId: "events", id })),
            []
          )
          const typesOf = (id: string) =>
            loaded
              .find(({ executionId }) => executionId === id)
              ?.facts.map(({ body }) => parseFact(body)!.type)
          assert.deepStrictEqual(typesOf("records"), [
            "execution.started",
            "span.event",
            "execution.ended",
            "span.started"
          ])
          assert.deepStrictEqual(typesOf("spans"), [
            "execution.started",
            "span.started",
            "execution.ended"
          ])
          const sought = (executionId: string, spanIds: ReadonlyArray<string>) => ({
            tenantId: "events",
            executionId,
            spanIds,
            eventIds: [1, 3, 4].map((number) => `event-${executionId}-${number}`)
          })
          const find = (...all: ReadonlyArray<ReturnType<typeof sought>>) =>
            Effect.map(store.storedEvents(all), (found) =>
              found.map(({ body, marked }) => {
                assert.deepStrictEqual(
                  marked,
                  markedFact(chain.all.find((one) => one.hash === marked.hash)!)
                )
                assert.strictEqual(
                  body,
                  withoutDetails(chain.all.find((one) => one.hash === marked.hash)!.body)
                )
                return `${marked.executionId} ${marked.sequenceNumber}`
              })
            )
          assert.deepStrictEqual(yield* find(sought("records", ["s"])), ["records 1"])
          assert.sameMembers(
            [...(yield* find(sought("records", ["s", "other"]), sought("spans", ["s"])))],
            ["records 1", "records 3", "spans 1", "spans 3"]
          )
        })
    )

    it.effect("has what log records of models tell of calls", () =>
      Effect.gen(function* () {
        const store = yield* TraceStore
        const chain = new FactChain("calls")
        chain.start("x")
        const told = (spanId: string, eventType: string, payload: JsonObject) =>
          chain.add(
            "x",
            {
              type: "span.event",
              span_id: spanId,
              event_id: `event-${chain.all.length}`,
              event_type: eventType,
              sequence_number: chain.all.length,
              timestamp: "2026-11-21T12:00:00.000000Z"
            },
            { payload }
          )
        told("a", "gen_ai.choice", { body: "b", tool_calls: ["é", "c2"] })
        told("b", "gen_ai.tool.message", { tool_results: ["c1"], tool_calls: ["c3"] })
        told("c", "gen_ai.choice", { body: { tool_calls: ["c4"] }, tool_results: "c5" })
        told("d", "decision", { tool_calls: ["c6"] })
        yield* stored(chain.all)
        assert.deepStrictEqual(yield* store.recordedCalls("calls", "x"), [
          { spanId: "a", calls: '{"tool_calls":["é","c2"]}' },
          { spanId: "b", calls: '{"tool_calls":["c3"],"tool_results":["c1"]}' },
          { spanId: "c", calls: "{}" }
        ])
        assert.deepStrictEqual(yield* store.recordedCalls("calls", "y"), [])
        // No more than a graph can need is read of what may be gigabytes.
        const many = new FactChain("many-calls")
        const calls = ["c".repeat(60_000)]
        many.start("x")
        for (let n = 0; n < 1_800; n++) {
          many.add(
            "x",
            {
              type: "span.event",
              span_id: "a",
              event_id: `event-${n}`,
              event_type: "gen_ai.choice",
              sequence_number: n,
              timestamp: "2026-11-21T12:00:00.000000Z"
            },
            { payload: { tool_calls: calls } }
          )
        }
        for (let from = 0; from < many.all.length; from += 600) {
          yield* stored(many.all.slice(from, from + 600))
        }
        const found = yield* store.recordedCalls("many-calls", "x")
        const bytes = found.reduce((sum, { calls: text }) => sum + text.length, 0)
        assert.isAtLeast(bytes, 24 * 1_048_576)
        assert.isAtMost(bytes, 90 * 1_048_576)
      })
    )

    it.effect("loads thousands of executions and spans at once", () =>
      Effect.gen(function* () {
        const store = yield* TraceStore
        const chain = new FactChain("many")
        const ids = Array.from({ length: 6_000 }, (_, n) => `execution-${n}-${"é".repeat(40)}`)
        for (const id of ids) chain.start(id)
        const kinds = [
          { kind: "CLIENT", flags: 0x301 },
          { attributes: { kind: "SERVER", flags: 0x300 } },
          { kind: "INTERNAL", flags: 0x101 }
        ]
        for (const [n, metadata] of kinds.entries()) {
          chain.span(ids[0]!, `s${n}`, undefined, metadata)
        }
        yield* stored(chain.all)
        const [sided] = yield* store.load([{ tenantId: "many", id: ids[0]! }], [])
        assert.deepStrictEqual(
          sided!.facts.map(({ parentIsRemote, side }) => [side, parentIsRemote]),
          [
            [undefined, undefined],
            ["CLIENT", true],
            [undefined, undefined],
            [undefined, undefined]
          ]
        )
        const keys = ids.map((id) => ({ tenantId: "many", id }))
        const roots = ids.map((id) => ({ tenantId: "many", id: `root-${id}` }))
        for (const loaded of [yield* store.load(keys, []), yield* store.load([], roots)]) {
          assert.deepStrictEqual(
            new Set(loaded.flatMap(({ facts }) => facts.map(({ body }) => body))),
            new Set(bodies(chain.all).map(withoutDetails))
          )
          assert.strictEqual(loaded.length, ids.length)
        }
        assert.deepStrictEqual(yield* store.load([], []), [])
      })
    )

    it.effect("shows facts that came twice once, and merges them when asked", () =>
      Effect.gen(function* () {
        const store = yield* TraceStore
        const chain = new FactChain("twice", 100)
        for (const id of ["a", "b", "c"]) {
          chain.start(id)
          chain.span(id, `s-${id}`)
          chain.event(id, `s-${id}`, 1)
          chain.end(id)
        }
        const query = everythingOf("twice")
        const answers = (final: boolean) =>
          Effect.gen(function* () {
            for (const id of ["a", "b", "c"]) {
              const own = chain.all.filter(({ executionId }) => executionId === id)
              assert.deepStrictEqual(yield* factsOf("twice", id), bodies(own))
              const [loaded] = yield* store.load([{ tenantId: "twice", id }], [])
              assert.strictEqual(loaded?.facts.length, 3)
              const rows = yield* rowsOf("twice", id)
              assert.deepStrictEqual(
                rows.map(({ body }) => body),
                bodies(own)
              )
              const counts = yield* store.eventCounts("twice", id)
              assert.strictEqual(counts.get(`s-${id}`), 1)
            }
            assert.deepStrictEqual(yield* pageOf(query, final), modelPage(chain.all, query))
          })
        yield* withoutMerges(
          Effect.gen(function* () {
            yield* stored(chain.all, 21)
            assert.isFalse(yield* store.hasDuplicates(21, 0))
            yield* stored(chain.all.slice(3, 9), 21)
            assert.isTrue(yield* store.hasDuplicates(21, 0))
            assert.isTrue(yield* store.hasDuplicates(21, 108))
            assert.isFalse(yield* store.hasDuplicates(21, 109))
            assert.isFalse(yield* store.hasDuplicates(22, 0))
            yield* answers(true)
          })
        )
        yield* store.mergeDuplicates
        assert.isFalse(yield* store.hasDuplicates(21, 0))
        yield* answers(false)
      })
    )

    it.effect("never hides a second row for the same fact, nor calls it a duplicate", () =>
      Effect.gen(function* () {
        const store = yield* TraceStore
        const [chain, forged] = [new FactChain("forged"), new FactChain("forged")]
        chain.start("x")
        chain.span("x", "true")
        forged.start("x")
        forged.span("x", "false")
        yield* stored(chain.all, 23)
        yield* stored(forged.all.slice(1), 23)
        assert.isFalse(yield* store.hasDuplicates(23, 0))
        const both = [chain.all[1]!.body, forged.all[1]!.body].sort()
        for (const merge of [Effect.void, store.mergeDuplicates]) {
          yield* merge
          const rows = yield* rowsOf("forged", "x")
          assert.deepStrictEqual(
            rows.map(({ sequenceNumber }) => sequenceNumber),
            [1, 2, 2]
          )
          assert.deepStrictEqual(
            rows
              .slice(1)
              .map(({ body }) => body)
              .sort(),
            both
          )
          assert.strictEqual((yield* factsOf("forged", "x")).length, 3)
          const links = yield* store.links("forged", [2])
          assert.strictEqual(links.length, 2)
        }
      })
    )

    it.effect("takes the details out of the facts before an erasure, for good", () =>
      Effect.gen(function* () {
        const store = yield* TraceStore
        const chain = new FactChain("erased", 40)
        const fill = (id: string, sequence: number) => {
          chain.start(id)
          chain.span(id, `s-${id}`)
          chain.event(id, `s-${id}`, sequence, { prompt: "secret prompt" })
          chain.endSpan(id, `s-${id}`)
        }
        fill("kept", 1)
        fill("x", 1)
        yield* stored(chain.all, 24)
        const told = chain.all.slice(4)
        const erasure = chain.erase("x")
        const erasedAt = timeAt(erasure.chainSequence)
        const expected = told.map(({ body }) => eraseFact(parseFact(body)!, erasedAt))
        const erase = store.eraseDetails("erased", [
          { executionId: "x", beforeSequence: erasure.chainSequence, erasedAt }
        ])
        yield* erase
        yield* stored([erasure], 24)
        const later = chain.event("x", "s-x", 2, { prompt: "after the erasure" })
        yield* stored([later], 24)
        const answers = (final: boolean) =>
          Effect.gen(function* () {
            const all = [...expected, erasure.body, later.body]
            assert.deepStrictEqual(yield* factsOf("erased", "x"), all)
            const rows = yield* rowsOf("erased", "x")
            assert.deepStrictEqual(
              rows.filter(({ version }) => version === 1).map(({ body }) => body),
              expected
            )
            for (const row of rows) assert.deepStrictEqual(row.wrongColumns, [])
            const loaded = yield* store.load([], [{ tenantId: "erased", id: "s-x" }])
            assert.deepStrictEqual(
              loaded.map(({ facts, marked }) => ({ facts: facts.length, marked })),
              [{ facts: 4, marked: [...told, erasure, later].map((fact) => markedFact(fact, 24)) }]
            )
            const { executions, total } = yield* pageOf(everythingOf("erased"), final)
            assert.strictEqual(total, 2)
            assert.deepStrictEqual(executions[1], [expected[0]!, erasure.body])
            assert.deepStrictEqual(yield* factsOf("erased", "kept"), bodies(chain.all.slice(0, 4)))
          })
        yield* answers(false)
        for (const body of expected) {
          const recomputed = recomputeFact(body)!
          assert.isTrue(recomputed.exact)
          assert.strictEqual(recomputed.hash, recomputed.fact.hash)
        }
        const secrets = ask<[number]>(
          `SELECT count() FROM ${database}.facts WHERE tenant_id = 'erased' AND execution_id = 'x'`
            + " AND position(body, 'secret') > 0"
        )
        assert.deepStrictEqual(yield* secrets, [[0]])
        yield* erase
        yield* answers(false)
        // The topic is replayed, and until the erasure comes along again its details are not shown.
        yield* stored(told, 24)
        yield* answers(true)
        yield* erase
        assert.deepStrictEqual(yield* secrets, [[0]])
        assert.isFalse(yield* store.hasDuplicates(24, 0))
        yield* answers(false)
      })
    )

    it.effect("shows an execution once while it is being erased", () =>
      Effect.gen(function* () {
        const store = yield* TraceStore
        const chain = new FactChain("erasing")
        for (let n = 0; n < 5; n++) {
          chain.start(`e${n}`, { started_at: timeAt(n) })
          chain.span(`e${n}`, `s${n}`)
          chain.event(`e${n}`, `s${n}`, 1)
        }
        const erased = chain.all
          .filter(({ executionId }) => executionId === "e3")
          .map((fact) => ({ ...fact, body: eraseFact(parseFact(fact.body)!, timeAt(99)) }))
        yield* withoutMerges(
          Effect.gen(function* () {
            yield* stored(chain.all)
            yield* stored(erased)
            const all = everythingOf("erasing")
            const page = yield* pageOf(all, false)
            assert.strictEqual(page.total, 5)
            assert.deepStrictEqual(page.executions[1], [erased[0]!.body])
            const second = yield* pageOf({ ...all, offset: 2, limit: 1 }, false)
            assert.deepStrictEqual(second.executions, [[chain.all[6]!.body]])
            assert.deepStrictEqual(yield* factsOf("erasing", "e3"), bodies(erased))
            const [loaded] = yield* store.load([{ tenantId: "erasing", id: "e3" }], [])
            assert.deepStrictEqual(loaded?.facts, bodies(erased.slice(0, 2)).map(loadedFact))
            assert.strictEqual((yield* store.eventCounts("erasing", "e3")).get("s3"), 1)
          })
        )
      })
    )

    it.effect("finds a value by its hash, whoever has it, until it is erased", () =>
      Effect.gen(function* () {
        const store = yield* TraceStore
        const chain = new FactChain("values")
        const value = "A long prompt, 字. ".repeat(40_000)
        const hash = sha256Hex(value)
        for (const id of ["one", "two"]) {
          chain.start(id)
          chain.span(id, `span of ${id}`)
          chain.payload(id, `span of ${id}`, "another value".repeat(1_000))
          chain.payload(id, `span of ${id}`, value)
          // As after a restart, when the sequencer does not know that it is there.
          chain.payload(id, `span of ${id}`, value)
        }
        yield* stored(chain.all)
        const valueIn = (tenant: string, of = hash) =>
          Stream.runCollect(store.payload(tenant, of)).pipe(
            Effect.map((chunks) =>
              wholeValue(
                of,
                chunks.flat().flatMap((body) => chunkOf(parseFact(body)) ?? [])
              )
            )
          )
        assert.strictEqual(yield* valueIn("values"), value)
        assert.strictEqual(yield* valueIn("values", "0".repeat(64)), undefined)
        assert.strictEqual(yield* valueIn("others"), undefined)
        const facts = chain.all.filter(({ executionId }) => executionId === "one").length
        assert.strictEqual(yield* store.reach("values", "one"), facts)
        assert.strictEqual(yield* store.spanCount("values", "one"), 1)
        // What is read for a graph or a list is none of it.
        const scanned = yield* Stream.runCollect(store.scan("values", "one", facts))
        assert.strictEqual(scanned.flat().length, 2)
        yield* store.eraseDetails("values", [
          { executionId: "one", beforeSequence: chain.all.length + 1, erasedAt: timeAt(9) }
        ])
        assert.strictEqual(yield* valueIn("values"), value)
        yield* store.eraseDetails("values", [
          { executionId: "two", beforeSequence: chain.all.length + 1, erasedAt: timeAt(9) }
        ])
        assert.strictEqual(yield* valueIn("values"), undefined)
      })
    )

    it.effect("names the facts that don't follow in their execution", () =>
      Effect.gen(function* () {
        const store = yield* TraceStore
        const chain = new FactChain("misnumbered")
        for (const id of ["whole", "again", "gap"]) {
          chain.start(id)
          chain.span(id, `s-${id}`)
          chain.event(id, `s-${id}`, 1)
        }
        chain.numberFrom("again", 2)
        const again = chain.end("again")
        chain.numberFrom("gap", 5)
        const gap = chain.end("gap")
        chain.end("whole")
        yield* stored(chain.all)
        // A copy of a row is no other fact.
        yield* stored(chain.all.slice(0, 2))
        const misnumbered = (first: number, limit = 10) =>
          store.misnumbered("misnumbered", first, chain.all.length, limit)
        const found = [
          { executionId: "again", sequence: again.chainSequence, expected: 4, actual: 3 },
          { executionId: "gap", sequence: gap.chainSequence, expected: 4, actual: 6 }
        ]
        assert.deepStrictEqual(yield* misnumbered(1), found)
        assert.deepStrictEqual(yield* misnumbered(1, 1), found.slice(0, 1))
        assert.deepStrictEqual(yield* misnumbered(again.chainSequence), [])
      })
    )

    it.effect("erases what is no fact by removing it", () =>
      Effect.gen(function* () {
        const store = yield* TraceStore
        const chain = new FactChain("broken")
        chain.start("x")
        chain.span("x", "s")
        yield* stored(chain.all)
        yield* stored([
          {
            offset: 2,
            body:
              '{"type":"span.event","execution_id":"x","tenant_id":"broken","fact_number":3,'
              + '"chain_sequence":3,"hash":"h","details":{"prompt":"secret"}}'
          }
        ])
        yield* store.eraseDetails("broken", [
          { executionId: "x", beforeSequence: 4, erasedAt: timeAt(1) }
        ])
        const left = yield* factsOf("broken", "x")
        assert.deepStrictEqual(
          left,
          chain.all.map(({ body }) => eraseFact(parseFact(body)!, timeAt(1)))
        )
      })
    )

    it.effect("erases a long execution, chunk by chunk", () =>
      Effect.gen(function* () {
        const store = yield* TraceStore
        const chain = new FactChain("long-erased")
        chain.start("x")
        for (let n = 1; n <= 11_000; n++) chain.event("x", "s", n)
        for (let n = 0; n < 40; n++) {
          chain.event("x", "s", 11_001 + n, { text: String.fromCodePoint(0x4e00 + n).repeat(15e4) })
        }
        yield* stored(chain.all)
        const chunks = yield* TraceStore.use(({ rows }) =>
          Stream.runCollect(rows("long-erased", "x"))
        )
        assert.deepStrictEqual(
          chunks.flat().map(({ body }) => body),
          bodies(chain.all)
        )
        assert.isAtLeast(chunks.length, 4)
        yield* store.eraseDetails("long-erased", [
          { executionId: "x", beforeSequence: 1e6, erasedAt: timeAt(1) }
        ])
        const rows = yield* rowsOf("long-erased", "x")
        assert.strictEqual(rows.length, chain.all.length)
        assert.isTrue(rows.every(({ version }) => version === 1))
        assert.deepStrictEqual(
          yield* factsOf("long-erased", "x"),
          chain.all.map(({ body }) => eraseFact(parseFact(body)!, timeAt(1)))
        )
      })
    )

    it.effect("names each column that differs from the bytes", () =>
      Effect.gen(function* () {
        const chain = new FactChain("columns")
        chain.start("x")
        for (let n = 1; n < 20; n++) chain.event("x", "s", n)
        yield* stored(chain.all, 25)
        const lies: ReadonlyArray<readonly [string, string]> = [
          ["type", "'span.ended'"],
          ["span_id", "'another'"],
          ["sequence_number", "sequence_number + 1"],
          ["agent_id", "'another'"],
          ["status", "'FAILED'"],
          ["started_at", "started_at + 1"],
          ["ended_at", "ended_at + 1"],
          ["payload_hash", "'another'"],
          ["summary", "tuple(1, 2, 3, 4.5, 'm', '', '', '')"]
        ]
        for (const [index, [column, lie]] of lies.entries()) {
          yield* tamper(
            `ALTER TABLE ${database}.facts UPDATE ${column} = ${lie} WHERE tenant_id = 'columns'`
              + ` AND chain_sequence = ${index + 1} SETTINGS mutations_sync = 2`
          )
        }
        yield* tamper(
          `ALTER TABLE ${database}.facts UPDATE chain_sequence = 500 WHERE tenant_id = 'columns'`
            + " AND chain_sequence = 10 SETTINGS mutations_sync = 2"
        )
        // Key columns can't be updated: a row is put beside the true one instead.
        const beside = (columns: string, values: string) =>
          tamper(
            `INSERT INTO ${database}.facts (kafka_partition, kafka_offset, body, ${columns})`
              + ` SELECT 25, 99, body, ${values} FROM ${database}.facts`
              + " WHERE tenant_id = 'columns' AND chain_sequence = 20"
          )
        yield* beside("version, hash", "7, 'x'")
        yield* beside("scope, fact_number", "1, 77")
        yield* beside("execution_id", "'y'")
        yield* beside("tenant_id", "'thief'")
        const wrongOf = (tenantId: string, executionId: string) =>
          Effect.map(rowsOf(tenantId, executionId), (rows) =>
            rows
              .filter(({ wrongColumns }) => wrongColumns.length > 0)
              .map(({ sequenceNumber, wrongColumns }) => [sequenceNumber, ...wrongColumns])
              .sort()
          )
        assert.deepStrictEqual(
          yield* wrongOf("columns", "x"),
          [
            ...lies.map(([column], index) => [index + 1, column]),
            [20, "fact_number", "scope"],
            [20, "hash", "version"],
            [500, "chain_sequence"]
          ].sort()
        )
        assert.deepStrictEqual(yield* wrongOf("columns", "y"), [[20, "execution_id"]])
        assert.deepStrictEqual(yield* wrongOf("thief", "x"), [[20, "tenant_id"]])
      })
    )

    it.effect("takes its columns from the bytes by the expressions that verification uses", () =>
      Effect.gen(function* () {
        for (const [name, expression] of columns) {
          const [row] = yield* ask<[number]>(
            "SELECT formatQuerySingleLine(concat('SELECT ', default_expression))"
              + " = formatQuerySingleLine(concat('SELECT ', {expression:String}))"
              + " FROM system.columns"
              + " WHERE database = {database:String} AND table = 'facts' AND name = {name:String}",
            { expression, database, name }
          )
          assert.deepStrictEqual(row, [1], name)
        }
      })
    )

    it.effect("tells the links of the chain, and which of them it does not hold", () =>
      Effect.gen(function* () {
        const store = yield* TraceStore
        const chain = new FactChain("links", 70)
        for (let n = 0; n < 40; n++) {
          chain.start(`e${n % 7}-${n}`)
          chain.event(`e${n % 7}-${n}`, "s", 1)
        }
        const gone = [1, 17, 18, 33, 80]
        yield* stored(chain.all.filter(({ chainSequence }) => !gone.includes(chainSequence)))
        const missing = (first: number, last: number, limit: number) =>
          store.missing("links", first, last, limit)
        assert.deepStrictEqual(yield* missing(1, 80, 100), gone)
        assert.deepStrictEqual(yield* missing(1, 80, 3), gone.slice(0, 3))
        assert.deepStrictEqual(yield* missing(2, 16, 100), [])
        assert.deepStrictEqual(yield* missing(18, 18, 100), [18])
        assert.deepStrictEqual(yield* missing(79, 83, 100), [80, 81, 82, 83])
        assert.deepStrictEqual(yield* missing(5, 4, 100), [])
        assert.deepStrictEqual(yield* store.missing("nobody", 1, 2, 100), [1, 2])
        const links = yield* store.links("links", [0, 1, 2, 3, 79, 1_000])
        assert.deepStrictEqual(
          links,
          [2, 3, 79].map((sequence) => {
            const { executionId, hash, offset, prevHash } = chain.all[sequence - 1]!
            return { chainSequence: sequence, prevHash, hash, executionId, offset }
          })
        )
        assert.notStrictEqual(links[0]!.prevHash, GENESIS)
        assert.deepStrictEqual(yield* store.links("others", [2]), [])
        assert.deepStrictEqual(yield* store.links("links", []), [])
        const all = Array.from({ length: 12_000 }, (_, index) => index + 1)
        assert.strictEqual((yield* store.links("links", all)).length, 75)
      })
    )

    it.effect("does not let a column answer for another fact's link", () =>
      Effect.gen(function* () {
        const store = yield* TraceStore
        const chain = new FactChain("lying")
        for (let n = 0; n < 3; n++) chain.start(`e${n}`)
        yield* stored([chain.all[0]!, chain.all[2]!])
        yield* tamper(
          `INSERT INTO ${database}.facts (kafka_partition, kafka_offset, body, chain_sequence)`
            + ` SELECT 0, 9, body, 2 FROM ${database}.facts`
            + " WHERE tenant_id = 'lying' AND chain_sequence = 3"
        )
        const links = yield* store.links("lying", [2])
        assert.deepStrictEqual(
          links.map(({ chainSequence }) => chainSequence),
          [3]
        )
      })
    )

    it.effect("gives everything that executions of a time have done, for exports", () =>
      Effect.gen(function* () {
        const store = yield* TraceStore
        const samples = oneOf(anyExecutions(true))
        const chain = chainOfSamples(new FactChain("overlap"), samples)
        yield* stored(chain.all)
        const executions = executionsIn(chain.all).toReversed()
        const factsById = Map.groupBy(chain.all, ({ executionId }) => executionId)
        yield* law(fc.tuple(time, time), Math.min(20, questions / 4), ([left, right]) =>
          Effect.gen(function* () {
            const [from, to] = [left, right].sort() as [string, string]
            const expected = executions
              .filter(
                ({ ended_at, started_at }) =>
                  started_at <= to && (ended_at === undefined || ended_at >= from)
              )
              .toSorted(
                (one, other) =>
                  byBytes(one.started_at, other.started_at) || byBytes(one.id, other.id)
              )
            for (const selection of ["structure", "execution"] as const) {
              const query = { tenantId: "overlap", from, to, selection }
              const chunks = yield* Stream.runCollect(store.overlapping(query))
              const wanted = (facts: ReadonlyArray<Placed>) =>
                selection === "structure"
                  ? facts.filter(({ type }) => type !== "span.event")
                  : countedOf(facts)
              assert.deepStrictEqual(
                chunks.flat(),
                expected.map(
                  ({ id }): ExecutionFacts => ({
                    executionId: id,
                    facts: bodies(wanted(factsById.get(id)!)),
                    isLarge: false
                  })
                )
              )
            }
            const ids = new Set(expected.map(({ id }) => id))
            const all = { tenantId: "overlap", first: 1, last: 1_000_000 }
            const ran = yield* Stream.runCollect(store.chain({ ...all, overlapping: { from, to } }))
            assert.deepStrictEqual(
              ran.flat(),
              bodies(chain.all.filter(({ executionId }) => ids.has(executionId)))
            )
            const named = [chain.all[0]!.executionId]
            const more = yield* Stream.runCollect(
              store.chain({ ...all, overlapping: { from, to }, executions: named })
            )
            const both = new Set([...ids, ...named])
            assert.deepStrictEqual(
              more.flat(),
              bodies(chain.all.filter(({ executionId }) => both.has(executionId)))
            )
          })
        )
      })
    )

    it.effect("gives the facts of as many executions as are named, wherever they are", () =>
      Effect.gen(function* () {
        const store = yield* TraceStore
        const tenantId = "many-named"
        const chain = new FactChain(tenantId)
        const isNamed = (executionId: string) => executionId.startsWith("named")
        for (let n = 0; n < 9_000; n++) {
          const isFew = n < 10 || (n > 2_500 && n < 2_600) || n === 8_900
          chain.event(isFew ? `named-${n % 5}` : "other", "a", n)
        }
        chain.start("ran", { started_at: timeAt(7) })
        yield* stored(chain.all)
        yield* stored(chain.all.slice(0, 20))
        const unknown = Array.from({ length: 220_000 }, (_, n) => derivedUuid("unknown", `${n}`))
        const known = Array.from({ length: 5 }, (_, n) => `named-${n}`)
        const query = {
          tenantId,
          first: 4,
          last: chain.all.length,
          overlapping: { from: timeAt(0), to: timeAt(9) },
          executions: [...unknown, ...known]
        }
        const found = yield* Stream.runCollect(store.chain(query))
        const wanted = chain.all.filter(
          ({ chainSequence, executionId }) =>
            chainSequence >= 4 && (executionId === "ran" || isNamed(executionId))
        )
        assert.deepStrictEqual(found.flat(), bodies(wanted))
      })
    )

    it.effect("exports in bounded chunks, the spans of a large execution in pages", () =>
      Effect.gen(function* () {
        const store = yield* TraceStore
        const chain = new FactChain("export")
        const text = String.fromCodePoint(0x4e00).repeat(10_000)
        for (let n = 0; n < 1_200; n++) {
          const id = `e${String(n).padStart(4, "0")}`
          chain.start(id, { started_at: timeAt(n) })
          const spans = n === 500 ? 6_000 : 2
          for (let k = 1; k <= spans; k++) chain.span(id, `${id}-${k}`, timeAt(n + (k % 5)))
          for (let k = 1; k <= 3; k++) chain.event(id, `${id}-1`, k)
          if (n === 700) {
            for (let k = 1; k <= 700; k++) {
              const metadata = { text }
              chain.add(
                id,
                {
                  type: "span.started",
                  span_id: `large-${k}`,
                  caused_by_span_ids: [],
                  span_type: "TOOL_CALL",
                  started_at: timeAt(n),
                  started_at_given: true
                },
                { name: "large", metadata }
              )
            }
          }
        }
        yield* stored(chain.all)
        const query = {
          tenantId: "export",
          from: timeAt(0),
          to: timeAt(5_000),
          selection: "structure"
        } as const
        const chunks = yield* Stream.runCollect(store.overlapping(query))
        const sizeOf = (facts: ReadonlyArray<string>) => ({
          rows: facts.length,
          bytes: facts.reduce((sum, fact) => sum + Buffer.byteLength(fact), 0)
        })
        const assertBounded = ({ bytes, rows }: ReturnType<typeof sizeOf>) => {
          assert.isAtMost(rows, 5_000)
          assert.isAtMost(bytes, 9 * 1_048_576)
        }
        for (const chunk of chunks) assertBounded(sizeOf(chunk.flatMap(({ facts }) => facts)))
        const all = chunks.flat()
        const ids = all.map(({ executionId }) => executionId)
        assert.deepStrictEqual(ids, ids.toSorted())
        assert.strictEqual(new Set(ids).size, 1_200)
        const factsById = Map.groupBy(chain.all, ({ executionId }) => executionId)
        for (const { executionId, facts, isLarge } of all) {
          const all = factsById.get(executionId)!
          const own = isLarge ? countedOf(all) : all.filter(({ type }) => type !== "span.event")
          assert.deepStrictEqual(facts, bodies(own))
          assert.strictEqual(isLarge, executionId === "e0500" || executionId === "e0700")
        }
        for (const id of ["e0500", "e0700"]) {
          const bounds = { itemsMax: 4_000, bytesMax: 8 * 1_048_576 }
          const found: Array<SpanPage["spans"][number]> = []
          let after: SpanPlace | undefined
          do {
            const page = yield* store.spans("export", id, after, bounds)
            assertBounded(sizeOf(page.spans.flatMap(({ facts }) => facts)))
            found.push(...page.spans)
            after = page.next
          } while (after !== undefined)
          const started = factsById
            .get(id)!
            .filter(({ type }) => type === "span.started")
            .toSorted(
              (left, right) =>
                byBytes(JSON.parse(left.body).started_at, JSON.parse(right.body).started_at)
                || left.factNumber - right.factNumber
            )
          assert.deepStrictEqual(
            found.flatMap(({ facts }) => facts),
            bodies(started)
          )
        }
        // What came later than a place in the chain is left out.
        const last = chain.all.find(({ executionId }) => executionId === "e0001")!.chainSequence
        const early = (yield* Stream.runCollect(store.overlapping({ ...query, last }))).flat()
        assert.deepStrictEqual(
          early.map(({ executionId }) => executionId),
          ["e0000", "e0001"]
        )
        assert.strictEqual(early[1]!.facts.length, 1)
        const bounds = { ...WHOLE, last: last - 4 }
        const { spans } = yield* store.spans("export", "e0000", undefined, bounds)
        assert.deepStrictEqual(
          spans.map(({ id }) => id),
          ["e0000-1", "e0000-2"].slice(0, spans.length)
        )
      })
    )

    it.effect("gives the facts of a chain in their order, each once, in bounded chunks", () =>
      Effect.gen(function* () {
        const store = yield* TraceStore
        const tenantId = "whole-chain"
        const chain = new FactChain(tenantId)
        const text = "\u00e9".repeat(30_000)
        for (let n = 0; n < 6_000; n++) {
          if (n % 20 === 0) chain.start(`e${n}`)
          else chain.event(`e${n % 7}`, "a", n, n % 30 === 1 ? { text } : { n })
        }
        chain.start("erased")
        chain.span("erased", "b")
        const erasure = chain.erase("erased")
        yield* stored(chain.all)
        yield* stored(chain.all.slice(10, 20))
        yield* store.eraseDetails(tenantId, [
          { executionId: "erased", beforeSequence: erasure.chainSequence, erasedAt: timeAt(9) }
        ])
        const { length } = chain.all
        const wanted = chain.all.map(({ body, executionId }) =>
          executionId === "erased" && body !== erasure.body
            ? eraseFact(parseFact(body)!, timeAt(9))
            : body
        )
        const chunks = yield* Stream.runCollect(store.chain({ tenantId, first: 1, last: length }))
        assert.deepStrictEqual(chunks.flat(), wanted)
        assert.isAbove(chunks.length, 1)
        for (const chunk of chunks) {
          assert.isAtMost(chunk.length, 5_000)
          const bytes = chunk.reduce((sum, body) => sum + Buffer.byteLength(body), 0)
          assert.isAtMost(bytes, 9 * 1_048_576)
        }
        const range = { tenantId, first: 3_000, last: 3_500 }
        const part = yield* Stream.runCollect(store.chain(range))
        assert.deepStrictEqual(part.flat(), wanted.slice(2_999, 3_500))
        const ends = yield* Stream.runCollect(store.chain({ ...range, isSuffix: true }))
        assert.deepStrictEqual(
          ends.flat().map((end) => linkOf(Buffer.from(end), "traces")),
          wanted.slice(2_999, 3_500).map((body) => linkOf(Buffer.from(body), "traces"))
        )
        assert.isTrue(ends.flat().every((end) => Buffer.byteLength(end) <= 1_100))
        const none = yield* Stream.runCollect(store.chain({ ...range, tenantId: "nobody" }))
        assert.deepStrictEqual(none, [])
      })
    )

    it.effect("gives the events of a span in pages of bounded count and bytes", () =>
      Effect.gen(function* () {
        const store = yield* TraceStore
        const chain = new FactChain("event-pages")
        chain.start("x")
        chain.span("x", "a")
        for (let k = 1; k <= 120; k++) {
          const size = k % 20 === 0 ? 60_000 : k % 7
          chain.event("x", k % 3 === 0 ? "b" : "a", k, { text: "é".repeat(size) })
        }
        yield* stored(chain.all)
        const own = bodies(
          chain.all.filter(({ body }) => {
            const fact = parseFact(body)!
            return fact.type === "span.event" && fact.span_id === "a"
          })
        )
        const at = { executionId: "x", spanId: "a" }
        const large = 10_000_000
        for (const [itemsMax, bytesMax] of [
          [1_000, 1],
          [7, large],
          [7, 5_000],
          [own.length - 1, large],
          [own.length, large],
          [1_000, 130_000]
        ] as const) {
          const pages = yield* eventsOfSpan(store, "event-pages", at, { itemsMax, bytesMax })
          assert.deepStrictEqual(pages.flat(), own)
          for (const page of pages) {
            assert.isAtLeast(page.length, 1)
            assert.isAtMost(page.length, itemsMax)
            const bytes = page.reduce((sum, body) => sum + Buffer.byteLength(body), 0)
            assert.isTrue(page.length === 1 || bytes <= bytesMax)
          }
        }
        const nothing = yield* store.spanEvents(
          "event-pages",
          { executionId: "x", spanId: "c" },
          undefined,
          WHOLE
        )
        assert.deepStrictEqual(nothing, { facts: [], next: undefined })
      })
    )

    it.effect("sets aside what came from a partition, and takes the same rows again", () =>
      Effect.gen(function* () {
        const store = yield* TraceStore
        const [kept, dropped] = ["kept", "dropped"].map((tenant) => {
          const chain = new FactChain(tenant)
          chain.start("x")
          chain.event("x", "s", 1)
          return chain.all
        }) as [Array<Placed>, Array<Placed>]
        yield* stored(kept, 31)
        yield* stored(dropped, 32)
        const topics = yield* StoredTopics
        yield* topics.of("traces").setAside(32, { from: 0, confirmed: [], end: 0 })
        assert.isUndefined(yield* store.position(32))
        assert.isUndefined(yield* store.executionOfSpan("dropped", "s"))
        assert.deepStrictEqual(yield* factsOf("dropped", "x"), [])
        assert.deepStrictEqual(yield* factsOf("kept", "x"), bodies(kept))
        yield* stored(dropped, 32)
        assert.deepStrictEqual(yield* factsOf("dropped", "x"), bodies(dropped))
      })
    )

    it.effect("stores an insert whole or not at all", () =>
      Effect.gen(function* () {
        const store = yield* TraceStore
        const chain = new FactChain("whole")
        chain.start("x")
        const [good] = factRows(chain.all)
        for (const text of ["{\n}", "{\x01}"]) {
          const error = yield* Effect.flip(
            store.insertFacts([good!, { ...good!, offset: 1, body: Buffer.from(text) }])
          )
          assert.strictEqual(error.operation, "insertFacts")
        }
        assert.deepStrictEqual(yield* factsOf("whole", "x"), [])
        yield* store.insertFacts([])
        const rows = Array.from({ length: 50_001 }, () => good!)
        assert.isTrue(Exit.hasDies(yield* Effect.exit(store.insertFacts(rows))))
      })
    )

    it.effect("makes one part of the largest insert", () =>
      Effect.gen(function* () {
        const store = yield* TraceStore
        const chain = new FactChain("one-part")
        const payload: JsonObject = { text: "Größe 東京 ".repeat(40) }
        const { body } = chain.event("x", "s", 1, payload)
        const rows = Array.from({ length: 50_000 }, (_, offset) => ({
          partition: 50,
          offset,
          mac: "0".repeat(16),
          body: Buffer.from(body)
        }))
        const count = ask<[number, number, number]>(
          `SELECT count(), uniqExact(_part), sum(length(body)) FROM ${database}.facts`
            + " WHERE kafka_partition = 50"
        )
        const answer = yield* withoutMerges(store.insertFacts(rows).pipe(Effect.andThen(count)))
        assert.deepStrictEqual(answer, [[50_000, 1, 50_000 * Buffer.byteLength(body)]])
      })
    )
  })
}
