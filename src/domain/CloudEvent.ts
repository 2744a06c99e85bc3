/**
 * CloudEvents 1.0 attributes of the records on the public topics, in the Kafka binary mode: each
 * attribute is a header with the prefix `ce_`, the value of the record is the event itself.
 */

export const AUDIT_EVENT_TYPE = "alk.audit.event.v1"

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
