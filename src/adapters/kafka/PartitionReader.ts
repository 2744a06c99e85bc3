/**
 * Reads committed records from exact offsets of any partitions, without a consumer group. kafkajs's
 * consumer hides fully aborted fetches, resets silently when an offset is gone and needs a group to
 * read one partition; the layer below it does none of that.
 */
import { Effect, type Scope } from "effect"
import { topicName } from "../../domain/records/Topics.ts"
import {
  type Fetched,
  type FetchLimits,
  type LogReader,
  LogUnavailable,
  OffsetOutOfRange,
  type Position
} from "../../ports/EventLog.ts"
import { type FetchedPartition, readFetchResponse } from "./protocol/FetchResponse.ts"
import {
  errorOfCode,
  fetchRequest,
  isLeaderMoving,
  type KafkaSettings,
  makeCluster,
  protocolErrorOf,
  type RawCluster,
  READ_COMMITTED
} from "./protocol/KafkaClient.ts"
import { keyOf } from "./protocol/ProducerRequests.ts"
import { WHILE_LEADERS_MOVE } from "./protocol/Retry.ts"
import type { StalledEnds } from "./StalledEnds.ts"

/** Milliseconds beyond the wait of a fetch after which its broker counts as gone. */
const FETCH_GRACE_MS = 10_000

const toFetched = (position: Position, found: FetchedPartition): Fetched => ({
  ...position,
  records: found.records,
  nextOffset: Math.max(position.offset, found.nextOffset ?? position.offset),
  writtenEnd: found.writtenEnd,
  stableEnd: found.stableEnd,
  logStart: found.logStart
})

/** The metadata of a cluster names no leader of a partition. */
class NoLeader extends Error {
  readonly type = "LEADER_NOT_AVAILABLE"
}

interface Pending {
  readonly positions: ReadonlyArray<Position>
  readonly reply: Promise<ReadonlyArray<Fetched>>
}

export class ClusterReader {
  readonly #cluster: RawCluster
  readonly #prefix: string
  readonly #stalled: StalledEnds | undefined
  /** A broker without new records delays its answer; the answers of the others do not wait for it. */
  readonly #pending = new Map<string, Pending>()
  #isClosed = false
  /** Which position comes first in the next request. */
  #turn = 0

  constructor(cluster: RawCluster, prefix: string, stalled?: StalledEnds) {
    this.#cluster = cluster
    this.#prefix = prefix
    this.#stalled = stalled
  }

