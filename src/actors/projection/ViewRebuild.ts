/**
 * Compares everything that the store shows of a partition with its topics, and mends what differs:
 * rows that are missing are stored again, rows that the topic denies are set aside. What agrees stays
 * as it is and is served meanwhile; what the topic does not hold any more is not touched.
 */
import { Effect, Metric } from "effect"
import { sha256Hex } from "../../domain/Identifiers.ts"
import type { Own } from "../../domain/records/OwnOffsets.ts"
import { EventLog, type LogReader, type LogRecord } from "../../ports/EventLog.ts"
import {
  type ComparedRecord,
  type Denied,
  StoredTopics,
  type TopicRows
} from "../../ports/TopicRows.ts"
import { linkOfRecord } from "../log/ChainRecord.ts"
import { reportMalformed, takeEach } from "../log/Malformed.ts"
import { scan } from "../log/PartitionScan.ts"
import { type IsRecord, isRowOf, rowsSetAside } from "./Confirmation.ts"
import { type ProjectedTopic, refusalOf, tenantOf } from "./ProjectedTopic.ts"
import { type ChainLinks, makeLinks } from "./ProjectionLinks.ts"
import { type Erasures, makeErasures } from "./RebuildErasures.ts"
import { makeRemovedChains, nothingRemoved, type RemovedChains } from "./RemovedChains.ts"

/** Offsets that are compared at a time. */
const WINDOW_OFFSETS = 500

/** What was compared, and what was done. */
export interface RebuildCounts {
  /** Records of the topics. */
  readonly compared: number
  /** Rows that were missing, or said something else than their record, and are stored again. */
  readonly stored: number
  /** Rows that the topics deny. */
  readonly set_aside: number
}

export const NOTHING_COMPARED: RebuildCounts = { compared: 0, stored: 0, set_aside: 0 }

/** One topic of one partition. */
export interface RebuildPlace {
  readonly projected: ProjectedTopic
  readonly partition: number
  /** Which records of the topic count. */
  readonly own: Own
  /** What the store shows ends before this offset. */
  readonly upTo: number
  /** Only what belongs to this tenant. */
  readonly tenantId: string | undefined
}

/** What one window holds that has to be mended. */
interface Differences {
  /** In order; `isShown`: the store has the record as it is. */
  readonly records: Array<{ readonly record: LogRecord; readonly isShown: boolean }>
  /** Offsets at which there are other rows than the record's own, whose digests these are. */
  readonly denied: Map<number, Array<string>>
  /** Rows of a record whose columns say something else. */
  readonly wrong: Array<ComparedRecord>
}

type RowsByOffset = ReadonlyMap<number, ReadonlyArray<ComparedRecord>>

/** Sorts the rows at the offsets of records into their own and others, which the topic denies. */
const differencesOf = (
  records: ReadonlyArray<LogRecord>,
  stored: RowsByOffset,
  isRecord: (record: LogRecord) => IsRecord
): Differences => {
  const found: Differences = { records: [], denied: new Map(), wrong: [] }
  for (const offset of stored.keys()) found.denied.set(offset, [])
  for (const record of records) {
    const text = record.value ?? Buffer.alloc(0)
    const rows = stored.get(record.offset) ?? []
    const own = rows.filter((row) => isRowOf(text, row, isRecord(record)))
    found.denied.delete(record.offset)
    if (own.length < rows.length) {
      const digests = own.map((row) => row.digest)
      found.denied.set(record.offset, digests)
    }
    const wrong = own.filter(({ isDisagreeing }) => isDisagreeing)
    found.wrong.push(...wrong)
    found.records.push({ record, isShown: own.length > 0 && wrong.length === 0 })
  }
  return found
}

type Range = Denied & { readonly below: number }

