/**
 * How a sequencer comes to its state: from the changelog if that agrees with the topics, from the
 * topics if the changelog is behind, lost or unreadable, and not at all if the topics are behind.
 * Runs after the writer has fenced every other one, so nothing below moves while it reads.
 */
import { Effect, Schema } from "effect"
import { type ChainLink, follows } from "../../domain/chain/ChainLink.ts"
import { type Chain, chains, treeNameOf } from "../../domain/chain/Chains.ts"
import {
  type CheckpointRecord,
  openNote,
  readCheckpoint,
  treeOfCheckpoint
} from "../../domain/chain/Checkpoint.ts"
import type { Head } from "../../domain/chain/Head.ts"
import { NEXT_KEY } from "../../domain/chain/KeyLine.ts"
import { Frontier } from "../../domain/chain/MerkleTree.ts"
import { SYSTEM_TENANT } from "../../domain/Identifiers.ts"
import { RecordFields, RecordUnreadable } from "../../domain/json/RecordFields.ts"
import { type Command, decodeCommand, dedupKeyOf } from "../../domain/records/Command.ts"
import { readWriterPosition } from "../../domain/records/CommandWriter.ts"
import { COMMAND_HEADER, WRITER_HEADER } from "../../domain/records/RecordHeaders.ts"
import type { StateRecord, TreeSigner, WindowEntry } from "../../domain/records/StateRecords.ts"
import type { TopicKind } from "../../domain/records/Topics.ts"
import { checkNotOlder } from "../../domain/registry/Registry.ts"
import { readRegistryRecord } from "../../domain/registry/RegistryEntry.ts"
import { RegistryTable } from "../../domain/registry/RegistryTable.ts"
import { microsOf } from "../../domain/Timestamp.ts"
import { parseFact } from "../../domain/traces/TraceFact.ts"
import { traceEventKeyOf } from "../../domain/traces/TraceOperation.ts"
import type {
  EventLog,
  LogReader,
  LogRecord,
  LogUnavailable,
  OffsetOutOfRange,
  TransactionalWriter,
  WriterFenced
} from "../../ports/EventLog.ts"
import { headOfLink, linkOfRecord } from "../log/ChainRecord.ts"
import { type Malformed, reportMalformed, scanEach, takeEach } from "../log/Malformed.ts"
import { scan, scanUntil } from "../log/PartitionScan.ts"
import { PackedWindow } from "./PackedWindow.ts"
import {
  emptyReplay,
  emptyState,
  finishReplay,
  handOverName,
  headRecord,
  metaRecord,
  ownerRecord,
  type Replay,
  replay,
  type SequencerState,
  snapshot,
  totalsOf,
  type Windows
} from "./SequencerState.ts"

/** The partition can't be sequenced without risking its chains; a person has to look. */
export class PartitionRefused extends Schema.TaggedError<PartitionRefused>()("PartitionRefused", {
  partition: Schema.Int,
  message: Schema.String
}) {}

type RestoreFailure = LogUnavailable | OffsetOutOfRange | WriterFenced | PartitionRefused

interface Restoring {
  readonly log: EventLog["Service"]
  readonly reader: LogReader
  readonly writer: TransactionalWriter
  readonly partition: number
  readonly windows: Windows
}

const refuse = (partition: number, message: string): Effect.Effect<never, PartitionRefused> =>
  Effect.fail(new PartitionRefused({ partition, message }))

const toNew = (partition: number, record: StateRecord) => ({
  topic: "state" as const,
  partition,
  key: record.key,
  value: record.value
})

