/**
 * The AsyncAPI 3.0 document of the public topics: what a direct subscriber can rely on. Made from
 * the contracts of the records, so that it can't say anything else than the schemas do.
 */
import { AUDIT_EVENT_TYPE, auditEventHeaders } from "../domain/CloudEvent.ts"
import { SCHEME } from "../domain/HashChain.ts"
import { MESSAGE_BYTES_MAX, topicName } from "../domain/Topics.ts"
import { auditEventRecord } from "./AuditEventRecord.ts"
import { exampleEvent, exampleLink } from "./ExampleEvent.ts"
import { describe, type JsonRecord, type JsonValue } from "./JsonSchema.ts"
import { toYaml } from "./Yaml.ts"

/** What differs from one deployment to another. */
export interface AsyncApiPlace {
  readonly topicPrefix: string
  readonly serviceName: string
  /** Address of a broker as clients reach it. */
  readonly bootstrap: string
  readonly partitions: number
  /** Milliseconds that events are kept. */
  readonly eventsRetentionMs: number | "forever"
}

/** The place that the published document speaks of: every setting at its default. */
export const defaultPlace: AsyncApiPlace = {
  topicPrefix: "alk",
  serviceName: "alk",
  bootstrap: "localhost:9092",
  partitions: 4,
  eventsRetentionMs: "forever"
}

const about = `Audit events as they are appended, one Kafka record each, for everyone who wants to
read the log itself instead of asking the HTTP API. Reading needs no credentials of alk: access is
the business of the brokers (listeners, TLS, SASL, ACLs). Give readers the right to read this topic
and nothing else; only alk's sequencers may write to it.
`

const aboutChannel = `One record per stored event.

Reading
- isolation.level=read_committed is required. Events are written in transactions; other readers see
  events that were never appended.
- Records are compressed with zstd, which the client has to support.
- Offsets have gaps where transactions end. Position and completeness go by sequence_number.
- With read_committed every event is there exactly once. A reader that commits its offsets after
  its work sees some events twice after a crash: (tenant_id, sequence_number) tells.

Order
- The key is the tenant_id. Kafka's default partitioner (murmur2 of the key's UTF-8 bytes) places
  it, and the number of partitions never changes: a tenant's events stand in one partition for ever.
- Within a tenant the order of the records is the order of the chain: sequence_number goes up from 1
  by 1, created_at never decreases. Between tenants there is no order. timestamp is the client's.

Value
- Compact JSON, byte for byte what the HTTP API returns for the event. It never changes: an event
  whose details are erased through the API stays here as it was until the topic's retention ends.
- Readers should stop at a ce_type that they don't know.

Verifying the chain, ${SCHEME}
- SHA-256 is taken of UTF-8 bytes and written as 64 lower-case hex digits; JCS is RFC 8785; \\n is
  one line feed.
- details = the members that the event has of {actor_email: actor.email, metadata,
  resource_name: resource.name}. If there are any:
  details_hash = SHA-256(details_salt + "\\n" + JCS(details))
- core = {action, actor: {id, type}, details_hash if there is one, id, outcome,
  resource: {id, type}, timestamp}
  content_hash = SHA-256(JCS(core))
- hash = SHA-256("${SCHEME}" + "\\n" + tenant_id + "\\n" + sequence_number + "\\n" + created_at
  + "\\n" + content_hash + "\\n" + prev_hash)
- prev_hash is the hash of the event before, 64 zeros for sequence_number 1.
- A chain is intact if all of this holds for every event and no sequence_number is missing. The hash
  of the last event, compared with GET /v1/chain or with one that was kept, shows a missing tail.
`

/** Definitions live elsewhere in AsyncAPI than in JSON Schema. */
const moved = (reference: JsonValue): JsonValue =>
  typeof reference === "string"
    ? reference.replace("#/$defs/", "#/components/schemas/")
    : moveReferences(reference)

const moveReferences = (value: JsonValue): JsonValue => {
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map(moveReferences)
  const members = Object.entries(value as JsonRecord)
  return Object.fromEntries(
    members.map(([name, member]) => [
      name,
      name === "$ref" ? moved(member) : moveReferences(member)
    ])
  )
}

const bindingVersion = "0.5.0"

const channel = ({ eventsRetentionMs, partitions, topicPrefix }: AsyncApiPlace): JsonRecord => {
  const topic = topicName(topicPrefix, auditEventRecord.topic)
  return {
    address: topic,
    title: "Audit events",
    description: aboutChannel,
    servers: [{ $ref: "#/servers/kafka" }],
    messages: { auditEvent: { $ref: "#/components/messages/auditEvent" } },
    bindings: {
      kafka: {
        topic,
        partitions,
        topicConfiguration: {
          "cleanup.policy": ["delete"],
          "retention.ms": eventsRetentionMs === "forever" ? -1 : eventsRetentionMs,
          "max.message.bytes": MESSAGE_BYTES_MAX
        },
        bindingVersion
      }
    }
  }
}

const message = ({ serviceName }: AsyncApiPlace): JsonRecord => ({
  name: AUDIT_EVENT_TYPE,
  title: auditEventRecord.title,
  summary: "One event was appended to its tenant's chain.",
  description: auditEventRecord.description,
  contentType: "application/json",
  headers: { $ref: "#/components/schemas/AuditEventHeaders" },
  payload: { $ref: "#/components/schemas/AuditEvent" },
  bindings: { kafka: { key: describe(auditEventRecord.key).schema, bindingVersion } },
  examples: [
    {
      name: "first",
      summary: "The first event of a tenant.",
      headers: auditEventHeaders(serviceName, exampleLink),
      payload: exampleEvent as unknown as JsonRecord
    }
  ]
})

const schemas = (): JsonRecord => {
  const { definitions, schema } = describe(auditEventRecord.value)
  return moveReferences({
    AuditEvent: schema,
    AuditEventHeaders: describe(auditEventRecord.headers).schema,
    ...definitions
  }) as JsonRecord
}

/** The document for one deployment. */
export const asyncApiDocument = (place: AsyncApiPlace): JsonRecord => ({
  asyncapi: "3.0.0",
  info: {
    title: "alk direct subscriptions",
    version: "1.0.0",
    description: about,
    license: { name: "Apache-2.0", url: "https://www.apache.org/licenses/LICENSE-2.0" }
  },
  defaultContentType: "application/json",
  servers: {
    kafka: {
      host: "{bootstrap}",
      protocol: "kafka",
      description: "Any broker of the cluster. GET /readyz of the HTTP API names one.",
      variables: {
        bootstrap: { default: place.bootstrap, description: "host:port of a broker" }
      }
    }
  },
  channels: { events: channel(place) },
  operations: {
    appendAuditEvent: {
      action: "send",
      channel: { $ref: "#/channels/events" },
      title: "An event was appended",
      summary: "Sent once the event is durable and has its place in the chain.",
      messages: [{ $ref: "#/channels/events/messages/auditEvent" }]
    }
  },
  components: { messages: { auditEvent: message(place) }, schemas: schemas() }
})

/** The same as YAML: `schemas/asyncapi.yaml`, `GET /asyncapi.yaml`. */
export const asyncApiYaml = (place: AsyncApiPlace): string => toYaml(asyncApiDocument(place))
