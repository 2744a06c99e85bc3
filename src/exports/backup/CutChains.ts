/**
 * The chains as the records of a backup continue them: what is new has to follow what the folder
 * holds, and to end where the changelog says.
 */
import { Effect } from "effect"
import { linkOfRecord } from "../../actors/log/ChainRecord.ts"
import { ChainWalk } from "../../actors/sequencer/TopicComparison.ts"
import type { BackupManifest } from "../../domain/backup/BackupManifest.ts"
import type { PartPlan } from "../../domain/backup/BackupPlan.ts"
import type { BackupRecord } from "../../domain/backup/BackupSegment.ts"
import type { Chain, Head } from "../../domain/chain/Chains.ts"
import type { Own } from "../../domain/records/OwnOffsets.ts"
import { refuse } from "./BackupRefused.ts"
import type { StateCut } from "./StateCut.ts"

/** Chains of one partition, walked record by record. */
export interface ChainsRead {
  readonly take: (record: BackupRecord) => void
  readonly walk: ChainWalk
}

/** The heads that the folder holds, as far as its part of the topic is continued. */
const headsBefore = (
  manifest: BackupManifest | undefined,
  chain: Chain,
  { partition, readFrom }: PartPlan
): ReadonlyMap<string, Head> =>
  new Map(
    (manifest?.heads ?? [])
      .filter((head) => head.chain === chain && head.partition === partition && readFrom > 0)
      .map(({ hash, sequence_number, tenant_id }) => [
        tenant_id,
        { sequence_number, hash, created_at: "" }
      ])
  )

/** The chains of a topic from where a plan begins to read. */
export const chainsAfter = (
  manifest: BackupManifest | undefined,
  chain: Chain,
  plan: PartPlan,
  own: Own
): ChainsRead => {
  const isContinued = plan.kept.length > 0
  const before = isContinued ? headsBefore(manifest, chain, plan) : new Map<string, Head>()
  const walk = new ChainWalk(before)
  const isCut = !isContinued && plan.from > 0
  return {
    walk,
    take: (record) => {
      if (!own.isOwn(chain, record.offset)) return
      walk.take(linkOfRecord(chain, record), record.offset, isCut)
    }
  }
}

/** Refuses chains that don't continue those of the folder, or don't end as the changelog says. */
export const checkHeads = Effect.fnUntraced(function* (
  chain: Chain,
  partition: number,
  { walk }: ChainsRead,
  { heads }: StateCut
) {
  const where = `${chain} of partition ${partition}`
  if (walk.missingBefore !== undefined) {
    return yield* refuse(
      `${where}: the record at offset ${walk.missingBefore} does not follow what is before it: the `
        + "folder is the backup of another log, or the topic is damaged"
    )
  }
  for (const head of heads) {
    if (head.chain !== chain) continue
    const found = walk.heads.get(head.tenantId)
    // Retention has taken the whole chain.
    if (found === undefined) continue
    if (found.hash === head.hash && found.sequence_number === head.sequenceNumber) continue
    return yield* refuse(
      `${where}: the chain of ${head.tenantId} ends at ${found.sequence_number}, but the changelog `
        + `says ${head.sequenceNumber}, or its hash differs: look at the log of the service`
    )
  }
})
