/**
 * A log, a store and a projection of trace facts in memory, each as far as the test lets it be: what
 * is committed is not yet visible, and what is visible may not have been read yet.
 */
import { Deferred, Effect, Layer, Stream } from "effect"
import { FollowedBytes } from "../../../src/actors/feeds/FollowedBytes.ts"
import { layerLiveFeed } from "../../../src/actors/feeds/LiveFeed.ts"
import { READER_LIMITS } from "../../../src/actors/feeds/Subscriber.ts"
import { layerTraceFeed } from "../../../src/actors/feeds/TraceFeed.ts"
import { Heads } from "../../../src/actors/follower/Heads.ts"
import { Keys } from "../../../src/actors/follower/Keys.ts"
import { ProjectionProgress } from "../../../src/actors/log/ProjectionProgress.ts"
import { noProgress } from "../../../src/domain/records/Progress.ts"
import { eraseFact, parseFact } from "../../../src/domain/traces/FactText.ts"
import type { TraceFact } from "../../../src/domain/traces/TraceFact.ts"
import { EventLog, type LogRecord, type Position } from "../../../src/ports/EventLog.ts"
import { EventStore } from "../../../src/ports/EventStore.ts"
import { TraceStore } from "../../../src/ports/TraceStore.ts"
import { foldedReads } from "../../support/FoldedStore.ts"
import { FollowedState } from "./FollowedState.ts"

/** Facts as they come, and how far each part has got with them. */
export class FeedWorld {
  readonly committed: Array<TraceFact> = []
  readonly state = new FollowedState("traces")
  readonly #records: Array<LogRecord> = []
  readonly #stored: Array<TraceFact> = []
  readonly revoked = Deferred.makeUnsafe<void>()
  /** Fetches of `alk.traces` by partition. */
  readonly fetches = new Map<number, number>()
  /** Records that one fetch brings at most. */
  fetchMax = 3

  commit(fact: TraceFact): void {
    this.committed.push(fact)
    this.forge(fact)
    this.state.cover(this.end - 1, this.end)
  }

  /** As another producer writes it. */
  forge(fact: TraceFact): void {
    this.#records.push({
      offset: this.#records.length,
      timestamp: 0,
      key: Buffer.from(fact.tenant_id),
      value: Buffer.from(JSON.stringify(fact)),
      headers: {}
    })
  }

  /** What the projection does with the next records. */
  project(count = Infinity): void {
    for (let done = 0; done < count && this.#stored.length < this.committed.length; done++) {
      const fact = this.committed[this.#stored.length]!
      this.#stored.push(fact)
      if (fact.type !== "execution.erased") continue
      for (const [at, earlier] of this.#stored.entries()) {
        if (earlier.execution_id !== fact.execution_id || earlier.details === undefined) continue
        this.#stored[at] = parseFact(eraseFact(earlier, fact.created_at))!
      }
    }
  }

  get tracesNext(): number {
    return this.#stored.length === this.committed.length ? this.end : this.#stored.length
  }

  get end(): number {
    return this.#records.length
  }

  read(offset: number): ReadonlyArray<LogRecord> {
    return this.#records.slice(offset, offset + this.fetchMax)
  }

  stored(tenantId: string, executionId: string): ReadonlyArray<TraceFact> {
    return this.#stored.filter(
      (fact) => fact.tenant_id === tenantId && fact.execution_id === executionId
    )
  }
}

const logOf = (world: FeedWorld) =>
  Layer.mock(EventLog, {
    partitions: 2,
    bootstrap: "nowhere",
    partitionOf: () => 1,
    bounds: () => Effect.sync(() => ({ start: 0, end: world.end })),
    ends: (positions) => Effect.sync(() => positions.map(() => world.end)),
    reader: Effect.succeed({
      fetch: ([position]: ReadonlyArray<Position>) =>
        Effect.gen(function* () {
          const { offset, partition, topic } = position!
          world.fetches.set(partition, (world.fetches.get(partition) ?? 0) + 1)
          const records = topic === "traces" ? world.read(offset) : []
          if (records.length === 0) yield* Effect.sleep(1)
          return [
            {
              ...position!,
              records,
              nextOffset: offset + records.length,
              writtenEnd: world.end,
              stableEnd: world.end,
              logStart: 0
            }
          ]
        })
    })
  })

const bodies = (facts: ReadonlyArray<TraceFact>): ReadonlyArray<string> =>
  facts.map((fact) => JSON.stringify(fact))

const storeOf = (world: FeedWorld) =>
  Layer.mock(TraceStore, {
    facts: (tenantId, executionId) =>
      Effect.sync(() => bodies(world.stored(tenantId, executionId))),
    ...foldedReads((tenantId, executionId) => world.stored(tenantId, executionId), Effect.sync),
    rows: (tenantId, executionId) =>
      Stream.suspend(() =>
        Stream.fromIterable(world.stored(tenantId, executionId)).pipe(
          Stream.map((fact) => ({
            sequenceNumber: fact.chain_sequence,
            version: fact.erased_at === undefined ? 0 : 1,
            body: JSON.stringify(fact),
            wrongColumns: []
          })),
          Stream.grouped(4),
          Stream.mapEffect((rows) => Effect.as(Effect.sleep(1), rows))
        )
      )
  })

const visibilityOf = (world: FeedWorld) =>
  Layer.succeed(ProjectionProgress, {
    of: () => noProgress(1),
    partition: noProgress,
    awaitOffset: (_partition, { traces = 0 }) =>
      Effect.suspend(() =>
        world.tracesNext >= traces ? Effect.void : Effect.fail("not yet")
      ).pipe(
        Effect.catch(() => Effect.andThen(Effect.sleep(1), Effect.fail("not yet"))),
        Effect.eventually
      )
  })

const headsOf = (world: FeedWorld) => {
  const headOf = (tenantId: string) => {
    const last = world.committed.findLast(({ tenant_id }) => tenant_id === tenantId)
    return last === undefined
      ? undefined
      : { sequence_number: last.chain_sequence, hash: last.hash, created_at: last.created_at }
  }
  return Layer.mock(Heads, {
    head: () => Effect.succeed(undefined),
    traceHead: (tenantId) => Effect.sync(() => headOf(tenantId)),
    written: () => Effect.sync(() => world.end),
    decided: world.state.decided,
    reached: ({ tenantId }) => Effect.sync(() => headOf(tenantId))
  })
}

/** The real feeds over the world. */
export const layerFeeds = (
  world: FeedWorld,
  streamsMax = 100,
  limits = READER_LIMITS,
  followed = new FollowedBytes()
) =>
  layerTraceFeed(followed).pipe(
    Layer.provideMerge(layerLiveFeed(streamsMax, limits)),
    Layer.provide([
      logOf(world),
      storeOf(world),
      visibilityOf(world),
      headsOf(world),
      Layer.mock(EventStore, {}),
      Layer.mock(Keys, {
        isAdmin: () => false,
        known: () => undefined,
        ended: () => Deferred.await(world.revoked)
      })
    ])
  )
