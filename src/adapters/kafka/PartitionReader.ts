/**
 * Reads committed records from exact offsets of any partitions, without a consumer group. kafkajs's
 * consumer hides fully aborted fetches, resets silently when an offset is gone and needs a group to
 * read one partition; the layer below it does none of that.
 */
import { Effect, type Scope } from "effect"
import { topicName } from "../../domain/Topics.ts"
import {
  LogUnavailable,
  OffsetOutOfRange,
  type FetchLimits,
  type Fetched,
  type LogReader,
  type LogRecord,
  type Position
} from "../../ports/EventLog.ts"
import {
  committedMessages,
  makeCluster,
  protocolErrorOf,
  READ_COMMITTED,
  type KafkaSettings,
  type RawCluster,
  type RawMessage,
  type RawPartition
} from "./KafkaClient.ts"

/**
 * A fetch that shows no record below the stable end is asked again with this many bytes, more than
 * any record has: only then is the gap known to be empty batches that compaction left behind.
 */
const GAP_FETCH_BYTES = 64 * 1_048_576

const firstOf = (value: Buffer | Array<Buffer>): Buffer =>
  Array.isArray(value) ? (value[0] ?? Buffer.alloc(0)) : value

const toRecord = (message: RawMessage): LogRecord => {
  const headers: Record<string, Buffer> = {}
  for (const name in message.headers) headers[name] = firstOf(message.headers[name]!)
  return {
    offset: Number(message.offset),
    timestamp: Number(message.timestamp),
    key: message.key,
    value: message.value,
    headers
  }
}

const toFetched = (position: Position, data: RawPartition): Fetched => {
  const last = data.messages.at(-1)
  return {
    ...position,
    records: committedMessages(data, position.offset).map(toRecord),
    nextOffset:
      last === undefined ? position.offset : Math.max(position.offset, Number(last.offset) + 1),
    stableEnd: Number(data.lastStableOffset),
    logStart: Number(data.lastStartOffset)
  }
}

interface Pending {
  readonly positions: ReadonlyArray<Position>
  readonly reply: Promise<ReadonlyArray<Fetched>>
}

const keyOf = ({ partition, topic }: Pick<Position, "topic" | "partition">) =>
  `${topic}/${partition}`

class ClusterReader {
  readonly #cluster: RawCluster
  readonly #prefix: string
  /** A broker with nothing to say holds its answer back; the others' answers don't wait for it. */
  readonly #pending = new Map<string, Pending>()

  constructor(cluster: RawCluster, prefix: string) {
    this.#cluster = cluster
    this.#prefix = prefix
  }

