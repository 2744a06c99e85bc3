/**
 * Compares the changelog of a partition with the topics of its chains: they end at the same record,
 * or one of them is behind.
 */
import { Effect } from "effect"
import { type ChainLink, follows } from "../../domain/chain/ChainLink.ts"
import type { Head } from "../../domain/chain/Chains.ts"
import { type Chain, chains } from "../../domain/chain/Chains.ts"
import type { LogRecord, LogUnavailable, OffsetOutOfRange } from "../../ports/EventLog.ts"
import { headOfLink, linkOfRecord } from "../log/ChainRecord.ts"
import { scan } from "../log/PartitionScan.ts"
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
   * True if the record continues its chain; undefined is what is no record at all. `isCut`: the
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

  /** Offset of a record beyond the end of its chain: what is in between is missing. */
  get missingBefore(): number | undefined {
    for (const [tenantId, { number, offset }] of this.#strays) {
      if (number > (this.heads.get(tenantId)?.sequence_number ?? 0)) return offset
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

/** Logs the records that were passed over. */
export const reportPassedOver = (
  partition: number,
  topic: Chain,
  { passedOver: records }: ChainWalk
) =>
  records === 0
    ? Effect.void
    : Effect.logError("records that no sequencer has written are passed over", {
        topic: `alk.${topic}`,
        partition,
        records
      })

/** What the changelog says of a topic that holds chains. */
interface Expected {
  readonly topic: Chain
  readonly next: number
  /** Undefined if the changelog does not have all of them. */
  readonly heads: ReadonlyMap<string, Head> | undefined
}

/** Does the changelog end where the topic ends, and with the same hash? */
const compareWithTopic = (
  { log, partition, reader }: Restoring,
  { heads, next, topic }: Expected
): Effect.Effect<Comparison, LogUnavailable | OffsetOutOfRange> =>
  Effect.gen(function* () {
    const { end, start } = yield* log.bounds(topic, partition)
    if (next > end) {
      return { ahead: `alk.state expects alk.${topic} up to offset ${next}, it ends at ${end}` }
    }
    if (heads === undefined) return "behind"
    const from = Math.max(start, next - 1)
    let last: LogRecord | undefined
    let newer = 0
    const walk = new ChainWalk(heads)
    yield* scan(reader, { topic, partition, offset: from }, end, (records) => {
      for (const record of records) {
        if (record.offset === next - 1) last = record
        else if (walk.take(linkOfRecord(topic, record), record.offset)) newer += 1
      }
    })
    if (newer > 0) return "behind"
    yield* reportPassedOver(partition, topic, walk)
    if (next === 0 || start >= next) return "equal"
    if (last === undefined) return { ahead: `alk.${topic} holds no record at offset ${next - 1}` }
    const link = linkOfRecord(topic, last)
    const tenantId = link?.tenantId ?? last.key?.toString() ?? ""
    const head = heads.get(tenantId)
    return link !== undefined
      && head?.hash === link.hash
      && head.sequence_number === link.sequenceNumber
      ? "equal"
      : {
          ahead:
            `the head of ${tenantId} is ${head?.sequence_number ?? 0} in alk.state and `
            + `${link?.sequenceNumber ?? 0} in alk.${topic}, or its hash differs`
        }
  })

/**
 * Does the changelog end where the topics end? `isWhole` is false if records of the changelog could
 * not be read: then it can only be behind.
 */
export const compareWithTopics = Effect.fnUntraced(function* (
  restoring: Restoring,
  state: SequencerState,
  isWhole: boolean
): Effect.fn.Return<Comparison, LogUnavailable | OffsetOutOfRange> {
  let comparison: Comparison = "equal"
  for (const topic of chains) {
    const next = topic === "events" ? state.eventsNext : state.tracesNext
    const heads = isWhole ? headsOf(state, topic) : undefined
    const found = yield* compareWithTopic(restoring, { topic, next, heads })
    if (typeof found === "object") return found
    if (found === "behind") comparison = found
  }
  return comparison
})
