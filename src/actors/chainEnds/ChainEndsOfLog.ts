/**
 * The ends of chains as the topics have them, read from the ends of the topics backwards. Records
 * that the sequencer has not written, as its changelog says, end no chain. Nor do those that do not
 * link: a tenant that has such is read from the start of its topic, link by link.
 */
import { Effect, Layer, Semaphore } from "effect"
import { BoundedMap } from "../../domain/BoundedMap.ts"
import { type ChainLink, follows } from "../../domain/chain/ChainLink.ts"
import {
  type Chain,
  type ChainKey,
  chainOfTree,
  chains,
  treeNameOf
} from "../../domain/chain/Chains.ts"
import {
  type CheckpointRecord,
  readCheckpoint,
  treeOfCheckpoint
} from "../../domain/chain/Checkpoint.ts"
import { defined } from "../../domain/Defined.ts"
import { inSlices } from "../../domain/InSlices.ts"
import type { Own } from "../../domain/records/OwnOffsets.ts"
import type { Sliced } from "../../domain/Slices.ts"
import { EventLog, type LogReader, type LogRecord, LogUnavailable } from "../../ports/EventLog.ts"
import { Heads, headOf } from "../follower/Heads.ts"
import { headOfLink, linkOfRecord } from "../log/ChainRecord.ts"
import { scan } from "../log/PartitionScan.ts"
import { type TailContents, TopicTail } from "../log/TopicTail.ts"
import { ChainEnds } from "./ChainEnds.ts"

/** Tenants whose chain was read link by link that are remembered. */
const WALKS_MAX = 1_000
/**
 * Newest checkpoints of a tree that are kept; if none of so many is genuine, all are read again.
 */
const RECORDS_MAX = 64

/** Records of one tenant in a range of offsets. */
interface TopicScan {
  readonly first: ChainLink
  readonly last: ChainLink
  /** False if one of them does not follow the one before it. */
  readonly isLinked: boolean
}

/** The runs of a range, by tenant. */
class Runs implements TailContents {
  readonly #chain: Chain
  readonly #own: Own
  readonly #runs = new Map<string, TopicScan>()

  constructor(chain: Chain, own: Own) {
    this.#chain = chain
    this.#own = own
  }

  of(tenantId: string): TopicScan | undefined {
    return this.#runs.get(tenantId)
  }

  take(record: LogRecord): void {
    if (!this.#own.isOwn(this.#chain, record.offset)) return
    const link = linkOfRecord(this.#chain, record)
    if (link === undefined) return
    const before = this.#runs.get(link.tenantId)
    const isLinked = before === undefined || (before.isLinked && follows(link, before.last))
    this.#runs.set(link.tenantId, { first: before?.first ?? link, last: link, isLinked })
  }

  prepend(before: this): void {
    for (const [tenantId, earlier] of before.#runs) {
      const own = this.#runs.get(tenantId)
      const isLinked =
        own === undefined
          ? earlier.isLinked
          : earlier.isLinked && own.isLinked && follows(own.first, earlier.last)
      this.#runs.set(tenantId, {
        first: earlier.first,
        last: own?.last ?? earlier.last,
        isLinked
      })
    }
  }
}

/** Checkpoints of a range by tree, the newest last. */
class Records implements TailContents {
  readonly #records = new Map<string, Array<CheckpointRecord>>()

  of(tree: string): ReadonlyArray<CheckpointRecord> {
    return this.#records.get(tree) ?? []
  }

  take({ value }: LogRecord): void {
    const found = recordOf(value)
    if (found === undefined) return
    const tree = treeOfCheckpoint(found)
    const records = this.#records.get(tree) ?? []
    records.push(found)
    if (records.length > RECORDS_MAX) records.shift()
    this.#records.set(tree, records)
  }

  prepend(before: this): void {
    for (const [tree, records] of before.#records) {
      const own = this.#records.get(tree) ?? []
      this.#records.set(tree, [...records, ...own].slice(-RECORDS_MAX))
    }
  }
}

const recordOf = (value: Buffer | null): CheckpointRecord | undefined => {
  if (value === null) return undefined
  try {
    return readCheckpoint(value)
  } catch {
    // No sequencer has written it.
    return undefined
  }
}

/** A chain that was read link by link, up to an offset. */
interface Walk {
  readonly upTo: number
  readonly last: ChainLink | undefined
}

interface Tails {
  readonly events: TopicTail<Runs>
  readonly traces: TopicTail<Runs>
  readonly checkpoints: TopicTail<Records>
}

