/**
 * Rewrites the segments of one partition of a stopped broker by what its topic has to forget. Reads the
 * partition once to learn that and once to see which segments are concerned; only those are written.
 */
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import type { ForgettingTopic } from "../../../domain/forgetting/ForgettingTopic.ts"
import type { LogRecord } from "../../../ports/EventLog.ts"
import { RecordsUnreadable } from "../protocol/FetchResponse.ts"
import { recordsOf, rewriteBatch, type SegmentBatch } from "./BatchRewrite.ts"
import { batchesOf, NewSegment, type Segment, segmentsOf } from "./SegmentFile.ts"
import { Transactions } from "./Transactions.ts"

/** What is to be changed in a segment. */
export interface SegmentPlan {
  readonly segment: Segment
  readonly replaced: number
  readonly dropped: number
}

/** What a partition has to forget, once it was read. */
export interface PartitionPlan {
  readonly topic: ForgettingTopic
  readonly transactions: Transactions
  /** Those in which something changes. */
  readonly segments: ReadonlyArray<SegmentPlan>
}

/**
 * Hand every record of a partition that counts to `take`, in the order in which they do.
 * @param isWritten a broker may be writing to the last segment
 * @param foreign is told of a batch that can't be read, and why: no record of it counts
 */
export const eachCommitted = async (
  folder: string,
  isWritten: boolean,
  take: (record: LogRecord) => void,
  foreign: (batch: SegmentBatch, why: string) => void
): Promise<Transactions> => {
  const transactions = new Transactions()
  for (const segment of segmentsOf(folder)) {
    for (const batch of batchesOf(segment, isWritten)) {
      // The records of a batch outlive its bytes, which are the window's.
      const own = { ...batch, bytes: Buffer.from(batch.bytes) }
      const records = await recordsOf(own)
      const isRead = typeof records !== "string"
      if (!isRead) foreign(own, records)
      for (const record of transactions.take(own, isRead ? records : [])) take(record)
    }
  }
  return transactions
}

/** True if the partition does not begin with its first record any more. */
export const isCut = (folder: string): boolean => (segmentsOf(folder)[0]?.baseOffset ?? 0) > 0

const changesIn = async (
  { topic, transactions }: Omit<PartitionPlan, "segments">,
  batch: SegmentBatch
) => {
  const outcome = transactions.outcomeOf(batch)
  return await rewriteBatch(batch, (record) => topic.fateOf(record, outcome))
}

/** Which segments are concerned. */
export const planPartition = async (
  folder: string,
  learned: Omit<PartitionPlan, "segments">,
  isWritten: boolean
): Promise<PartitionPlan> => {
  const segments: Array<SegmentPlan> = []
  for (const segment of segmentsOf(folder)) {
    let replaced = 0
    let dropped = 0
    for (const batch of batchesOf(segment, isWritten)) {
      const changed = await changesIn(learned, batch)
      replaced += changed.replaced
      dropped += changed.dropped
    }
    if (replaced > 0 || dropped > 0) segments.push({ segment, replaced, dropped })
  }
  return { ...learned, segments }
}

/** A segment that was written beside the old one, and read again. */
export interface WrittenSegment {
  readonly plan: SegmentPlan
  readonly bytes: number
  /** 64 hex digits, of the whole file. */
  readonly sha256: string
  readonly file: NewSegment
}

/** SHA-256 of a file as 64 hex digits. */
export const fileHash = (path: string): string => {
  const hash = createHash("sha256")
  const descriptor = fs.openSync(path, "r")
  const bytes = Buffer.allocUnsafe(1_048_576)
  try {
    for (;;) {
      const read = fs.readSync(descriptor, bytes)
      if (read === 0) return hash.digest("hex")
      hash.update(bytes.subarray(0, read))
    }
  } finally {
    fs.closeSync(descriptor)
  }
}

/** What a broker and its readers rely on, of one batch. */
const frameOf = ({ baseOffset, lastOffset, producerId }: SegmentBatch): string =>
  `${baseOffset} ${lastOffset} ${producerId}`

/**
 * The new file has to hold the same batches, with as many records less as were dropped, and nothing to
 * forget.
 * @throws RecordsUnreadable
 */
const check = async (
  learned: PartitionPlan,
  { dropped, segment }: SegmentPlan,
  path: string
): Promise<void> => {
  const old = batchesOf(segment)
  let fewer = 0
  for (const batch of batchesOf({ ...segment, path })) {
    const before = old.next()
    if (before.done === true || frameOf(before.value) !== frameOf(batch)) {
      throw new RecordsUnreadable(`${path} is not what ${segment.path} became`)
    }
    fewer += before.value.count - batch.count
    const { dropped: left, replaced } = await changesIn(learned, batch)
    if (left + replaced > 0) throw new RecordsUnreadable(`${path} still holds what was erased`)
  }
  if (old.next().done !== true || fewer !== dropped) {
    throw new RecordsUnreadable(`${path} is not what ${segment.path} became`)
  }
}

/** Write a segment beside the old one, and compare the two. Nothing is replaced. */
export const writeSegment = async (
  partition: PartitionPlan,
  concerned: SegmentPlan
): Promise<WrittenSegment> => {
  const file = new NewSegment(concerned.segment)
  try {
    for (const batch of batchesOf(concerned.segment)) {
      const { bytes } = await changesIn(partition, batch)
      file.append(bytes)
    }
  } catch (error) {
    file.discard()
    throw error
  }
  file.close()
  await check(partition, concerned, file.path)
  const bytes = fs.statSync(file.path).size
  return { plan: concerned, bytes, sha256: fileHash(file.path), file }
}
