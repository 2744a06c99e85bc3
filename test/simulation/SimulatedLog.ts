/**
 * The log in memory, as Kafka promises it: fenced transactions, readers of what is committed, idempotent appends, groups. Each process has a port
 * of its own, on whose calls faults happen.
 */
import { Effect, Semaphore } from "effect"
import { placedTopics } from "../../src/domain/records/RecordMac.ts"
import { partitionedTopics, type TopicKind } from "../../src/domain/records/Topics.ts"
import { Placement } from "../../src/domain/registry/Placement.ts"
import {
  type AppendedListener,
  type EventLog,
  type Fetched,
  type FetchLimits,
  type LogAppender,
  LogUnavailable,
  type NewRecord,
  OffsetOutOfRange,
  type PackedRecords,
  type Placed,
  type PlacedSigning,
  type Position,
  type TransactionalWriter,
  WriterFenced
} from "../../src/ports/EventLog.ts"
import { readPacked } from "../support/PackedEvents.ts"
import type { Faults, Life } from "./Faults.ts"
import { PartitionLog, Transaction } from "./PartitionLog.ts"
import { SimulatedGroup } from "./SimulatedGroup.ts"

type Log = EventLog["Service"]

/** Milliseconds until a transaction that nobody ends is aborted. */
const TRANSACTION_TIMEOUT_MS = 15_000
/** Appends that arrive later than the lease of their writer ends would be another fault. */
const APPEND_SLOW = { request: 800, answer: 500, isOrdered: true }
/** Share of writers that find the id of their name stuck and take another one, which fences nobody. */
const STUCK_IDS = 0.2

/** Nothing but the service writes here: what stands in these topics is genuine, without a MAC. */
const UNSIGNED: PlacedSigning = {
  topics: placedTopics,
  sign: (record) => record,
  isGenuine: () => true
}

/** The newest writer of a transactional id. */
interface Producer {
  epoch: number
  transaction: Transaction | undefined
  /** Called when the markers of its last transaction are written. */
  readonly waiting: Array<() => void>
}

/** Promises of the log that a test breaks. */
export interface BrokenPromises {
  /** Records that a transaction loses, although it commits. */
  readonly loses?: (record: NewRecord) => boolean
  /** Share of commits that are acknowledged although they are aborted. */
  readonly falseCommits?: number
  /** Writers don't look at what stands in the places of their records; each has an id of its own. */
  readonly isBlind?: boolean
}

const unavailable = (operation: string) => (cause: string) =>
  new LogUnavailable({ operation, cause })

export class SimulatedLog {
  readonly partitions: number
  readonly #faults: Faults
  readonly #broken: BrokenPromises
  readonly #logs = new Map<string, PartitionLog>()
  readonly #producers = new Map<string, Producer>()
  /** How many ids of a name are stuck. */
  readonly #stuck = new Map<string, number>()
  readonly #groups = new Map<string, SimulatedGroup>()

  constructor(faults: Faults, partitions: number, broken: BrokenPromises = {}) {
    this.#faults = faults
    this.partitions = partitions
    this.#broken = broken
  }

  of(topic: TopicKind, partition: number): PartitionLog {
    const key = `${topic}/${partition}`
    const found = this.#logs.get(key) ?? new PartitionLog(key)
    this.#logs.set(key, found)
    return found
  }

  group(name: string): SimulatedGroup {
    const found = this.#groups.get(name) ?? new SimulatedGroup(this.#faults, name, this.partitions)
    this.#groups.set(name, found)
    return found
  }

