/**
 * The query store in memory, as far as the projection and its readers use it: inserts whose outcome
 * is unknown and which end late, rows that are there twice until they are merged, reads that fail.
 */
import { Effect, Layer, Stream } from "effect"
import { sha256Hex } from "../../src/domain/Identifiers.ts"
import { type CheckpointRow, CheckpointStore } from "../../src/ports/CheckpointStore.ts"
import {
  type ConflictRow,
  type EventRow,
  EventStore,
  type ReceiptRow,
  type StoreResult,
  StoreUnavailable
} from "../../src/ports/EventStore.ts"
import {
  type Denied,
  type StoredTopic,
  StoredTopics,
  type TopicRows
} from "../../src/ports/TopicRows.ts"
import { TraceStore } from "../../src/ports/TraceStore.ts"
import type { Faults, Life } from "./Faults.ts"

/** Milliseconds after which an insert whose outcome is unknown has ended: `settleMs`. */
export const INSERT_ENDS_MS = 5_000
const INSERT_SLOW = { request: INSERT_ENDS_MS - 1_000, answer: 1_000 }

interface Row {
  readonly partition: number
  readonly offset: number
  readonly body: Buffer
}

interface StoredEvent extends Row {
  readonly tenantId: string
  readonly sequenceNumber: number
}

const failed = (operation: string) => (cause: string) => new StoreUnavailable({ operation, cause })

const bySequence = (left: StoredEvent, right: StoredEvent): number =>
  left.sequenceNumber - right.sequenceNumber

/** A topic that says which rows of it are where. */
interface Table<R extends Row> {
  rows: Array<R>
}

export class SimulatedStore {
  readonly #faults: Faults
  readonly events: Table<StoredEvent> = { rows: [] }
  readonly receipts: Table<ReceiptRow> = { rows: [] }
  readonly checkpoints: Table<CheckpointRow> = { rows: [] }
  readonly conflicts: Table<ConflictRow> = { rows: [] }
  /** Rows that were set aside, of any topic. */
  readonly aside: Array<Row> = []

  constructor(faults: Faults) {
    this.#faults = faults
  }

  eventsOf(tenantId: string, deduplicate: boolean): ReadonlyArray<StoredEvent> {
    const all = this.events.rows.filter((row) => row.tenantId === tenantId).sort(bySequence)
    if (!deduplicate) return all
    return all.filter((row, index) => row.sequenceNumber !== all[index - 1]?.sequenceNumber)
  }

  layer(life: Life) {
    return Layer.mergeAll(
      this.#eventStore(life),
      this.#traceStore(life),
      Layer.mock(CheckpointStore, { insert: this.#inserting(life, this.checkpoints) }),
      Layer.succeed(StoredTopics, { of: (topic) => this.#topicRows(life, topic) })
    )
  }

  #call<A>(life: Life, what: string, apply: () => A): StoreResult<A> {
    return this.#faults.call<A, StoreUnavailable>(
      life,
      what,
      (answer) => answer(Effect.sync(apply)),
      failed(what)
    )
  }

  #inserting<R extends Row, S extends R>(
    life: Life,
    table: Table<S>,
    toRow: (row: R) => S = (row) => row as S
  ) {
    return (rows: ReadonlyArray<R>): StoreResult<void> =>
      rows.length === 0
        ? Effect.void
        : this.#faults.call<void, StoreUnavailable>(
            life,
            "insert",
            (answer) => {
              this.#faults.log(`${life.name} inserted ${rows.map((one) => one.offset)}`)
              table.rows.push(
                ...rows.map((row) => ({ ...toRow(row), body: Buffer.from(row.body) }))
              )
              answer(Effect.void)
            },
            failed("insert"),
            INSERT_SLOW
          )
  }