/** Replay the changelog up to the record that this owner has just written. */
const readChangelog = ({ log, partition, reader, windows, writer }: Restoring) =>
  Effect.gen(function* () {
    const owner = crypto.randomUUID()
    yield* writer.commit([], () => [toNew(partition, ownerRecord(owner))])
    const gathered = emptyReplay(partition, log.partitions, windows)
    const keys = new Set<string>()
    /**
     * Keys of which compaction may have removed the record that counts: no good one has followed.
     */
    const doubtful = new Set<string>()
    const malformed: Array<Malformed> = []
    const { start } = yield* log.bounds("state", partition)
    const position = { topic: "state" as const, partition, offset: start }
    const take = ({ key, value }: LogRecord) => {
      if (key === null) throw new RecordUnreadable("it has no key")
      const name = key.toString()
      if (value === null) keys.delete(name)
      else keys.add(name)
      replay(gathered, name, value)
      doubtful.delete(name)
    }
    const takeAll = (records: ReadonlyArray<LogRecord>) => {
      for (const record of records) {
        const refused = takeEach(position, [record], take)
        malformed.push(...refused)
        if (refused.length === 0 || record.key === null) continue
        doubtful.add(record.key.toString())
        keys.add(record.key.toString())
      }
    }
    yield* scanUntil(reader, position, takeAll, () => gathered.owner === owner)
    yield* reportMalformed(malformed)
    return { gathered, keys, isWhole: doubtful.size === 0 && (yield* isComplete(gathered)) }
  })

/** Compaction may have removed a head for an older copy of it: then the heads add up to less. */
const isComplete = Effect.fnUntraced(function* ({ state, totals }: Replay) {
  const found = totalsOf(state)
  if (totals === undefined) return true
  const names = ["events", "facts", "writers"] as const
  if (names.every((name) => found[name] === totals[name])) return true
  const { partition } = state
  yield* Effect.logError("alk.state does not add up to what was written there", {
    partition,
    found,
    written: totals
  })
  return false
})

interface StoredEvent {
  readonly tenant_id: string
  readonly id: string
  readonly sequence_number: number
  readonly prev_hash: string
  readonly hash: string
  readonly created_at: string
}

/** Undefined for what no sequencer has written. */
const parseEvent = ({ value }: LogRecord): StoredEvent | undefined => {
  try {
    const fields = RecordFields.of(value ?? "", "event")
    for (const name of ["tenant_id", "id", "prev_hash", "hash", "created_at"]) fields.text(name)
    fields.integer("sequence_number", 1)
    return fields.value as unknown as StoredEvent
  } catch {
    // The caller decides what that means.
    return undefined
  }
}

type Comparison = "equal" | "behind" | { readonly ahead: string }

/**
 * Chains as the records of a topic continue them. A record that does not continue its chain was not
 * written by a sequencer: it is passed over, unless the chain ends below it.
 */
class ChainWalk {
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

