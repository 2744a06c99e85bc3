/**
 * `alk repair`: for a partition that the sequencer refuses because the topics have lost what its
 * changelog knows. Writes down that the loss is accepted, so that the next start goes on with what is
 * left; what was lost stays lost, and the log says so.
 */
import { Effect, Schema } from "effect"
import { takeAll } from "../actors/log/Malformed.ts"
import { REGISTRY } from "../actors/log/RegistryChanges.ts"
import { newStateRecord, repairRecord } from "../actors/sequencer/SequencerState.ts"
import { SYSTEM_TENANT } from "../domain/Identifiers.ts"
import { RegistryContent } from "../domain/registry/RegistryContent.ts"
import { currentTime } from "../domain/Timestamp.ts"
import { EventLog } from "../ports/EventLog.ts"

export class RepairRefused extends Schema.TaggedError<RepairRefused>()("RepairRefused", {
  message: Schema.String
}) {}

export const REPAIR_HELP = `alk repair <partition or registry> --accept-loss

Run it with the configuration of the service, while the service is stopped. The next start of the
partition then goes on with alk.events, alk.traces, alk.receipts and alk.commands as they are, and logs
each loss that it accepts. Use it only after a partition was refused with a line that names this command,
once the lost records can't be restored from a replica or a backup. Events that were acknowledged and are
lost stay lost; consumers who kept them can prove the gap. Commands that may have been applied, where
nothing says whether they were, go to alk.quarantine.

With 'registry' in the place of a partition it accepts alk.registry as it is, after a start has refused
it as incomplete. API keys of the configuration that were revoked and tenants that were deleted can be
back then: look, and revoke and delete them again.
`

/** Between two looks at whether readers see what was written, and how many there are. */
const SEEN_INTERVAL = "100 millis"
const LOOKS_MAX = 100

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
  const reader = yield* log.reader
  // A commit may be acknowledged before readers see it, that of the sequencer before this one too.
  for (let looks = 0; looks < LOOKS_MAX; looks++) {
    const content = new RegistryContent()
    yield* takeAll(log, reader, REGISTRY, ({ key, value }) =>
      content.take({ key: String(key), value })
    )
    const { start } = yield* log.bounds("registry", 0)
    if (!content.isIncomplete(start)) return { entries: content.size }
    yield* writer.commit([], () => [{ ...REGISTRY, ...content.after([]) }])
    yield* Effect.sleep(SEEN_INTERVAL)
  }
  return yield* new RepairRefused({
    message: "repair: alk.registry does not show what was written to it; see its log, and try again"
  })
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

/** Accept what the topics of a partition have lost. Fences the partition's sequencer. */
export const acceptLoss = Effect.fn("Repair.acceptLoss")(function* (args: ReadonlyArray<string>) {
  const log = yield* EventLog
  const partition = yield* toPartition(args, log.partitions)
  const writer = yield* log.writer(`sequencer-${partition}`)
  yield* writer.commit([], () => [newStateRecord(partition, repairRecord(currentTime()))])
  return { partition }
}, Effect.scoped)
