/**
 * Keeps `alk.registry` short. The broker does not compact it: that goes by the key of a record, so any
 * program that may write there could have a revocation removed. Instead its one writer says all that
 * the registry holds once more, in one transaction, and removes what was there before.
 */
import { Effect } from "effect"
import { SYSTEM_TENANT } from "../../domain/Identifiers.ts"
import { type ContentRecord, RegistryContent } from "../../domain/registry/RegistryContent.ts"
import { registryRecord } from "../../domain/registry/RegistryEntry.ts"
import type { EventLog, TransactionalWriter } from "../../ports/EventLog.ts"
import { REGISTRY } from "../log/RegistryChanges.ts"
import { appliedRecord, newStateRecord, type SequencerState, windowEnds } from "./SequencerState.ts"

/** Records that the topic holds before it is looked at how many of them count. */
const REGISTRY_RECORDS_MAX = 50_000
/** Records for each that counts, from which on the topic is made short. */
const RECORDS_PER_ENTRY = 4

/** Makes the topic short if it is due; true if it was. */
export const trimRegistry = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  writer: TransactionalWriter,
  state: SequencerState,
  recordsMax = REGISTRY_RECORDS_MAX
) {
  const { partition, registry } = state
  if (log.partitionOf(SYSTEM_TENANT) !== partition) return false
  const { end, start } = yield* log.bounds(REGISTRY.topic, REGISTRY.partition)
  if (end - start <= recordsMax) return false
  const { entries } = registry
  if (end - start <= entries.length * RECORDS_PER_ENTRY) return false
  const content = new RegistryContent()
  const records: Array<ContentRecord> = entries.map(registryRecord)
  for (const record of records) content.take(record)
  // Who reads what was there before as well comes to the same sum.
  const kept = new Set(content.keys)
  for (const key of state.registryContent.keys) {
    if (!kept.has(key)) records.unshift({ key, value: null })
  }
  records.push(content.after([]))
  yield* writer.commit([], () => [
    ...records.map((record) => ({ ...REGISTRY, ...record })),
    newStateRecord(partition, appliedRecord(state, windowEnds(state)))
  ])
  state.registryContent = content
  yield* log.deleteBelow(REGISTRY.topic, REGISTRY.partition, end).pipe(
    Effect.tap(() =>
      Effect.logInfo("alk.registry was made short", {
        records: end - start,
        entries: entries.length
      })
    ),
    Effect.catch((failure) =>
      Effect.logWarning(
        "records of alk.registry that count no more could not be removed: does alk have the right to "
          + "delete records there?",
        { error: String(failure) }
      )
    )
  )
  return true
})
