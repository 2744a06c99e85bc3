/**
 * `alk repair`: for a partition that the sequencer refuses because the topics have lost what its
 * changelog knows. Clears the changelog, so that the next start rebuilds it from what is left; what
 * was lost stays lost, and the chain says so.
 */
import { Effect, Schema } from "effect"
import { takeAll } from "../actors/log/Malformed.ts"
import { scan } from "../actors/log/PartitionScan.ts"
import { REGISTRY } from "../actors/log/RegistryChanges.ts"
import { SYSTEM_TENANT } from "../domain/Identifiers.ts"
import { OWNER_KEY } from "../domain/records/StateRecords.ts"
import { RegistryContent } from "../domain/registry/RegistryContent.ts"
import { EventLog } from "../ports/EventLog.ts"

export class RepairRefused extends Schema.TaggedError<RepairRefused>()("RepairRefused", {
  message: Schema.String
}) {}

export const REPAIR_HELP = `alk repair <partition or registry> --accept-loss

Run it with the configuration of the service, while the service is stopped. It clears the sequencer's
changelog of one partition; at the next start the sequencer rebuilds it from alk.events, alk.receipts
and alk.commands as they are. Use it only after a partition was refused with 'the topics are behind
alk.state' or 'has lost records', once the lost records can't be restored from a replica or a backup.
Events that were acknowledged and are lost stay lost; consumers who kept them can prove the gap.

With 'registry' in the place of a partition it accepts alk.registry as it is, after a start has refused
it as incomplete. API keys of the configuration that were revoked and tenants that were deleted can be
back then: look, and revoke and delete them again.
`

/** Records of one transaction. */
const CHUNK = 500

const isAccepted = (flag: string | undefined) =>
  flag === "--accept-loss"
    ? Effect.void
    : Effect.fail(
        new RepairRefused({ message: "repair: add --accept-loss once nothing can be restored" })
      )

/** Accept the registry as it is. Fences the sequencer that writes it. */
export const acceptRegistry = Effect.fn("Repair.acceptRegistry")(function* (
  args: ReadonlyArray<string>
) {
  yield* isAccepted(args[1])
  const log = yield* EventLog
  const writer = yield* log.writer(`sequencer-${log.partitionOf(SYSTEM_TENANT)}`)
  const content = new RegistryContent()
  yield* takeAll(log, yield* log.reader, REGISTRY, ({ key, value }) =>
    content.take({ key: String(key), value })
  )
  yield* writer.commit([], () => [{ ...REGISTRY, ...content.after([]) }])
  return { entries: content.size }
}, Effect.scoped)

const toPartition = (args: ReadonlyArray<string>, partitions: number) => {
  const [text, flag] = args
  const partition = Number(text)
  if (!Number.isInteger(partition) || partition < 0 || partition >= partitions) {
    return Effect.fail(
      new RepairRefused({
        message: `repair: name a partition from 0 to ${partitions - 1}, or registry`
      })
    )
  }
  return Effect.as(isAccepted(flag), partition)
}

/** Clear the changelog of a partition. Fences the partition's sequencer. */
export const clearChangelog = Effect.fn("Repair.clearChangelog")(function* (
  args: ReadonlyArray<string>
) {
  const log = yield* EventLog
  const partition = yield* toPartition(args, log.partitions)
  const writer = yield* log.writer(`sequencer-${partition}`)
  const reader = yield* log.reader
  const { end, start } = yield* log.bounds("state", partition)
  const keys = new Set<string>()
  yield* scan(reader, { topic: "state", partition, offset: start }, end, (records) => {
    for (const { key, value } of records) {
      if (key === null) continue
      if (value === null) keys.delete(key.toString())
      else keys.add(key.toString())
    }
  })
  keys.delete(OWNER_KEY)
  const all = [...keys]
  for (let at = 0; at < all.length; at += CHUNK) {
    const part = all.slice(at, at + CHUNK)
    yield* writer.commit([], () =>
      part.map((key) => ({ topic: "state" as const, partition, key, value: null }))
    )
  }
  return { partition, cleared: all.length }
}, Effect.scoped)