  async fetch(
    positions: ReadonlyArray<Position>,
    limits: FetchLimits
  ): Promise<ReadonlyArray<Fetched>> {
    if (!this.#cluster.isConnected()) await this.#cluster.connect()
    await this.#cluster.addMultipleTargetTopics([
      ...new Set(positions.map(({ topic }) => topicName(this.#prefix, topic)))
    ])
    await this.#cluster.refreshMetadataIfNecessary()
    for (const [nodeId, wanted] of this.#byLeader(positions)) {
      if (!this.#pending.has(nodeId)) this.#ask(nodeId, wanted, limits)
    }
    const current = new Map(positions.map((position) => [keyOf(position), position.offset]))
    for (;;) {
      const [nodeId, fetched] = await Promise.race(
        [...this.#pending].map(async ([id, { reply }]) => [id, await reply] as const)
      )
      this.#pending.delete(nodeId)
      const wanted = fetched.filter((entry) => current.get(keyOf(entry)) === entry.offset)
      const told = wanted.some((entry) => entry.nextOffset > entry.offset)
      if (told || this.#pending.size === 0) return wanted
    }
  }

  async disconnect(): Promise<void> {
    await this.#cluster.disconnect()
  }

  async forget(): Promise<void> {
    this.#pending.clear()
    await this.#cluster.refreshMetadata()
  }

  #byLeader(positions: ReadonlyArray<Position>): Map<string, Array<Position>> {
    const byLeader = new Map<string, Array<Position>>()
    for (const position of positions) {
      const name = topicName(this.#prefix, position.topic)
      const leaders = this.#cluster.findLeaderForPartitions(name, [position.partition])
      const [nodeId] = Object.keys(leaders)
      if (nodeId === undefined) throw new Error(`no leader for ${name}/${position.partition}`)
      const wanted = byLeader.get(nodeId)
      if (wanted === undefined) byLeader.set(nodeId, [position])
      else wanted.push(position)
    }
    return byLeader
  }

  #ask(nodeId: string, positions: ReadonlyArray<Position>, limits: FetchLimits): void {
    const reply = this.#fetchFrom(nodeId, positions, limits)
    reply.catch(() => undefined)
    this.#pending.set(nodeId, { positions, reply })
  }

  async #fetchFrom(
    nodeId: string,
    positions: ReadonlyArray<Position>,
    limits: FetchLimits
  ): Promise<ReadonlyArray<Fetched>> {
    const broker = await this.#cluster.findBroker({ nodeId })
    const byTopic = new Map<string, Array<Position>>()
    for (const position of positions) {
      const name = topicName(this.#prefix, position.topic)
      const list = byTopic.get(name)
      if (list === undefined) byTopic.set(name, [position])
      else list.push(position)
    }
    const { responses } = await broker.fetch({
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
    })
    const found = new Map<string, RawPartition>()
    for (const { partitions, topicName: name } of responses) {
      for (const data of partitions) found.set(`${name}/${data.partition}`, data)
    }
    const fetched = positions.flatMap((position) => {
      const name = topicName(this.#prefix, position.topic)
      const data = found.get(`${name}/${position.partition}`)
      return data === undefined ? [] : [toFetched(position, data)]
    })
    const stuck = fetched.find((entry) => entry.stableEnd > entry.nextOffset && isSilent(entry))
    if (stuck === undefined || fetched.some((entry) => !isSilent(entry))) return fetched
    return limits.maxBytes < GAP_FETCH_BYTES
      ? this.#fetchFrom(nodeId, [stuck], { waitMs: 0, maxBytes: GAP_FETCH_BYTES })
      : [{ ...stuck, nextOffset: stuck.stableEnd }]
  }
}

const isSilent = (entry: Fetched): boolean => entry.nextOffset === entry.offset

const outOfRange = (error: unknown, positions: ReadonlyArray<Position>) => {
  const { partition, topic } = error as { readonly topic?: string; readonly partition?: number }
  const position = positions.find(
    (entry) => entry.partition === partition && topic?.endsWith(`.${entry.topic}`)
  )
  return new OffsetOutOfRange({
    topic: topic ?? "unknown",
    partition: partition ?? -1,
    offset: position?.offset ?? -1
  })
}

const isOutOfRange = (error: unknown): boolean =>
  (error as Error | undefined)?.name === "KafkaJSOffsetOutOfRange" ||
  protocolErrorOf(error) === "OFFSET_OUT_OF_RANGE"

/** A reader with connections of its own: a fetch that waits holds no other one up. */
export const makeReader = (
  settings: KafkaSettings,
  prefix: string
): Effect.Effect<LogReader, LogUnavailable, Scope.Scope> =>
  Effect.gen(function*() {
    const reader = yield* Effect.acquireRelease(
      Effect.sync(() => new ClusterReader(makeCluster(settings), prefix)),
      (acquired) => Effect.promise(() => acquired.disconnect().catch(() => undefined))
    )
    const fetch: LogReader["fetch"] = (positions, limits) =>
      Effect.tryPromise({
        try: () => reader.fetch(positions, limits),
        catch: (cause) =>
          isOutOfRange(cause)
            ? outOfRange(cause, positions)
            : new LogUnavailable({ operation: "fetch", cause })
      }).pipe(
        Effect.tapError(() => Effect.promise(() => reader.forget().catch(() => undefined)))
      )
    return { fetch }
  })
