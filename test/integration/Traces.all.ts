/**
 * Executions on the real log and the real store: late writes to what memory has forgotten, across
 * restarts, losses and a view that lags; what is stored against what verification says of it; and
 * what erasing leaves.
 */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { layerChainEnds } from "../../src/actors/chainEnds/ChainEndsOfLog.ts"
import { layerLogFollower } from "../../src/actors/follower/LogFollower.ts"
import type { SequencerFailure } from "../../src/actors/sequencer/Sequencer.ts"
import type { TraceFact } from "../../src/domain/traces/TraceFact.ts"
import type { TraceOperation } from "../../src/domain/traces/TraceOperation.ts"
import { StoreUnavailable } from "../../src/ports/EventStore.ts"
import { TraceStore } from "../../src/ports/TraceStore.ts"
import { layerTraceVerifier, TraceVerifier } from "../../src/verify/TraceVerifier.ts"
import {
  addEvent,
  addNamedEvent,
  at,
  details,
  endExecution,
  endSpan,
  erase,
  otlpEvents,
  otlpSpan,
  startExecution,
  startSpan
} from "../actors/support/Traces.ts"
import { checkFacts } from "../support/IndependentTrace.ts"
import { append, freshPrefix, logLayer, loseTopic, readAll } from "../support/Log.ts"
import { intruder, storeLayer, tamper } from "../support/Store.ts"
import {
  factsInTopic,
  progress,
  type TraceContext,
  TracePartition,
  traceCommand
} from "../support/TracePartition.ts"

const TENANT = "acme"
const FIRST = "2026-11-21T12:00:00.123456Z"

/** Run a test on topics and a database of its own, which have the same name. */
const withPartition = <A, E>(
  test: (partition: TracePartition, name: string) => Effect.Effect<A, E, TraceContext>
) => {
  const name = freshPrefix()
  return test(new TracePartition(TENANT), name).pipe(
    Effect.scoped,
    Effect.provide(Layer.mergeAll(logLayer(name), storeLayer(name)))
  )
}

/** The chain of the topic, judged by the independent implementation. */
const checkTopic = readAll("traces").pipe(
  Effect.map((records) => checkFacts(records.map(({ value }) => value!.toString())))
)

const span = startSpan("run", "step", { details: details({ metadata: { n: 1 }, name: "step" }) })
const run: ReadonlyArray<TraceOperation> = [
  startExecution("run", { details: details({ agent_name: "Planner", metadata: { secret: "ü" } }) }),
  span,
  addNamedEvent(TENANT, "step", "tick", "tick"),
  endSpan("step"),
  endExecution("run")
]

/** An execution has come, ended, and is forgotten. */
const pastRun = Effect.fnUntraced(function* (partition: TracePartition) {
  yield* partition.startSequencer
  yield* partition.startProjection
  assert.deepStrictEqual(yield* partition.each(...run), Array(run.length).fill("created"))
  yield* partition.forgotten
})

const given = (startedAt: string) => ({ startedAt, startedAtGiven: true })

