/** Every kind of record that this version writes, topic by topic: the one list of contracts. */
import { commandRecord } from "./Command.ts"
import { progressRecord } from "./Progress.ts"
import { auditEventRecord, checkpointRecord, traceFactRecord } from "./PublicRecords.ts"
import { quarantineRecords } from "./Quarantine.ts"
import { receiptRecords } from "./Receipt.ts"
import type { RecordContract } from "./RecordContract.ts"
import { registryRecords } from "./RegistryRecords.ts"
import { stateRecords } from "./StateRecords.ts"
import { rebuildRecords } from "./ViewRebuild.ts"

export const recordContracts: ReadonlyArray<RecordContract> = [
  auditEventRecord,
  traceFactRecord,
  checkpointRecord,
  commandRecord,
  ...receiptRecords,
  ...stateRecords,
  progressRecord,
  ...rebuildRecords,
  ...quarantineRecords,
  ...registryRecords
]
