/** Every kind of record that this version writes, topic by topic: the one list of contracts. */
import { auditEventRecord } from "./AuditEventRecord.ts"
import { checkpointRecord } from "./CheckpointRecord.ts"
import { commandRecord } from "./CommandRecord.ts"
import { progressRecord } from "./ProgressRecord.ts"
import { markerRecord, quarantineRecord } from "./QuarantineRecord.ts"
import { receiptRecord, verdictRecord } from "./ReceiptRecord.ts"
import type { RecordContract } from "./RecordContract.ts"
import { apiKeyRecord, shareLinkRecord, signingKeyRecord, tenantRecord } from "./RegistryRecord.ts"
import {
  appliedRecord,
  executionRecord,
  handOverRecord,
  headRecord,
  metaRecord,
  ownerRecord,
  signerRecord,
  spanRecord,
  stateCheckpointRecord,
  traceHeadRecord,
  windowRecord,
  writerRecord
} from "./StateRecord.ts"
import { traceFactRecord } from "./TraceFactRecord.ts"

export const recordContracts: ReadonlyArray<RecordContract> = [
  auditEventRecord,
  traceFactRecord,
  checkpointRecord,
  commandRecord,
  receiptRecord,
  verdictRecord,
  metaRecord,
  ownerRecord,
  appliedRecord,
  headRecord,
  traceHeadRecord,
  stateCheckpointRecord,
  executionRecord,
  spanRecord,
  windowRecord,
  handOverRecord,
  signerRecord,
  writerRecord,
  progressRecord,
  quarantineRecord,
  markerRecord,
  tenantRecord,
  apiKeyRecord,
  shareLinkRecord,
  signingKeyRecord
]
