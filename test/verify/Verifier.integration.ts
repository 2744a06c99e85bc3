/**
 * What the verifier makes of a store that fails, lies or takes too long, over chains in memory.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Logger, Stream } from "effect"
import { TestClock } from "effect/testing"
import type { ChainEnds } from "../../src/actors/chainEnds/ChainEnds.ts"
import type { Heads } from "../../src/actors/follower/Heads.ts"
import { ProjectionProgress } from "../../src/actors/log/ProjectionProgress.ts"
import { noProgress } from "../../src/domain/records/Progress.ts"
import {
  BLOCK_EVENTS,
  blockOf,
  ChainRecompute,
  type RecomputedBlock
} from "../../src/ports/ChainRecompute.ts"
import type { EventLog } from "../../src/ports/EventLog.ts"
import { type ConflictRow, EventStore, StoreUnavailable } from "../../src/ports/EventStore.ts"
import { TraceStore } from "../../src/ports/TraceStore.ts"
import { layerVerifier, type Verifier, type VerifyProgress } from "../../src/verify/Verifier.ts"
import { Chain } from "./support/Chains.ts"
import { LogWorld, layerLog } from "./support/LogWorld.ts"
import { found, verify as verifyAtOnce } from "./support/StoredChains.ts"

const TENANT = "acme"
/** Blocks of one chunk here. */
const CHUNK = 4
/** Two chunks of what the store recomputes at a time, and a little. */
const EVENTS = 2 * CHUNK * BLOCK_EVENTS + 10

const down = (operation: string) => new StoreUnavailable({ operation, cause: new Error("down") })

/** A store in memory, with switches for what may go wrong. */
class MemoryStore {
  readonly chain: Chain
  readonly conflicts: Array<ConflictRow> = []
  /** Sequences from which on the store can't be read. */
  failsFrom = Infinity
  /** Called before each question for blocks. */
  beforeBlocks: Effect.Effect<void> = Effect.void
  /** How many rows the program went through itself. */
  rowsRead = 0

  constructor(chain: Chain) {
    this.chain = chain
  }

  row(sequenceNumber: number) {
    const body = this.chain.bodies[sequenceNumber - 1]!
    return { sequenceNumber, version: 0, body, wrongColumns: [] }
  }

  /** Blocks as they were when the chain was made, whatever its bodies have become. */
  readonly #links = new Map<number, { prev: string; hash: string }>()

  learn(): this {
    for (const body of this.chain.bodies) {
      const { hash, prev_hash, sequence_number } = JSON.parse(body)
      this.#links.set(sequence_number, { prev: prev_hash, hash })
    }
    return this
  }

  blocks(first: number, last: number): ReadonlyArray<RecomputedBlock> {
    const blocks: Array<RecomputedBlock> = []
    for (let at = first; at <= last; ) {
      const end = Math.min(last, (blockOf(at) + 1) * BLOCK_EVENTS)
      blocks.push({
        block: blockOf(at),
        rows: end - at + 1,
        perfect: true,
        first: at,
        last: end,
        prevHash: this.#links.get(at)!.prev,
        lastHash: this.#links.get(end)!.hash,
        inBounds: end - at + 1,
        span: { first: at, last: end },
        erased: [],
        subtree: undefined,
        hashes: []
      })
      at = end + 1
    }
    return blocks
  }
}

const verify: typeof verifyAtOnce = (request) => verifyAtOnce({ chunkBlocks: CHUNK, ...request })

const chain = new Chain(TENANT).extend(EVENTS, () => ({ metadata: { a: 1 } }))

const copyOf = (): Chain => {
  const copy = new Chain(TENANT)
  copy.bodies.push(...chain.bodies)
  copy.head = chain.head
  return copy
}

const layerStore = (store: MemoryStore) =>
  Layer.mergeAll(
    Layer.mock(EventStore, {
      conflicts: () => Effect.succeed(store.conflicts),
      extent: () => Effect.succeed({ rows: EVENTS, lowest: 1, highest: EVENTS }),
      copies: () => Effect.succeed([]),
      rows: (_, first, last) =>
        Stream.suspend(() => {
          if (last >= store.failsFrom) return Stream.fail(down("rows"))
          const rows = Array.from({ length: last - first + 1 }, (__, at) => store.row(first + at))
          store.rowsRead += rows.length
          return Stream.make(rows)
        })
    }),
    Layer.mock(ChainRecompute, {
      blocks: ({ fromSequence, toSequence }) =>
        Effect.suspend(() =>
          toSequence >= store.failsFrom
            ? Effect.fail(down("recompute"))
            : Effect.as(store.beforeBlocks, store.blocks(fromSequence, toSequence))
        ),
      sample: (_, sequences) => Effect.sync(() => sequences.map((at) => store.row(at))),
      erasures: () => Effect.succeed([])
    }),
    Layer.mock(TraceStore, {})
  )