/** The tails of a partition's topics. */
const tailsOf = (
  log: EventLog["Service"],
  reader: LogReader,
  own: Own,
  partition: number
): Tails => {
  const runs = (topic: Chain) =>
    new TopicTail(
      log,
      reader,
      { topic, partition },
      () => new Runs(topic, own),
      () => own.next(topic) ?? Infinity
    )
  const checkpoints = { topic: "checkpoints" as const, partition }
  return {
    events: runs("events"),
    traces: runs("traces"),
    checkpoints: new TopicTail(log, reader, checkpoints, () => new Records())
  }
}

/** Reads the chain of a tenant link by link, from the start or from where its last walk ended. */
const makeWalker = (log: EventLog["Service"], reader: LogReader, heads: Heads["Service"]) => {
  const walks = new BoundedMap<Walk>(WALKS_MAX)
  return Effect.fnUntraced(function* ({ chain, tenantId }: ChainKey) {
    const partition = log.partitionOf(tenantId)
    const name = treeNameOf(tenantId, chain)
    const own = yield* heads.own(partition)
    const bounds = yield* log.bounds(chain, partition)
    const { start } = bounds
    const end = Math.min(bounds.end, own.next(chain) ?? Infinity)
    const known = walks.get(name)
    const offset = Math.max(start, known?.upTo ?? 0)
    let last = known?.last
    yield* scan(reader, { topic: chain, partition, offset }, end, (records) => {
      for (const record of records) {
        if (!own.isOwn(chain, record.offset)) continue
        const link = linkOfRecord(chain, record)
        if (link === undefined || link.tenantId !== tenantId) continue
        // After a start that retention has moved, the first one that is left begins the walk.
        if (follows(link, last) || (last === undefined && start > 0)) last = link
      }
    }).pipe(Effect.catchTag("OffsetOutOfRange", () => Effect.void))
    walks.set(name, { upTo: end, last })
    return last
  })
}

/** Offsets whose checkpoints are read before any of them is checked. */
const SEARCH_OFFSETS = 16_384

function* lastGenuine(
  records: ReadonlyArray<CheckpointRecord>,
  isGenuine: (one: CheckpointRecord) => boolean
): Sliced<CheckpointRecord | undefined> {
  for (const one of records.toReversed()) {
    if (isGenuine(one)) return one
    yield
  }
  return undefined
}

/**
 * The last genuine checkpoint of a tree in the whole topic, where its newest ones are by others. What
 * was read once is not read again: others may write as many as they like.
 */
const makeSearch = (log: EventLog["Service"], reader: LogReader) => {
  const searches = new BoundedMap<{
    readonly upTo: number
    readonly genuine: CheckpointRecord | undefined
  }>(WALKS_MAX)
  return Effect.fnUntraced(function* (tree: string, isGenuine: (one: CheckpointRecord) => boolean) {
    const place = {
      topic: "checkpoints" as const,
      partition: log.partitionOf(chainOfTree(tree).tenantId)
    }
    const { end, start } = yield* log.bounds(place.topic, place.partition)
    const before = searches.get(tree)
    const isLeft =
      before !== undefined && (before.genuine === undefined || isGenuine(before.genuine))
    let genuine = isLeft ? before.genuine : undefined
    for (let from = Math.max(start, isLeft ? before.upTo : 0); from < end; from += SEARCH_OFFSETS) {
      const found: Array<CheckpointRecord> = []
      const upTo = Math.min(end, from + SEARCH_OFFSETS)
      yield* scan(reader, { ...place, offset: from }, upTo, (records) => {
        for (const { value } of records) {
          const read = recordOf(value)
          if (read !== undefined && treeOfCheckpoint(read) === tree) found.push(read)
        }
      }).pipe(Effect.catchTag("OffsetOutOfRange", () => Effect.void))
      genuine = (yield* inSlices(() => lastGenuine(found, isGenuine))) ?? genuine
      searches.set(tree, { upTo, genuine })
    }
    return genuine
  })
}

/** Fails where `alk.state` knows of records that are written, but can't be read yet. */
const makeReadable = (log: EventLog["Service"], reader: LogReader, heads: Heads["Service"]) =>
  Effect.fnUntraced(
    function* (topic: Chain, partition: number) {
      const next = (yield* heads.own(partition)).next(topic) ?? 0
      const { end } = yield* log.bounds(topic, partition)
      if (end >= next) return
      const limits = { waitMs: 0, maxBytes: 1 }
      const fetched = yield* reader.fetch([{ topic, partition, offset: end }], limits)
      if (!fetched.some(({ stableEnd, writtenEnd }) => stableEnd < writtenEnd)) return
      return yield* new LogUnavailable({
        operation: "verify",
        cause: new Error(
          `alk.${topic} can't be read beyond ${end} yet: a transaction is open there`
        )
      })
    },
    Effect.catchTag("OffsetOutOfRange", () => Effect.void)
  )

