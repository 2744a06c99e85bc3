/**
 * Verifying one execution: intact traces are valid whatever has been erased, and each way of changing
 * what is stored is found and located, the loss of the last fact too.
 */

import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { ChainEnds } from "../../src/actors/chainEnds/ChainEnds.ts"
import { ProjectionProgress } from "../../src/actors/log/ProjectionProgress.ts"
import { advance } from "../../src/actors/sequencer/Changelog.ts"
import { emptyState } from "../../src/actors/sequencer/SequencerState.ts"
import { step } from "../../src/actors/sequencer/SequencerStep.ts"
import { signerOf } from "../../src/domain/chain/Checkpoint.ts"
import { EMPTY_BATCH } from "../../src/domain/records/EventBatch.ts"
import { noProgress } from "../../src/domain/records/Progress.ts"
import { finish } from "../../src/domain/Slices.ts"
import { eraseFact, parseFact, recomputeFact, storeFact } from "../../src/domain/traces/FactText.ts"
import type { TraceFact } from "../../src/domain/traces/TraceFact.ts"
import { EventLog, OffsetOutOfRange } from "../../src/ports/EventLog.ts"
import type { StoredRow } from "../../src/ports/EventStore.ts"
import { TraceStore } from "../../src/ports/TraceStore.ts"
import { prepareTraces } from "../../src/services/ingest/PrepareTrace.ts"
import { layerTraceVerifier, TraceVerifier } from "../../src/verify/TraceVerifier.ts"

const TENANT = "acme"
const RUN = "run"
const signer = { serviceName: "alk", signer: signerOf("alk", Buffer.alloc(32, 1)) }
const limits = { metadataBytesMax: 32_768, payloadBytesMax: 65_536, eventBytesMax: 65_536 }

/** The bodies that the real sequencer makes of operations. */
const factsOf = (operations: ReadonlyArray<object>): ReadonlyArray<string> => {
  const state = emptyState(0, 1, { dedup: 100, idempotency: 100 })
  const items = finish(
    prepareTraces(
      operations.map((value) => ({ value: value as any })),
      {
        target: undefined,
        tenantId: TENANT,
        keyId: "key",
        secret: "s",
        limits,
        idempotency: undefined
      }
    )
  )
  assert.deepStrictEqual(items.errors, [])
  // One command for each, so that they take turns as they were given.
  return items.traces.flatMap((operation) => {
    const receivedAt = "2026-11-21T10:00:00.000000Z"
    const command = {
      kind: "trace" as const,
      tenantId: TENANT,
      receiptId: "r",
      attempt: "a",
      receivedAt,
      events: EMPTY_BATCH,
      errors: [],
      warnings: [],
      traces: [operation]
    }
    const offset = state.applied + 1
    const changes = step(state, [{ offset, value: null, command }], signer, receivedAt)
    advance(state, changes, {
      eventsNext: 0,
      tracesNext: state.tracesNext + changes.traces.facts.length,
      strays: []
    })
    assert.deepStrictEqual(changes.receipts[0]?.receipt.errors, [])
    return changes.traces.facts.map(({ body }) => body)
  })
}

const bodies = factsOf([
  { op: "execution.start", agent_id: "a", agent_name: "A", id: RUN },
  { op: "execution.start", agent_id: "a", id: "other" },
  { op: "span.start", execution_id: RUN, id: "s", span_type: "A", name: "n" },
  { op: "span.event", span_id: "s", event_type: "tick", id: "e1", payload: { n: 1 } },
  { op: "span.start", execution_id: "other", id: "o", span_type: "A", name: "n" },
  { op: "span.event", span_id: "s", event_type: "tock", id: "e2", payload: { n: 2 } },
  { op: "span.end", span_id: "s", status: "FAILED", error: "e" },
  { op: "execution.end", execution_id: "other" },
  { op: "execution.end", execution_id: RUN }
])

interface Stored {
  readonly sequence: number
  readonly executionId: string
  readonly body: string
  readonly version?: number
  readonly wrongColumns?: ReadonlyArray<string>
}

const intact: ReadonlyArray<Stored> = bodies.map((body, at) => ({
  sequence: at + 1,
  executionId: parseFact(body)!.execution_id,
  body
}))
const mine = intact.filter(({ executionId }) => executionId === RUN)
const last = mine.at(-1)!.sequence
const event = intact.findIndex(({ body }) => parseFact(body)!.type === "span.event")

