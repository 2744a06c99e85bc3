/**
 * The public records: stored events, trace facts and checkpoints, with CloudEvents headers. They are
 * the contract for direct readers of the topics, so they say only what is true of every deployment.
 */
import { Schema } from "effect"
import { CheckpointRecord } from "../chain/Checkpoint.ts"
import { AuditEvent } from "../events/AuditEvent.ts"
import { form, tenant, text, time } from "../Forms.ts"
import { StoredFact } from "../traces/TraceFact.ts"
import { AUDIT_EVENT_TYPE, CHECKPOINT_TYPE, TRACE_FACT_TYPE } from "./CloudEvent.ts"
import type { RecordContract } from "./RecordContract.ts"

/** Attributes of CloudEvents 1.0 in Kafka's binary mode. */
const headers = (
  type: string,
  {
    id,
    source,
    time: at
  }: Readonly<Record<"id" | "source", Schema.Constraint>> & {
    readonly time: string
  }
) =>
  Schema.Struct({
    ce_specversion: Schema.Literal("1.0").annotate({ description: "Version of CloudEvents." }),
    ce_type: Schema.Literal(type).annotate({
      description: "Kind and version of the record; a change that breaks readers gets a new one."
    }),
    ce_source: source,
    ce_id: id,
    ce_time: time(at),
    "content-type": Schema.Literal("application/json").annotate({ description: "Of the value." })
  })

const partitionKey = tenant(
  "The tenant_id. All records of it are in one partition: that of murmur2 of it among the partitions "
    + "that there were when the tenant was made."
)

export const auditEventRecord: RecordContract = {
  name: "audit-event",
  topic: "events",
  title: "Audit event",
  description:
    "One stored event, exactly the JSON that the API returns for it until its details are "
    + "erased. An operator can let the topic forget them, too: then the record is the JSON of the "
    + "erased event, with erased_at and the same hashes. No other members exist in this version: "
    + "what is not listed here is not covered by the hashes.",
  key: partitionKey,
  headers: headers(AUDIT_EVENT_TYPE, {
    source: form(
      /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}\/(?:[a-z0-9][a-z0-9_-]{0,62}|_system)$/u,
      "Service name and tenant: `<service>/<tenant>`. Unique together with ce_id."
    ),
    id: form(/^[1-9][0-9]*$/u, "The event's sequence_number."),
    time: "The event's created_at."
  }),
  value: AuditEvent.mapFields((fields) => ({
    ...fields,
    tenant_id: tenant("Whose chain it is in.").annotate({ examples: ["acme"] })
  }))
}

export const traceFactRecord: RecordContract = {
  name: "trace-fact",
  topic: "traces",
  title: "Trace fact",
  description:
    "One fact about an execution; `type` says which. An operator can let the topic forget the "
    + "details of an erased execution: then its facts have erased_at instead, and the same hashes. "
    + "No other members exist in this version: what is not listed here is not covered by the hashes.",
  key: partitionKey,
  headers: headers(TRACE_FACT_TYPE, {
    source: form(
      /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}\/(?:[a-z0-9][a-z0-9_-]{0,62}|_system)\/traces$/u,
      "`<service>/<tenant>/traces`. Unique together with ce_id."
    ),
    id: form(/^[1-9][0-9]*$/u, "The fact's chain_sequence."),
    time: "The fact's created_at."
  }),
  value: StoredFact
}

export const checkpointRecord: RecordContract = {
  name: "checkpoint",
  topic: "checkpoints",
  title: "Checkpoint",
  description:
    "The size and the Merkle root of one of a tenant's two chains, signed. A kept checkpoint shows "
    + "later whether the chain before it was rewritten. Only `note` is signed; the rest repeats it.",
  key: tenant("The tenant_id."),
  headers: headers(CHECKPOINT_TYPE, {
    source: text("`<service name>/<tenant_id>/checkpoints`, or `…/traces/checkpoints`"),
    id: text("`<tree_size>-<key_id>`; with `-<next key_id>` where the note names the next key"),
    time: "created_at"
  }),
  value: CheckpointRecord
}