/** Where the topic of a chain begins. */
const startOf = (
  log: EventLog["Service"],
  isKeptForEver: boolean,
  chain: Chain,
  partition: number
) =>
  Effect.map(log.bounds(chain, partition), ({ start }) => ({
    isCut: isKeptForEver && start > 0,
    offset: start
  }))

const reportDeletedStarts = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  isKeptForEver: boolean
) {
  for (const chain of chains) {
    for (let partition = 0; partition < log.partitions; partition++) {
      const { isCut, offset } = yield* startOf(log, isKeptForEver, chain, partition)
      if (!isCut) continue
      yield* Effect.logError(
        "records were deleted from the start of a topic that is kept for ever",
        { topic: `alk.${chain}`, partition, offset }
      )
    }
  }
})

const make = Effect.fnUntraced(function* (isKeptForEver: boolean) {
  const log = yield* EventLog
  const heads = yield* Heads
  const shared = yield* log.reader
  const oneAtATime = Semaphore.makeUnsafe(1).withPermits(1)
  const reader: LogReader = {
    fetch: (positions, limits) => oneAtATime(shared.fetch(positions, limits))
  }
  const known = new Map<number, Tails>()
  const tailsIn = Effect.fnUntraced(function* (partition: number) {
    const found =
      known.get(partition) ?? tailsOf(log, reader, yield* heads.own(partition), partition)
    known.set(partition, found)
    return found
  })
  const walk = makeWalker(log, reader, heads)
  const search = makeSearch(log, reader)
  const readable = makeReadable(log, reader, heads)

  const head: ChainEnds["Service"]["head"] = Effect.fn("ChainEnds.head")(function* (key) {
    // How far back the tail has to be read; beyond that it counts for nothing.
    const expected = yield* headOf(heads, key)
    if (expected === undefined) return undefined
    const { chain, tenantId } = key
    const sequence = expected.sequence_number
    const partition = log.partitionOf(tenantId)
    const tail = (yield* tailsIn(partition))[chain]
    const run = yield* tail.ask((runs, isWhole) => {
      const found = runs.of(tenantId)
      if (found === undefined) return undefined
      const { first, isLinked, last } = found
      const isReached = first.sequenceNumber <= sequence && sequence <= last.sequenceNumber
      return isWhole || !isLinked || isReached ? found : undefined
    })
    const last = run === undefined || run.isLinked ? run?.last : yield* walk(key)
    if (last !== undefined && last.sequenceNumber >= sequence) return headOfLink(last)
    yield* readable(chain, partition)
    // Everything of the chain has left the topic.
    if (run === undefined) return expected
    // The topic has lost its end: what is missing from it is expected all the same.
    yield* Effect.logError("alk.state says more of a chain than its topic holds", {
      tenantId,
      chain,
      said: sequence,
      found: last?.sequenceNumber ?? 0
    })
    return expected
  })

  const checkpoint: ChainEnds["Service"]["checkpoint"] = Effect.fn("ChainEnds.checkpoint")(
    function* (tree, isGenuine) {
      const partition = log.partitionOf(chainOfTree(tree).tenantId)
      const tails = yield* tailsIn(partition)
      const found = yield* tails.checkpoints.ask((records) => {
        const ofTree = records.of(tree)
        const genuine = ofTree.findLast(isGenuine)
        return genuine !== undefined || ofTree.length >= RECORDS_MAX ? { genuine } : undefined
      })
      if (found === undefined || found.genuine !== undefined) return found?.genuine
      // The tail holds none but such that are not genuine.
      return yield* search(tree, isGenuine)
    }
  )

  yield* reportDeletedStarts(log, isKeptForEver)
  return ChainEnds.of({
    head,
    checkpoint,
    start: Effect.fnUntraced(function* ({ chain, tenantId }) {
      const partition = log.partitionOf(tenantId)
      const start = yield* startOf(log, isKeptForEver, chain, partition)
      const losses = yield* heads.losses(partition)
      const givenUp = losses?.givenUp.get(treeNameOf(tenantId, chain))
      return { ...start, ...defined({ adopted: losses?.adopted, givenUp }) }
    })
  })
})

/** `isKeptForEver`: the topics of events and traces lose no record by retention. */
export const layerChainEnds = (
  isKeptForEver: boolean
): Layer.Layer<ChainEnds, Effect.Error<ReturnType<typeof make>>, EventLog | Heads> =>
  Layer.effect(ChainEnds, make(isKeptForEver))