interface Place {
  readonly stored: ReadonlyArray<Stored>
  /** What the log holds; the chain's end is its end. */
  readonly log?: ReadonlyArray<string>
  /** First offset that the log has kept. */
  readonly logStart?: number
}

const layer = ({ log = bodies, logStart = 0, stored }: Place) => {
  const end = parseFact(log.at(-1)!)!
  const head = { sequence_number: end.chain_sequence, hash: end.hash, created_at: end.created_at }
  return layerTraceVerifier.pipe(
    Layer.provide([
      Layer.mock(EventLog, {
        partitions: 1,
        bootstrap: "nowhere",
        partitionOf: () => 0,
        bounds: () => Effect.succeed({ start: logStart, end: log.length }),
        ends: () => Effect.succeed([log.length]),
        reader: Effect.succeed({
          fetch: ([position]: ReadonlyArray<any>) =>
            position.offset < logStart
              ? Effect.fail(new OffsetOutOfRange(position))
              : Effect.succeed([
                  {
                    ...position,
                    records: log.slice(position.offset, position.offset + 2).map((body, at) => ({
                      offset: position.offset + at,
                      timestamp: 0,
                      key: Buffer.from(TENANT),
                      value: Buffer.from(body),
                      headers: {}
                    })),
                    nextOffset: Math.min(log.length, position.offset + 2),
                    writtenEnd: log.length,
                    stableEnd: log.length,
                    logStart
                  }
                ])
        })
      }),
      Layer.mock(ChainEnds, { head: () => Effect.succeed(head) }),
      Layer.succeed(ProjectionProgress, {
        of: () => noProgress(0),
        partition: noProgress,
        awaitOffset: () => Effect.void
      }),
      Layer.mock(TraceStore, {
        rows: (_tenantId, executionId) =>
          Stream.fromIterable(stored.filter((row) => row.executionId === executionId)).pipe(
            Stream.map(
              ({ body, sequence, version = 0, wrongColumns = [] }): StoredRow => ({
                sequenceNumber: sequence,
                version,
                body,
                wrongColumns
              })
            ),
            Stream.grouped(3)
          ),
        links: (_tenantId, sequences) =>
          Effect.succeed(
            stored
              .filter(({ sequence }) => sequences.includes(sequence))
              .flatMap(({ body, sequence }) => {
                const fact = parseFact(body)
                return fact === undefined
                  ? []
                  : [
                      {
                        chainSequence: sequence,
                        prevHash: fact.prev_hash,
                        hash: fact.hash,
                        executionId: fact.execution_id,
                        offset: sequence - 1
                      }
                    ]
              })
          ),
        missing: (_tenantId, first, to, limit) =>
          Effect.sync(() => {
            const held = new Set(stored.map(({ sequence }) => sequence))
            const all = Array.from({ length: Math.max(0, to - first + 1) }, (_, n) => first + n)
            return all.filter((sequence) => !held.has(sequence)).slice(0, limit)
          })
      })
    ])
  )
}

const verify = (place: Place, executionId = RUN) =>
  Effect.gen(function* () {
    const verifier = yield* TraceVerifier
    return yield* verifier.verify(TENANT, executionId)
  }).pipe(Effect.provide(layer(place)))

const changed = (at: number, change: (body: string) => string): ReadonlyArray<Stored> =>
  intact.map((row, place) => (place === at ? { ...row, body: change(row.body) } : row))

/** Every hash of the fact made to fit what it says now. */
const rehashed = (body: string, change: (fact: TraceFact) => TraceFact): string => {
  const fact = change(parseFact(body)!)
  const { details, details_salt: salt = "" } = fact
  const text = details === undefined ? undefined : JSON.stringify(details)
  const hash = recomputeFact(JSON.stringify(fact))?.detailsHash ?? ""
  return storeFact(fact, text === undefined ? undefined : { text, salt, hash }, {
    tenantId: fact.tenant_id,
    chainSequence: fact.chain_sequence,
    createdAt: fact.created_at,
    prevHash: fact.prev_hash
  }).body
}

