/**
 * What is selected from a part of a chain comes from rows that are checked as they are read, and an
 * event may be without its details only by an erasure that is in the chain, wherever that is.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, Stream } from "effect"
import { eraseFact, parseFact } from "../../src/domain/traces/FactText.ts"
import type { TraceFact } from "../../src/domain/traces/TraceFact.ts"
import { EventStore } from "../../src/ports/EventStore.ts"
import { TraceStore } from "../../src/ports/TraceStore.ts"
import { CheckedEvents, layerCheckedEvents } from "../../src/verify/CheckedEvents.ts"
import { SignedCheckpoints } from "../../src/verify/SignedCheckpoints.ts"
import { layerVerifier } from "../../src/verify/Verifier.ts"
import { FactChain } from "../adapters/clickhouse/support/StoredFacts.ts"
import { matches } from "../support/Matches.ts"
import { Chain, erasedForm } from "./support/Chains.ts"
import { CheckpointWorld } from "./support/CheckpointWorld.ts"
import { LogWorld, layerLog } from "./support/LogWorld.ts"
import { found, verify } from "./support/StoredChains.ts"

const TENANT = "acme"
const EVENTS = 30
const RANGE = { first: 3, last: 12 }
const [VICTIM, ERASED] = [5, 7]

const made = () => new Chain(TENANT).extend(EVENTS, (index) => ({ metadata: { index } }))

const chain = made()
const erased = chain.erase(ERASED)
chain.extend(5)

/** An erasure of an event that holds its own hashes, in the place of another one. */
const forgery = (place: number): { readonly body: string; readonly erased: string } => {
  const other = new Chain(TENANT)
  other.bodies.push(...chain.bodies.slice(0, place - 1))
  const { created_at, hash } = JSON.parse(other.bodies.at(-1)!)
  other.head = { sequence_number: place - 1, hash, created_at }
  const stripped = other.erase(VICTIM)
  return { body: other.bodies.at(-1)!, erased: stripped }
}

/** The chain from a sequence on with other events, freshly computed. */
const rewritten = (from: number): ReadonlyArray<string> => {
  const other = new Chain(TENANT)
  const before = JSON.parse(chain.bodies[from - 2]!)
  other.head = { sequence_number: from - 1, hash: before.hash, created_at: before.created_at }
  return other.extend(chain.bodies.length - from + 1, () => ({ outcome: "failure" })).bodies
}

type Rows = ReadonlyArray<{ readonly sequenceNumber: number; readonly body: string }>

const rowsOf = (bodies: ReadonlyArray<string>, first = 1): Rows =>
  bodies.map((body, at) => ({ sequenceNumber: first + at, body }))

const placed = (body: string): Rows => rowsOf([body], JSON.parse(body).sequence_number)

/** The intact rows with these in place of those of their sequences. */
const withRows = (...others: Rows): Rows => {
  const replaced = new Set(others.map(({ sequenceNumber }) => sequenceNumber))
  const kept = rowsOf(chain.bodies.with(ERASED - 1, erased))
  return [...kept.filter(({ sequenceNumber }) => !replaced.has(sequenceNumber)), ...others]
}

const layerOf = (rows: Rows, checkpoints: CheckpointWorld) => {
  const world = new LogWorld()
  world.heads.set(TENANT, chain.head!)
  const sorted = rows.toSorted((left, right) => left.sequenceNumber - right.sequenceNumber)
  const store = Layer.mock(EventStore, {
    rows: (_, first, last) =>
      Stream.make(
        sorted
          .filter(({ sequenceNumber }) => sequenceNumber >= first && sequenceNumber <= last)
          .map((row) => ({ ...row, version: 0, wrongColumns: [] }))
      ),
    scan: ({ filter }) =>
      Stream.make(
        sorted.map(({ body }) => body).filter((body) => matches(filter, JSON.parse(body)))
      ),
    conflicts: () => Effect.succeed([]),
    copies: () => Effect.succeed([]),
    extent: () => Effect.succeed({ rows: rows.length, lowest: 1, highest: chain.bodies.length })
  })
  return Layer.mergeAll(layerCheckedEvents, layerVerifier).pipe(
    Layer.provideMerge(
      Layer.mergeAll(
        store,
        Layer.mock(TraceStore, {}),
        layerLog(world),
        Layer.succeed(SignedCheckpoints, checkpoints.service)
      )
    )
  )
}