describe("an execution that memory has forgotten", () => {
  for (const restarts of [false, true]) {
    it.live(`is known to every late write${restarts ? ", behind a restart too" : ""}`, () =>
      withPartition((partition) =>
        Effect.gen(function* () {
          yield* pastRun(partition)
          const before = yield* factsInTopic
          if (restarts) yield* partition.restartSequencer
          const { loads } = partition
          assert.deepStrictEqual(
            yield* partition.each(
              endExecution("run"),
              endExecution("run", { status: "FAILED" }),
              startExecution("run"),
              addNamedEvent(TENANT, "step", "tick", "tick"),
              addNamedEvent(TENANT, "step", "tick", "tock"),
              addEvent("step", "late"),
              endSpan("step", { status: "CANCELLED" }),
              span,
              startSpan("run", "late")
            ),
            [
              "existing",
              "already_ended",
              "existing",
              "existing",
              "id_conflict",
              "already_ended",
              "already_ended",
              "existing",
              "already_ended"
            ]
          )
          assert.isAbove(partition.loads, loads)
          yield* partition.forgotten
          // Its spans' ids stay taken, wherever they are asked for.
          assert.deepStrictEqual(
            yield* partition.run(startExecution("other"), startSpan("other", "step")),
            ["created", "id_conflict"]
          )
          assert.deepStrictEqual((yield* factsInTopic).slice(0, before.length), before)
          assert.strictEqual((yield* factsInTopic).length, before.length + 2)
          yield* partition.run(endExecution("other"))
          yield* partition.forgotten
          yield* checkTopic
          assert.isTrue((yield* partition.verify("run"))?.valid)
        })
      )
    )
  }

  it.live("has each event of a span once, though the window of duplicates has forgotten it", () =>
    withPartition((partition) =>
      Effect.gen(function* () {
        const eventOf = (id: string) => ({ eventId: id, eventType: "log", timestamp: at(0) })
        const sent = otlpSpan("t", "t.0", { events: ["a", "b"].map(eventOf) })
        const records = otlpEvents("t", "t.0", ["c", "d"].map(eventOf))
        const others = otlpEvents("u", "u.0", ["e", "f", "g", "h"].map(eventOf))
        partition.dedupWindow = 2
        yield* partition.startSequencer
        yield* partition.startProjection
        yield* partition.each(sent, records, others)
        const before = yield* factsInTopic
        assert.deepStrictEqual(yield* partition.each(sent, records), ["existing", "existing"])
        yield* partition.run(erase("t"))
        yield* partition.forgotten
        yield* partition.restartSequencer
        assert.deepStrictEqual(yield* partition.each(sent, records), ["existing", "existing"])
        assert.strictEqual((yield* factsInTopic).length, before.length + 1)
        yield* checkTopic
      })
    )
  )

  it.live("keeps the start that it was given", () =>
    withPartition((partition) =>
      Effect.gen(function* () {
        yield* partition.startSequencer
        yield* partition.startProjection
        yield* partition.run(startExecution("run", given(FIRST)), endExecution("run"))
        yield* partition.forgotten
        assert.deepStrictEqual(
          yield* partition.each(
            startExecution("run", given(FIRST)),
            startExecution("run"),
            startExecution("run", given("2026-11-21T12:00:00.123457Z"))
          ),
          ["existing", "existing", "idempotency_conflict"]
        )
      })
    )
  )

  it.live("takes late OpenTelemetry spans, with a restart while part of it is in memory", () =>
    withPartition((partition) =>
      Effect.gen(function* () {
        const event = (eventId: string) => ({
          eventId,
          eventType: "tick",
          timestamp: at(1),
          details: details({ payload: { eventId } })
        })
        const child = { parentSpanId: "root", startedAt: at(1), endedAt: at(2) }
        yield* partition.startSequencer
        yield* partition.startProjection
        yield* partition.run(
          otlpSpan("trace", "root", { endedAt: at(9) }),
          otlpSpan("trace", "open", { parentSpanId: "root", endedAt: undefined as never })
        )
        yield* partition.forgotten
        // From here on the store stands still: what follows is in memory and in the changelog only.
        yield* partition.stopProjection
        assert.deepStrictEqual(
          yield* partition.each(
            otlpSpan("trace", "late", { ...child, events: [event("e1"), event("e2")] }),
            otlpSpan("trace", "open", { parentSpanId: "root", startedAt: at(0), endedAt: at(5) })
          ),
          ["created", "created"]
        )
        yield* partition.restartSequencer
        assert.deepStrictEqual(
          yield* partition.each(
            otlpSpan("trace", "root", { endedAt: at(9) }),
            otlpSpan("trace", "late", { ...child, events: [event("e1"), event("e2")] }),
            otlpSpan("trace", "later", {
              ...child,
              causedBy: ["late", "open"],
              events: [event("e3")]
            }),
            otlpSpan("trace", "circle", { parentSpanId: "circle" })
          ),
          ["existing", "existing", "created", "cycle_detected"]
        )
        yield* partition.startProjection
        yield* partition.forgotten
        const { execution, spans } = yield* partition.view("trace")
        assert.deepStrictEqual([execution?.status, execution?.ended_at], ["COMPLETED", at(9)])
        assert.deepStrictEqual(
          spans.map(({ caused_by_span_ids, ended_at, id, status }) => [
            id,
            status,
            ended_at,
            caused_by_span_ids
          ]),
          [
            ["root", "COMPLETED", at(9), []],
            ["open", "COMPLETED", at(5), []],
            ["late", "COMPLETED", at(2), []],
            ["later", "COMPLETED", at(2), ["late", "open"]]
          ]
        )
        const numbers = (yield* partition.stored("trace"))
          .filter((fact) => fact.type === "span.event")
          .map(({ event_id, sequence_number }) => [event_id, sequence_number])
        assert.deepStrictEqual(numbers, [
          ["e1", 1],
          ["e2", 2],
          ["e3", 3]
        ])
        yield* checkTopic
        assert.isTrue((yield* partition.verify("trace"))?.valid)
      })
    )
  )

  it.live("leaves nothing behind, however many there were", () =>
    withPartition((partition) =>
      Effect.gen(function* () {
        yield* partition.startSequencer
        yield* partition.startProjection
        const runs = Array.from({ length: 300 }, (_, n) => `run-${n}`)
        for (let from = 0; from < runs.length; from += 50) {
          const some = runs.slice(from, from + 50)
          yield* partition.run(
            ...some.flatMap((id) => [startExecution(id), startSpan(id, `of-${id}`)])
          )
          yield* partition.run(...some.map((id) => endExecution(id)))
        }
        yield* partition.forgotten
        assert.deepStrictEqual(yield* partition.run(endExecution("run-17")), ["existing"])
        assert.strictEqual((yield* factsInTopic).length, 300 * 4)
      })
    )
  )
})

