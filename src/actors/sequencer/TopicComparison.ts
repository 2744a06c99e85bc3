/**
 * Compares the changelog of a partition with the topics of its chains: they end at the same record,
 * or one of them is behind.
 */
import { Effect, Metric } from "effect"
import { type ChainLink, follows } from "../../domain/chain/ChainLink.ts"
import type { Head } from "../../domain/chain/Chains.ts"
import { type Chain, chains } from "../../domain/chain/Chains.ts"
import type { LogRecord, LogUnavailable, OffsetOutOfRange } from "../../ports/EventLog.ts"
import { headOfLink, linkOfRecord } from "../log/ChainRecord.ts"
import { malformedRecords } from "../log/Malformed.ts"
import { type Bounds, scan } from "../log/PartitionScan.ts"
import type { Restoring } from "./Restoring.ts"
import { headsOf, type SequencerState } from "./SequencerState.ts"

type Comparison = "equal" | "behind" | { readonly ahead: string }

/**
 * Chains as the records of a topic continue them. A record that does not continue its chain was not
 * written by a sequencer: it is passed over, unless the chain ends before it.
 */
export class ChainWalk {
  readonly heads: Map<string, Head>
  /** By tenant the highest number of those that were passed over, with their offsets. */
  readonly #strays = new Map<string, { readonly number: number; readonly offset: number }>()
  passedOver = 0

  constructor(heads: ReadonlyMap<string, Head> = new Map()) {
    this.heads = new Map(heads)
  }

  /**
   * True if the record continues its chain; undefined is what is not a record at all. `isCut`: the
   * start of the topic is gone, so a chain may begin anywhere.
   */
  take(link: ChainLink | undefined, offset: number, isCut = false): link is ChainLink {
    const head = link && this.heads.get(link.tenantId)
    const before = head && { sequenceNumber: head.sequence_number, hash: head.hash }
    const isFirstLeft = isCut && head === undefined
    if (link === undefined || !(isFirstLeft || follows(link, before))) {
      this.#passOver(link, offset)
      return false
    }
    this.heads.set(link.tenantId, headOfLink(link))
    return true
  }

  /**
   * Offset of a record beyond the end of its chain: what is in between is missing. Of a chain that has
   * not begun nothing is.
   */
  get missingBefore(): number | undefined {
    for (const [tenantId, { number, offset }] of this.#strays) {
      if (number > (this.heads.get(tenantId)?.sequence_number ?? Infinity)) return offset
    }
    return undefined
  }

  #passOver(link: ChainLink | undefined, offset: number): void {
    this.passedOver += 1
    if (link === undefined) return
    const known = this.#strays.get(link.tenantId)
    if (known !== undefined && known.number >= link.sequenceNumber) return
    this.#strays.set(link.tenantId, { number: link.sequenceNumber, offset })
  }
}

/** Says and counts the records that were passed over. */
export const reportPassedOver = Effect.fnUntraced(function* (
  partition: number,
  topic: Chain,
  records: number
) {
  if (records === 0) return
  yield* Effect.logError("records that no sequencer has written are passed over", {
    topic: `alk.${topic}`,
    partition,
    records
  })
  yield* Metric.update(Metric.withAttributes(malformedRecords, { topic }), records)
})

/** What the changelog says of a topic that holds chains. */
interface Expected {
  readonly topic: Chain
  readonly next: number
  readonly heads: ReadonlyMap<string, Head>
}

/** The records from the last one on that the changelog includes. */
const readTail = Effect.fnUntraced(function* (
  { partition, reader }: Restoring,
  { heads, next, topic }: Expected,
  { end, start }: Bounds
) {
  let last: LogRecord | undefined
  let linked = 0
  const walk = new ChainWalk(heads)
  const offset = Math.max(start, next - 1)
  yield* scan(reader, { topic, partition, offset }, end, (records) => {
    for (const record of records) {
      if (record.offset === next - 1) last = record
      else if (walk.take(linkOfRecord(topic, record), record.offset)) linked += 1
    }
  })
  return { last, linked, others: linked + walk.passedOver }
})

/** Why the last record is not the one that the changelog ends with, if it is another one. */
const refusalOfLast = (
  { heads, next, topic }: Expected,
  last: LogRecord | undefined
): string | undefined => {
  if (last === undefined) return `alk.${topic} holds no record at offset ${next - 1}`
  const link = linkOfRecord(topic, last)
  const tenantId = link?.tenantId ?? last.key?.toString() ?? ""
  const head = heads.get(tenantId)
  if (link !== undefined && head?.hash === link.hash) {
    if (head.sequence_number === link.sequenceNumber) return undefined
  }
  return (
    `the head of ${tenantId} is ${head?.sequence_number ?? 0} in alk.state and `
    + `${link?.sequenceNumber ?? 0} in alk.${topic}, or its hash differs`
  )
}

/**
 * Does the changelog end where the topics end? Both are written in one transaction, and every other
 * writer is fenced: beyond the end of a whole changelog there are only records of others, which are
 * passed over. Links count where there is no changelog.
 */
export const compareWithTopics = Effect.fnUntraced(function* (
  restoring: Restoring,
  state: SequencerState,
  changelog: "whole" | "none" | "damaged"
): Effect.fn.Return<Comparison, LogUnavailable | OffsetOutOfRange> {
  const { log, partition } = restoring
  let comparison: Comparison = changelog === "damaged" ? "behind" : "equal"
  for (const topic of chains) {
    const next = topic === "events" ? state.eventsNext : state.tracesNext
    const bounds = yield* log.bounds(topic, partition)
    if (next > bounds.end) {
      return {
        ahead: `alk.state expects alk.${topic} up to offset ${next}, it ends at ${bounds.end}`
      }
    }
    if (changelog === "damaged") continue
    const expected = { topic, next, heads: headsOf(state, topic) }
    const { last, linked, others } = yield* readTail(restoring, expected, bounds)
    if (changelog === "none" && linked > 0) {
      comparison = "behind"
      continue
    }
    yield* reportPassedOver(partition, topic, others)
    state.expected[topic] = others === 0 ? bounds.end : next
    if (next === 0 || bounds.start >= next) continue
    const ahead = refusalOfLast(expected, last)
    if (ahead !== undefined) return { ahead }
  }
  return comparison
})
