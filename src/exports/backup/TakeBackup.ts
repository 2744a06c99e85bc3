/**
 * Takes a backup beside the service that writes: a consistent cut of each partition, and of it what
 * the folder does not hold yet. The changelog decides where the other topics are cut. Why it is done
 * like this: docs/decisions/backup.md.
 */
import { Effect } from "effect"
import { scan } from "../../actors/log/PartitionScan.ts"
import {
  BACKUP_FORMAT,
  type BackupContent,
  type BackupManifest,
  type BackupPart,
  type BackupSegment,
  type BackupTopic,
  isOfService,
  isSegmentOf,
  partOf,
  segmentMac
} from "../../domain/backup/BackupManifest.ts"
import type { SegmentName } from "../../domain/backup/BackupPlan.ts"
import { leftBehind, type PartPlan, planPart } from "../../domain/backup/BackupPlan.ts"
import {
  type BackupRecord,
  isSameRecord,
  SegmentWriter
} from "../../domain/backup/BackupSegment.ts"
import { type Chain, chains } from "../../domain/chain/Chains.ts"
import { SYSTEM_TENANT } from "../../domain/Identifiers.ts"
import type { RecordMac } from "../../domain/records/RecordMac.ts"
import { PARTITIONS_ID, readRegistryRecord } from "../../domain/registry/RegistryEntry.ts"
import { currentTime } from "../../domain/Timestamp.ts"
import type { BackupSource } from "../../ports/BackupLog.ts"
import type { LogReader, LogRecord } from "../../ports/EventLog.ts"
import type { BackupFolder } from "./BackupFolder.ts"
import { refuse } from "./BackupRefused.ts"
import {
  type ChainsRead,
  chainsAfter,
  checkEnds,
  checkWalk,
  type WalkedChain
} from "./CutChains.ts"
import { beyondCut, type SignedBy, stateCutOf, takeKeyed } from "./StateCut.ts"
import { keysOfRegistry } from "./VerifyBackup.ts"

/** Bytes of the records of one file, before compression: what a restore holds in memory at a time. */
const SEGMENT_BYTES = 32 * 1_048_576
/** The batch that has the record comes whole, however large it is. */
const BATCH_LIMITS = { waitMs: 0, maxBytes: 1 }
/** How often the registry is looked at again while it is being changed. */
const QUIET_ATTEMPTS = 20
const QUIET_PAUSE = "100 millis"
/** Above the time after which the broker ends a transaction that its writer has left open. */
const DECIDED_ATTEMPTS = 600
const DECIDED_PAUSE = "50 millis"

export interface BackupSettings {
  readonly source: BackupSource
  readonly folder: BackupFolder
  readonly about: Pick<BackupContent, "alk_version" | "service_name" | "topic_prefix">
  /** Names and contents of the files with keys; none to leave them out. */
  readonly keys: ReadonlyArray<{ readonly name: string; readonly content: string }>
  /** Of the service's secret. */
  readonly mac: RecordMac
  /** True for a record of a keyed topic that the service has written. */
  isGenuine(topic: BackupTopic, partition: number, record: LogRecord): boolean
  /** Says how far it is, to a person. */
  progress(line: () => string): void
}

/** What was done, for the command to print. */
export interface BackupDone {
  readonly manifest: BackupContent
  readonly records: number
  readonly bytes: number
  readonly files: number
  /** False if the folder had a backup already, which was continued. */
  readonly isFirst: boolean
}

interface Taking extends BackupSettings {
  readonly reader: LogReader
  readonly known: BackupManifest | undefined
  readonly left: ReadonlyArray<SegmentName>
  readonly done: { records: number; bytes: number; files: number }
}

interface Place {
  readonly topic: BackupTopic
  readonly partition: number
}

const known = ({ known: manifest }: Taking, { partition, topic }: Place): BackupPart | undefined =>
  manifest && partOf(manifest, topic, partition)

const count = (taking: Taking, segment: BackupSegment): BackupSegment => {
  const { done } = taking
  done.records += segment.records
  done.bytes += segment.bytes
  done.files += 1
  taking.progress(() => `${done.records} records, ${done.files} files`)
  return segment
}

