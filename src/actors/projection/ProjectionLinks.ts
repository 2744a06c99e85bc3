/**
 * The last known link of each tenant of a chain, by which the projection tells whether a record
 * follows the one before it. After a start it is learned from the store, which may have been
 * changed: where the first record does not follow, the topic itself is asked for its predecessor.
 */
import { Effect } from "effect"
import { BoundedMap } from "../../domain/BoundedMap.ts"
import { type ChainLink, follows, linkOf } from "../../domain/chain/ChainLink.ts"
import type { Chain } from "../../domain/chain/Chains.ts"
import type { Own } from "../../domain/records/OwnOffsets.ts"
import { EventLog, type Fetched, type LogReader, type LogRecord } from "../../ports/EventLog.ts"
import { EventStore } from "../../ports/EventStore.ts"
import { TraceStore } from "../../ports/TraceStore.ts"
import { linkOfRecord } from "../log/ChainRecord.ts"
import { scan } from "../log/PartitionScan.ts"
import type { RemovedChains } from "./RemovedChains.ts"

/** Tenants whose last link is remembered, so that the next one can be checked. */
const LINKS_MAX = 100_000
/** Offsets that are looked through for a predecessor at a time. */
const STEP_OFFSETS = 20_000

/** The last link of each tenant. */
export type Links = BoundedMap<ChainLink>

export const makeLinks = (): Links => new BoundedMap(LINKS_MAX)

/** The links of both chains, what of them is not to come back, and which records count. */
export type ChainLinks = Readonly<Record<Chain, Links>> & {
  readonly removed: RemovedChains
  readonly own: (partition: number) => Own
}

/** Tenants whose last event is asked for at a time. */
const TENANTS_AT_ONCE = 1_000

/** The links with the highest sequence of tenants, as the store has them. */
const storedEvents = Effect.fnUntraced(function* (tenantIds: ReadonlyArray<string>) {
  const store = yield* EventStore
  const found = new Map<string, ChainLink>()
  for (let at = 0; at < tenantIds.length; at += TENANTS_AT_ONCE) {
    const tenants = tenantIds.slice(at, at + TENANTS_AT_ONCE)
    for (const { body, tenantId } of yield* store.lastEvents(tenants)) {
      const link = linkOf(Buffer.from(body))
      if (link !== undefined) found.set(tenantId, link)
    }
  }
  return found
})

const storedFact = Effect.fnUntraced(function* (tenantId: string) {
  const store = yield* TraceStore
  const { highest, rows } = yield* store.extent(tenantId)
  if (rows === 0) return undefined
  const [last] = yield* store.links(tenantId, [highest])
  return last === undefined
    ? undefined
    : {
        tenantId,
        sequenceNumber: last.chainSequence,
        createdAt: "",
        contentHash: "",
        prevHash: last.prevHash,
        hash: last.hash
      }
})

/** The end of a chain before a record; without a link the record begins it. */
interface Before {
  readonly link: ChainLink | undefined
}

/**
 * The end of the chain before a record, if its topic holds the record's predecessor: that one, or
 * what follows it already if the record is an old one once more. A record that is the first of its
 * chain has none.
 */
const predecessorOf = Effect.fnUntraced(function* (
  reader: LogReader,
  { partition, topic }: { readonly partition: number; readonly topic: Chain },
  own: Own,
  offset: number,
  next: ChainLink
) {
  const linkOfOwn = (record: LogRecord) =>
    own.isOwn(topic, record.offset) ? linkOfRecord(topic, record) : undefined
  const log = yield* EventLog
  const { start } = yield* log.bounds(topic, partition)
  let found: ChainLink | undefined
  let isFirst = follows(next, undefined)
  let from = offset
  for (let end = offset; end > start && found === undefined; end -= STEP_OFFSETS) {
    from = Math.max(start, end - STEP_OFFSETS)
    yield* scan(reader, { topic, partition, offset: from }, end, (records) => {
      for (const record of records) {
        const link = linkOfOwn(record)
        if (link?.tenantId !== next.tenantId) continue
        if (follows(next, link)) found ??= link
        if (follows(link, undefined)) isFirst = false
      }
    })
  }
  let last = found
  if (last === undefined) return isFirst ? ({ link: undefined } satisfies Before) : undefined
  yield* scan(reader, { topic, partition, offset: from }, offset, (records) => {
    for (const record of records) {
      const link = linkOfOwn(record)
      if (link?.tenantId === next.tenantId && follows(link, last)) last = link
    }
  })
  return { link: last } satisfies Before
})

const chainOf = (topic: string): Chain | undefined =>
  topic === "events" || topic === "traces" ? topic : undefined

/** The first record of each tenant that is not known yet. */
const unknownIn = (
  links: Links,
  chain: Chain,
  records: ReadonlyArray<LogRecord>
): ReadonlyMap<string, { readonly offset: number; readonly link: ChainLink | undefined }> => {
  const unknown = new Map<string, { offset: number; link: ChainLink | undefined }>()
  for (const { key, offset, value } of records) {
    const tenantId = key?.toString() ?? ""
    if (unknown.has(tenantId) || links.get(tenantId) !== undefined) continue
    unknown.set(tenantId, { offset, link: value === null ? undefined : linkOf(value, chain) })
  }
  return unknown
}

/** Learn the last link of tenants that were not seen since the start. */
export const learnLinks = Effect.fnUntraced(function* (
  links: ChainLinks,
  reader: LogReader,
  fetched: ReadonlyArray<Fetched>
) {
  for (const { partition, records, topic } of fetched) {
    const chain = chainOf(topic)
    if (chain === undefined) continue
    const own = links.own(partition)
    const ownRecords = records.filter(({ offset }) => own.isOwn(chain, offset))
    const unknown = unknownIn(links[chain], chain, ownRecords)
    const events = chain === "events" ? yield* storedEvents([...unknown.keys()]) : undefined
    for (const [tenantId, { link, offset }] of unknown) {
      const stored = events === undefined ? yield* storedFact(tenantId) : events.get(tenantId)
      const isDoubtful = stored !== undefined && link !== undefined && !follows(link, stored)
      const before = isDoubtful
        ? yield* predecessorOf(reader, { partition, topic: chain }, own, offset, link)
        : undefined
      if (before !== undefined) {
        // A late insert, whose rows are read again; or rows from outside, which verification finds.
        yield* Effect.logWarning("the store is further in a chain than its topic was read", {
          tenantId,
          chain,
          stored: stored?.sequenceNumber,
          read: before.link?.sequenceNumber ?? 0
        })
      }
      const last = before === undefined ? stored : before.link
      if (last !== undefined) links[chain].set(tenantId, last)
    }
  }
})