/** Runs of offsets whose rows all go, as one; and those at which the record's own rows stay. */
const deniedRanges = (
  denied: ReadonlyMap<number, ReadonlyArray<string>>,
  kept: ReadonlySet<number>,
  end: number
): ReadonlyArray<Denied> => {
  const ranges: Array<Range> = []
  const offsets = [...denied.keys()].toSorted((left, right) => left - right)
  for (const from of offsets) {
    const confirmed = denied.get(from) ?? []
    const last = ranges.at(-1)
    const isRun = last !== undefined && last.confirmed.length + confirmed.length === 0
    const isFree = ({ below }: Range) => {
      for (let offset = below; offset < from; offset++) if (kept.has(offset)) return false
      return true
    }
    if (isRun && isFree(last)) ranges[ranges.length - 1] = { ...last, below: from + 1 }
    else ranges.push({ from, below: from + 1, confirmed, end })
  }
  return ranges
}

const setAside = Effect.fnUntraced(function* (
  rows: TopicRows,
  { partition, projected, upTo }: RebuildPlace,
  ranges: ReadonlyArray<Denied>
) {
  let count = 0
  for (const range of ranges) {
    const denied = yield* rows.denied(partition, range)
    if (denied.length === 0) continue
    yield* rows.setAside(partition, range)
    for (const { rows: some, table } of denied) {
      count += some
      yield* Metric.update(Metric.withAttributes(rowsSetAside, { table }), some)
    }
  }
  if (count === 0) return 0
  yield* Effect.logError("the store holds rows that the topic denies: they are set aside", {
    topic: projected.topic,
    partition,
    rows: count,
    below: upTo,
    into: rows.asideTable
  })
  return count
})

