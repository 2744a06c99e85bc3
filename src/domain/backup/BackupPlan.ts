/**
 * What a backup has to read of a partition when its folder holds a part already, and which of the
 * files there stay. Pure: knows offsets only.
 */
import { type BackupPart, type BackupSegment, type BackupTopic, isKeyed } from "./BackupManifest.ts"

/** The consistent cut, for one partition. */
export interface PartCut {
  readonly topic: BackupTopic
  readonly partition: number
  /** The first offset that a restore needs and the topic still has. */
  readonly from: number
  /** Offset after the last record of the cut. */
  readonly to: number
}

export interface PartPlan extends PartCut {
  /** Files of the part that stay as they are. */
  readonly kept: ReadonlyArray<BackupSegment>
  /** Where reading begins; nothing is read if this is `to`. */
  readonly readFrom: number
}

/** The folder holds more than the topic: it is of another log, or the log has lost records. */
export class BackupAhead extends Error {
  override readonly name = "BackupAhead"
}

/** Of these a backup keeps no more than the cut has: what is applied, or has expired, goes. */
const isPassing = (topic: BackupTopic): boolean => topic === "commands" || topic === "receipts"

const firstNeeded = ({ from, topic }: PartCut, known: BackupPart): number =>
  isPassing(topic) ? Math.max(from, known.from) : known.from

/**
 * The plan for one partition. A keyed topic is read on from where the last backup ended, and merged
 * with what that held.
 * @throws BackupAhead
 */
export const planPart = (known: BackupPart | undefined, cut: PartCut): PartPlan => {
  if (known === undefined) return { ...cut, kept: [], readFrom: cut.from }
  const { partition, to, topic } = cut
  if (to < known.to) {
    throw new BackupAhead(
      `the folder holds ${topic} of partition ${partition} up to offset ${known.to}, but the topic `
        + `ends at ${to}: the folder is the backup of another log, or this one has lost records`
    )
  }
  // Retention has taken what would be between: what is older can't be linked to what follows.
  if (cut.from > known.to) return { ...cut, kept: [], readFrom: cut.from }
  const from = isKeyed(topic) ? cut.from : firstNeeded(cut, known)
  return {
    ...cut,
    from,
    kept: known.segments.filter((segment) => segment.to > from),
    readFrom: Math.max(known.to, from)
  }
}

/** A file that an earlier run has left behind, by its name. */
const SEGMENT_NAME = /^([a-z]+)-([0-9]+)-([0-9]+)-([0-9]+)-([0-9a-f]{64})$/u

export interface SegmentName {
  readonly topic: string
  readonly partition: number
  readonly from: number
  readonly to: number
  readonly sha256: string
}

/** The name of the file of a segment, without its folder. */
export const segmentName = ({ from, partition, sha256, to, topic }: SegmentName): string =>
  `${topic}-${partition}-${from}-${to}-${sha256}`

/** What the name of a file says; undefined if it is none of a segment. */
export const readSegmentName = (name: string): SegmentName | undefined => {
  const [, topic, partition, from, to, sha256] = SEGMENT_NAME.exec(name) ?? []
  if (topic === undefined || sha256 === undefined) return undefined
  return { topic, partition: Number(partition), from: Number(from), to: Number(to), sha256 }
}

/**
 * The files of a run that was ended before its manifest, which continue a plan without a gap, in
 * order. Committed records never change: where the log is still the same one, what was read then is
 * what would be read now.
 */
export const leftBehind = (
  { partition, readFrom, to, topic }: PartPlan,
  names: ReadonlyArray<SegmentName>
): ReadonlyArray<SegmentName> => {
  if (isKeyed(topic)) return []
  const own = names.filter((name) => name.topic === topic && name.partition === partition)
  const chosen: Array<SegmentName> = []
  for (let at = readFrom; at < to; ) {
    const next = own.find((name) => name.from === at && name.to > at && name.to <= to)
    if (next === undefined) break
    chosen.push(next)
    at = next.to
  }
  return chosen
}
