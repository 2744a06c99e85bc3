/**
 * The ends of chains as the topics have them, read from the ends of the topics backwards. Records
 * that do not link, which the sequencer cannot have written, end no chain: a tenant that has such is
 * read from the start of its topic, link by link.
 */
import { Effect, Layer, Semaphore } from "effect"
import { chainOfTree, treeNameOf, type Chain, type ChainKey } from "../domain/Chains.ts"
import { treeOfCheckpoint } from "../domain/Checkpoint.ts"
import { follows, linkOf, type Link } from "../domain/Link.ts"
import { EventLog, type LogReader, type LogRecord } from "../ports/EventLog.ts"
import { ChainEnds } from "./ChainEnds.ts"
import { headOf, Heads } from "./Heads.ts"
import { scan } from "./PartitionScan.ts"
import { readCheckpoint, type Head } from "./SequencerState.ts"
import { TopicTail, type Gathered } from "./TopicTail.ts"

/** Tenants whose chain was read link by link that are remembered. */
const WALKS_MAX = 1_000
/** Newest notes of a tree that are kept; more of them than that are not genuine only by force. */
const NOTES_MAX = 64

const toHead = ({ createdAt, hash, sequenceNumber }: Link): Head => ({
  sequence_number: sequenceNumber,
  hash,
  created_at: createdAt
})

const linkOfRecord = (chain: Chain, { key, value }: LogRecord): Link | undefined => {
  const link = value === null ? undefined : linkOf(value, chain)
  return link !== undefined && link.tenantId === key?.toString() ? link : undefined
}

/** Records of one tenant in a range of offsets. */
interface Run {
  readonly first: Link
  readonly last: Link
  /** False if one of them does not follow the one before it. */
  readonly isLinked: boolean
}

/** The runs of a range, by tenant. */
class Runs implements Gathered {
  readonly #chain: Chain
  readonly #runs = new Map<string, Run>()

  constructor(chain: Chain) {
    this.#chain = chain
  }

  of(tenantId: string): Run | undefined {
    return this.#runs.get(tenantId)
  }

