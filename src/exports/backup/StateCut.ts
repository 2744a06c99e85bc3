/**
 * What the sequencer's changelog says of the moment at which a partition is cut: the last command that
 * was applied, where the topics of its chains end, and the heads. Pure.
 */
import { Struct } from "effect"
import type { BackupTopic } from "../../domain/backup/BackupManifest.ts"
import type { BackupRecord } from "../../domain/backup/BackupSegment.ts"
import { type Chain, chains, type Head, treeNameOf } from "../../domain/chain/Chains.ts"
import { readCheckpoint, treeOfCheckpoint } from "../../domain/chain/Checkpoint.ts"
import { digestOfSum } from "../../domain/chain/HeadsDigest.ts"
import { openRecord } from "../../domain/chain/SignedRecord.ts"
import { recordDecoder } from "../../domain/json/RecordDecoder.ts"
import { type Own, OwnOffsets } from "../../domain/records/OwnOffsets.ts"
import { commandOffsetOf } from "../../domain/records/RecordHeaders.ts"
import {
  APPLIED_KEY,
  HEAD_PREFIX,
  readApplied,
  readTreeSigner,
  SIGNER_KEY,
  StoredHead,
  TRACE_HEAD_PREFIX
} from "../../domain/records/StateRecords.ts"
import type { LogRecord } from "../../ports/EventLog.ts"

type End = Pick<Head, "sequence_number" | "hash">
/** The ends of chains by tenant. */
export type Ends = ReadonlyMap<string, End>

export interface StateCut {
  /** Offset of the last command that was applied; -1 before the first. */
  readonly applied: number
  /** Offsets after the last record of the chains; undefined if the changelog does not say. */
  readonly ends: Readonly<Record<Chain, number | undefined>>
  readonly heads: Readonly<Record<Chain, Ends>>
  /** Of all of them, those that are gone too: of none if the changelog does not say. */
  readonly headsDigest: string
  /** What of the chains' topics the sequencer has written. */
  readonly own: Own
  /** The public key that signs the trees, as C2SP writes it; none before the first start. */
  readonly signers: ReadonlyArray<string>
  /** When the last command was applied, in milliseconds since the epoch. */
  readonly at: number
}

const readHead = recordDecoder(
  StoredHead.mapFields(Struct.pick(["sequence_number", "hash"])),
  "head"
)

const prefixes = [
  ["events", HEAD_PREFIX],
  ["traces", TRACE_HEAD_PREFIX]
] as const

/** Records by key, each the newest one. */
export type KeyedRecords = ReadonlyMap<string, BackupRecord>

/** Take a record of a keyed topic in; one without a value removes its key. */
export const takeKeyed = (records: Map<string, BackupRecord>, record: BackupRecord): void => {
  if (record.key === null) return
  const key = record.key.toString("latin1")
  // The order is that of the offsets.
  records.delete(key)
  if (record.value !== null) records.set(key, record)
}

/** @throws RecordUnreadable */
export const stateCutOf = (records: KeyedRecords): StateCut => {
  const applied = records.get(APPLIED_KEY)
  const signer = records.get(SIGNER_KEY)?.value
  const progress = applied?.value == null ? undefined : readApplied(applied.value)
  const heads = { events: new Map<string, End>(), traces: new Map<string, End>() }
  const own = new OwnOffsets()
  for (const [key, { value }] of records) {
    own.take(key, value)
    for (const [chain, prefix] of prefixes) {
      if (value === null || !key.startsWith(prefix)) continue
      heads[chain].set(key.slice(prefix.length), readHead(value))
    }
  }
  return {
    applied: progress?.command_offset ?? -1,
    ends: { events: progress?.events_next, traces: progress?.traces_next },
    heads,
    headsDigest: progress?.heads_digest ?? digestOfSum(0n),
    own,
    signers: signer == null ? [] : [readTreeSigner(signer).vkey],
    at: applied?.timestamp ?? 0
  }
}

/** What is older than the cut by so much is before it, whatever it says: a clock may go back a bit. */
const CLOCK_MS = 3_600_000

const checkpointOf = ({ value }: LogRecord) => {
  try {
    return value === null ? undefined : readCheckpoint(value)
  } catch {
    // No sequencer has written it: it says nothing of a tree.
    return undefined
  }
}

/** What makes a checkpoint one of the service's. */
export interface SignedBy {
  readonly serviceName: string
  /** Published keys, as C2SP writes them. */
  readonly vkeys: ReadonlyArray<string>
}

/**
 * Whether the service has written a record of a topic that the changelog does not name after the cut:
 * it answers a command, or signs a tree, that is not part of it.
 */
export const beyondCut = (
  topic: BackupTopic,
  { applied, at, heads, signers }: StateCut,
  { serviceName, vkeys }: SignedBy
): ((record: LogRecord) => boolean) => {
  // What answers a topic of commands that was lost does not end every later backup before it.
  const isRecent = ({ timestamp }: LogRecord) => timestamp >= at - CLOCK_MS
  if (topic !== "checkpoints") {
    return (record) => isRecent(record) && commandOffsetOf(record) > applied
  }
  const keys = [...new Set([...vkeys, ...signers])]
  const sizes = new Map(
    chains.flatMap((chain) =>
      [...heads[chain]].map(([tenantId, end]) => [treeNameOf(tenantId, chain), end.sequence_number])
    )
  )
  return (record) => {
    const checkpoint = checkpointOf(record)
    if (checkpoint === undefined || !isRecent(record)) return false
    const tree = treeOfCheckpoint(checkpoint)
    return (
      checkpoint.tree_size > (sizes.get(tree) ?? 0)
      && openRecord(serviceName, tree, checkpoint, keys) !== undefined
    )
  }
}