  crashed(life: Life): void {
    for (const group of this.#groups.values()) group.crashed(life)
  }

  compact(): void {
    for (const topic of partitionedTopics) {
      if (topic !== "state" && topic !== "progress") continue
      for (let partition = 0; partition < this.partitions; partition++) {
        this.of(topic, partition).compact()
      }
    }
  }

  partitionOf(tenantId: string): number {
    return (tenantId.at(-1)?.charCodeAt(0) ?? 0) % this.partitions
  }

  port(life: Life): Log {
    const listeners = new Map<TopicKind, Set<AppendedListener>>()
    const faults = this.#faults
    const placement = new Placement(this.partitions)
    const read = <A>(what: string, look: () => A) =>
      faults.call<A, LogUnavailable>(
        life,
        what,
        (answer) => answer(Effect.sync(look)),
        unavailable(what)
      )
    const ends: Log["ends"] = (positions) =>
      read("ends", () =>
        positions.map(({ partition, topic }) => this.of(topic, partition).stableEnd)
      )
    return {
      partitions: this.partitions,
      bootstrap: "simulated",
      partitionOf: (tenantId) => this.partitionOf(tenantId),
      placement: Effect.succeed(placement),
      counts: Effect.die(new Error("not simulated")),
      addPartitions: () => Effect.die(new Error("not simulated")),
      bounds: (topic, partition) =>
        Effect.map(ends([{ topic, partition }]), ([end = 0]) => ({ start: 0, end })),
      ends,
      deleteBelow: () => Effect.die(new Error("not simulated")),
      reader: Effect.succeed({
        fetch: (positions, limits) => this.#fetch(life, positions, limits)
      }),
      appender: Effect.sync(() => this.#appender(life, listeners)),
      onAppended: (topic, listener) =>
        Effect.sync(() => {
          listeners.set(topic, (listeners.get(topic) ?? new Set()).add(listener))
        }),
      writer: (name, placed = UNSIGNED) => this.#writer(life, name, placed),
      membership: (name) => this.group(name).membership(life)
    }
  }

  #fetch(
    life: Life,
    positions: ReadonlyArray<Position>,
    { waitMs }: FetchLimits
  ): Effect.Effect<ReadonlyArray<Fetched>, LogUnavailable | OffsetOutOfRange> {
    const { chance, time } = this.#faults
    const entriesMax = chance.between(3, 60)
    const look = (): ReadonlyArray<Fetched> =>
      positions.map((position) => {
        const log = this.of(position.topic, position.partition)
        const { next, records } = log.read(position.offset, entriesMax)
        const { end: writtenEnd, stableEnd } = log
        return { ...position, records, nextOffset: next, writtenEnd, stableEnd, logStart: 0 }
      })
    return this.#faults.call<ReadonlyArray<Fetched>, LogUnavailable | OffsetOutOfRange>(
      life,
      "fetch",
      (answer) => {
        const gone = positions.find((one) => one.offset > this.of(one.topic, one.partition).end)
        if (gone !== undefined) {
          const { offset, partition, topic } = gone
          return answer(Effect.fail(new OffsetOutOfRange({ topic, partition, offset })))
        }
        let isOver = false
        const cancels: Array<() => void> = []
        const attempt = (isLast: boolean) => {
          if (isOver) return
          const found = look()
          const isNew = found.some(({ nextOffset, offset }) => nextOffset > offset)
          if (!isNew && !isLast) {
            for (const { partition, topic } of positions) {
              cancels.push(
                this.of(topic, partition).onMore(() => time.after(0, () => attempt(false)))
              )
            }
            return
          }
          isOver = true
          for (const cancel of cancels) cancel()
          answer(Effect.succeed(found))
        }
        cancels.push(time.after(waitMs, () => attempt(true)))
        attempt(false)
      },
      unavailable("fetch")
    )
  }

  #appender(life: Life, listeners: ReadonlyMap<TopicKind, Set<AppendedListener>>): LogAppender {
    const oneAtATime = Semaphore.makeUnsafe(1)
    return {
      append: (records) =>
        Effect.suspend(() => {
          const placed: Array<number> = []
          return this.#faults
            .call<void, LogUnavailable>(
              life,
              `append ${records[0]?.topic}`,
              (answer) => {
                for (const record of records) {
                  const { partition, topic } = record
                  placed.push(this.of(topic, partition).append([record], this.#faults.time.wall))
                }
                answer(Effect.void)
              },
              unavailable("append"),
              APPEND_SLOW
            )
            .pipe(
              Effect.tap(() =>
                Effect.sync(() => {
                  for (const [index, record] of records.entries()) {
                    for (const listener of listeners.get(record.topic) ?? []) {
                      listener(record, placed[index]!)
                    }
                  }
                })
              )
            )
        }).pipe(oneAtATime.withPermits(1))
    }
  }

  #producer(name: string): Producer {
    const found = this.#producers.get(name) ?? { epoch: 0, transaction: undefined, waiting: [] }
    this.#producers.set(name, found)
    return found
  }