  take(record: LogRecord): void {
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

/** Notes of a range by tree, the newest last. */
class Notes implements Gathered {
  readonly #notes = new Map<string, Array<string>>()

  of(tree: string): ReadonlyArray<string> {
    return this.#notes.get(tree) ?? []
  }

  take({ value }: LogRecord): void {
    const found = noteOf(value)
    if (found === undefined) return
    const notes = this.#notes.get(found.tree) ?? []
    notes.push(found.note)
    if (notes.length > NOTES_MAX) notes.shift()
    this.#notes.set(found.tree, notes)
  }

  prepend(before: this): void {
    for (const [tree, notes] of before.#notes) {
      const own = this.#notes.get(tree) ?? []
      this.#notes.set(tree, [...notes, ...own].slice(-NOTES_MAX))
    }
  }
}

const noteOf = (value: Buffer | null) => {
  if (value === null) return undefined
  try {
    const checkpoint = readCheckpoint(value)
    return { tree: treeOfCheckpoint(checkpoint), note: checkpoint.note }
  } catch {
    // No sequencer has written it.
    return undefined
  }
}

/** A chain that was read link by link, up to an offset. */
interface Walk {
  readonly upTo: number
  readonly last: Link | undefined
}

interface Tails {
  readonly events: TopicTail<Runs>
  readonly traces: TopicTail<Runs>
  readonly checkpoints: TopicTail<Notes>
}

const make = Effect.fnUntraced(function*(isKeptForEver: boolean) {
  const log = yield* EventLog
  const heads = yield* Heads
  const shared = yield* log.reader
  const oneAtATime = Semaphore.makeUnsafe(1).withPermits(1)
  const reader: LogReader = {
    fetch: (positions, limits) => oneAtATime(shared.fetch(positions, limits))
  }
  const tails = Array.from({ length: log.partitions }, (_, partition): Tails => {
    const runs = (topic: Chain) =>
      new TopicTail(log, reader, { topic, partition }, () => new Runs(topic))
    const notes = { topic: "checkpoints" as const, partition }
    return {
      events: runs("events"),
      traces: runs("traces"),
      checkpoints: new TopicTail(log, reader, notes, () => new Notes())
    }
  })
  const walks = new Map<string, Walk>()

  /** From the start of the topic, or from where the last walk ended. */
  const walked = Effect.fnUntraced(function*({ chain, tenantId }: ChainKey) {
    const partition = log.partitionOf(tenantId)
    const name = treeNameOf(tenantId, chain)
    const { end, start } = yield* log.bounds(chain, partition)
    const known = walks.get(name)
    let last = known?.last
    yield* scan(
      reader,
      { topic: chain, partition, offset: Math.max(start, known?.upTo ?? 0) },
      end,
      (records) => {
        for (const record of records) {
          const link = linkOfRecord(chain, record)
          if (link === undefined || link.tenantId !== tenantId) continue
          // Behind a start that retention has moved, the first one that is left begins the walk.
          if (follows(link, last) || (last === undefined && start > 0)) last = link
        }
      }
    ).pipe(Effect.catchTag("OffsetOutOfRange", () => Effect.void))
    walks.delete(name)
    walks.set(name, { upTo: end, last })
    if (walks.size > WALKS_MAX) walks.delete(walks.keys().next().value!)
    return last
  })

  const head: ChainEnds["Service"]["head"] = Effect.fn("ChainEnds.head")(function*(key) {
    // How far back the tail has to be read; not believed beyond that.
    const said = yield* headOf(heads, key)
    if (said === undefined) return undefined
    const { chain, tenantId } = key
    const wanted = said.sequence_number
    const tail = tails[log.partitionOf(tenantId)]![chain]
    const run = yield* tail.ask((runs, isWhole) => {
      const found = runs.of(tenantId)
      if (found === undefined) return undefined
      const isReached = found.first.sequenceNumber <= wanted && wanted <= found.last.sequenceNumber
      return isWhole || !found.isLinked || isReached ? found : undefined
    })
    // Everything of the chain has left the topic.
    if (run === undefined) return said
    const last = run.isLinked ? run.last : yield* walked(key)
    const end = last === undefined ? undefined : toHead(last)
    if (wanted > (end?.sequence_number ?? 0)) {
      yield* Effect.logError("alk.state says more of a chain than its topic holds", {
        tenantId,
        chain,
        said: wanted,
        found: end?.sequence_number ?? 0
      })
    }
    return end
  })

  const checkpoint: ChainEnds["Service"]["checkpoint"] = Effect.fn("ChainEnds.checkpoint")(
    function*(tree, isGenuine) {
      const partition = log.partitionOf(chainOfTree(tree).tenantId)
      const newest = (notes: ReadonlyArray<string>) => notes.findLast(isGenuine)
      const found = yield* tails[partition]!.checkpoints.ask((notes) => {
        const genuine = newest(notes.of(tree))
        if (genuine !== undefined) return { genuine }
        return notes.of(tree).length >= NOTES_MAX ? { genuine } : undefined
      })
      if (found === undefined || found.genuine !== undefined) return found?.genuine
      // So many that are not genuine that the others were let go: read again, and judge each.
      let genuine: string | undefined
      const { end, start } = yield* log.bounds("checkpoints", partition)
      yield* scan(reader, { topic: "checkpoints", partition, offset: start }, end, (records) => {
        for (const { value } of records) {
          const read = noteOf(value)
          if (read?.tree === tree && isGenuine(read.note)) genuine = read.note
        }
      }).pipe(Effect.catchTag("OffsetOutOfRange", () => Effect.void))
      return genuine
    }
  )

  return ChainEnds.of({
    head,
    checkpoint,
    start: ({ chain, tenantId }) =>
      Effect.map(log.bounds(chain, log.partitionOf(tenantId)), ({ start }) => ({
        isCut: isKeptForEver && start > 0,
        offset: start
      }))
  })
})

/** `isKeptForEver`: the topics of events and traces lose no record by retention. */
export const layerChainEnds = (
  isKeptForEver: boolean
): Layer.Layer<ChainEnds, Effect.Error<ReturnType<typeof make>>, EventLog | Heads> =>
  Layer.effect(ChainEnds, make(isKeptForEver))
