/** Every kind of record that this version writes, topic by topic: the one list of contracts. */
import { auditEventRecord } from "./AuditEventRecord.ts"
import { commandRecord } from "./CommandRecord.ts"
import { progressRecord } from "./ProgressRecord.ts"
import { quarantineRecord } from "./QuarantineRecord.ts"
import { receiptRecord, verdictRecord } from "./ReceiptRecord.ts"
import type { RecordContract } from "./RecordContract.ts"
import { apiKeyRecord, tenantRecord } from "./RegistryRecord.ts"
import {
  appliedRecord,
  headRecord,
  metaRecord,
  ownerRecord,
  windowRecord
} from "./StateRecord.ts"

export const recordContracts: ReadonlyArray<RecordContract> = [
  auditEventRecord,
  commandRecord,
  receiptRecord,
  verdictRecord,
  metaRecord,
  ownerRecord,
  appliedRecord,
  headRecord,
  windowRecord,
  progressRecord,
  quarantineRecord,
  tenantRecord,
  apiKeyRecord
]