describe("a changelog that is lost", () => {
  it.live("is made anew: what runs goes on, what ended has ended, and ids stay taken", () =>
    withPartition((partition, name) =>
      Effect.gen(function* () {
        yield* pastRun(partition)
        yield* partition.run(
          startExecution("running"),
          startSpan("running", "open"),
          addNamedEvent(TENANT, "open", "tack", "tack")
        )
        yield* partition.stopSequencer
        yield* loseTopic(name, "state")
        yield* partition.startSequencer
        assert.deepStrictEqual(
          yield* partition.each(
            startExecution("run"),
            endExecution("run", { status: "FAILED" }),
            addNamedEvent(TENANT, "open", "tack", "tack"),
            addEvent("open", "more"),
            startSpan("running", "step"),
            startSpan("running", "next"),
            endExecution("running")
          ),
          ["existing", "already_ended", "existing", "created", "id_conflict", "created", "created"]
        )
        yield* partition.forgotten
        yield* checkTopic
        assert.strictEqual((yield* partition.view("running")).spans.length, 3)
        for (const id of ["run", "running"]) assert.isTrue((yield* partition.verify(id))?.valid)
      })
    )
  )

  it.live("refuses a log that has lost facts", () =>
    withPartition((partition, name) =>
      Effect.gen(function* () {
        yield* pastRun(partition)
        yield* partition.stopSequencer
        yield* loseTopic(name, "traces")
        const refused = (yield* Effect.flip(partition.startSequencer)) as SequencerFailure
        assert.strictEqual(refused._tag, "PartitionRefused")
        assert.match(
          "message" in refused ? refused.message : "",
          /the topics are behind alk.state.*alk.traces.*it ends at 0/
        )
      })
    )
  )
})

/** What is asked of executions that can't be looked up is refused whole; all else goes on. */
const assertRefusedForNow = Effect.fnUntraced(function* (partition: TracePartition) {
  const { length } = yield* factsInTopic
  const [receipt] = yield* partition.submit(
    traceCommand(TENANT, [startExecution("run"), startExecution("new", { fresh: true })])
  )
  assert.deepStrictEqual([receipt?.status, receipt?.error?.code], ["failed", "unavailable"])
  assert.strictEqual((yield* factsInTopic).length, length)
  const first = (yield* partition.audit()) ?? 0
  assert.strictEqual(yield* partition.audit(), first + 1)
  // What is new needs nobody's word.
  assert.deepStrictEqual(
    yield* partition.run(
      startExecution(`fresh-${length}`, { fresh: true }),
      startSpan(`fresh-${length}`, `step-${length}`, { fresh: true })
    ),
    ["created", "created"]
  )
})

/** Afterwards everything is as it would have been. */
const assertWellAgain = Effect.fnUntraced(function* (partition: TracePartition) {
  yield* partition.shown
  assert.deepStrictEqual(
    yield* partition.each(startExecution("run"), endExecution("run", { status: "FAILED" })),
    ["existing", "already_ended"]
  )
  yield* checkTopic
  assert.isTrue((yield* partition.verify("run"))?.valid)
})

