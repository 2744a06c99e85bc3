/**
 * Checks a backup by itself, before anything is written: every file against its hash, every chain link
 * by link up to the heads of the manifest, the ends of all against the digest of the changelog, and
 * the tree of each against the signed checkpoints in the backup. Keeps the roots that kept checkpoints
 * are compared with.
 */

import { Effect } from "effect"
import { linkOfRecord } from "../../actors/log/ChainRecord.ts"
import { ChainWalk } from "../../actors/sequencer/TopicComparison.ts"
import type { KeptCheckpoint, ReachedChain } from "../../domain/backup/BackupGap.ts"
import {
  type BackupHead,
  type BackupManifest,
  type BackupPart,
  type BackupTopic,
  partOf
} from "../../domain/backup/BackupManifest.ts"
import type { BackupRecord } from "../../domain/backup/BackupSegment.ts"
import type { ChainLink } from "../../domain/chain/ChainLink.ts"
import { type Chain, linkHashOf, treeNameOf } from "../../domain/chain/Chains.ts"
import {
  type CheckpointRecord,
  openNote,
  readCheckpoint,
  treeOfCheckpoint
} from "../../domain/chain/Checkpoint.ts"
import { SCHEME } from "../../domain/events/HashChain.ts"
import { PROBE_TENANT } from "../../domain/Identifiers.ts"
import { addTo } from "../../domain/Lists.ts"
import type { Own } from "../../domain/records/OwnOffsets.ts"
import { TENANT_HEADER } from "../../domain/records/RecordHeaders.ts"
import { readRegistryRecord } from "../../domain/registry/RegistryEntry.ts"
import { RegistryTable } from "../../domain/registry/RegistryTable.ts"
import { TRACE_SCHEME } from "../../domain/traces/FactText.ts"
import { GrowingTree } from "../../verify/GrowingTree.ts"
import type { BackupFolder } from "./BackupFolder.ts"
import { refuse } from "./BackupRefused.ts"
import { checkEnds, type WalkedChain } from "./CutChains.ts"
import { type StateCut, stateCutOf, takeKeyed } from "./StateCut.ts"

const SCHEMES = { events: SCHEME, traces: TRACE_SCHEME } as const

/** Commands of one tenant that were accepted and not in a chain yet. */
export interface WaitingCommands {
  readonly tenant_id: string
  readonly commands: number
}

/** A backup that holds. */
export interface VerifiedBackup {
  readonly records: number
  /** By the name of its tree. */
  readonly chains: ReadonlyMap<string, ReachedChain>
  /** Public keys that have signed, as C2SP writes them. */
  readonly vkeys: ReadonlyArray<string>
  /** Signed checkpoints that the trees were compared with. */
  readonly checkpoints: number
  /** What the next start applies first. */
  readonly waiting: ReadonlyArray<WaitingCommands>
}

export interface VerifySettings {
  readonly folder: BackupFolder
  readonly manifest: BackupManifest
  /** Checkpoints from outside; their roots are computed as well. */
  readonly kept: ReadonlyArray<KeptCheckpoint>
  /** Says how far it is, to a person. */
  progress(line: () => string): void
}

/** Calls `each` with the records of a part that a restore writes, a file at a time. */
export const eachRecords = (
  folder: BackupFolder,
  { from, segments, to }: BackupPart,
  each: (records: ReadonlyArray<BackupRecord>) => void
): void => {
  for (const segment of segments) {
    each(folder.records(segment).filter(({ offset }) => offset >= from && offset < to))
  }
}

const eachOf = (
  { folder, manifest }: Pick<VerifySettings, "folder" | "manifest">,
  topic: BackupTopic,
  partition: number,
  each: (record: BackupRecord) => void
): void => {
  const part = partOf(manifest, topic, partition)
  if (part !== undefined) eachRecords(folder, part, (records) => records.forEach(each))
}