/** Writes records into as many files as they need; the last one ends at `to`. */
class Cutter {
  readonly segments: Array<BackupSegment> = []
  readonly #taking: Taking
  readonly #place: Place
  #writer = new SegmentWriter()
  #from: number

  constructor(taking: Taking, place: Place, from: number) {
    this.#taking = taking
    this.#place = place
    this.#from = from
  }

  take(record: BackupRecord): void {
    this.#writer.append(record)
    if (this.#writer.bytes >= SEGMENT_BYTES) this.finish(record.offset + 1)
  }

  finish(to: number): void {
    const { about, folder, mac } = this.#taking
    const { records } = this.#writer
    if (records > 0) {
      const { partition, topic } = this.#place
      const place = { topic, partition, from: this.#from, to }
      const segment = folder.write(place, this.#writer.finish(), records)
      folder.keepMac(segment, segmentMac(segment.file, about, mac))
      this.segments.push(count(this.#taking, segment))
    }
    this.#writer = new SegmentWriter()
    this.#from = to
  }
}

/** Waits until everything that is written below these ends is committed or aborted. */
const decided = Effect.fnUntraced(function* (
  { source }: Taking,
  places: ReadonlyArray<Place>,
  ends: ReadonlyArray<number>
) {
  for (let left = DECIDED_ATTEMPTS; left > 0; left--) {
    const stable = yield* source.log.ends(places)
    if (stable.every((end, index) => end >= ends[index]!)) return
    yield* Effect.sleep(DECIDED_PAUSE)
  }
  return yield* refuse("a transaction on the topics is still open: is the service well? Try again")
})

/** The newest records of a keyed topic up to `to`, with what the folder holds merged in. */
const mergeKeyed = Effect.fnUntraced(function* (taking: Taking, plan: PartPlan) {
  const { folder, reader } = taking
  const { kept, partition, readFrom, to, topic } = plan
  const records = new Map<string, BackupRecord>()
  for (const segment of kept) {
    for (const record of folder.records(segment)) takeKeyed(records, record)
  }
  let read = 0
  yield* scan(reader, { topic, partition, offset: readFrom }, to, (found) => {
    for (const record of found) {
      if (!taking.isGenuine(topic, partition, record)) continue
      takeKeyed(records, record)
      read += 1
    }
  })
  return { plan, records, isChanged: read > 0 }
})
type Keyed = Effect.Success<ReturnType<typeof mergeKeyed>>

/** A keyed topic is written anew once it has changed. */
const writeKeyed = (taking: Taking, { isChanged, plan, records }: Keyed): BackupPart => {
  const { from, kept, partition, to, topic } = plan
  if (!isChanged) return { topic, partition, from, to, segments: kept }
  const cutter = new Cutter(taking, plan, from)
  for (const record of records.values()) cutter.take(record)
  cutter.finish(to)
  return { topic, partition, from, to, segments: cutter.segments }
}

const planKeyed = Effect.fnUntraced(function* (taking: Taking, place: Place, to: number) {
  const { start } = yield* taking.source.log.bounds(place.topic, place.partition)
  const plan = planPart(known(taking, place), { ...place, from: start, to })
  return { ...plan, from: 0 }
})

/**
 * What an earlier run has left of a part, as far as the topic has the last record of each file: the
 * log may be one that was restored since, and have other records at these offsets.
 */
const adoptedOf = Effect.fnUntraced(function* (taking: Taking, plan: PartPlan) {
  const { folder, left, reader } = taking
  const { partition, topic } = plan
  const adopted: Array<BackupSegment> = []
  for (const name of leftBehind(plan, left)) {
    const { last, segment } = folder.adopt(name)
    if (last === undefined) break
    const { offset } = last
    const [fetched] = yield* reader.fetch([{ topic, partition, offset }], BATCH_LIMITS)
    const there = fetched?.records.find((record) => record.offset === offset)
    if (there === undefined || !isSameRecord(last, there)) break
    adopted.push(segment)
  }
  return adopted
})

/** Copies what is new of a topic, up to the first record beyond the cut. */
const copyPart = Effect.fnUntraced(function* (
  taking: Taking,
  plan: PartPlan,
  isBeyond: (record: LogRecord) => boolean,
  chains?: ChainsRead
) {
  const { folder, reader } = taking
  const { from, kept, partition, readFrom, topic } = plan
  const adopted = yield* adoptedOf(taking, plan)
  for (const segment of adopted) {
    if (chains !== undefined) folder.records(segment).forEach(chains.take)
  }
  const offset = adopted.at(-1)?.to ?? readFrom
  const cutter = new Cutter(taking, plan, offset)
  let to: number | undefined
  yield* scan(reader, { topic, partition, offset }, plan.to, (records) => {
    for (const record of records) {
      if (to !== undefined) return
      if (isBeyond(record)) to = record.offset
      else {
        chains?.take(record)
        cutter.take(record)
      }
    }
  })
  to ??= Math.max(plan.to, offset)
  cutter.finish(to)
  const segments = [...kept, ...adopted, ...cutter.segments]
  return { topic, partition, from, to, segments } satisfies BackupPart
})

/** The changelog of a partition, what it says of the cut, and where the commands ended before it. */
const cutState = Effect.fnUntraced(function* (taking: Taking, partition: number, from: number) {
  const { log } = taking.source
  const place = { topic: "state", partition } as const
  const commands = (yield* log.bounds("commands", partition)).end
  const to = Math.max(from, (yield* log.bounds("state", partition)).end)
  const keyed = yield* mergeKeyed(taking, yield* planKeyed(taking, place, to))
  return { keyed, cut: stateCutOf(keyed.records), commands }
})

/**
 * The number of partitions in a registry: those that a growth adds hold nothing of the cut before they
 * are in it. Undefined where it never grew.
 */
const partitionsIn = (registry: ReadonlyMap<string, BackupRecord>): number | undefined => {
  const record = registry.get(`partitions/${PARTITIONS_ID}`)
  if (record === undefined) return undefined
  const change = readRegistryRecord(record.key, record.value)
  return change?.kind === "partitions" ? change.partitions.topics : undefined
}

/**
 * The registry and the changelog of the partition that writes it, at a moment at which it did not
 * change. If it changes all the time, the registry is some milliseconds ahead.
 */
const cutRegistry = Effect.fnUntraced(function* (taking: Taking) {
  const { log } = taking.source
  const registry = { topic: "registry", partition: 0 } as const
  const partition = log.partitionOf(SYSTEM_TENANT)
  for (let left = QUIET_ATTEMPTS; ; left--) {
    const before = (yield* log.bounds("registry", 0)).end
    const place = { topic: "state", partition } as const
    const [written = 0] = yield* taking.source.writtenEnds([place])
    yield* decided(taking, [place], [written])
    const state = yield* cutState(taking, partition, written)
    const [to = 0] = yield* taking.source.writtenEnds([registry])
    if (to > before && left > 0) {
      yield* Effect.sleep(QUIET_PAUSE)
      continue
    }
    yield* decided(taking, [registry], [to])
    const keyed = yield* mergeKeyed(taking, yield* planKeyed(taking, registry, to))
    const partitions = partitionsIn(keyed.records) ?? log.partitions
    const vkeys = keysOfRegistry((take) => keyed.records.forEach((record) => take(record)))
    return { partition, partitions, state, vkeys, registry: writeKeyed(taking, keyed) }
  }
})

/** The topics of a partition, cut where its changelog is. */
const copyPartition = Effect.fnUntraced(function* (
  taking: Taking,
  partition: number,
  { commands, cut, keyed }: Effect.Success<ReturnType<typeof cutState>>,
  signed: SignedBy
) {
  const { log, writtenEnds } = taking.source
  const parts: Array<BackupPart> = [writeKeyed(taking, keyed)]
  const followed = (["checkpoints", "receipts", "quarantine"] as const).map((topic) => ({
    topic,
    partition
  }))
  const ends = yield* writtenEnds(followed)
  yield* decided(taking, followed, ends)
  const planned = Effect.fnUntraced(function* (place: Place, to: number, first = 0) {
    const { start } = yield* log.bounds(place.topic, partition)
    const from = Math.max(start, first)
    return planPart(known(taking, place), { ...place, from, to: Math.max(from, to) })
  })
  const copyChain = Effect.fnUntraced(function* (chain: Chain) {
    const plan = yield* planned({ topic: chain, partition }, cut.ends[chain] ?? 0)
    const read = chainsAfter(taking.known, chain, plan, cut.own)
    parts.push(yield* copyPart(taking, plan, () => false, read))
    yield* checkWalk(chain, partition, read.walk)
    return { from: plan.from, walk: read.walk } satisfies WalkedChain
  })
  const walked = { events: yield* copyChain("events"), traces: yield* copyChain("traces") }
  const reached = yield* checkEnds(partition, walked, cut)
  for (const [index, place] of followed.entries()) {
    const plan = yield* planned(place, ends[index]!)
    parts.push(yield* copyPart(taking, plan, beyondCut(place.topic, cut, signed)))
  }
  const waiting = yield* planned({ topic: "commands", partition }, commands, cut.applied + 1)
  parts.push(yield* copyPart(taking, waiting, () => false))
  const heads = chains.flatMap((chain) =>
    [...reached[chain]].map(([tenant_id, { hash, sequence_number }]) => {
      return { tenant_id, chain, partition, sequence_number, hash }
    })
  )
  return { parts, heads }
})

/** A folder continues the backup of one log only, and only as it was left. */
const checkSame = (manifest: BackupManifest | undefined, settings: BackupSettings) => {
  if (manifest === undefined) return Effect.void
  const { service_name, topic_prefix } = settings.about
  const { partitions } = settings.source.log
  const same =
    manifest.service_name === service_name
    && manifest.topic_prefix === topic_prefix
    && manifest.partitions <= partitions
  if (same && isOfService(manifest, settings.mac)) return Effect.void
  return same
    ? refuse(
        `${settings.folder.path} is not what alk backup has left there with this ALK_SECRET: its `
          + "manifest.json was edited. Name another folder"
      )
    : refuse(
        `${settings.folder.path} is the backup of the service ${manifest.service_name} with topics `
          + `${manifest.topic_prefix}.* of ${manifest.partitions} partitions, this one is `
          + `${service_name} with ${topic_prefix}.* of ${partitions}: name another folder`
      )
}

/** Takes a backup, or continues the one that is in the folder, which has to be open. */
export const takeBackup = Effect.fnUntraced(function* (settings: BackupSettings) {
  const { about, folder, keys, mac, source } = settings
  const manifest = folder.manifest()
  yield* checkSame(manifest, settings)
  const named = new Set(
    manifest?.parts.flatMap(({ segments }) => segments.map(({ file }) => file)) ?? []
  )
  const taking: Taking = {
    ...settings,
    reader: yield* source.log.reader,
    known: manifest,
    left: folder.leftBehind(named, (file, given) => isSegmentOf(file, given, about, mac)),
    done: { records: 0, bytes: 0, files: 0 }
  }
  const system = yield* cutRegistry(taking)
  const parts: Array<BackupPart> = [system.registry]
  const heads: Array<BackupContent["heads"][number]> = []
  const signed = { serviceName: about.service_name, vkeys: system.vkeys }
  for (let partition = 0; partition < system.partitions; partition++) {
    const isSystem = partition === system.partition
    const state = isSystem ? system.state : yield* cutState(taking, partition, 0)
    const copied = yield* copyPartition(taking, partition, state, signed)
    parts.push(...copied.parts)
    heads.push(...copied.heads)
  }
  const content: BackupContent = {
    format: BACKUP_FORMAT,
    ...about,
    taken_at: currentTime(),
    partitions: system.partitions,
    keys: keys.map(({ content: text, name }) => folder.writeKey(name, text)),
    parts,
    heads
  }
  folder.complete(content, mac)
  const { bytes, files, records } = taking.done
  const isFirst = manifest === undefined
  return { manifest: content, records, bytes, files, isFirst } satisfies BackupDone
}, Effect.scoped)
