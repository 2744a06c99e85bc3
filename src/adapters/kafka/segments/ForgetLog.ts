/**
 * What the log folders of a broker still hold of what was erased, and its removal there. Each partition
 * is judged by its own records: an erasure is in the partition of what it erases.
 */
import * as fs from "node:fs"
import type { Chain } from "../../../domain/chain/Chains.ts"
import { ErasedCommands } from "../../../domain/forgetting/ErasedCommands.ts"
import { ErasedEvents } from "../../../domain/forgetting/ErasedEvents.ts"
import { ErasedFacts } from "../../../domain/forgetting/ErasedFacts.ts"
import type { ForgettingRun, RewrittenSegment } from "../../../domain/forgetting/ForgettingRun.ts"
import type { ForgettingTopic } from "../../../domain/forgetting/ForgettingTopic.ts"
import { nothingOwn, OwnOffsets } from "../../../domain/records/OwnOffsets.ts"
import { RecordMac } from "../../../domain/records/RecordMac.ts"
import { APPLIED_KEY, readApplied } from "../../../domain/records/StateRecords.ts"
import { type TopicKind, topicName } from "../../../domain/records/Topics.ts"
import { currentTime } from "../../../domain/Timestamp.ts"
import type { LogRecord } from "../../../ports/EventLog.ts"
import type { SegmentBatch } from "./BatchRewrite.ts"
import {
  eachCommitted,
  fileHash,
  isCut,
  type PartitionPlan,
  planPartition,
  type SegmentPlan,
  writeSegment
} from "./ForgetPartition.ts"
import { readJournal, writeJournal } from "./Journal.ts"
import type { PartitionFolders } from "./LogFolder.ts"
import { removeUnfinished, segmentPath } from "./SegmentFile.ts"
import { Transactions } from "./Transactions.ts"

/** The topics that hold details of clients. */
export const FORGETTING_TOPICS = ["events", "traces", "commands", "state"] as const
export type FolderTopic = (typeof FORGETTING_TOPICS)[number]

export interface ForgettingLog {
  readonly prefix: string
  readonly folders: Readonly<Record<FolderTopic, PartitionFolders>>
  /** By which what the sequencers have written is believed. */
  readonly secret: string
  /** A broker may be running on the folders: nothing is written then. */
  readonly isWritten: boolean
  readonly progress: (line: () => string) => void
}

export interface PlannedPartition extends PartitionPlan {
  readonly kind: TopicKind
  readonly partition: number
  readonly folder: string
}

export interface ForgettingPlan {
  /** Events and executions that were erased. */
  readonly erasures: number
  /** Those in which something changes. */
  readonly partitions: ReadonlyArray<PlannedPartition>
  /** Those of which it can't be said what the sequencers have written: they stay as they are. */
  readonly unproven: ReadonlyArray<number>
}

const said = ({ prefix, progress }: ForgettingLog, what: string, kind: TopicKind, of: number) =>
  progress(() => `${what} ${topicName(prefix, kind)}-${of}`)

/** Says which batches stay as they are, as alk can't have written them. */
const foreignIn =
  ({ prefix, progress }: ForgettingLog, kind: TopicKind, partition: number) =>
  ({ baseOffset, lastOffset }: SegmentBatch, why: string) =>
    progress(
      () =>
        `left as it is, since alk did not write it: ${topicName(prefix, kind)}-${partition}, offsets`
        + ` ${baseOffset} to ${lastOffset}: a record batch that is ${why}`
    )

/** Learn from one partition; an empty one if this broker has no copy of it. */
const learn = async <T extends ForgettingTopic>(
  log: ForgettingLog,
  kind: FolderTopic,
  partition: number,
  topicOf: (isCut: boolean) => T,
  isOwn: (offset: number) => boolean
) => {
  const folder = log.folders[kind].get(partition)
  const topic = topicOf(folder !== undefined && isCut(folder))
  if (folder === undefined) return { topic, transactions: new Transactions() }
  said(log, "reading", kind, partition)
  const take = (record: LogRecord) => {
    if (isOwn(record.offset)) topic.learn(record)
  }
  const foreign = foreignIn(log, kind, partition)
  const transactions = await eachCommitted(folder, log.isWritten, take, foreign)
  return { topic, transactions }
}