  /** When no transaction of the producer is left. */
  #whenIdle(producer: Producer, then: () => void): void {
    if (producer.transaction === undefined) then()
    else producer.waiting.push(then)
  }

  /** The coordinator decides; the markers follow, one partition after the other. */
  #end(producer: Producer, end: "committed" | "aborted"): void {
    const { transaction } = producer
    if (transaction === undefined || transaction.isEnded) return
    transaction.isEnded = true
    let left = transaction.parts.size
    const done = () => {
      producer.transaction = undefined
      for (const waiting of producer.waiting.splice(0)) waiting()
    }
    if (left === 0) return done()
    for (const log of transaction.parts.keys()) {
      this.#faults.time.after(this.#faults.latency(300), () => {
        log.decide(transaction, end)
        this.#faults.log(`${log.name} is ${end} up to ${log.stableEnd}`)
        left -= 1
        if (left === 0) done()
      })
    }
  }

  #writer(
    life: Life,
    name: string,
    placed: PlacedSigning
  ): Effect.Effect<TransactionalWriter, LogUnavailable> {
    return this.#faults.call(
      life,
      "writer",
      (answer) => {
        const rate = this.#broken.isBlind === true ? 1 : STUCK_IDS
        const isStuck = this.#faults.isOn && this.#faults.chance.isHit(rate)
        const stuck = (this.#stuck.get(name) ?? 0) + (isStuck ? 1 : 0)
        this.#stuck.set(name, stuck)
        const producer = this.#producer(`${name}-${stuck}`)
        producer.epoch += 1
        const { epoch } = producer
        this.#faults.log(`${life.name} is writer ${name}-${stuck} of epoch ${epoch}`)
        this.#end(producer, "aborted")
        this.#whenIdle(producer, () =>
          answer(Effect.succeed(this.#transactions(life, name, producer, epoch, placed)))
        )
      },
      unavailable("fence")
    )
  }

  #transactions(
    life: Life,
    name: string,
    producer: Producer,
    epoch: number,
    placed: PlacedSigning
  ): TransactionalWriter {
    let isUsable = true
    const fenced = new WriterFenced({ transactionalId: name, cause: "a newer epoch" })
    /** Up to where it knows what stands where its records are signed for their places. */
    const seen = new Map<PartitionLog, number>()
    const request = <A>(
      what: string,
      apply: (
        answer: (value: A) => void,
        refuse: (failure: LogUnavailable | WriterFenced) => void
      ) => void
    ) =>
      this.#faults.call<A, LogUnavailable | WriterFenced>(
        life,
        what,
        (answer) => {
          const go = () =>
            producer.epoch === epoch
              ? apply(
                  (value) => answer(Effect.succeed(value)),
                  (failure) => answer(Effect.fail(failure))
                )
              : answer(Effect.fail(fenced))
          // The markers of the transaction before may still be on their way.
          if (what === "begin" && producer.epoch === epoch) this.#whenIdle(producer, go)
          else go()
        },
        unavailable("transaction")
      )
    const begin = (first: ReadonlyArray<NewRecord | PackedRecords>) =>
      request<Placed>("begin", (answer) => {
        const transaction = new Transaction()
        producer.transaction = transaction
        this.#faults.time.after(TRANSACTION_TIMEOUT_MS, () => {
          if (producer.transaction !== transaction || transaction.isEnded) return
          producer.epoch += 1
          this.#end(producer, "aborted")
        })
        answer({ offsets: this.#appendFirst(first, transaction) })
      })
    const follow = (records: ReadonlyArray<NewRecord>) =>
      request<void>("follow", (answer, refuse) => {
        const { transaction } = producer
        for (const record of records) {
          if (this.#broken.loses?.(record) === true) continue
          const { partition, topic } = record
          const log = this.of(topic, partition)
          if (!placed.topics.has(topic)) {
            log.append([record], this.#faults.time.wall, transaction)
            continue
          }
          const genuine = log
            .othersFrom(seen.get(log) ?? log.end, transaction!)
            .filter((other) => placed.isGenuine(other.record, record))
          if (genuine.length > 0 && this.#broken.isBlind !== true) {
            this.#end(producer, "aborted")
            const isOpen = genuine.some((other) => other.isOpen)
            return refuse(isOpen ? unavailable("transaction")("its place is taken") : fenced)
          }
          log.append([placed.sign(record, log.end)], this.#faults.time.wall, transaction)
          seen.set(log, log.end)
        }
        answer()
      })
    const end = request<void>("commit", (answer) => {
      const isFalse = this.#faults.isOn && this.#faults.chance.isHit(this.#broken.falseCommits ?? 0)
      this.#end(producer, isFalse ? "aborted" : "committed")
      answer()
    })
    return {
      commit: (first, then) =>
        Effect.gen(function* () {
          if (!isUsable) return yield* Effect.fail(unavailable("transaction")("not usable"))
          isUsable = false
          yield* follow(then(yield* begin(first)))
          yield* end
          isUsable = true
        }).pipe(Effect.uninterruptible)
    }
  }

  #appendFirst(
    records: ReadonlyArray<NewRecord | PackedRecords>,
    transaction: Transaction
  ): Placed["offsets"] {
    const offsets: Partial<Record<TopicKind, number>> = {}
    for (const record of records) {
      const own = "records" in record ? readPacked(record) : [record]
      const log = this.of(record.topic, record.partition)
      const first = log.append(own, this.#faults.time.wall, transaction)
      offsets[record.topic] ??= first
    }
    return offsets
  }
}
