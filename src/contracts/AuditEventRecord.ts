/**
 * The public record of `alk.events`: one stored event, with CloudEvents headers. This is the
 * contract of everyone who reads the topic directly, so it says no more than what holds for every
 * deployment.
 */
import { Schema, Struct } from "effect"
import { ACTION_FORM, AuditEvent } from "../domain/events/AuditEvent.ts"
import { AUDIT_EVENT_TYPE } from "../domain/records/CloudEvent.ts"
import { exampleEvent } from "./ExampleEvent.ts"
import { form, tenant, time } from "./Forms.ts"
import type { RecordContract } from "./RecordContract.ts"

// How long an action may be is configurable, so its length is no part of the contract.
const Action = form(
  ACTION_FORM,
  "What was done, as noun.verb. Actions that start with alk. are the service's own."
).annotate({ examples: ["document.read"] })

// An erasure never changes the topic, so a record never says that it was erased.
const Value = AuditEvent.mapFields((fields) => ({
  ...Struct.omit(fields, ["erased_at"]),
  action: Action,
  tenant_id: tenant("Whose chain it is in.").annotate({ examples: ["acme"] })
})).annotate({ examples: [exampleEvent] })

/** Attributes of CloudEvents 1.0 in Kafka's binary mode. */
const Headers = Schema.Struct({
  ce_specversion: Schema.Literal("1.0").annotate({ description: "Version of CloudEvents." }),
  ce_type: Schema.Literal(AUDIT_EVENT_TYPE).annotate({
    description: "Kind and version of the record; a change that breaks readers gets a new one."
  }),
  ce_source: form(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}\/(?:[a-z0-9][a-z0-9_-]{0,62}|_system)$/u,
    "Service name and tenant: `<service>/<tenant>`. Unique together with ce_id."
  ),
  ce_id: form(/^[1-9][0-9]*$/u, "The event's sequence_number."),
  ce_time: time("The event's created_at."),
  "content-type": Schema.Literal("application/json").annotate({ description: "Of the value." })
})

export const auditEventRecord: RecordContract = {
  name: "audit-event",
  topic: "events",
  title: "Audit event",
  description:
    "One stored event, exactly the JSON that the API returns for it until its details are "
    + "erased. No other members exist in this version: what is not listed here is not covered by "
    + "the hashes.",
  key: tenant("The tenant_id. Kafka's default partitioner (murmur2) places it."),
  headers: Headers,
  value: Value
}