const planned = async (
  log: ForgettingLog,
  kind: FolderTopic,
  partition: number,
  learned: Omit<PartitionPlan, "segments">
): Promise<ReadonlyArray<PlannedPartition>> => {
  const folder = log.folders[kind].get(partition)
  if (folder === undefined) return []
  said(log, "looking for what was erased in", kind, partition)
  const found = await planPartition(folder, learned, log.isWritten)
  return found.segments.length === 0 ? [] : [{ ...found, kind, partition, folder }]
}

/**
 * Offset of the last command that was applied, -1 if nothing says so that this service has written; and
 * which records of the chains a sequencer has written.
 */
const changelogOf = async (log: ForgettingLog, partition: number) => {
  const folder = log.folders.state.get(partition)
  if (folder === undefined) return { applied: -1, own: nothingOwn }
  const own = new OwnOffsets()
  const mac = new RecordMac(log.secret)
  const topic = topicName(log.prefix, "state")
  let applied = -1
  const take = (record: LogRecord) => {
    const key = record.key?.toString() ?? ""
    if (mac.refusal({ ...record, headers: record.headers, topic, partition }) !== undefined) return
    own.take(key, record.value)
    if (key !== APPLIED_KEY || record.value === null) return
    applied = readApplied(record.value).command_offset
  }
  await eachCommitted(folder, log.isWritten, take, foreignIn(log, "state", partition))
  // What is not known to be a sequencer's erases nothing.
  const isProven = own.isWhole && own.next("events") !== undefined
  return isProven ? { applied, own } : { applied: -1, own: nothingOwn }
}

const planOf = async (log: ForgettingLog, partition: number): Promise<ForgettingPlan> => {
  const { applied, own } = await changelogOf(log, partition)
  if (own === nothingOwn) return { erasures: 0, partitions: [], unproven: [partition] }
  const isOwn = (chain: Chain) => (offset: number) => own.isOwn(chain, offset)
  const eventsOf = (cut: boolean) => new ErasedEvents(cut)
  const events = await learn(log, "events", partition, eventsOf, isOwn("events"))
  const factsOf = (cut: boolean) => new ErasedFacts(cut)
  const facts = await learn(log, "traces", partition, factsOf, isOwn("traces"))
  const erasures = events.topic.erasures + facts.topic.erasures
  if (erasures === 0) return { erasures, partitions: [], unproven: [] }
  const inEvents = await planned(log, "events", partition, events)
  // Before the commands: of erased executions their spans are known then.
  const inTraces = await planned(log, "traces", partition, facts)
  const topic = new ErasedCommands(applied, events.topic, facts.topic)
  const inCommands =
    applied === -1
      ? []
      : await planned(log, "commands", partition, { topic, transactions: new Transactions() })
  return { erasures, partitions: [...inEvents, ...inTraces, ...inCommands], unproven: [] }
}

/** What is to be changed. @throws RecordsUnreadable, RecordUnreadable */
export const planForgetting = async (log: ForgettingLog): Promise<ForgettingPlan> => {
  const numbers = new Set(FORGETTING_TOPICS.flatMap((kind) => [...log.folders[kind].keys()]))
  let erasures = 0
  const partitions: Array<PlannedPartition> = []
  const unproven: Array<number> = []
  for (const partition of [...numbers].sort((left, right) => left - right)) {
    const found = await planOf(log, partition)
    erasures += found.erasures
    partitions.push(...found.partitions)
    unproven.push(...found.unproven)
  }
  return { erasures, partitions, unproven }
}

/** Room that stays free beside a new segment. */
const SPARE_BYTES = 64 * 1_048_576