describe("a view that can't be asked", () => {
  it.live("because it lags: refused for now, then right", () =>
    withPartition((partition, name) =>
      Effect.gen(function* () {
        yield* pastRun(partition)
        yield* partition.stopProjection
        // Only a sequencer that has lost its memory needs more than the view has shown.
        yield* partition.run(startExecution("unseen"), startSpan("unseen", "hidden"))
        yield* partition.stopSequencer
        yield* loseTopic(name, "state")
        yield* partition.startSequencer
        yield* assertRefusedForNow(partition)
        yield* partition.startProjection
        yield* assertWellAgain(partition)
        assert.deepStrictEqual(yield* partition.run(startExecution("unseen"), endSpan("hidden")), [
          "existing",
          "created"
        ])
      })
    )
  )

  it.live("because the store does not answer: refused for now, then right", () =>
    withPartition((partition) =>
      Effect.gen(function* () {
        yield* pastRun(partition)
        partition.storeFails = true
        yield* assertRefusedForNow(partition)
        yield* partition.restartSequencer
        yield* assertRefusedForNow(partition)
        partition.storeFails = false
        yield* assertWellAgain(partition)
      })
    )
  )

  it.live("because it was emptied: refused until it is rebuilt, then right", () =>
    withPartition((partition, name) =>
      Effect.gen(function* () {
        yield* pastRun(partition)
        yield* partition.stopSequencer
        yield* partition.stopProjection
        yield* tamper(`TRUNCATE TABLE ${name}.facts`)
        // alk.progress still says that everything is there.
        assert.isFalse((yield* progress).rebuilding)
        yield* partition.startSequencer
        yield* assertRefusedForNow(partition)
        yield* partition.startProjection
        yield* assertWellAgain(partition)
      })
    )
  )

  it.live("because the topic denies it: rebuilt, with late writes all the while", () =>
    withPartition((partition, name) =>
      Effect.gen(function* () {
        yield* pastRun(partition)
        assert.deepStrictEqual(yield* partition.run(startExecution("run")), ["existing"])
        yield* partition.stopProjection
        yield* tamper(
          `INSERT INTO ${name}.facts (kafka_partition, kafka_offset, body)
           VALUES (0, 1000000, '{}')`
        )
        yield* partition.startProjection
        for (let turn = 0; turn < 10; turn++) {
          const [said] = yield* partition.run(startExecution("run"))
          assert.include(["existing", "failed"], said)
        }
        yield* assertWellAgain(partition)
        assert.strictEqual((yield* partition.stored("run")).length, run.length + 1)
      })
    )
  )
})

/** What an intruder does to the facts of the second of three executions. */
interface Tampering {
  readonly name: string
  /** `sequence` is a condition that ends with the tenant's chain sequence. */
  readonly statements: (table: string, sequence: string) => ReadonlyArray<string>
  /** Place in the tenant's chain, or before it, and why. */
  readonly expected: readonly [sequence: number, reason: string]
}

const replaceIn = (table: string, from: string, to: string, where: string): string =>
  `ALTER TABLE ${table} UPDATE body = replaceOne(body, '${from}', '${to}') WHERE ${where}`

/**
 * The chain: 1 and 2 start `a`, 3 and 4 start `b`, 5 starts b's span, 6 is its event, 7 starts `c`
 * with 8, 9 ends the span, 10 ends `c`, 11 ends `b`, 12 starts `d` with 13.
 */
const chain: ReadonlyArray<TraceOperation> = [
  startExecution("a"),
  startExecution("b", { details: details({ metadata: { note: "nöte" } }) }),
  startSpan("b", "step"),
  addEvent("step", "tick", { details: details({ payload: { q: "quöry" } }) }),
  startExecution("c"),
  endSpan("step", { details: details({ error: "broken" }) }),
  endExecution("c"),
  endExecution("b"),
  startExecution("d")
]

