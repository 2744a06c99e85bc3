/**
 * What an adversary with the database, or with Kafka too, tries on a real broker and store: shorten
 * a chain, hide an execution, lose checkpoints, lie by a copy. Verification of the tenant finds and
 * locates it, whatever `alk.state` and the store say.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { APPLIED_KEY, HEAD_PREFIX } from "../../src/domain/records/StateRecords.ts"
import { parseFact } from "../../src/domain/traces/FactText.ts"
import { CheckpointStore } from "../../src/ports/CheckpointStore.ts"
import { EventLog } from "../../src/ports/EventLog.ts"
import { Verifier, type VerifyRequest } from "../../src/verify/Verifier.ts"
import {
  addEvent,
  details,
  endExecution,
  erase,
  startExecution,
  startSpan
} from "../actors/support/Traces.ts"
import { eventually } from "../support/Eventually.ts"
import { append, decidedEnd, deleteBelow, leaveTransaction, readAll } from "../support/Log.ts"
import { tamper } from "../support/Store.ts"
import { factsInTopic, traceCommand } from "../support/TracePartition.ts"
import {
  events,
  layerVerification,
  project,
  projecting,
  sequencing,
  submit,
  TENANT,
  topicCheckpoints,
  topicEvents,
  wantCheckpoint,
  withView
} from "./support/Evidence.ts"

const EVENTS = 12

const execution = (id: string) =>
  traceCommand(TENANT, [
    startExecution(id, { details: details({ agent_name: "Planner" }) }),
    startSpan(id, `${id}-step`, { details: details({ name: "step" }) }),
    addEvent(`${id}-step`, `${id}-event`, { details: details({ payload: { q: 1 } }) }),
    endExecution(id)
  ])

/** Twelve events and three executions, one of them erased, all under signed checkpoints. */
const made = Effect.gen(function* () {
  yield* submit(events(EVENTS), execution("first"), execution("second"), execution("third"))
  yield* submit(traceCommand(TENANT, [erase("third")]), wantCheckpoint())
  yield* sequencing(
    eventually(
      "a checkpoint of each chain",
      topicCheckpoints,
      (all) =>
        all.some(({ chain, tree_size }) => chain === undefined && tree_size === EVENTS)
        && all.some(({ chain }) => chain === "traces")
    )
  )
  yield* project()
  return { events: yield* topicEvents, facts: yield* factsInTopic }
})

const verifyTenant = (more: Partial<VerifyRequest> = {}) =>
  Verifier.use((verifier) =>
    verifier.verifyTenant({ tenantId: TENANT, requireHead: true, ...more })
  ).pipe(Effect.provide(layerVerification))

const placesOf = (report?: {
  readonly breaks: ReadonlyArray<{ readonly reason: string; readonly sequence_number: number }>
}) => report?.breaks.map(({ reason, sequence_number }) => [sequence_number, reason] as const) ?? []