/** There is no room for the new segment beside the old one. */
export class NoRoom extends Error {
  override readonly name = "NoRoom"
}

const checkRoom = ({ segment }: SegmentPlan): void => {
  const { bavail, bsize } = fs.statfsSync(segment.path)
  if (bavail * bsize >= segment.bytes + SPARE_BYTES) return
  throw new NoRoom(
    `${segment.path} needs ${segment.bytes + SPARE_BYTES} free bytes beside it: free some space`
  )
}

/** The journal of the folder that holds all of it, with the run that this process is in. */
export class ForgettingJournal {
  readonly #folder: string
  readonly #earlier: ReadonlyArray<ForgettingRun>
  #run: ForgettingRun | undefined

  /**
   * Takes up a run that was ended: a segment of which it is not known whether it was replaced is what
   * the file says. `pathOf`: of a segment's file. @throws RecordUnreadable
   */
  constructor(folder: string, pathOf: (segment: RewrittenSegment) => string | undefined) {
    this.#folder = folder
    const runs = readJournal(folder)
    this.#earlier = runs.filter(({ ended_at }) => ended_at !== null)
    const open = runs.find(({ ended_at }) => ended_at === null)
    if (open === undefined) return
    const segments = open.segments.flatMap((segment) => {
      if (segment.is_replaced) return [segment]
      const path = pathOf(segment)
      const isThere = path !== undefined && fs.existsSync(path) && fileHash(path) === segment.sha256
      return isThere ? [{ ...segment, is_replaced: true }] : []
    })
    this.#write({ ...open, segments })
  }

  get run(): ForgettingRun | undefined {
    return this.#run
  }

  /** Before a segment is replaced. */
  replacing(segment: RewrittenSegment): void {
    const run = this.#run ?? {
      id: crypto.randomUUID(),
      started_at: currentTime(),
      ended_at: null,
      segments: []
    }
    this.#write({ ...run, segments: [...run.segments, segment] })
  }

  /** After the last of them was. */
  replaced(): void {
    if (this.#run === undefined) return
    const segments = this.#run.segments.map((one) => ({ ...one, is_replaced: true }))
    this.#write({ ...this.#run, segments })
  }

  end(): void {
    if (this.#run !== undefined) this.#write({ ...this.#run, ended_at: currentTime() })
  }

  #write(run: ForgettingRun): void {
    this.#run = run
    writeJournal(this.#folder, [...this.#earlier, run])
  }
}

/** The journal of a log, and what an earlier process has left unfinished is gone. */
export const openJournal = (folder: string, log: ForgettingLog): ForgettingJournal => {
  for (const kind of FORGETTING_TOPICS) {
    for (const one of log.folders[kind].values()) removeUnfinished(one)
  }
  return new ForgettingJournal(folder, ({ base_offset, partition, topic }) => {
    const kind = FORGETTING_TOPICS.find((one) => topicName(log.prefix, one) === topic)
    const at = kind && log.folders[kind].get(partition)
    return at === undefined ? undefined : segmentPath(at, base_offset)
  })
}

/** Rewrite one segment. @throws NoRoom, RecordsUnreadable */
export const forgetSegment = async (
  { prefix, progress }: ForgettingLog,
  partition: PlannedPartition,
  concerned: SegmentPlan,
  journal: ForgettingJournal
): Promise<void> => {
  const { baseOffset, bytes, path } = concerned.segment
  progress(() => `rewriting ${path}`)
  checkRoom(concerned)
  const written = await writeSegment(partition, concerned)
  journal.replacing({
    topic: topicName(prefix, partition.kind),
    partition: partition.partition,
    base_offset: baseOffset,
    is_replaced: false,
    records_replaced: concerned.replaced,
    records_removed: concerned.dropped,
    bytes_before: bytes,
    bytes_after: written.bytes,
    sha256: written.sha256
  })
  written.file.replaceOld()
  journal.replaced()
}