const tamperings: ReadonlyArray<Tampering> = [
  ...[
    ["a byte of its metadata", "nöte", "note", 3],
    ["a byte of its agent", '"agent_id":"agent"', '"agent_id":"agenT"', 3],
    ["a byte of a span's name", "span step", "span sTep", 5],
    ["a byte of a payload", "quöry", "query", 6],
    ["a byte of an error", "broken", "brOken", 9],
    ["a byte of its end", "COMPLETED", "CANCELLED", 11]
  ].map(
    ([name, from, to, sequence]): Tampering => ({
      name: `${name}`,
      statements: (table, at) => [replaceIn(table, `${from}`, `${to}`, `${at} = ${sequence}`)],
      expected: [Number(sequence), "content_mismatch"]
    })
  ),
  ...[
    ["status", "'FAILED'", 11],
    ["ended_at", "'2020-01-01 00:00:00'", 11],
    ["started_at", "'2020-01-01 00:00:00'", 3],
    ["agent_id", "'somebody'", 3],
    ["type", "'span.ended'", 6]
  ].map(
    ([column, value, sequence]): Tampering => ({
      name: `its column ${column} alone`,
      statements: (table, at) => [
        `ALTER TABLE ${table} UPDATE ${column} = ${value} WHERE ${at} = ${sequence}`
      ],
      expected: [Number(sequence), "content_mismatch"]
    })
  ),
  {
    name: "created_at",
    statements: (table, at) => [
      replaceIn(table, '"created_at":"20', '"created_at":"19', `${at} = 6`)
    ],
    expected: [6, "hash_mismatch"]
  },
  {
    name: "a member more, which no hash covers",
    statements: (table, at) => [
      replaceIn(table, '"tenant_id":', '"more":1,"tenant_id":', `${at} = 5`)
    ],
    expected: [5, "content_mismatch"]
  },
  {
    name: "a fact in the middle dropped",
    statements: (table, at) => [`ALTER TABLE ${table} DELETE WHERE ${at} = 6`],
    expected: [9, "sequence_gap"]
  },
  {
    name: "its last fact dropped",
    statements: (table, at) => [`ALTER TABLE ${table} DELETE WHERE ${at} = 11`],
    expected: [11, "tail_missing"]
  },
  {
    name: "everything behind its span dropped",
    statements: (table, at) => [`ALTER TABLE ${table} DELETE WHERE ${at} > 5`],
    expected: [11, "tail_missing"]
  },
  {
    name: "a second row forged beside one",
    statements: (table, at) => [
      `INSERT INTO ${table} (kafka_partition, kafka_offset, body)
       SELECT kafka_partition, kafka_offset, replaceOne(body, 'quöry', 'forged')
       FROM ${table} WHERE ${at} = 6`
    ],
    expected: [6, "content_mismatch"]
  },
  {
    name: "a second row forged, that says to have another hash",
    statements: (table, at) => [
      `INSERT INTO ${table} (kafka_partition, kafka_offset, body)
       SELECT kafka_partition, kafka_offset,
         replaceRegexpOne(body, '"hash":"....', '"hash":"0000')
       FROM ${table} WHERE ${at} = 6`
    ],
    expected: [6, "hash_mismatch"]
  }
]

const database = freshPrefix()

/** One sequencer and one projection for all; each test has a tenant of its own. */
const layerShared = Layer.effectDiscard(
  Effect.gen(function* () {
    const partition = new TracePartition("nobody")
    yield* partition.startSequencer
    yield* partition.startProjection
  })
).pipe(
  Layer.provideMerge(
    layerTraceVerifier.pipe(Layer.provide(layerChainEnds(true)), Layer.provide(layerLogFollower))
  ),
  Layer.provideMerge(Layer.mergeAll(logLayer(database), storeLayer(database)))
)

layer(layerShared, { excludeTestServices: true })("verification of an execution", (it) => {
  for (const [index, { expected, name, statements }] of tamperings.entries()) {
    it.effect(`finds ${name}`, () =>
      Effect.gen(function* () {
        const tenantId = `tenant-${index}`
        yield* new TracePartition(tenantId).each(...chain)
        const verifier = yield* TraceVerifier
        const before = yield* verifier.verify(tenantId, "b")
        assert.deepInclude(before, { valid: true, facts_checked: 6 }, JSON.stringify(before))
        const where = `tenant_id = '${tenantId}' AND chain_sequence`
        yield* tamper(...statements(`${database}.facts`, where))
        const report = yield* verifier.verify(tenantId, "b")
        assert.isFalse(report?.valid)
        const places = report!.breaks.map(({ reason, sequence_number }) => [
          sequence_number,
          reason
        ])
        assert.deepInclude(places, [...expected], JSON.stringify(report?.breaks))
        // Whatever does not touch the place is not accused.
        assert.isTrue((yield* verifier.verify(tenantId, "a"))?.valid)
      })
    )
  }
})

/** The bodies of all rows, as somebody with access to the database selects them. */
const bodiesIn = (database: string) =>
  Effect.promise(async () => {
    const client = intruder()
    const query = `SELECT body FROM ${database}.facts`
    const rows = await client.query({ query, format: "JSONEachRow" })
    const found = (await rows.json()) as ReadonlyArray<{ readonly body: string }>
    await client.close()
    return found.map(({ body }) => body)
  })