describe("an intact execution", () => {
  it.effect("is valid, and its facts are counted", () =>
    Effect.gen(function* () {
      const report = yield* verify({ stored: intact })
      assert.deepInclude(report, {
        valid: true,
        status: "valid",
        scheme: "alk-trace-v1",
        execution_id: RUN,
        facts_checked: mine.length,
        events_checked: mine.length,
        first_sequence_number: 1,
        last_sequence_number: last,
        erased_events: 0,
        breaks: [],
        breaks_total: 0
      })
      assert.strictEqual(report?.head?.sequence_number, bodies.length)
      assert.strictEqual((yield* verify({ stored: intact }, "other"))?.valid, true)
      assert.isUndefined(yield* verify({ stored: intact }, "nobody"))
    })
  )

  it.effect("stays valid when it is erased, and does not if nothing says so", () =>
    Effect.gen(function* () {
      const log = factsOf([
        { op: "execution.start", agent_id: "a", agent_name: "A", id: RUN },
        { op: "span.start", execution_id: RUN, id: "s", span_type: "A", name: "n" },
        { op: "execution.start", agent_id: "b", id: "other" }
      ])
      // The eraser is no operation of a batch: its fact follows by hand.
      const before = parseFact(log.at(-1)!)!
      const erased = storeFact(
        {
          type: "execution.erased",
          execution_id: RUN,
          fact_number: 4,
          reason: "r",
          erased_by: "k"
        },
        undefined,
        {
          tenantId: TENANT,
          chainSequence: log.length + 1,
          createdAt: "2026-11-21T10:00:05.000000Z",
          prevHash: before.hash
        }
      ).body
      const rows = [...log, erased].map((body, at): Stored => {
        const fact = parseFact(body)!
        const isGone = fact.execution_id === RUN && fact.details !== undefined
        return {
          sequence: at + 1,
          executionId: fact.execution_id,
          body: isGone ? eraseFact(fact, "2026-11-21T10:00:05.000000Z") : body,
          version: isGone ? 1 : 0
        }
      })
      const report = yield* verify({ stored: rows, log: [...log, erased] })
      assert.deepInclude(
        report,
        { valid: true, facts_checked: 4, erased_events: 3 },
        JSON.stringify(report)
      )
      // Both rows for a moment, while the store merges them.
      const both = rows.flatMap((row, at) =>
        at === 0 ? [{ ...row, body: log[0]!, version: 0 }, row] : [row]
      )
      assert.strictEqual((yield* verify({ stored: both, log: [...log, erased] }))?.valid, true)
      const silent = rows.filter(({ sequence }) => sequence <= log.length)
      const broken = yield* verify({ stored: silent, log })
      assert.deepStrictEqual(
        broken?.breaks.map(({ reason, sequence_number }) => [reason, sequence_number]),
        [["content_mismatch", 1]]
      )
      const wrongTime = rows.map((row, at) =>
        at === 0
          ? { ...row, body: eraseFact(parseFact(log[0]!)!, "2026-11-21T10:00:06.000000Z") }
          : row
      )
      assert.strictEqual(
        (yield* verify({ stored: wrongTime, log: [...log, erased] }))?.valid,
        false
      )
    })
  )
})

