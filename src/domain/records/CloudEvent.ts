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

const headers = (
  type: string,
  source: string,
  id: string,
  time: string
): Record<string, string> => ({
  ce_specversion: "1.0",
  ce_type: type,
  ce_source: source,
  ce_id: id,
  ce_time: time,
  "content-type": "application/json"
})

/** Headers of a record of `alk.events`. `ce_source` and `ce_id` together name the event. */
export const auditEventHeaders = (
  serviceName: string,
  {
    createdAt,
    sequenceNumber,
    tenantId
  }: { readonly tenantId: string; readonly sequenceNumber: number; readonly createdAt: string }
): Record<string, string> =>
  headers(AUDIT_EVENT_TYPE, sourceOf(serviceName, tenantId), String(sequenceNumber), createdAt)

/** Headers of a record of `alk.traces`; facts and events number their records independently. */
export const traceFactHeaders = (
  serviceName: string,
  {
    chainSequence,
    createdAt,
    tenantId
  }: { readonly tenantId: string; readonly chainSequence: number; readonly createdAt: string }
): Record<string, string> => {
  const source = `${sourceOf(serviceName, tenantId)}/traces`
  return headers(TRACE_FACT_TYPE, source, String(chainSequence), createdAt)
}

/** Headers of a record of `alk.checkpoints`. */
export const checkpointHeaders = (
  serviceName: string,
  checkpoint: CheckpointRecord
): Record<string, string> => {
  const { created_at, key_id, tree_size } = checkpoint
  const source = `${sourceOf(serviceName, treeOfCheckpoint(checkpoint))}/checkpoints`
  return headers(CHECKPOINT_TYPE, source, `${tree_size}-${key_id}`, created_at)
}