const secretRun: ReadonlyArray<TraceOperation> = [
  startExecution("run", { details: details({ agent_name: "Planner", metadata: { secret: "ü" } }) }),
  startSpan("run", "s1", { details: details({ name: "Planner calls" }) }),
  addEvent("s1", "e1", { details: details({ payload: { q: "quöry" } }) }),
  endSpan("s1", { details: details({ error: "broken", metadata: { secret: "ü" } }) }),
  endExecution("run", { details: details({ metadata: { secret: "ü" } }) })
]

const assertErased = Effect.fnUntraced(function* (
  partition: TracePartition,
  database: string,
  facts: number
) {
  const stored = yield* partition.holds("run", facts)
  const text = (yield* bodiesIn(database)).join("\n")
  for (const secret of ["Planner", "ü", "quöry", "broken", "details_salt"]) {
    assert.notInclude(text, secret)
  }
  const erased = stored.filter((fact: TraceFact) => fact.details_hash !== undefined)
  assert.isTrue(erased.every((fact: TraceFact) => fact.erased_at !== undefined))
  const report = yield* partition.verify("run")
  assert.deepInclude(
    report,
    { valid: true, facts_checked: facts, erased_events: erased.length },
    JSON.stringify(report)
  )
})

describe("erasing an execution", () => {
  it.live("takes all details of its facts out of the store, and again when that is rebuilt", () =>
    withPartition((partition, name) =>
      Effect.gen(function* () {
        yield* partition.startSequencer
        yield* partition.startProjection
        yield* partition.each(...secretRun)
        yield* partition.shown
        assert.include((yield* bodiesIn(name)).join("\n"), "quöry")
        const said = yield* partition.each(erase("run"), erase("run"))
        assert.deepStrictEqual(said, ["created", "existing"])
        yield* assertErased(partition, name, 7)
        yield* partition.forgotten
        // The spans are still themselves, and the erasure is still done.
        assert.deepStrictEqual(
          yield* partition.each(erase("run"), startSpan("run", "s1"), startExecution("run")),
          ["existing", "existing", "existing"]
        )
        yield* partition.stopProjection
        yield* tamper(`TRUNCATE TABLE ${name}.facts`)
        yield* partition.startProjection
        yield* assertErased(partition, name, 7)
        yield* checkTopic
      })
    )
  )

  it.live("is done again by a projection that ended in the middle of it", () =>
    withPartition((partition, name) =>
      Effect.gen(function* () {
        yield* partition.startSequencer
        yield* partition.each(...secretRun, erase("run"))
        const store = yield* TraceStore
        let failures = 0
        // What erases has run; what says so is not stored.
        const interrupted = TraceStore.of({
          ...store,
          insertFacts: (rows) =>
            failures < 2 && rows.some(({ body }) => body.includes('"execution.erased"'))
              ? Effect.suspend(() => {
                  failures += 1
                  const cause = new Error("ended in the middle")
                  return Effect.fail(new StoreUnavailable({ operation: "insertFacts", cause }))
                })
              : store.insertFacts(rows)
        })
        yield* partition.startProjection.pipe(Effect.provideService(TraceStore, interrupted))
        yield* assertErased(partition, name, 7)
        assert.strictEqual(failures, 2)
      })
    )
  )

  it.live("leaves what follows, until it is asked for again", () =>
    withPartition((partition, name) =>
      Effect.gen(function* () {
        yield* partition.startSequencer
        yield* partition.startProjection
        yield* partition.each(startExecution("run"), startSpan("run", "s1"), erase("run"))
        const payload = details({ payload: { q: "quöry" } })
        yield* partition.run(addEvent("s1", "e1", { details: payload }))
        yield* partition.shown
        assert.include((yield* bodiesIn(name)).join("\n"), "quöry")
        assert.isTrue((yield* partition.verify("run"))?.valid)
        assert.deepStrictEqual(yield* partition.run(erase("run")), ["created"])
        yield* assertErased(partition, name, 6)
      })
    )
  )
})

describe("a record of alk.traces that does not link", () => {
  it.live("is not shown, and accuses nobody", () =>
    withPartition((partition, name) =>
      Effect.gen(function* () {
        yield* partition.startSequencer
        yield* partition.startProjection
        yield* partition.each(...secretRun)
        yield* partition.shown
        const [first] = yield* readAll("traces")
        yield* append([{ topic: "traces", partition: 0, key: TENANT, value: first!.value }])
        yield* partition.shown
        assert.strictEqual((yield* bodiesIn(name)).length, 6)
        assert.isTrue((yield* partition.verify("run"))?.valid)
      })
    )
  )
})
