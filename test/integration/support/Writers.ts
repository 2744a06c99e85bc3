/** What the tests of writers share: records, a network that loses some, another program that writes. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { inject } from "vitest"
import { BatchSender } from "../../../src/adapters/kafka/protocol/BatchSender.ts"
import { makeCluster, type RawCluster } from "../../../src/adapters/kafka/protocol/KafkaClient.ts"
import {
  addPartitionsToTransaction,
  endTransaction,
  type TransactionEnd
} from "../../../src/adapters/kafka/protocol/ProducerRequests.ts"
import { fetchStored } from "../../../src/adapters/kafka/protocol/StoredBatch.ts"
import { makeTransactionalWriter } from "../../../src/adapters/kafka/Writers.ts"
import { RecordMac } from "../../../src/domain/records/RecordMac.ts"
import { type TopicKind, topicName } from "../../../src/domain/records/Topics.ts"
import type { EventLog, NewRecord } from "../../../src/ports/EventLog.ts"
import { placedSigning } from "../../../src/services/commands/AuthenticatedLog.ts"
import { eventually } from "../../support/Eventually.ts"
import { type Fate, type FlakyProxy, startFlakyProxy } from "../../support/FlakyProxy.ts"
import { decidedEnd, readAll } from "../../support/Log.ts"

export const record = (value: string, topic: TopicKind = "commands", partition = 0): NewRecord => ({
  topic,
  partition,
  key: "acme",
  value
})

export const event = (value: string): NewRecord => record(value, "events")
export const state = (value: string): NewRecord => record(value, "state")

export const assertTexts = Effect.fnUntraced(function* (
  topic: TopicKind,
  wanted: ReadonlyArray<string | undefined>,
  partition = 0
) {
  const records = yield* readAll(topic, partition)
  assert.deepStrictEqual(
    records.map(({ value }) => value?.toString()),
    wanted,
    topic
  )
})

export const flakyProxy = Effect.acquireRelease(
  Effect.promise(() => startFlakyProxy(inject("bootstrap"))),
  (proxy) => Effect.promise(() => proxy.close())
)

export const through = (proxy: FlakyProxy) => ({
  brokers: [inject("bootstrap")],
  clientId: "flaky",
  log: () => undefined,
  route: () => ({ host: "127.0.0.1", port: proxy.port })
})

/** What `happens` before a request of a kind is passed on: the first of them, or the nth. */
export const beforeOnce = (
  wanted: number,
  happens: Effect.Effect<unknown, unknown>,
  nth = 1
): FlakyProxy["decide"] => {
  let seen = 0
  return async (apiKey): Promise<Fate> => {
    if (apiKey === wanted && ++seen === nth) await Effect.runPromise(happens)
    return "forward"
  }
}

export const acquireCluster = Effect.acquireRelease(
  Effect.promise(async () => {
    const cluster = makeCluster({
      brokers: [inject("bootstrap")],
      clientId: "intruder",
      log: () => undefined
    })
    await cluster.connect()
    return cluster
  }),
  (cluster) => Effect.promise(() => cluster.disconnect())
)

const PRODUCER_ID_AT = 43
const EPOCH_AT = 51

/** Who wrote the batch at an offset, decided or not; nobody yet is undefined. */
const findWriterAt = async (cluster: RawCluster, topic: string, offset: number) => {
  await cluster.addMultipleTargetTopics([topic])
  const [nodeId = ""] = Object.keys(cluster.findLeaderForPartitions(topic, [0]))
  const broker = await cluster.findBroker({ nodeId })
  const place = { topic, partition: 0, bytes: Buffer.alloc(1_000) }
  const { bytes } = await broker.connectionPool.send(fetchStored(place, offset))
  return (
    bytes && {
      producerId: bytes.readBigInt64BE(PRODUCER_ID_AT),
      producerEpoch: bytes.readInt16BE(EPOCH_AT)
    }
  )
}

export const writerAt = async (cluster: RawCluster, topic: string, offset: number) =>
  (await findWriterAt(cluster, topic, offset)) ?? assert.fail(`nothing is at ${offset}`)

/** One record of an intruder, as if the writer of the batch at offset 0 had written it. */
export interface Intrusion {
  readonly firstSequence: number
  readonly time?: number
  readonly producerEpoch?: number
  /** Into an open transaction of this id; else only behind what is decided. */
  readonly within?: string
}

export const intrude = Effect.fnUntraced(function* (
  prefix: string,
  kind: TopicKind,
  { firstSequence, producerEpoch, time = Date.now(), within }: Intrusion
) {
  const cluster = yield* acquireCluster
  // Before the marks of a transaction the broker takes nothing else of its producer.
  if (within === undefined) yield* decidedEnd(kind)
  return yield* Effect.promise(async () => {
    const topic = topicName(prefix, kind)
    const writer = await writerAt(cluster, topic, 0)
    const identity = { ...writer, producerEpoch: producerEpoch ?? writer.producerEpoch }
    const sender = new BatchSender(cluster, within ?? null, identity, { firstSequence })
    const records = [record("of an intruder", kind)]
    const times = { first: time, last: time }
    await sender.send(await sender.sequence([{ topic, partition: 0, records, times }]), () => false)
    return writer
  })
}, Effect.scoped)

const TRANSACTION_COORDINATOR = 1

/** What another program does to a transaction, and to which topics it adds one of its own. */
export interface ForeignEnd {
  readonly end: TransactionEnd
  readonly begins: ReadonlyArray<TopicKind>
}

/**
 * Ends the transaction of which the event at an offset is a part, with the identity of its writer, and
 * waits until that is decided. False: nothing is there yet.
 */
export const endForeign = Effect.fnUntraced(function* (
  prefix: string,
  transactionalId: string,
  { at, begins, end }: ForeignEnd & { readonly at: number }
) {
  const cluster = yield* acquireCluster
  const identity = yield* Effect.promise(() =>
    findWriterAt(cluster, topicName(prefix, "events"), at)
  )
  if (identity === undefined) return false
  const broker = yield* Effect.promise(() =>
    cluster.findGroupCoordinator({
      groupId: transactionalId,
      coordinatorType: TRANSACTION_COORDINATOR
    })
  )
  const ended = yield* Effect.promise(() => endTransaction(broker, transactionalId, identity, end))
  assert.strictEqual(ended.errorCode, 0)
  for (const kind of ["events", "state"] as const) yield* decidedEnd(kind)
  const added = begins.map((kind) => ({ topic: topicName(prefix, kind), partition: 0 }))
  if (added.length === 0) return true
  yield* eventually(
    "another transaction is begun",
    Effect.promise(() => addPartitionsToTransaction(broker, transactionalId, identity, added)),
    ({ errorCode }) => errorCode === 0
  )
  return true
}, Effect.scoped)

/** The signing of a service, for its records in the topics of a test. */
export const signingOf = (prefix: string) =>
  placedSigning({ mac: new RecordMac("a secret of the writers' tests"), prefix })

/** Starts of a writer behind a proxy, for which an id is stuck after a second. */
export const soonStuck = Effect.fnUntraced(function* (prefix: string) {
  const context = yield* Effect.context<EventLog>()
  const proxy = yield* flakyProxy
  const start = makeTransactionalWriter(through(proxy), prefix, `${prefix}-w`, {
    placed: signingOf(prefix),
    stuckAfterMs: 1_000
  })
  return { context, proxy, start }
})