type Services =
  | ChainEnds
  | ChainRecompute
  | EventLog
  | EventStore
  | Heads
  | TraceStore
  | Verifier
  | ProjectionProgress

/** A verifier over the store, and what it logs as errors. */
const verifying = <A, E>(
  store: MemoryStore,
  test: (errors: ReadonlyArray<string>) => Effect.Effect<A, E, Services>
) => {
  const world = new LogWorld()
  world.heads.set(TENANT, chain.head!)
  const errors: Array<string> = []
  const logger = Logger.make(({ logLevel, message }) => {
    if (logLevel === "Error") errors.push(JSON.stringify(message))
  })
  return test(errors).pipe(
    Effect.provide(
      layerVerifier.pipe(
        Layer.provideMerge(Layer.merge(layerStore(store), layerLog(world))),
        Layer.provideMerge(Logger.layer([logger]))
      )
    )
  )
}

describe("the verifier", () => {
  it.effect("takes the store's word for most rows, and looks at some itself", () => {
    const store = new MemoryStore(copyOf()).learn()
    const told: Array<VerifyProgress> = []
    const onProgress = (progress: VerifyProgress) => Effect.sync(() => void told.push(progress))
    return verifying(store, (errors) =>
      Effect.gen(function* () {
        const report = yield* verify({ tenantId: TENANT, onProgress })
        assert.deepStrictEqual(
          [report.valid, report.status, report.events_checked],
          [true, "valid", EVENTS]
        )
        // The first one, whose hash is held against the signed tree.
        assert.strictEqual(store.rowsRead, 1)
        assert.deepStrictEqual(
          told.map(({ breaksTotal, eventsChecked, of, upToSequence }) => [
            eventsChecked,
            upToSequence,
            of,
            breaksTotal
          ]),
          [CHUNK * BLOCK_EVENTS, 2 * CHUNK * BLOCK_EVENTS, EVENTS].map((at) => [at, at, EVENTS, 0])
        )
        assert.strictEqual(told.at(-1)?.hash, chain.head?.hash)
        assert.deepStrictEqual(errors, [])
        const whole = yield* verify({ tenantId: TENANT, toSequence: 3_000, recompute: "program" })
        assert.deepStrictEqual([whole.valid, store.rowsRead], [true, 3_002])
      })
    )
  })

  it.effect("believes itself, loudly, where the store says perfect and it is not", () => {
    // The end of a chunk is always in the sample.
    const store = new MemoryStore(copyOf()).learn()
    const at = CHUNK * BLOCK_EVENTS
    store.chain.bodies[at - 1] = store.chain.bodies[at - 1]!.replace('"success"', '"failure"')
    return verifying(store, (errors) =>
      Effect.gen(function* () {
        const report = yield* verify({ tenantId: TENANT })
        assert.deepStrictEqual(found(report), [[at, "content_mismatch"]])
        assert.isAtLeast(store.rowsRead, at)
        assert.strictEqual(errors.length, 1)
        assert.include(errors[0], "differently")
      })
    )
  })

  it.effect("is incomplete, not valid, when the store fails in the middle", () => {
    const store = new MemoryStore(copyOf()).learn()
    store.failsFrom = 6 * BLOCK_EVENTS
    return verifying(store, () =>
      Effect.gen(function* () {
        const report = yield* verify({ tenantId: TENANT })
        assert.deepStrictEqual(
          [report.valid, report.status, report.events_checked, report.last_sequence_number],
          [false, "incomplete", CHUNK * BLOCK_EVENTS, CHUNK * BLOCK_EVENTS]
        )
        assert.deepStrictEqual([report.breaks_total, report.assurance], [0, "self_attested"])
        store.failsFrom = Infinity
        const fromSequence = report.last_sequence_number! + 1
        const rest = yield* verify({ tenantId: TENANT, fromSequence })
        assert.deepStrictEqual(
          [rest.status, rest.first_sequence_number, rest.events_checked],
          ["valid", CHUNK * BLOCK_EVENTS + 1, EVENTS - CHUNK * BLOCK_EVENTS]
        )
      })
    )
  })

  it.effect("fails when nothing could be checked at all", () => {
    const store = new MemoryStore(copyOf()).learn()
    store.failsFrom = 0
    return verifying(store, () =>
      Effect.map(Effect.flip(verify({ tenantId: TENANT })), ({ operation }) =>
        assert.strictEqual(operation, "recompute")
      )
    )
  })

  it.effect("ends as incomplete when its time is up", () => {
    const store = new MemoryStore(copyOf()).learn()
    store.beforeBlocks = TestClock.adjust("10 seconds")
    return verifying(store, () =>
      Effect.gen(function* () {
        const report = yield* verify({ tenantId: TENANT, timeLimitMs: 15_000 })
        assert.deepStrictEqual(
          [report.status, report.last_sequence_number, report.duration_ms],
          ["incomplete", 2 * CHUNK * BLOCK_EVENTS, 20_000]
        )
        const whole = yield* verify({ tenantId: TENANT, timeLimitMs: 60_000 })
        assert.strictEqual(whole.status, "valid")
      })
    )
  })

  it.effect("names what did not link when it was projected", () => {
    const store = new MemoryStore(copyOf()).learn()
    const conflict = (sequenceNumber: number, reason: string): ConflictRow => ({
      partition: 0,
      offset: sequenceNumber,
      tenantId: TENANT,
      sequenceNumber,
      reason,
      body: Buffer.alloc(0)
    })
    store.conflicts.push(conflict(7, "sequence_mismatch"), conflict(9, "prev_hash_mismatch"))
    return verifying(store, () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(found(yield* verify({ tenantId: TENANT, toSequence: 50 })), [
          [7, "duplicate_sequence"],
          [9, "prev_hash_mismatch"]
        ])
        // Whatever part is asked for: such a record is no part of the chain.
        const other = yield* verify({ tenantId: TENANT, fromSequence: 10, toSequence: 50 })
        assert.deepStrictEqual(found(other), [
          [7, "duplicate_sequence"],
          [9, "prev_hash_mismatch"]
        ])
      })
    )
  })

  it.effect("accuses nobody while the store has not caught up, or is being rebuilt", () => {
    const store = new MemoryStore(copyOf()).learn()
    const late = {
      of: noProgress,
      partition: noProgress,
      awaitOffset: () => Effect.never
    }
    return verifying(store, () =>
      Effect.gen(function* () {
        const rebuilt = (partition: number) => ({ ...noProgress(partition), rebuilding: true })
        const views = [
          { ...late, of: () => noProgress(0) },
          { of: () => rebuilt(0), partition: rebuilt, awaitOffset: () => Effect.void }
        ]
        for (const view of views) {
          const failed = yield* verify({ tenantId: TENANT }).pipe(
            Effect.provide(
              layerVerifier.pipe(Layer.provide(Layer.succeed(ProjectionProgress, view))),
              {
                local: true
              }
            ),
            Effect.flip,
            Effect.forkChild
          )
          yield* TestClock.adjust("11 seconds")
          assert.strictEqual((yield* Fiber.join(failed))._tag, "LogUnavailable")
        }
      })
    )
  })

  it.effect("does everything itself over a store that can't hash", () => {
    const erasing = new Chain(TENANT).extend(20)
    const erased = erasing.erase(7)
    const bodies = [...erasing.bodies]
    const timeOf = (sequence: number): string => JSON.parse(bodies[sequence - 1]!).timestamp
    const world = new LogWorld()
    world.heads.set(TENANT, erasing.head!)
    const plain = Layer.mock(EventStore, {
      conflicts: () => Effect.succeed([]),
      extent: () => Effect.sync(() => ({ rows: 1, lowest: 1, highest: bodies.length })),
      copies: () => Effect.succeed([]),
      rows: (_, first, last) =>
        Stream.make(
          bodies
            .slice(first - 1, last)
            .map((body, at) => ({ sequenceNumber: first + at, version: 0, body, wrongColumns: [] }))
        ),
      scan: ({ filter }) =>
        Stream.make(bodies.filter((body) => JSON.parse(body).action === filter.action)),
      page: () => Effect.sync(() => ({ bodies: bodies.slice(-1), total: bodies.length }))
    })
    return Effect.gen(function* () {
      assert.strictEqual((yield* verify({ tenantId: TENANT })).erased_events, 0)
      bodies[6] = erased
      const report = yield* verify({ tenantId: TENANT })
      assert.deepStrictEqual([report.valid, report.erased_events], [true, 1])
      const part = yield* verify({ tenantId: TENANT, from: timeOf(5), to: timeOf(9) })
      assert.deepStrictEqual(
        [part.valid, part.first_sequence_number, part.last_sequence_number, part.events_checked],
        [true, 5, 9, 5]
      )
      const all = yield* verify({ tenantId: TENANT, from: timeOf(1), to: timeOf(21) })
      assert.deepStrictEqual([all.events_checked, all.events_in_bounds], [21, 21])
      const rest = yield* verify({ tenantId: TENANT, from: timeOf(5) })
      assert.deepStrictEqual([rest.first_sequence_number, rest.last_sequence_number], [5, 21])
      bodies.splice(20, 1, new Chain(TENANT).extend(21).bodies[20]!)
      assert.deepInclude(found(yield* verify({ tenantId: TENANT })), [7, "content_mismatch"])
      bodies.push(...new Chain(TENANT).extend(22).bodies.slice(21))
      assert.deepInclude(found(yield* verify({ tenantId: TENANT })), [22, "hash_mismatch"])
    }).pipe(
      Effect.provide(
        layerVerifier.pipe(
          Layer.provideMerge(Layer.mergeAll(plain, Layer.mock(TraceStore, {}), layerLog(world)))
        )
      )
    )
  })
})