/** No checkpoint, one that does not reach an erasure, and one that does. */
const signings: ReadonlyArray<readonly [name: string, make: () => CheckpointWorld]> = [
  ["without a checkpoint", () => new CheckpointWorld()],
  ["with one of the beginning", () => new CheckpointWorld().sign(chain, 20)],
  ["with one of all of it", () => new CheckpointWorld().sign(chain, chain.bodies.length)]
]

const read = CheckedEvents.use((checked) =>
  Stream.runCollect(checked.of(TENANT, RANGE, false)).pipe(
    Effect.map((chunks) => chunks.flat().map(({ event }) => event.sequence_number))
  )
)

const stripped = forgery(EVENTS)

const cases: ReadonlyArray<readonly [what: string, rows: Rows]> = [
  ["a value", placed(chain.bodies[VICTIM - 1]!.replace('"success"', '"failure"'))],
  ["all that follows, with its hashes", rowsOf(rewritten(VICTIM), VICTIM)],
  ["the last event with its hashes", rowsOf(rewritten(RANGE.last).slice(0, 1), RANGE.last)],
  ["bytes that are no event", [{ sequenceNumber: VICTIM, body: chain.bodies[0]! }]],
  ["details", placed(erasedForm(chain.bodies[VICTIM - 1]!, chain.head!.created_at))],
  [
    "details, with an erasure that nobody has chained",
    [stripped.erased, chain.bodies[EVENTS - 1]!, stripped.body].flatMap(placed)
  ]
]

for (const [signing, checkpoints] of signings) {
  describe(`events that are checked as they are read, ${signing}`, () => {
    it.effect("are all of the range, an erased one too", () =>
      Effect.gen(function* () {
        const expected = Array.from({ length: 10 }, (_, at) => RANGE.first + at)
        assert.deepStrictEqual(yield* read, expected)
      }).pipe(Effect.provide(layerOf(withRows(), checkpoints())))
    )

    for (const [what, rows] of cases) {
      it.effect(`are none once the store has changed ${what}`, () =>
        Effect.gen(function* () {
          const exit = yield* Effect.exit(read)
          assert.isTrue(Exit.isFailure(exit))
        }).pipe(Effect.provide(layerOf(withRows(...rows), checkpoints())))
      )
    }

    for (const sequence of [VICTIM, RANGE.last]) {
      it.effect(`are none once the store has lost event ${sequence}`, () => {
        const rows = withRows().filter(({ sequenceNumber }) => sequenceNumber !== sequence)
        return Effect.map(Effect.exit(read), (exit) => assert.isTrue(Exit.isFailure(exit))).pipe(
          Effect.provide(layerOf(rows, checkpoints()))
        )
      })
    }
  })

  describe(`the verification of a range, ${signing}`, () => {
    const request = { tenantId: TENANT, fromSequence: RANGE.first, toSequence: RANGE.last }

    it.effect("believes an erasure behind it that is in the chain", () =>
      Effect.gen(function* () {
        const report = yield* verify(request)
        assert.deepStrictEqual([report.status, report.erased_events], ["valid", 1])
      }).pipe(Effect.provide(layerOf(withRows(), checkpoints())))
    )

    it.effect("does not believe one that only holds its own hashes", () =>
      Effect.gen(function* () {
        const report = yield* verify(request)
        assert.deepStrictEqual(found(report), [[VICTIM, "content_mismatch"]])
      }).pipe(Effect.provide(layerOf(withRows(...cases.at(-1)![1]), checkpoints())))
    )

    it.effect("nor one within it whose row is elsewhere", () => {
      const { body, erased: own } = forgery(RANGE.last)
      const rows = withRows(...placed(own))
      return Effect.gen(function* () {
        assert.deepStrictEqual(found(yield* verify(request)), [[VICTIM, "content_mismatch"]])
      }).pipe(Effect.provide(layerOf([...rows, { sequenceNumber: 20, body }], checkpoints())))
    })
  })
}

