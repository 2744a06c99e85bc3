/**
 * CloudEvents 1.0 attributes of the records on the public topics, in the Kafka binary mode: each
 * attribute is a header with the prefix `ce_`, the value of the record is the event itself.
 */
import { type CheckpointRecord, treeOfCheckpoint } from "../chain/Checkpoint.ts"

export const AUDIT_EVENT_TYPE = "alk.audit.event.v1"
export const TRACE_FACT_TYPE = "alk.trace.fact.v1"
export const CHECKPOINT_TYPE = "alk.checkpoint.v1"

/** Where a tenant's records come from; also the origin of its checkpoints. */
export const sourceOf = (serviceName: string, tenantId: string): string =>
  `${serviceName}/${tenantId}`

/** Headers of a record of `alk.events`. `ce_source` and `ce_id` together name the event. */
export const auditEventHeaders = (
  serviceName: string,
  event: { readonly tenantId: string; readonly sequenceNumber: number; readonly createdAt: string }
): Record<string, string> => ({
  ce_specversion: "1.0",
  ce_type: AUDIT_EVENT_TYPE,
  ce_source: sourceOf(serviceName, event.tenantId),
  ce_id: String(event.sequenceNumber),
  ce_time: event.createdAt,
  "content-type": "application/json"
})

/** Headers of a record of `alk.traces`; facts and events number their records independently. */
export const traceFactHeaders = (
  serviceName: string,
  fact: { readonly tenantId: string; readonly chainSequence: number; readonly createdAt: string }
): Record<string, string> => ({
  ce_specversion: "1.0",
  ce_type: TRACE_FACT_TYPE,
  ce_source: `${sourceOf(serviceName, fact.tenantId)}/traces`,
  ce_id: String(fact.chainSequence),
  ce_time: fact.createdAt,
  "content-type": "application/json"
})

/** Headers of a record of `alk.checkpoints`. */
export const checkpointHeaders = (
  serviceName: string,
  checkpoint: CheckpointRecord
): Record<string, string> => ({
  ce_specversion: "1.0",
  ce_type: CHECKPOINT_TYPE,
  ce_source: `${sourceOf(serviceName, treeOfCheckpoint(checkpoint))}/checkpoints`,
  ce_id: `${checkpoint.tree_size}-${checkpoint.key_id}`,
  ce_time: checkpoint.created_at,
  "content-type": "application/json"
})
