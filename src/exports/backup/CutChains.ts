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
import { digestOfSum, sumOfHeads } from "../../domain/chain/HeadsDigest.ts"
import type { Own } from "../../domain/records/OwnOffsets.ts"
import { refuse } from "./BackupRefused.ts"
import type { Ends, StateCut } from "./StateCut.ts"

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

/** The chains of a topic, and where that begins. */
export interface WalkedChain {
  readonly from: number
  readonly walk: ChainWalk
}

/** Refuses chains that don't continue those of the folder. */
export const checkWalk = Effect.fnUntraced(function* (
  chain: Chain,
  partition: number,
  { missingBefore }: ChainWalk
) {
  if (missingBefore === undefined) return
  return yield* refuse(
    `${chain} of partition ${partition}: the record at offset ${missingBefore} does not follow what is `
      + "before it: the folder is the backup of another log, or the topic is damaged"
  )
})

/** Where a topic's start is gone, a chain may be, too: it ends as the changelog says. */
const endsOf = ({ from, walk }: WalkedChain, known: Ends): Ends =>
  new Map([...(from > 0 ? known : []), ...walk.heads])

/** The ends of all chains; refuses them unless they are those of which the changelog has the digest. */
export const checkEnds = Effect.fnUntraced(function* (
  partition: number,
  walked: Readonly<Record<Chain, WalkedChain>>,
  { heads, headsDigest }: StateCut
) {
  const events = endsOf(walked.events, heads.events)
  const traces = endsOf(walked.traces, heads.traces)
  if (digestOfSum(sumOfHeads(events, traces)) === headsDigest) return { events, traces }
  return yield* refuse(
    `partition ${partition}: the chains are not those with which alk.state ends: records of the one or `
      + "the other were removed or changed"
  )
})