  /** Offset of a record beyond the end of its chain: what lies between is missing. */
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

const passedOver = (
  partition: number,
  topic: Expected["topic"],
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
  readonly topic: "events" | "traces"
  readonly next: number
  /** Undefined if the changelog does not tell all of them. */
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
    yield* passedOver(partition, topic, walk)
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

/** `isWhole` is false if records of the changelog could not be read: then it can only be behind. */
const compareWithTopics = (restoring: Restoring, state: SequencerState, isWhole: boolean) =>
  Effect.gen(function* () {
    const events = yield* compareWithTopic(restoring, {
      topic: "events",
      next: state.eventsNext,
      heads: isWhole ? state.heads : undefined
    })
    if (typeof events === "object") return events
    const traces = yield* compareWithTopic(restoring, {
      topic: "traces",
      next: state.tracesNext,
      heads: isWhole ? state.traceHeads : undefined
    })
    return events === "equal" ? traces : typeof traces === "object" ? traces : events
  })

/** The command that a record answers; -1 if it names none. */
const commandOffsetOf = (record: LogRecord): number => {
  const text = record.headers[COMMAND_HEADER]?.toString() ?? ""
  const offset = Number(text)
  return /^[0-9]+$/.test(text) && Number.isSafeInteger(offset) ? offset : -1
}

/** Offset of the last command whose outcome is in the topics; -1 if none ever did. */
const lastApplied = ({ log, partition, reader }: Restoring) =>
  Effect.gen(function* () {
    let applied = -1
    for (const topic of ["receipts", "quarantine"] as const) {
      const { end, start } = yield* log.bounds(topic, partition)
      yield* scan(reader, { topic, partition, offset: start }, end, (records) => {
        for (const record of records) applied = Math.max(applied, commandOffsetOf(record))
      })
    }
    if (applied >= 0) return applied
    const commands = yield* log.bounds("commands", partition)
    const receipts = yield* log.bounds("receipts", partition)
    // Nothing of the topic has expired, and none of it answers a command.
    if (receipts.start === 0) return commands.start - 1
    if (commands.start === commands.end) return commands.end - 1
    return yield* refuse(
      partition,
      `alk.state is lost and the receipts that name the commands applied have expired, while `
        + `alk.commands still holds ${commands.end - commands.start} commands: see 'alk repair --help'`
    )
  })

interface Chains {
  readonly heads: Map<string, Head>
  readonly trees: Map<string, Frontier>
  /** Sequence number by dedup key, for every event still in the topic. */
  readonly byId: Map<string, number>
  readonly eventsNext: number
}

/** Refuses chains of which a part is missing; says what was passed over. */
const checkWhole = Effect.fnUntraced(function* (
  partition: number,
  topic: Expected["topic"],
  walk: ChainWalk
) {
  const missing = walk.missingBefore
  if (missing !== undefined) {
    return yield* refuse(
      partition,
      `alk.${topic} is damaged: offset ${missing} does not link to the record before it`
    )
  }
  yield* passedOver(partition, topic, walk)
})

/** Read every chain of the partition again, checking each link. */
const readChains = ({ log, partition, reader }: Restoring) =>
  Effect.gen(function* () {
    const walk = new ChainWalk()
    const trees = new Map<string, Frontier>()
    const byId = new Map<string, number>()
    let eventsNext = 0
    const { end, start } = yield* log.bounds("events", partition)
    yield* scan(reader, { topic: "events", partition, offset: start }, end, (records) => {
      for (const record of records) {
        const event = parseEvent(record)
        const link = event && linkOfRecord("events", record)
        if (!walk.take(link, record.offset, start > 0) || event === undefined) continue
        if (event.sequence_number === 1) trees.set(event.tenant_id, Frontier.empty())
        trees.get(event.tenant_id)?.append(event.hash)
        byId.set(dedupKeyOf(event.tenant_id, event.id), event.sequence_number)
        eventsNext = record.offset + 1
      }
    })
    yield* checkWhole(partition, "events", walk)
    const ends = { eventsNext: eventsNext === 0 ? start : eventsNext }
    return { heads: walk.heads, trees, byId, ...ends } satisfies Chains
  })

/**
 * Read every chain of trace facts again, checking each link. Executions are not remembered: what is
 * asked for is loaded from the store once that has caught up.
 */
const readTraceChains = ({ log, partition, reader }: Restoring, byId: Map<string, number>) =>
  Effect.gen(function* () {
    const walk = new ChainWalk()
    const trees = new Map<string, Frontier>()
    const { end, start } = yield* log.bounds("traces", partition)
    let tracesNext = start
    yield* scan(reader, { topic: "traces", partition, offset: start }, end, (records) => {
      for (const record of records) {
        const fact = parseFact(record.value?.toString() ?? "")
        const link = fact && linkOfRecord("traces", record)
        if (!walk.take(link, record.offset, start > 0) || fact === undefined) continue
        const name = treeNameOf(fact.tenant_id, "traces")
        if (fact.chain_sequence === 1) trees.set(name, Frontier.empty())
        trees.get(name)?.append(fact.hash)
        if (fact.type === "span.event") {
          byId.set(traceEventKeyOf(fact.tenant_id, fact.event_id), fact.sequence_number)
        }
        tracesNext = record.offset + 1
      }
    })
    yield* checkWhole(partition, "traces", walk)
    return { traceHeads: walk.heads, traceTrees: trees, tracesNext }
  })

/** The newest checkpoint of each tree, as the topic has them. */
const readCheckpoints = ({ log, partition, reader }: Restoring) =>
  Effect.gen(function* () {
    const checkpoints = new Map<string, CheckpointRecord>()
    const naming: Array<CheckpointRecord> = []
    const { end, start } = yield* log.bounds("checkpoints", partition)
    const position = { topic: "checkpoints" as const, partition, offset: start }
    yield* scanEach(reader, position, end, ({ value }) => {
      if (value === null) return
      const checkpoint = readCheckpoint(value)
      checkpoints.set(treeOfCheckpoint(checkpoint), checkpoint)
      if (checkpoint.note.includes(`\n${NEXT_KEY} `)) naming.push(checkpoint)
    })
    return { checkpoints, naming }
  })

/** Those of the checkpoints with which a published key has handed a tree over. */
const readHandOvers = (restoring: Restoring, naming: ReadonlyArray<CheckpointRecord>) =>
  Effect.gen(function* () {
    const handOvers = new Map<string, CheckpointRecord>()
    if (naming.length === 0) return handOvers
    const registry = new RegistryTable()
    yield* readRegistry(restoring, registry)
    for (const checkpoint of naming) {
      const key = registry.signingKey(checkpoint.key_id)
      const name = handOverName(checkpoint.key_id, treeOfCheckpoint(checkpoint))
      if (key === undefined || handOvers.has(name)) continue
      if ("checkpoint" in openNote(checkpoint.note, [key.vkey])) handOvers.set(name, checkpoint)
    }
    return handOvers
  })

/** Mark of an event whose command is gone: equal to no fingerprint, so its id is taken. */
const UNKNOWN_MARK = "0".repeat(32)

interface Remembered {
  readonly dedup: ReadonlyArray<WindowEntry>
  readonly idempotency: ReadonlyArray<WindowEntry>
  readonly writers: Map<string, number>
}

/** What the commands still in the topic say of client ids, idempotency keys and writers. */
const readCommands = ({ log, partition, reader }: Restoring, chains: Chains, applied: number) =>
  Effect.gen(function* () {
    const dedup = new Map<string, WindowEntry>()
    const idempotency: Array<WindowEntry> = []
    const writers = new Map<string, number>()
    const count = ({ headers }: LogRecord) => {
      const mark = readWriterPosition(headers[WRITER_HEADER]?.toString() ?? "")
      if (mark === undefined) return
      writers.set(mark.writer, Math.max(mark.number, writers.get(mark.writer) ?? 0))
    }
    const take = (command: Command) => {
      let conflict = false
      const items = [...command.events, ...(command.traces ?? [])] as ReadonlyArray<{
        readonly dedupKey?: string
        readonly fingerprint?: string
      }>
      for (const { dedupKey, fingerprint } of items) {
        if (dedupKey === undefined || fingerprint === undefined) continue
        const number = chains.byId.get(dedupKey)
        const known = dedup.get(dedupKey)
        if (known !== undefined) conflict ||= known.mark !== fingerprint
        else if (number !== undefined) {
          dedup.set(dedupKey, { key: dedupKey, mark: fingerprint, number })
        }
      }
      const mark = command.idempotency
      if (mark !== undefined && !(mark.forgetConflict && conflict)) {
        const number = microsOf(command.receivedAt)
        idempotency.push({ key: mark.key, mark: mark.body, number })
      }
    }
    const { end, start } = yield* log.bounds("commands", partition)
    const stop = Math.min(end, applied + 1)
    yield* scan(reader, { topic: "commands", partition, offset: start }, stop, (records) => {
      for (const record of records) {
        if (record.refused !== undefined) continue
        count(record)
        try {
          take(decodeCommand(record.value))
        } catch {}
      }
    })
    const older = [...chains.byId]
      .filter(([key]) => !dedup.has(key))
      .map(([key, number]) => ({ key, mark: UNKNOWN_MARK, number }))
    const all = [...older, ...dedup.values()]
    return { dedup: all, idempotency, writers } satisfies Remembered
  })

const filled = (capacity: number, entries: ReadonlyArray<WindowEntry>): PackedWindow => {
  const window = new PackedWindow(capacity)
  for (const entry of entries) window.append(entry)
  return window
}

/** Records of one transaction of a rebuild. */
const REBUILD_RECORDS = 500

/** Make the changelog anew from the topics, `applied` last: it counts only when it is complete. */
const rebuild = (
  restoring: Restoring,
  outdated: ReadonlySet<string>,
  before: TreeSigner | undefined
) =>
  Effect.gen(function* () {
    const { log, partition, windows, writer } = restoring
    yield* Effect.logWarning("rebuilding the sequencer's state from the topics", { partition })
    const applied = yield* lastApplied(restoring)
    const chains = yield* readChains(restoring)
    const { traceHeads, traceTrees, tracesNext } = yield* readTraceChains(restoring, chains.byId)
    const { checkpoints, naming } = yield* readCheckpoints(restoring)
    const handOvers = yield* readHandOvers(restoring, naming)
    const remembered = yield* readCommands(restoring, chains, applied)
    const { writers } = remembered
    const state: SequencerState = {
      ...emptyState(partition, log.partitions, windows),
      heads: chains.heads,
      trees: new Map([...chains.trees, ...traceTrees]),
      checkpoints,
      traceHeads,
      dedup: filled(windows.dedup, remembered.dedup),
      idempotency: filled(windows.idempotency, remembered.idempotency),
      handOvers,
      signer: before,
      writers,
      applied,
      eventsNext: chains.eventsNext,
      tracesNext,
      tracesForgotten: tracesNext,
      totals: totalsOf({ heads: chains.heads, traceHeads, writers })
    }
    const records = snapshot(state)
    const kept = new Set(records.map(({ key }) => key))
    const gone = [...outdated].filter((key) => !kept.has(key) && key !== "owner")
    const all = [...gone.map((key) => ({ key, value: null })), ...records]
    for (let at = 0; at < all.length; at += REBUILD_RECORDS) {
      const part = all.slice(at, at + REBUILD_RECORDS)
      yield* writer.commit([], () => part.map((record) => toNew(partition, record)))
    }
    yield* Effect.logWarning("the sequencer's state is rebuilt", {
      partition,
      applied,
      tenants: state.heads.size
    })
    const written = emptyReplay(partition, log.partitions, windows)
    for (const { key, value } of records) {
      replay(written, key, typeof value === "string" ? Buffer.from(value) : value)
    }
    return finishReplay(written)
  })

/** The tree over a chain as its topic holds it; undefined if the topic does not begin with it. */
const treesOf = ({ log, partition, reader }: Restoring, chain: Chain, names: ReadonlySet<string>) =>
  Effect.gen(function* () {
    const trees = new Map<string, Frontier>()
    const { end, start } = yield* log.bounds(chain, partition)
    yield* scan(reader, { topic: chain, partition, offset: start }, end, (records) => {
      for (const record of records) {
        const link = linkOfRecord(chain, record)
        if (link === undefined) continue
        const name = treeNameOf(link.tenantId, chain)
        if (!names.has(name)) continue
        const tree = trees.get(name) ?? Frontier.empty()
        if (tree.size !== link.sequenceNumber - 1) continue
        tree.append(link.hash)
        trees.set(name, tree)
      }
    })
    return trees
  })

/** Trees that an earlier version did not keep are read from the topics once, and written down. */
const growTrees = (restoring: Restoring, state: SequencerState, names: ReadonlySet<string>) =>
  Effect.gen(function* () {
    if (names.size === 0) return
    const { partition, writer } = restoring
    yield* Effect.logWarning(
      "reading Merkle trees from the topics that the state does not have yet",
      {
        partition,
        trees: names.size
      }
    )
    const records: Array<StateRecord> = []
    for (const chain of chains) {
      const heads = chain === "events" ? state.heads : state.traceHeads
      const trees = yield* treesOf(restoring, chain, names)
      for (const [tenantId, head] of heads) {
        const name = treeNameOf(tenantId, chain)
        if (!names.has(name)) continue
        const grown = trees.get(name)
        const tree = grown?.size === head.sequence_number ? grown : undefined
        if (tree !== undefined) state.trees.set(name, tree)
        records.push(headRecord(chain, tenantId, head, tree))
      }
    }
    for (let at = 0; at < records.length; at += REBUILD_RECORDS) {
      const part = records.slice(at, at + REBUILD_RECORDS)
      yield* writer.commit([], () => part.map((record) => toNew(partition, record)))
    }
  })

/** What `alk.registry` holds, for the partition that writes it. */
const readRegistry = ({ log, reader }: Restoring, registry: RegistryTable) =>
  Effect.gen(function* () {
    const { end, start } = yield* log.bounds("registry", 0)
    const position = { topic: "registry" as const, partition: 0, offset: start }
    yield* scanEach(reader, position, end, ({ key, value }) => {
      const change = readRegistryRecord(key, value)
      if (change === undefined) return
      checkNotOlder(registry, change)
      registry.take([change])
    })
  })

const checkPartitions = ({ log, partition }: Restoring, gathered: Replay) =>
  gathered.partitions === undefined || gathered.partitions === log.partitions
    ? Effect.void
    : refuse(
        partition,
        `alk.state was written with ${gathered.partitions} partitions, the topics have `
          + `${log.partitions}: set ALK_PARTITIONS back`
      )

/** The next command must still be there, and must not lie after the end of the log. */
const checkPosition = ({ log, partition }: Restoring, state: SequencerState) =>
  Effect.gen(function* () {
    const { end, start } = yield* log.bounds("commands", partition)
    const next = state.applied + 1
    const topic: TopicKind = "commands"
    if (next < start) {
      return yield* refuse(
        partition,
        `alk.${topic} starts at offset ${start}, but ${next} is the next to apply: `
          + `${start - next} acknowledged commands have expired unread. See 'alk repair --help'`
      )
    }
    if (next > end) {
      return yield* refuse(
        partition,
        `alk.${topic} ends at offset ${end}, but ${state.applied} was applied already: the topic `
          + `has lost records. See 'alk repair --help'`
      )
    }
  })

/** The state to go on from, agreed with the topics. */
export const restore = (restoring: Restoring): Effect.Effect<SequencerState, RestoreFailure> =>
  Effect.gen(function* () {
    const { log, partition, writer } = restoring
    const { gathered, isWhole, keys } = yield* readChangelog(restoring)
    yield* checkPartitions(restoring, gathered)
    let state = finishReplay(gathered)
    const comparison = yield* compareWithTopics(restoring, state, isWhole)
    if (typeof comparison === "object") {
      return yield* refuse(
        partition,
        `the topics are behind alk.state: ${comparison.ahead}. See 'alk repair --help'`
      )
    }
    const receipts = yield* log.bounds("receipts", partition)
    const lost = !gathered.started && receipts.end > 0
    if (comparison === "behind" || lost) {
      state = yield* rebuild(restoring, keys, gathered.state.signer)
    } else if (!gathered.started) {
      yield* writer.commit([], () => [toNew(partition, metaRecord(log.partitions))])
    } else yield* growTrees(restoring, state, gathered.treeless)
    if (log.partitionOf(SYSTEM_TENANT) === partition) yield* readRegistry(restoring, state.registry)
    yield* checkPosition(restoring, state)
    return state
  })