describe("what was changed", () => {
  const cases: ReadonlyArray<{
    readonly what: string
    readonly place: Place
    readonly breaks: ReadonlyArray<readonly [reason: string, sequence: number]>
  }> = [
    {
      what: "a detail",
      place: { stored: changed(event, (body) => body.replace('"n":1', '"n":7')) },
      breaks: [["content_mismatch", event + 1]]
    },
    {
      what: "a member of the core",
      place: { stored: changed(event, (body) => body.replace('"tick"', '"tack"')) },
      breaks: [["content_mismatch", event + 1]]
    },
    {
      what: "a member that no hash covers",
      place: { stored: changed(event, (body) => `${body.slice(0, -1)},"more":1}`) },
      breaks: [["content_mismatch", event + 1]]
    },
    {
      what: "the time of its chaining",
      place: {
        stored: changed(event, (body) => body.replace('"created_at":"2026', '"created_at":"2025'))
      },
      breaks: [["hash_mismatch", event + 1]]
    },
    {
      what: "a fact with all its hashes",
      place: {
        stored: changed(event, (body) =>
          rehashed(body, (fact) => ({ ...fact, event_type: "tack" }) as TraceFact)
        )
      },
      breaks: [["hash_mismatch", event + 1]]
    },
    {
      what: "the last fact of the tenant with all its hashes",
      place: {
        stored: changed(intact.length - 1, (body) =>
          rehashed(body, (fact) => ({ ...fact, status: "FAILED" }) as TraceFact)
        )
      },
      breaks: [["hash_mismatch", intact.length]]
    },
    {
      what: "bytes that are no fact any more",
      place: { stored: changed(event, () => "{}") },
      // The next fact of the execution shows that one is missing between.
      breaks: [
        ["content_mismatch", event + 1],
        ["sequence_gap", event + 3]
      ]
    },
    {
      what: "a column",
      place: {
        stored: intact.map((row, at) =>
          at === event ? { ...row, wrongColumns: ["span_id"] } : row
        )
      },
      breaks: [["content_mismatch", event + 1]]
    },
    {
      what: "the tenant of the row",
      place: {
        stored: changed(event, (body) =>
          body.replace(`"tenant_id":"${TENANT}"`, '"tenant_id":"globex"')
        )
      },
      breaks: [
        ["content_mismatch", event + 1],
        ["hash_mismatch", event + 1]
      ]
    },
    {
      what: "a fact that stands there twice",
      place: {
        stored: intact.flatMap((row, at) =>
          at === event
            ? [
                row,
                {
                  ...row,
                  body: rehashed(row.body, (fact) => ({ ...fact, event_type: "x" }) as TraceFact)
                }
              ]
            : [row]
        )
      },
      breaks: [["duplicate_sequence", event + 1]]
    },
    {
      what: "a fact of the execution that is gone",
      place: { stored: intact.filter((_, at) => at !== event) },
      breaks: [["sequence_gap", event + 3]]
    },
    {
      what: "the last fact of the execution that is gone",
      place: { stored: intact.filter(({ sequence }) => sequence !== last) },
      breaks: [["tail_missing", last]]
    },
    {
      what: "the last two facts that are gone",
      place: {
        stored: intact.filter(
          ({ sequence }) => sequence !== last && sequence !== mine.at(-2)!.sequence
        )
      },
      breaks: [
        ["tail_missing", mine.at(-2)!.sequence],
        ["tail_missing", last]
      ]
    },
    {
      what: "a fact that the log has never had",
      place: { stored: intact, log: bodies.slice(0, -1) },
      breaks: [["hash_mismatch", bodies.length]]
    }
  ]
  for (const { breaks, place, what } of cases) {
    it.effect(`is found: ${what}`, () =>
      Effect.gen(function* () {
        const report = yield* verify(place)
        assert.deepInclude(report, { valid: false, status: "broken" }, JSON.stringify(report))
        assert.deepStrictEqual(
          report?.breaks.map(({ reason, sequence_number }) => [reason, sequence_number]),
          breaks.map((one) => [...one]),
          JSON.stringify(report?.breaks)
        )
        assert.strictEqual(report?.breaks_total, breaks.length)
      })
    )
  }

  it.effect("of another execution only is not laid at this one's door", () =>
    Effect.gen(function* () {
      const other = intact.findLast(({ executionId }) => executionId === "other")!
      const report = yield* verify({
        stored: intact.filter(({ sequence }) => sequence !== other.sequence)
      })
      // Its neighbours are this execution's facts: their links can't be shown to hold.
      assert.deepStrictEqual(
        report?.breaks.map(({ reason, sequence_number }) => [reason, sequence_number]),
        [["sequence_gap", other.sequence]]
      )
      const next = (before: TraceFact, id: string): string =>
        storeFact(
          {
            type: "execution.erased",
            execution_id: id,
            fact_number: 9,
            reason: "r",
            erased_by: "k"
          },
          undefined,
          {
            tenantId: TENANT,
            chainSequence: before.chain_sequence + 1,
            createdAt: before.created_at,
            prevHash: before.hash
          }
        ).body
      const body = next(parseFact(bodies.at(-1)!)!, "other")
      const lostBody = next(parseFact(body)!, "other")
      const kept: Stored = { sequence: bodies.length + 1, executionId: "other", body }
      const lost = yield* verify({ stored: [...intact, kept], log: [...bodies, body, lostBody] })
      assert.deepInclude(lost, { valid: true, status: "valid" }, JSON.stringify(lost))
    })
  )

  it.effect("can't be told where the log has let go of it: incomplete", () =>
    Effect.gen(function* () {
      const report = yield* verify({
        stored: intact.filter(({ sequence }) => sequence !== last),
        logStart: last
      })
      assert.deepInclude(report, { valid: false, status: "incomplete", breaks_total: 0 })
    })
  )
})