/** What is compared window by window, in order. */
class Comparison {
  readonly #reader: LogReader
  readonly #place: RebuildPlace
  readonly #links: ChainLinks = {
    events: makeLinks(),
    traces: makeLinks(),
    removed: (tenantId, chain) => this.#removed(tenantId, chain),
    own: () => this.#place.own
  }
  #removed: RemovedChains = nothingRemoved
  /** Asked whenever something is missing: rows go once the registry says so. */
  readonly #readRemoved: ReturnType<typeof makeRemovedChains>
  /** Read once something is missing or erased: of a row, only the topic says that it was erased. */
  #erasures: Erasures | undefined

  constructor(reader: LogReader, place: RebuildPlace) {
    this.#reader = reader
    this.#readRemoved = makeRemovedChains(reader)
    this.#place = place
  }

  /** Compares the offsets in [from, end), and mends what differs. */
  readonly window = Effect.fnUntraced({ self: this }, function* (from: number, end: number) {
    const { partition, projected, tenantId } = this.#place
    const { topic } = projected
    const rows = (yield* StoredTopics).of(topic)
    const stored = Map.groupBy(
      yield* rows.compare(partition, from, end, tenantId),
      ({ offset }) => offset
    )
    const records: Array<LogRecord> = []
    yield* scan(this.#reader, { topic, partition, offset: from }, end, (some) => {
      records.push(
        ...some.filter((record) => tenantId === undefined || tenantOf(record) === tenantId)
      )
    })
    const found = yield* this.#differences(from, records, stored)
    const isWhole = found.records.every(({ isShown }) => isShown)
    if (isWhole) for (const { record } of found.records) this.#learn(record)
    // By what their columns say they may stay beside those that are stored, or win over them.
    if (found.wrong.length > 0) yield* rows.remove(partition, found.wrong)
    const missing = isWhole ? [] : yield* this.#storeAgain(found, yield* this.#erasuresFrom(from))
    const kept = new Set([...stored.keys()].filter((offset) => !found.denied.has(offset)))
    const set_aside = yield* setAside(rows, this.#place, deniedRanges(found.denied, kept, end))
    const indexed = yield* rows.index(partition, from, end, tenantId)
    return {
      compared: found.records.length,
      stored: (yield* this.#storedOf(rows, missing)) + indexed,
      set_aside
    }
  })

  /** A row that is not a record's own may be one that was erased, as the topic then says. */
  readonly #differences = Effect.fnUntraced(
    { self: this },
    function* (from: number, records: ReadonlyArray<LogRecord>, stored: RowsByOffset) {
      const found = differencesOf(records, stored, () => () => false)
      if (found.denied.size === 0 || this.#place.projected.isRecord === undefined) return found
      const { apply } = yield* this.#erasuresFrom(from)
      return differencesOf(records, stored, (record) => {
        const left = String(apply(record).value)
        return (_, row) => row === left
      })
    }
  )

  /** Stores what is not shown, in its place of the chain; what it stores comes back. */
  readonly #storeAgain = Effect.fnUntraced(
    { self: this },
    function* ({ denied, records }: Differences, erasures: Erasures) {
      const { partition, projected } = this.#place
      this.#removed = yield* this.#readRemoved
      const batch = projected.begin(this.#links)
      const missing = new Map(
        records
          .filter(({ isShown }) => !isShown)
          .map(({ record }) => [record.offset, erasures.apply(record)])
      )
      const take = (record: LogRecord) => {
        const again = missing.get(record.offset)
        if (again === undefined) return this.#learn(record)
        // It is the record's own row, too.
        denied.get(record.offset)?.push(sha256Hex(again.value ?? Buffer.alloc(0)))
        batch.take(partition, again)
      }
      const all = records.map(({ record }) => record)
      yield* reportMalformed(takeEach({ topic: projected.topic, partition }, all, take))
      yield* batch.store
      return [...missing.values()]
    }
  )

  /** A record that is shown is what the next one of its chain has to follow. */
  #learn(record: LogRecord): void {
    const { topic } = this.#place.projected
    if (topic !== "events" && topic !== "traces") return
    if (!this.#place.own.isOwn(topic, record.offset)) return
    const link = linkOfRecord(topic, record)
    if (link === undefined) return
    const links = this.#links[topic]
    if (refusalOf(link, link.tenantId, links.get(link.tenantId)) !== undefined) return
    links.set(link.tenantId, link)
  }

  #erasuresFrom(offset: number) {
    const { own, partition, projected, upTo } = this.#place
    return Effect.gen({ self: this }, function* () {
      if (this.#erasures !== undefined) return this.#erasures
      const erasures = makeErasures(projected.topic, own)
      const position = { topic: projected.topic, partition, offset }
      yield* scan(this.#reader, position, upTo, (records) => records.forEach(erasures.take))
      this.#erasures = erasures
      return erasures
    })
  }

  /** How many of these records have become rows: most of a topic of receipts do not. */
  readonly #storedOf = Effect.fnUntraced(
    { self: this },
    function* (rows: TopicRows, records: ReadonlyArray<LogRecord>) {
      const [first, last] = [records[0], records.at(-1)]
      if (first === undefined || last === undefined) return 0
      const { partition, tenantId } = this.#place
      const now = yield* rows.compare(partition, first.offset, last.offset + 1, tenantId)
      const there = new Set(now.map(({ offset }) => offset))
      return records.filter(({ offset }) => there.has(offset)).length
    }
  )
}

/**
 * Compares one topic of a partition from its beginning up to an offset. `each` is run before every
 * window that may be mended and is told what was done until then; its failure ends the rebuild.
 */
export const rebuildTopic = Effect.fnUntraced(function* <E, R>(
  reader: LogReader,
  place: RebuildPlace,
  before: RebuildCounts,
  each: (counts: RebuildCounts) => Effect.Effect<void, E, R>
) {
  const log = yield* EventLog
  const { partition, projected, upTo } = place
  const { start } = yield* log.bounds(projected.topic, partition)
  const comparison = new Comparison(reader, place)
  let counts = before
  for (let from = start; from < upTo; from += WINDOW_OFFSETS) {
    yield* each(counts)
    const done = yield* comparison.window(from, Math.min(upTo, from + WINDOW_OFFSETS))
    counts = {
      compared: counts.compared + done.compared,
      stored: counts.stored + done.stored,
      set_aside: counts.set_aside + done.set_aside
    }
  }
  return counts
})