/** Public keys that the records of a registry hold, as C2SP writes them. */
export const keysOfRegistry = (
  eachRecord: (take: (record: BackupRecord) => void) => void
): ReadonlyArray<string> => {
  const registry = new RegistryTable()
  eachRecord(({ key, value }) => {
    try {
      const change = readRegistryRecord(key, value)
      if (change !== undefined) registry.take([change])
    } catch {
      // Of another version: the service reports it at its start.
    }
  })
  return [...registry.signingKeys.values()].map(({ vkey }) => vkey)
}

/** Public keys that the registry of the backup knows, as C2SP writes them. Throws if it is damaged. */
export const signingKeys = (
  settings: Pick<VerifySettings, "folder" | "manifest">
): ReadonlyArray<string> => keysOfRegistry((take) => eachOf(settings, "registry", 0, take))

/** A root that was signed. */
interface SignedRoot {
  readonly treeSize: number
  readonly rootHash: string
}
type SignedRoots = ReadonlyMap<string, ReadonlyArray<SignedRoot>>

/** By tree, those of a partition that one of the keys has signed; others are not the service's. */
const signedIn = (
  settings: VerifySettings,
  partition: number,
  vkeys: ReadonlyArray<string>
): SignedRoots => {
  const roots = new Map<string, Array<SignedRoot>>()
  eachOf(settings, "checkpoints", partition, ({ value }) => {
    let checkpoint: CheckpointRecord
    try {
      checkpoint = readCheckpoint(value ?? "")
    } catch {
      return
    }
    // What is beside the note is not signed.
    const opened = openNote(checkpoint.note, vkeys)
    if ("refusal" in opened) return
    const name = treeOfCheckpoint(checkpoint)
    const { rootHash, treeSize } = opened.checkpoint
    addTo(roots, name, { treeSize, rootHash })
  })
  return roots
}

/** What the changelog of a partition says. Throws RecordUnreadable. */
const cutIn = (settings: VerifySettings, partition: number): StateCut => {
  const records = new Map<string, BackupRecord>()
  eachOf(settings, "state", partition, (record) => takeKeyed(records, record))
  return stateCutOf(records)
}

interface Walked {
  readonly walk: ChainWalk
  /** By tenant; of chains whose start is not there none has roots. */
  readonly trees: ReadonlyMap<string, GrowingTree>
  readonly records: number
}

const sizesOf = (
  name: string,
  signed: SignedRoots,
  kept: ReadonlyArray<KeptCheckpoint>
): ReadonlyArray<number> => [
  ...(signed.get(name) ?? []).map(({ treeSize }) => treeSize),
  ...kept
    .filter(({ chain, tenantId }) => treeNameOf(tenantId, chain) === name)
    .map(({ treeSize }) => treeSize)
]

/** True if a link's hash is that of its members. */
const isHashed = (chain: Chain, link: ChainLink): boolean =>
  linkHashOf(SCHEMES[chain], link) === link.hash

/** Walks the chains of a part; refuses a link whose hash is not its own. */
const walkPart = Effect.fnUntraced(function* (
  settings: VerifySettings,
  chain: Chain,
  part: BackupPart,
  signed: SignedRoots,
  own: Own
) {
  const walk = new ChainWalk()
  const trees = new Map<string, GrowingTree>()
  let count = 0
  let wrong: string | undefined
  const take = (record: BackupRecord) => {
    if (!own.isOwn(chain, record.offset)) return
    const link = linkOfRecord(chain, record)
    if (!walk.take(link, record.offset, part.from > 0)) return
    const { sequenceNumber, tenantId } = link
    if (!isHashed(chain, link)) {
      wrong ??= `${tenantId}, ${chain}: the hash of ${sequenceNumber} is not its own`
    }
    if (sequenceNumber === 1) {
      const name = treeNameOf(tenantId, chain)
      trees.set(tenantId, new GrowingTree(sizesOf(name, signed, settings.kept)))
    }
    trees.get(tenantId)?.append(link.hash)
    count += 1
  }
  eachRecords(settings.folder, part, (records) => {
    records.forEach(take)
    settings.progress(() => `${chain}, partition ${part.partition}: ${count} links checked`)
  })
  if (wrong !== undefined) return yield* refuse(wrong)
  if (walk.missingBefore !== undefined) {
    return yield* refuse(
      `${chain}, partition ${part.partition}: the record at offset ${walk.missingBefore} does not `
        + "follow what is before it"
    )
  }
  return { walk, trees, records: count } satisfies Walked
})

