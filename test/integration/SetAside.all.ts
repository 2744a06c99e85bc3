/**
 * A view that the topic denies in part, after retention has taken the topic's beginning: what nobody
 * could build again stays listed, and what is denied can still be looked at.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Metric } from "effect"
import { rowsSetAside } from "../../src/actors/projection/Confirmation.ts"
import { ClickHouseConnection } from "../../src/adapters/clickhouse/client/ClickHouseConnection.ts"
import { layerStoredTopics } from "../../src/adapters/clickhouse/StoredTopicsClickHouse.ts"
import type { AuditEvent } from "../../src/domain/events/AuditEvent.ts"
import type { Progress } from "../../src/domain/records/Progress.ts"
import type { TopicKind } from "../../src/domain/records/Topics.ts"
import { CheckpointStore } from "../../src/ports/CheckpointStore.ts"
import { EventStore } from "../../src/ports/EventStore.ts"
import { TraceStore } from "../../src/ports/TraceStore.ts"
import {
  addNamedEvent,
  details,
  endExecution,
  erase,
  startExecution,
  startSpan
} from "../actors/support/Traces.ts"
import { eventually } from "../support/Eventually.ts"
import { append, deleteBelow, loseTopic, readAll } from "../support/Log.ts"
import { setAsideIn, storeConnection, tamper } from "../support/Store.ts"
import { allFacts } from "../support/StoredTraces.ts"
import { TracePartition } from "../support/TracePartition.ts"
import {
  allSequenced,
  erasureOf,
  events,
  listed,
  project,
  projecting,
  rewritten,
  sequence,
  submit,
  TENANT,
  topicBodies,
  verify,
  wantCheckpoint,
  withView
} from "./support/Evidence.ts"

/** Events in all, and how many of them retention has removed from the topic. */
const ALL = 40
const GONE = 30

/** Forty events in topic and view, of which the topic holds the last ten only. */
const shortened = Effect.fnUntraced(function* (name: string) {
  yield* sequence(ALL, events(ALL))
  const { bodies } = yield* project()
  assert.strictEqual(bodies.length, ALL)
  yield* deleteBelow(name, "events", GONE)
  return bodies
})

/** The list is these events, and stays so, with what was set aside, at two more starts. */
const assertStable = Effect.fnUntraced(function* (database: string, bodies: ReadonlyArray<string>) {
  assert.deepStrictEqual((yield* project()).bodies, bodies)
  const aside = yield* setAsideIn(database)
  for (let start = 0; start < 2; start++) {
    const page = yield* project()
    assert.deepStrictEqual([page.bodies, page.total], [bodies, bodies.length])
    assert.deepStrictEqual(yield* setAsideIn(database), aside)
  }
  return aside
})

/** Five more events come the usual way, and are listed behind those of before. */
const goesOn = Effect.fnUntraced(function* (name: string, bodies: ReadonlyArray<string>) {
  yield* sequence(ALL - GONE + 5, events(5))
  const all = [...bodies.slice(0, GONE), ...(yield* topicBodies)]
  yield* assertStable(name, all)
  const report = yield* verify()
  assert.deepStrictEqual([report.status, report.breaks], ["valid", []])
})

/** The last record of a topic is lost: it is there again without it, and shortened as before. */
const loseLast = Effect.fnUntraced(function* (name: string, topic: TopicKind, below: number) {
  const before = yield* readAll(topic)
  const start = before[0]?.offset ?? 0
  yield* loseTopic(name, topic, "delete")
  const filler = { topic, partition: 0, key: "filler", value: "lost to retention" }
  yield* append([
    ...Array.from({ length: start }, () => filler),
    ...before.slice(0, -1).map(({ headers, key, value }) => ({
      topic,
      partition: 0,
      key: key!,
      value: value!,
      headers
    }))
  ])
  yield* deleteBelow(name, topic, below)
})

const insertEvent = (offset: number, body: string) =>
  EventStore.use((store) => store.insertEvents([{ partition: 0, offset, body: Buffer.from(body) }]))