  async fetch(
    positions: ReadonlyArray<Position>,
    limits: FetchLimits
  ): Promise<ReadonlyArray<Fetched>> {
    if (this.#isClosed) throw new Error("the reader was closed")
    if (!this.#cluster.isConnected()) await this.#cluster.connect()
    await this.#cluster.addMultipleTargetTopics([
      ...new Set(positions.map(({ topic }) => topicName(this.#prefix, topic)))
    ])
    await this.#cluster.refreshMetadataIfNecessary()
    // A topic may have got partitions since its leaders were asked for.
    if (positions.some((position) => this.#findLeader(position) === undefined)) {
      await this.#cluster.refreshMetadata()
    }
    const byLeader = Map.groupBy(positions, (position) => this.#leaderOf(position))
    for (const [nodeId, wanted] of byLeader) {
      if (!this.#pending.has(nodeId)) this.#ask(nodeId, wanted, limits)
    }
    const current = new Map(positions.map((position) => [keyOf(position), position.offset]))
    for (;;) {
      const [nodeId, fetched] = await Promise.race(
        [...this.#pending].map(async ([id, { reply }]) => [id, await reply] as const)
      )
      this.#pending.delete(nodeId)
      const wanted = fetched.filter((entry) => current.get(keyOf(entry)) === entry.offset)
      const isNew = wanted.some((entry) => entry.nextOffset > entry.offset)
      if (isNew || this.#pending.size === 0) return wanted
    }
  }

  async disconnect(): Promise<void> {
    this.#isClosed = true
    await this.#cluster.disconnect()
  }

  async forget(): Promise<void> {
    this.#pending.clear()
    if (this.#isClosed) return
    await this.#cluster.refreshMetadata()
  }

  #findLeader({ partition, topic }: Position): string | undefined {
    const name = topicName(this.#prefix, topic)
    const [nodeId] = Object.keys(this.#cluster.findLeaderForPartitions(name, [partition]))
    return nodeId
  }

  #leaderOf(position: Position): string {
    const nodeId = this.#findLeader(position)
    if (nodeId !== undefined) return nodeId
    throw new NoLeader(
      `no leader for ${topicName(this.#prefix, position.topic)}/${position.partition}`
    )
  }

  #ask(nodeId: string, positions: ReadonlyArray<Position>, limits: FetchLimits): void {
    const reply = this.#fetchFrom(nodeId, positions, limits)
    reply.catch(() => undefined)
    this.#pending.set(nodeId, { positions, reply })
  }

  /**
   * A broker gives a batch that is larger than what is left of the limit only to the position that
   * comes first with any records. The order is therefore rotated; otherwise a partition listed
   * after busy ones would starve.
   */
  #turned(positions: ReadonlyArray<Position>): ReadonlyArray<Position> {
    const first = this.#turn % positions.length
    this.#turn += 1
    return [...positions.slice(first), ...positions.slice(0, first)]
  }

  async #fetchFrom(
    nodeId: string,
    positions: ReadonlyArray<Position>,
    limits: FetchLimits
  ): Promise<ReadonlyArray<Fetched>> {
    const broker = await this.#cluster.findBroker({ nodeId })
    const byTopic = Map.groupBy(this.#turned(positions), ({ topic }) =>
      topicName(this.#prefix, topic)
    )
    const wanted = new Map(
      positions.map((position) => [
        keyOf({ ...position, topic: topicName(this.#prefix, position.topic) }),
        position
      ])
    )
    if (!broker.isConnected()) await broker.connect()
    const found = await broker.connectionPool.send({
      request: fetchRequest({
        replicaId: -1,
        isolationLevel: READ_COMMITTED,
        maxWaitTime: limits.waitMs,
        minBytes: 1,
        maxBytes: limits.maxBytes,
        topics: [...byTopic].map(([topic, list]) => ({
          topic,
          partitions: list.map(({ offset, partition }) => ({
            partition,
            fetchOffset: String(offset),
            maxBytes: limits.maxBytes
          }))
        }))
      }),
      response: {
        decode: (payload) =>
          readFetchResponse(
            payload,
            (topic, partition) => wanted.get(keyOf({ topic, partition }))?.offset ?? 0
          ),
        parse: (partitions) => Promise.resolve(partitions)
      },
      requestTimeout: limits.waitMs + FETCH_GRACE_MS
    })
    return found.flatMap((partition) => {
      const position = wanted.get(keyOf(partition))
      if (position === undefined) return []
      if (partition.errorCode === 0) {
        const fetched = toFetched(position, partition)
        this.#stalled?.look(fetched)
        return [fetched]
      }
      const { offset, topic } = position
      const error = errorOfCode(partition.errorCode)
      throw protocolErrorOf(error) === "OFFSET_OUT_OF_RANGE"
        ? new OffsetOutOfRange({ topic, partition: partition.partition, offset })
        : error
    })
  }
}

/** A reader with connections of its own: no fetch waits for another one. */
export const makeReader = (
  settings: KafkaSettings,
  prefix: string,
  stalled: StalledEnds
): Effect.Effect<LogReader, LogUnavailable, Scope.Scope> =>
  Effect.gen(function* () {
    const reader = yield* Effect.acquireRelease(
      Effect.sync(() => new ClusterReader(makeCluster(settings), prefix, stalled)),
      (acquired) => Effect.promise(() => acquired.disconnect().catch(() => undefined))
    )
    const fetch: LogReader["fetch"] = (positions, limits) =>
      Effect.tryPromise({
        try: () => reader.fetch(positions, limits),
        catch: (cause) =>
          cause instanceof OffsetOutOfRange
            ? cause
            : new LogUnavailable({ operation: "fetch", cause })
      }).pipe(
        Effect.tapError(() => Effect.promise(() => reader.forget().catch(() => undefined))),
        Effect.retry({
          schedule: WHILE_LEADERS_MOVE,
          while: (failure) => failure._tag === "LogUnavailable" && isLeaderMoving(failure.cause)
        })
      )
    return { fetch }
  })