/** Refuses a manifest that has other ends of the chains than they have. */
const checkHeads = (
  heads: ReadonlyArray<BackupHead>,
  partition: number,
  ends: Effect.Success<ReturnType<typeof checkEnds>>
) => {
  const other = heads
    .filter((head) => head.partition === partition)
    .find(({ chain, hash, tenant_id }) => ends[chain].get(tenant_id)?.hash !== hash)
  return other === undefined
    ? Effect.void
    : refuse(`${other.tenant_id}, ${other.chain}: does not end as the manifest says`)
}

/** How many checkpoints were compared. */
const checkSigned = Effect.fnUntraced(function* (
  chain: Chain,
  { trees }: Walked,
  signed: SignedRoots
) {
  let compared = 0
  for (const [tenantId, tree] of trees) {
    for (const { rootHash, treeSize } of signed.get(treeNameOf(tenantId, chain)) ?? []) {
      compared += 1
      if (tree.root(treeSize) === rootHash) continue
      return yield* refuse(
        `${tenantId}, ${chain}: the tree of ${treeSize} is not the one of the signed checkpoint in `
          + "the backup"
      )
    }
  }
  return compared
})

/** Every file is what the manifest says. Throws BackupUnusable, naming the one that is not. */
const checkFiles = ({ folder, manifest, progress }: VerifySettings): void => {
  let done = 0
  const files = [...manifest.keys, ...manifest.parts.flatMap(({ segments }) => segments)]
  for (const file of files) {
    folder.check(file)
    done += 1
    progress(() => `${done} of ${files.length} files checked`)
  }
}

/** Refuses a backup that is not whole, or whose chains don't hold. */
export const verifyBackup = Effect.fnUntraced(function* (settings: VerifySettings) {
  const { manifest } = settings
  checkFiles(settings)
  const vkeys = signingKeys(settings)
  const reached = new Map<string, ReachedChain>()
  let records = 0
  let checkpoints = 0
  const waiting = new Map<string, number>()
  for (let partition = 0; partition < manifest.partitions; partition++) {
    const signed = signedIn(settings, partition, vkeys)
    const cut = cutIn(settings, partition)
    eachOf(settings, "commands", partition, ({ headers }) => {
      const tenantId = headers[TENANT_HEADER]?.toString() ?? PROBE_TENANT
      waiting.set(tenantId, (waiting.get(tenantId) ?? 0) + 1)
    })
    const walkChain = Effect.fnUntraced(function* (chain: Chain) {
      const part = partOf(manifest, chain, partition)
      if (part === undefined) return yield* refuse(`the manifest has no ${chain} of ${partition}`)
      const walked = yield* walkPart(settings, chain, part, signed, cut.own)
      checkpoints += yield* checkSigned(chain, walked, signed)
      records += walked.records
      for (const [tenantId, { sequence_number }] of walked.walk.heads) {
        const tree = walked.trees.get(tenantId)
        reached.set(treeNameOf(tenantId, chain), {
          reaches: sequence_number,
          rootAt: (size) => tree?.root(size)
        })
      }
      return { from: part.from, walk: walked.walk } satisfies WalkedChain
    })
    const walked = { events: yield* walkChain("events"), traces: yield* walkChain("traces") }
    yield* checkHeads(manifest.heads, partition, yield* checkEnds(partition, walked, cut))
  }
  // Readiness probes write commands as well, which append nothing.
  waiting.delete(PROBE_TENANT)
  return {
    records,
    chains: reached,
    vkeys,
    checkpoints,
    waiting: [...waiting].map(([tenant_id, commands]) => ({ tenant_id, commands }))
  } satisfies VerifiedBackup
})