  #merge(): void {
    const seen = new Set<string>()
    this.events.rows = this.events.rows.filter(({ sequenceNumber, tenantId }) => {
      const key = `${tenantId}/${sequenceNumber}`
      return !seen.has(key) && seen.add(key) !== undefined
    })
  }

  #hasDuplicates(partition: number, from: number): boolean {
    const seen = new Set<number>()
    for (const row of this.events.rows) {
      if (row.partition !== partition || row.offset < from) continue
      if (seen.has(row.offset)) return true
      seen.add(row.offset)
    }
    return false
  }

  #eventStore(life: Life) {
    const toStored = (row: EventRow): StoredEvent => {
      const event = JSON.parse(row.body.toString())
      return { ...row, tenantId: event.tenant_id, sequenceNumber: event.sequence_number }
    }
    return Layer.mock(EventStore, {
      purgeErased: Effect.succeed(0),
      ping: Effect.void,
      eraseAgain: () => this.#call(life, "eraseAgain", () => undefined),
      insertEvents: (rows) => Effect.as(this.#inserting(life, this.events, toStored)(rows), []),
      insertReceipts: this.#inserting(life, this.receipts),
      insertConflicts: this.#inserting(life, this.conflicts),
      hasDuplicates: (partition, from) =>
        this.#call(life, "hasDuplicates", () => this.#hasDuplicates(partition, from)),
      mergeDuplicates: this.#call(life, "merge", () => this.#merge()),
      lastEvents: (tenantIds) =>
        this.#call(life, "lastEvents", () =>
          tenantIds.flatMap((tenantId) => {
            const last = this.eventsOf(tenantId, true).at(-1)
            return last === undefined ? [] : [{ tenantId, body: last.body.toString() }]
          })
        ),
      receipt: (tenantId, receiptId) =>
        this.#call(life, "receipt", () =>
          this.receipts.rows
            .findLast((row) => row.tenantId === tenantId && row.receiptId === receiptId)
            ?.body.toString()
        ),
      scan: ({ filter, tenantId }, deduplicate) =>
        Stream.fromEffect(
          this.#call(life, "scan", () =>
            this.eventsOf(tenantId, deduplicate)
              .filter(
                ({ sequenceNumber }) =>
                  sequenceNumber >= (filter.fromSequence ?? 0)
                  && sequenceNumber <= (filter.toSequence ?? Number.POSITIVE_INFINITY)
              )
              .map(({ body }) => body.toString())
          )
        )
    })
  }

  /** Without executions: only what the projection always asks. */
  #traceStore(life: Life) {
    return Layer.mock(TraceStore, {
      hasDuplicates: () => this.#call(life, "hasDuplicates", () => false)
    })
  }

  #tableOf(topic: StoredTopic): Table<Row> {
    if (topic === "events") return this.events
    if (topic === "receipts") return this.receipts
    return topic === "checkpoints" ? this.checkpoints : { rows: [] }
  }

  #topicRows(life: Life, topic: StoredTopic): TopicRows {
    const table = this.#tableOf(topic)
    const own = (partition: number) => table.rows.filter((row) => row.partition === partition)
    const isDenied = (row: Row, { below = Number.POSITIVE_INFINITY, confirmed, from }: Denied) =>
      row.offset < below
      && (row.offset > from || (row.offset === from && !confirmed.includes(sha256Hex(row.body))))
    return {
      asideTable: "aside",
      highest: (partition, below = Number.POSITIVE_INFINITY) =>
        this.#call(life, "highest", () => {
          const offsets = own(partition).map(({ offset }) => offset)
          const highest = Math.max(-1, ...offsets.filter((offset) => offset < below))
          return highest < 0 ? undefined : highest
        }),
      rows: (partition, from, below) =>
        this.#call(life, "rows", () =>
          own(partition)
            .filter(({ offset }) => offset >= from && offset < below)
            .map(({ body, offset }) => ({ offset, digest: sha256Hex(body), body: undefined }))
        ),
      compare: (partition, from, below) =>
        this.#call(life, "compare", () =>
          own(partition)
            .filter(({ offset }) => offset >= from && offset < below)
            .map(({ body, offset }) => ({
              offset,
              digest: sha256Hex(body),
              body: undefined,
              isDisagreeing: false
            }))
        ),
      // None of its rows has columns beside its bytes.
      remove: () => Effect.void,
      index: () => Effect.succeed(0),
      denied: (partition, what) =>
        this.#call(life, "denied", () => {
          const denied = own(partition).filter((row) => isDenied(row, what))
          if (denied.length === 0) return []
          const offsets = denied.map(({ offset }) => offset)
          return [
            {
              table: topic,
              reason: Math.min(...offsets) >= what.end ? ("beyond_end" as const) : "not_in_topic",
              rows: denied.length,
              firstOffset: Math.min(...offsets),
              lastOffset: Math.max(...offsets)
            }
          ]
        }),
      setAside: (partition, what) =>
        this.#call(life, "setAside", () => {
          const isGone = (row: Row) => row.partition === partition && isDenied(row, what)
          this.aside.push(...table.rows.filter(isGone))
          table.rows = table.rows.filter((row) => !isGone(row))
        })
    }
  }
}