/** A row that is no event of any chain. */
const insertForged = (name: string, offset: number | string) =>
  tamper(
    `INSERT INTO ${name}.events (kafka_partition, kafka_offset, id) VALUES (0, ${offset}, 'forged')`
  )
const FORGED = /^{"id":"forged",/

describe("a view of events that the topic denies", () => {
  for (const offset of ["1000000", "18446744073709551615"]) {
    it.live(`because of a row at offset ${offset} keeps its history`, () =>
      withView((name) =>
        Effect.gen(function* () {
          const bodies = yield* shortened(name)
          yield* insertForged(name, offset)
          const counter = Metric.withAttributes(rowsSetAside, { table: "events" })
          const before = yield* Metric.value(counter)
          const [row, ...others] = yield* assertStable(name, bodies)
          assert.strictEqual(row?.reason, "beyond_end")
          assert.match(row!.body, FORGED)
          assert.strictEqual(others.length, 0)
          assert.strictEqual((yield* Metric.value(counter)).count, before.count + 1)
          yield* goesOn(name, bodies)
        })
      )
    )
  }

  it.live("because its last row was changed keeps its history, and has the row again", () =>
    withView((name) =>
      Effect.gen(function* () {
        const bodies = yield* shortened(name)
        yield* tamper(
          `ALTER TABLE ${name}.events UPDATE outcome = 'failure'
           WHERE sequence_number > 37`
        )
        const changed = (yield* listed).bodies.slice(37)
        const aside = yield* assertStable(name, bodies)
        assert.deepStrictEqual(
          aside.map(({ body, offset, reason }) => [offset, reason, body]),
          changed.map((body, index) => [37 + index, "not_in_topic", body])
        )
        yield* goesOn(name, bodies)
      })
    )
  )

  it.live("because the topic has lost its last record keeps the rest, and takes what comes", () =>
    withView((name) =>
      Effect.gen(function* () {
        const bodies = yield* shortened(name)
        yield* loseLast(name, "events", GONE)
        const aside = yield* assertStable(name, bodies.slice(0, ALL - 1))
        assert.deepStrictEqual(aside, [
          { source: "events", offset: ALL - 1, reason: "beyond_end", body: bodies.at(-1) }
        ])
        // The head that the sequencer has written down is missed all the same.
        const missed = yield* verify()
        assert.deepStrictEqual(
          missed.breaks.map(({ reason, sequence_number }) => [sequence_number, reason]),
          [[ALL, "tail_missing"]]
        )
        const after = rewritten(bodies, ALL - 1, ALL + 2).bodies
        yield* append(
          after
            .slice(ALL - 1)
            .map((value) => ({ topic: "events", partition: 0, key: TENANT, value }))
        )
        yield* allSequenced
        assert.deepStrictEqual(yield* assertStable(name, after), aside)
      })
    )
  )

  it.live("because another topic is in its place keeps what lies before it", () =>
    withView((name) =>
      Effect.gen(function* () {
        const bodies = yield* shortened(name)
        const after = rewritten(bodies, 35, 45).bodies
        yield* loseTopic(name, "events", "delete")
        yield* append(after.map((value) => ({ topic: "events", partition: 0, key: TENANT, value })))
        yield* deleteBelow(name, "events", GONE)
        yield* allSequenced
        const aside = yield* assertStable(name, after)
        assert.deepStrictEqual(
          aside.map(({ body }) => body),
          bodies.slice(35)
        )
        assert.strictEqual(aside[0]?.reason, "not_in_topic")
      })
    )
  )

  it.live("because of a copy that has taken an old row's place keeps the row", () =>
    withView((name) =>
      Effect.gen(function* () {
        const bodies = yield* shortened(name)
        // Of rows with one number and hash the last one stays when parts are merged.
        for (const index of [4, 5, 33]) yield* insertEvent(2_000 + index, bodies[index]!)
        yield* tamper(`OPTIMIZE TABLE ${name}.events FINAL`)
        const aside = yield* assertStable(name, bodies)
        assert.deepStrictEqual(
          aside.map(({ body }) => body),
          [4, 5, 33].map((at) => bodies[at])
        )
        yield* goesOn(name, bodies)
      })
    )
  )

  it.live("in a row beside the last one loses that row only", () =>
    withView((name) =>
      Effect.gen(function* () {
        const bodies = yield* shortened(name)
        const forged = rewritten(bodies, ALL - 1, ALL).bodies.at(-1)!
        yield* insertEvent(ALL - 1, forged)
        assert.strictEqual((yield* listed).total, ALL + 1)
        const aside = yield* assertStable(name, bodies)
        assert.deepStrictEqual(
          aside.map(({ body }) => body),
          [forged]
        )
      })
    )
  )

  it.live("is not denied by a last record without a value", () =>
    withView((name) =>
      Effect.gen(function* () {
        const bodies = yield* shortened(name)
        yield* append([{ topic: "events", partition: 0, key: TENANT, value: null }])
        assert.deepStrictEqual(yield* assertStable(name, bodies), [])
        const conflicts = yield* EventStore.use((store) => store.conflicts(TENANT, 10))
        assert.deepStrictEqual(
          conflicts.map(({ body }) => body.length),
          [0]
        )
      })
    )
  )

  it.live("because of a record that did not link says so of that as well", () =>
    withView((name) =>
      Effect.gen(function* () {
        const bodies = yield* shortened(name)
        yield* tamper(
          `INSERT INTO ${name}.conflicts VALUES (0, 5000, '${TENANT}', 7, 'sequence', 'junk')`
        )
        const aside = yield* assertStable(name, bodies)
        assert.deepStrictEqual(
          aside.map(({ body, source }) => [source, body]),
          [["conflicts", "junk"]]
        )
        const conflicts = yield* EventStore.use((store) => store.conflicts(TENANT, 10))
        assert.deepStrictEqual(conflicts, [])
      })
    )
  )
})

/** The store on a connection that breaks off before the first statement of a form. */
const brokenOff = (name: string, form: RegExp) => {
  let broken = false
  const connection = Layer.effect(
    ClickHouseConnection,
    Effect.map(ClickHouseConnection, (intact) => {
      const client = new Proxy(intact.client, {
        get: (target, member) => {
          const own = Reflect.get(target, member) as unknown
          if (member !== "command") return typeof own === "function" ? own.bind(target) : own
          return (statement: { readonly query: string }) => {
            if (broken || !form.test(statement.query)) {
              return target.command(statement)
            }
            broken = true
            return Promise.reject(new Error("broken off"))
          }
        }
      })
      return ClickHouseConnection.of({ ...intact, client })
    })
  ).pipe(Layer.provide(storeConnection(name)))
  return {
    topics: Layer.fresh(layerStoredTopics).pipe(Layer.provide(connection)),
    isBroken: Effect.sync(() => broken)
  }
}

describe("setting aside", () => {
  for (const [step, form] of [
    ["copied", /^INSERT INTO \S+\.set_aside/],
    ["kept in the chain", /^INSERT INTO \S+\.events/],
    ["removed", /^ALTER TABLE \S+\.events DELETE/],
    ["removed from the conflicts", /^ALTER TABLE \S+\.conflicts DELETE/]
  ] as const) {
    it.live(`is begun again when it is broken off before rows are ${step}`, () =>
      withView((name) =>
        Effect.gen(function* () {
          const bodies = yield* shortened(name)
          yield* insertEvent(2_000, bodies[4]!)
          yield* tamper(`OPTIMIZE TABLE ${name}.events FINAL`)
          yield* insertForged(name, 3_000)
          const { isBroken, topics } = brokenOff(name, form)
          yield* projecting.pipe(
            Effect.andThen(eventually("the store's connection is broken off", isBroken)),
            Effect.provide(topics),
            Effect.scoped
          )
          const aside = yield* assertStable(name, bodies)
          assert.deepStrictEqual(
            aside.map(({ offset }) => offset),
            [2_000, 3_000]
          )
          assert.strictEqual(aside[0]!.body, bodies[4])
          assert.match(aside[1]!.body, FORGED)
          yield* goesOn(name, bodies)
        })
      )
    )
  }

  it.live("hides nothing once it is done, and tells the readers before", () =>
    withView((name) =>
      Effect.gen(function* () {
        yield* shortened(name)
        yield* insertForged(name, 1_000)
        const before = (yield* readAll("progress")).length
        yield* project()
        const said = (yield* readAll("progress"))
          .slice(before)
          .map(({ value }) => (JSON.parse(value!.toString()) as { rebuilding: boolean }).rebuilding)
        assert.isTrue(said[0])
        // What is missing of the topic was never shown: the view is whole at once.
        assert.deepStrictEqual(said.slice(1).filter(Boolean), [])
      })
    )
  )
})

describe("what was set aside", () => {
  const secretOf = (body: string) => (JSON.parse(body) as AuditEvent).actor.email!

  it.live("loses its details with the event whose place it had", () =>
    withView((name) =>
      Effect.gen(function* () {
        const bodies = yield* shortened(name)
        yield* tamper(
          `ALTER TABLE ${name}.events UPDATE outcome = 'failure'
           WHERE sequence_number = ${ALL}`
        )
        yield* project()
        const last = JSON.parse(bodies.at(-1)!) as AuditEvent
        const holding = Effect.map(
          setAsideIn(name),
          (rows) => rows.filter(({ body }) => body.includes(secretOf(bodies.at(-1)!))).length
        )
        assert.strictEqual(yield* holding, 1)
        yield* sequence(ALL - GONE + 1, erasureOf(last))
        yield* project()
        assert.strictEqual(yield* holding, 0)
        const [row] = yield* setAsideIn(name)
        assert.include(row?.body, '"erased_at"')
        assert.include(row?.body, `"id":"${last.id}"`)
      })
    )
  )

  it.live("has no details of an event that was erased before", () =>
    withView((name) =>
      Effect.gen(function* () {
        const bodies = yield* shortened(name)
        const target = JSON.parse(bodies[10]!) as AuditEvent
        yield* sequence(ALL - GONE + 1, erasureOf(target))
        const after = (yield* project()).bodies
        yield* insertEvent(9_000, bodies[10]!)
        yield* assertStable(name, after)
        const rows = yield* setAsideIn(name)
        assert.strictEqual(rows.length, 1)
        assert.notInclude(rows[0]!.body, secretOf(bodies[10]!))
        assert.isFalse((yield* listed).bodies[10]!.includes(secretOf(bodies[10]!)))
      })
    )
  )
})

const run = [
  startExecution("run", { details: details({ agent_name: "Planner", metadata: { secret: "ü" } }) }),
  startSpan("run", "step"),
  addNamedEvent(TENANT, "step", "tick", "tick"),
  endExecution("run")
]

/** Two executions in topic and view; the topic has kept the facts of the second only. */
const shortenedTraces = Effect.fnUntraced(function* (name: string, partition: TracePartition) {
  yield* partition.startSequencer
  yield* partition.startProjection
  yield* partition.each(...run)
  const below = (yield* readAll("traces")).at(-1)!.offset + 1
  yield* partition.run(startExecution("later"), startSpan("later", "other"))
  yield* partition.shown
  yield* partition.stopProjection
  yield* deleteBelow(name, "traces", below)
  return below
})

/** Start a projection, and wait until it has said for itself that it shows everything. */
const projected = Effect.fnUntraced(function* (partition: TracePartition) {
  const said = (yield* readAll("progress")).at(-1)?.offset ?? -1
  yield* partition.startProjection
  const newest = Effect.map(readAll("progress"), (records) => {
    const own = records.filter(({ offset }) => offset > said).at(-1)?.value
    return own == null ? undefined : (JSON.parse(own.toString()) as Progress)
  })
  yield* eventually(
    "the projection says that it shows everything",
    newest,
    (progress) => progress?.rebuilding === false
  )
  yield* partition.shown
})

const bodiesOf = (executionId: string) =>
  TraceStore.use((store) => allFacts(store, TENANT, executionId))

describe("a view of traces that the topic denies", () => {
  const denials: ReadonlyArray<readonly [string, (name: string) => Effect.Effect<void>]> = [
    [
      "because of a row far behind its end",
      (name) =>
        tamper(
          `INSERT INTO ${name}.facts (kafka_partition, kafka_offset, body)
           VALUES (0, 1000000, '{}')`
        )
    ],
    [
      "because of a row behind its end, with the place of a row of the index changed,",
      (name) =>
        tamper(
          `INSERT INTO ${name}.facts (kafka_partition, kafka_offset, body)
           VALUES (0, 1000000, '{}')`,
          `ALTER TABLE ${name}.span_ids UPDATE kafka_offset = 9223372036854775808
           WHERE span_id = 'step'`
        )
    ],
    [
      "because its last row was changed",
      (name) =>
        tamper(
          `ALTER TABLE ${name}.facts UPDATE body = replaceOne(body, 'other', 'OTHER')
           WHERE span_id = 'other'`
        )
    ],
    [
      "because copies have taken the place of old rows",
      (name) =>
        tamper(
          ...["facts", "span_ids"].map(
            (table) =>
              `INSERT INTO ${name}.${table} (kafka_partition, kafka_offset, body)
             SELECT 0, 5000 + kafka_offset, body FROM ${name}.facts
             WHERE execution_id = 'run' AND fact_number < 4`
          ),
          `OPTIMIZE TABLE ${name}.facts FINAL`,
          `OPTIMIZE TABLE ${name}.span_ids FINAL`
        )
    ]
  ]
  for (const [why, deny] of denials) {
    it.live(`${why} keeps the executions that are gone from it`, () =>
      withView((name) =>
        Effect.gen(function* () {
          const partition = new TracePartition(TENANT)
          yield* shortenedTraces(name, partition)
          const all = [yield* bodiesOf("run"), yield* bodiesOf("later")]
          assert.deepStrictEqual(
            all.map(({ length }) => length),
            [5, 3]
          )
          yield* deny(name)
          for (let start = 0; start < 2; start++) {
            yield* projected(partition)
            assert.deepStrictEqual([yield* bodiesOf("run"), yield* bodiesOf("later")], all)
            assert.isTrue((yield* setAsideIn(name)).every(({ source }) => source === "facts"))
            assert.isAbove((yield* setAsideIn(name)).length, 0)
            const store = yield* TraceStore
            assert.strictEqual(yield* store.executionOfSpan(TENANT, "step"), "run")
            assert.strictEqual(yield* store.executionOfSpan(TENANT, "other"), "later")
            for (const id of ["run", "later"]) assert.isTrue((yield* partition.verify(id))?.valid)
            if (start === 0) yield* partition.stopProjection
          }
          assert.deepStrictEqual(
            yield* partition.run(addNamedEvent(TENANT, "other", "tock", "tock")),
            ["created"]
          )
          assert.strictEqual((yield* partition.stored("later")).length, 4)
        })
      )
    )
  }

  it.live("because it has lost its last fact keeps the rest, and an erasure covers the copy", () =>
    withView((name) =>
      Effect.gen(function* () {
        const partition = new TracePartition(TENANT)
        const below = yield* shortenedTraces(name, partition)
        const hidden = details({ name: "geheim" })
        yield* partition.run(startSpan("later", "secret", { details: hidden }))
        yield* partition.startProjection
        yield* partition.shown
        yield* partition.stopProjection
        yield* partition.stopSequencer
        const [past, later] = [yield* bodiesOf("run"), yield* bodiesOf("later")]
        yield* loseLast(name, "traces", below)
        yield* projected(partition)
        assert.deepStrictEqual(yield* bodiesOf("run"), past)
        assert.deepStrictEqual(yield* bodiesOf("later"), later.slice(0, -1))
        const [row] = yield* setAsideIn(name)
        assert.deepStrictEqual([row?.reason, row?.body], ["beyond_end", later.at(-1)])
        const store = yield* TraceStore
        assert.isUndefined(yield* store.executionOfSpan(TENANT, "secret"))
        assert.include(row!.body, "geheim")
        yield* store.eraseDetails(TENANT, [
          { executionId: "later", beforeSequence: 100, erasedAt: "2026-11-21T12:00:00.000000Z" }
        ])
        const [erased] = yield* setAsideIn(name)
        assert.notInclude(erased!.body, "geheim")
        assert.include(erased!.body, '"erased_at"')
      })
    )
  )

  it.live("in facts of an execution that was erased sets them aside without their details", () =>
    withView((name) =>
      Effect.gen(function* () {
        const partition = new TracePartition(TENANT)
        yield* partition.startSequencer
        yield* partition.startProjection
        yield* partition.each(...run)
        yield* partition.shown
        const told = yield* bodiesOf("run")
        yield* partition.run(erase("run"))
        yield* partition.shown
        yield* partition.stopProjection
        const left = yield* bodiesOf("run")
        const secret = told.find((body) => body.includes("Planner"))!
        yield* tamper(
          `INSERT INTO ${name}.facts (kafka_partition, kafka_offset, body)
           VALUES (0, 7000, '${secret.replaceAll("'", "\\'")}')`
        )
        yield* projected(partition)
        assert.notInclude((yield* setAsideIn(name))[0]!.body, "Planner")
        assert.deepStrictEqual(yield* bodiesOf("run"), left)
      })
    )
  )
})

describe("views of checkpoints and receipts that the topic denies", () => {
  it.live("keep what is gone from the topic, and go on", () =>
    withView((name) =>
      Effect.gen(function* () {
        yield* sequence(5, events(5), wantCheckpoint())
        yield* sequence(9, events(4), wantCheckpoint())
        yield* project()
        const store = yield* EventStore
        const checkpoints = yield* CheckpointStore
        const made = yield* checkpoints.list(TENANT, { limit: 10 })
        assert.isAtLeast(made.length, 2)
        const receipts = (yield* readAll("receipts")).filter(
          ({ headers }) => headers["alk-kind"]?.toString() === "outcome"
        )
        const ids = receipts.map(({ headers }) => headers["alk-receipt"]!.toString())
        const stored = Effect.forEach(ids, (id) => store.receipt(TENANT, id))
        yield* eventually("every receipt is stored", stored, (found) =>
          found.every((one) => one !== undefined)
        )
        yield* deleteBelow(name, "receipts", receipts.at(-1)!.offset)
        yield* deleteBelow(name, "checkpoints", (yield* readAll("checkpoints")).at(-1)!.offset)
        yield* tamper(
          `INSERT INTO ${name}.receipts (kafka_partition, kafka_offset, tenant_id, receipt_id, body)
           VALUES (0, 77777, '${TENANT}', 'forged', '{}')`,
          `INSERT INTO ${name}.checkpoints VALUES (0, 88888, '${TENANT}', 99, '{}')`
        )
        yield* submit(events(3))
        yield* sequence(12)
        for (let start = 0; start < 2; start++) {
          assert.strictEqual((yield* project()).total, 12)
          assert.deepStrictEqual(
            (yield* checkpoints.list(TENANT, { limit: 10 })).slice(-made.length),
            made
          )
          assert.isTrue((yield* stored).every((one) => one !== undefined))
          assert.deepStrictEqual(
            (yield* setAsideIn(name)).map(({ offset, source }) => [source, offset]),
            [
              ["checkpoints", 88_888],
              ["receipts", 77_777]
            ]
          )
          assert.isUndefined(yield* store.receipt(TENANT, "forged"))
        }
      })
    )
  )
})