describe("verification of a tenant", () => {
  it.live("covers both chains, with a signed tree each", () =>
    withView(() =>
      Effect.gen(function* () {
        const { facts } = yield* made
        const report = yield* verifyTenant()
        assert.deepInclude(report, {
          valid: true,
          status: "valid",
          scheme: "alk-chain-v1",
          events_checked: EVENTS,
          assurance: "signed",
          breaks: []
        })
        const erased = facts.filter(
          ({ details_hash, execution_id }) => execution_id === "third" && details_hash !== undefined
        )
        assert.deepInclude(report.traces, {
          valid: true,
          scheme: "alk-trace-v1",
          events_checked: facts.length,
          last_sequence_number: facts.length,
          erased_events: erased.length,
          assurance: "signed",
          breaks: []
        })
        const one = yield* verifyTenant({ chain: "traces", fromSequence: 3, toSequence: 5 })
        assert.deepInclude(one, { valid: true, events_checked: 3, assurance: "signed" })
        assert.notProperty(one, "traces")
        const later = yield* verifyTenant({ from: "2099-01-01T00:00:00.000000Z" })
        assert.strictEqual(later.traces?.status, "empty")
      })
    )
  )

  it.live("finds what was cut off, whatever alk.state and the store agree on", () =>
    withView((database) =>
      Effect.gen(function* () {
        const { events: all } = yield* made
        const kept = 7
        const { created_at, hash, sequence_number } = all[kept - 1]!
        const head = JSON.stringify({ sequence_number, hash, created_at, tree: null })
        yield* append([
          { topic: "state", partition: 0, key: `${HEAD_PREFIX}${TENANT}`, value: head }
        ])
        yield* tamper(
          `ALTER TABLE ${database}.events DELETE WHERE sequence_number > ${kept}`,
          `ALTER TABLE ${database}.checkpoints DELETE WHERE tree_size > ${kept}`
        )
        const report = yield* verifyTenant()
        assert.isFalse(report.valid)
        assert.strictEqual(report.head?.sequence_number, EVENTS)
        assert.deepInclude(placesOf(report), [kept + 1, "tail_missing"])
        assert.deepStrictEqual(report.assurance, "self_attested")
      })
    )
  )

  it.live("takes what is behind another program's open transaction for late, not for lost", () => {
    const lines: Array<string> = []
    const logger = Logger.make(({ logLevel, message }) => {
      if (logLevel === "Error") lines.push(JSON.stringify(message))
    })
    const said = (text: string) => lines.filter((line) => line.includes(text))
    const test = withView((prefix) =>
      Effect.gen(function* () {
        yield* made
        const end = yield* decidedEnd("events")
        yield* leaveTransaction(prefix, "events", ["open"], "open")
        yield* submit(events(3))
        yield* sequencing(
          eventually("alk.state names what is behind it", readAll("state"), (records) => {
            const applied = records.findLast(({ key }) => String(key) === APPLIED_KEY)
            return JSON.parse(String(applied!.value)).events_next > end
          })
        )
        const late = yield* Effect.flip(verifyTenant())
        assert.strictEqual(late._tag, "LogUnavailable")
        assert.include(String(late.cause), `alk.events can't be read beyond ${end} yet`)
        assert.isEmpty(said("says more of a chain"))
        yield* Effect.scoped(
          Effect.andThen(
            projecting,
            eventually(
              "the cause is said",
              Effect.sync(() => said(`stands at ${end}`).length),
              Boolean
            )
          )
        )
        // The broker ends it.
        yield* project()
        const report = yield* verifyTenant()
        assert.deepInclude(report, { valid: true, events_checked: EVENTS + 3, breaks: [] })
        assert.lengthOf(said(`alk.events/0 stands at ${end}`), 1)
      })
    )
    return Effect.provide(test, Logger.layer([logger]))
  })

  it.live("finds an execution that was deleted as a whole, fact by fact", () =>
    withView((database) =>
      Effect.gen(function* () {
        const { facts } = yield* made
        yield* tamper(
          `ALTER TABLE ${database}.facts DELETE WHERE execution_id = 'second'`,
          `ALTER TABLE ${database}.span_ids DELETE WHERE execution_id = 'second'`
        )
        const { traces, valid } = yield* verifyTenant()
        assert.deepStrictEqual([valid, traces?.valid], [false, false])
        const gone = facts.filter(({ execution_id }) => execution_id === "second")
        assert.deepInclude(placesOf(traces), [gone[0]!.chain_sequence, "sequence_gap"])
        const said = traces!.breaks.find(({ reason }) => reason === "sequence_gap")!
        const [first, last] = [gone[0]!, gone.at(-1)!].map((fact) => fact.chain_sequence)
        assert.strictEqual(said.expected, `sequences ${first} to ${last}`)
      })
    )
  )

  const lies: ReadonlyArray<
    readonly [what: string, sql: (database: string) => ReadonlyArray<string>]
  > = [
    [
      "a fact's execution",
      (database) => [
        `ALTER TABLE ${database}.facts UPDATE status = 'FAILED'`
          + " WHERE execution_id = 'first' AND type = 'execution.ended'"
      ]
    ],
    [
      "a second version of a fact",
      (database) => [
        `INSERT INTO ${database}.facts (kafka_partition, kafka_offset, body, version, status)`
          + ` SELECT kafka_partition, kafka_offset, body, 1, 'FAILED' FROM ${database}.facts`
          + " WHERE execution_id = 'first' AND type = 'execution.ended'"
      ]
    ],
    [
      "a span that is found no more",
      (database) => [`ALTER TABLE ${database}.span_ids DELETE WHERE span_id = 'first-step'`]
    ],
    [
      "a span that leads elsewhere",
      (database) => [
        `INSERT INTO ${database}.span_ids (kafka_partition, kafka_offset, tenant_id, span_id,`
          + ` execution_id, chain_sequence) VALUES (0, 0, '${TENANT}', 'stray', 'first', 1)`
      ]
    ],
    [
      "a fact below the first",
      (database) => [
        `INSERT INTO ${database}.facts (kafka_partition, kafka_offset, body, chain_sequence)`
          + ` SELECT kafka_partition, kafka_offset, body, 0 FROM ${database}.facts`
          + " WHERE chain_sequence = 2"
      ]
    ],
    [
      "a copy of a fact",
      (database) => [
        `SYSTEM STOP MERGES ${database}.facts`,
        `INSERT INTO ${database}.facts (kafka_partition, kafka_offset, body)`
          + ` SELECT kafka_partition, kafka_offset, body FROM ${database}.facts`
          + " WHERE chain_sequence = 2"
      ]
    ]
  ]
  for (const [what, sql] of lies) {
    it.live(`finds ${what}`, () =>
      withView((database) =>
        Effect.gen(function* () {
          yield* made
          assert.isTrue((yield* verifyTenant()).valid)
          yield* tamper(...sql(database))
          const { traces, valid } = yield* verifyTenant()
          assert.deepStrictEqual([valid, traces?.valid], [false, false])
          assert.isNotEmpty(placesOf(traces))
        })
      )
    )
  }

  it.live("says that a topic which is kept for ever has lost its start", () =>
    withView((database) =>
      Effect.gen(function* () {
        yield* made
        yield* deleteBelow(database, "events", 4)
        const report = yield* verifyTenant()
        assert.isTrue(report.valid)
        assert.match(report.notices?.join() ?? "", /^alk\.events is kept for ever.* offset 4/)
        assert.isUndefined(report.traces?.notices)
      })
    )
  )

  it.live("goes by the checkpoints of the topic; the store gets those back that it lost", () =>
    withView((database) =>
      Effect.gen(function* () {
        yield* made
        const store = yield* CheckpointStore
        const before = yield* store.list(TENANT, { limit: 100 })
        assert.isNotEmpty(before)
        // The last row stays: by it the projection knows where to go on.
        yield* tamper(
          `ALTER TABLE ${database}.checkpoints DELETE WHERE kafka_offset <`
            + ` (SELECT max(kafka_offset) FROM ${database}.checkpoints)`
        )
        assert.isBelow((yield* store.list(TENANT, { limit: 100 })).length, before.length)
        const junk = JSON.stringify({ tenant_id: TENANT, tree_size: 999, note: "no note" })
        yield* append([{ topic: "checkpoints", partition: 0, key: TENANT, value: junk }])
        const report = yield* verifyTenant()
        assert.deepStrictEqual(
          [report.valid, report.assurance, report.traces?.assurance],
          [true, "signed", "signed"]
        )
        yield* projecting
        const notes = Effect.map(store.list(TENANT, { limit: 100 }), (records) =>
          // The junk is a row as well, and no checkpoint.
          records.filter(({ note }) => note !== "")
        )
        const isWhole = ({ length }: typeof before) => length === before.length
        assert.deepStrictEqual(
          yield* eventually("every checkpoint is stored again", notes, isWhole),
          before
        )
      })
    )
  )

  it.live("reports records of both topics that do not link, and shows what follows them", () =>
    withView(() =>
      Effect.gen(function* () {
        const { events: all, facts } = yield* made
        const copyOf = (topic: "events" | "traces", index: number) =>
          Effect.map(readAll(topic), (records) => ({
            topic,
            partition: 0,
            key: TENANT,
            value: records[index]!.value!
          }))
        const forged = { ...all[3]!, sequence_number: 0 }
        yield* append([
          yield* copyOf("events", 3),
          { topic: "events", partition: 0, key: TENANT, value: JSON.stringify(forged) },
          { topic: "events", partition: 0, key: TENANT, value: "junk" },
          { topic: "events", partition: 0, key: TENANT, value: null },
          yield* copyOf("traces", 3),
          { topic: "traces", partition: 0, key: TENANT, value: "junk" }
        ])
        yield* project()
        const report = yield* verifyTenant()
        assert.deepStrictEqual(
          [report.valid, report.head?.sequence_number, report.traces?.head?.sequence_number],
          [false, all.length, facts.length]
        )
        assert.deepStrictEqual(
          placesOf(report).map(([sequence]) => sequence),
          [0, 0, 0, 4]
        )
        assert.deepStrictEqual(
          placesOf(report.traces).map(([sequence]) => sequence),
          [0, 4]
        )
        const log = yield* EventLog
        assert.isAbove((yield* log.bounds("traces", 0)).end, facts.length)
        assert.isDefined(parseFact((yield* readAll("traces"))[0]!.value!.toString()))
      })
    )
  )
})