const layerOfFacts = (
  rows: ReadonlyArray<string>,
  head: TraceFact,
  checkpoints: SignedCheckpoints["Service"]
) => {
  const world = new LogWorld()
  const { chain_sequence, created_at, hash } = head
  world.heads.set(TENANT, { sequence_number: chain_sequence, hash, created_at })
  const facts = rows.map((body) => ({ fact: parseFact(body)!, body }))
  const store = Layer.mock(TraceStore, {
    chainRows: (_, first, last) =>
      Stream.make(
        facts
          .map(({ body, fact }) => ({ sequenceNumber: fact.chain_sequence, body }))
          .filter(({ sequenceNumber }) => sequenceNumber >= first && sequenceNumber <= last)
          .map((row) => ({ ...row, version: 0, wrongColumns: [] }))
      ),
    facts: (_, executionId) =>
      Effect.succeed(
        facts.filter(({ fact }) => fact.execution_id === executionId).map(({ body }) => body)
      ),
    conflicts: () => Effect.succeed([]),
    copies: () => Effect.succeed([]),
    misnumbered: () => Effect.succeed([]),
    unindexed: () => Effect.succeed([]),
    strayIndex: () => Effect.succeed([]),
    extent: () => Effect.succeed({ rows: rows.length, lowest: 1, highest: chain_sequence })
  })
  return layerVerifier.pipe(
    Layer.provideMerge(
      Layer.mergeAll(
        store,
        Layer.mock(EventStore, {}),
        layerLog(world),
        Layer.succeed(SignedCheckpoints, checkpoints)
      )
    )
  )
}

describe("the verification of a range of facts", () => {
  const made = new FactChain(TENANT)
  made.start("one")
  made.end("one")
  made.start("two")
  const erasure = made.erase("one")
  made.end("two")
  const bodies = made.all.map(({ body }) => body)
  const head = parseFact(bodies.at(-1)!)!
  const { created_at } = parseFact(erasure.body)!
  const signed = new CheckpointWorld()
  signed.sign({ bodies } as unknown as Chain, 4)
  const request = { tenantId: TENANT, chain: "traces" as const, fromSequence: 1, toSequence: 2 }

  for (const [name, checkpoints] of [
    ["without a checkpoint", new CheckpointWorld()],
    ["with one of it", signed]
  ] as const) {
    it.effect(`believes an erasure behind it that is in the chain, ${name}`, () => {
      const rows = bodies.with(0, eraseFact(parseFact(bodies[0]!)!, created_at))
      return Effect.gen(function* () {
        const report = yield* verify(request)
        assert.deepStrictEqual([report.status, report.erased_events], ["valid", 1])
      }).pipe(Effect.provide(layerOfFacts(rows, head, checkpoints.service)))
    })

    it.effect(`does not believe one that only holds its own hashes, ${name}`, () => {
      const other = new FactChain(TENANT)
      for (const id of ["one", "two", "three"]) other.start(id)
      const { body: forged } = other.erase("one")
      const stripped = eraseFact(parseFact(bodies[0]!)!, parseFact(forged)!.created_at)
      const rows = bodies.with(0, stripped).with(3, forged)
      return Effect.gen(function* () {
        assert.deepStrictEqual(found(yield* verify(request)), [[1, "content_mismatch"]])
      }).pipe(Effect.provide(layerOfFacts(rows, head, checkpoints.service)))
    })
  }
})
