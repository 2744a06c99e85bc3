/**
 * The AsyncAPI 3.0 document of the public topics: what a direct subscriber can rely on. Made from
 * the contracts of the records, so that it can't say anything else than the schemas do.
 */
import { SCHEME } from "../domain/events/HashChain.ts"
import { parseJson } from "../domain/json/Json.ts"
import {
  AUDIT_EVENT_TYPE,
  auditEventHeaders,
  CHECKPOINT_TYPE,
  checkpointHeaders,
  TRACE_FACT_TYPE,
  traceFactHeaders
} from "../domain/records/CloudEvent.ts"
import {
  auditEventRecord,
  checkpointRecord,
  traceFactRecord
} from "../domain/records/PublicRecords.ts"
import type { RecordContract } from "../domain/records/RecordContract.ts"
import { MESSAGE_BYTES_MAX, topicName } from "../domain/records/Topics.ts"
import { TRACE_SCHEME } from "../domain/traces/FactText.ts"
import { exampleCheckpoint } from "./ExampleCheckpoint.ts"
import { exampleEvent, exampleLink } from "./ExampleEvent.ts"
import { exampleFactPlace, exampleFactValue } from "./ExampleFact.ts"
import { describe, describeValue, type JsonRecord, type JsonValue } from "./JsonSchema.ts"
import { toYaml } from "./Yaml.ts"

/** What differs from one deployment to another. */
export interface AsyncApiPlace {
  readonly topicPrefix: string
  readonly serviceName: string
  /** Address of a broker as clients reach it. */
  readonly bootstrap: string
  readonly partitions: number
  /** Milliseconds that events and trace facts are kept. */
  readonly eventsRetentionMs: number | "forever"
}

/** The place of the published document: every setting at its default. */
export const defaultPlace: AsyncApiPlace = {
  topicPrefix: "alk",
  serviceName: "alk",
  bootstrap: "localhost:9092",
  partitions: 4,
  eventsRetentionMs: "forever"
}

const about = `Audit events and facts of execution traces as they are appended, one Kafka record
each, for everyone who wants to read the logs themselves instead of asking the HTTP API. Reading
needs no credentials of alk: access is the business of the brokers (listeners, TLS, SASL, ACLs).
Give readers the right to read these topics and nothing else; only alk's sequencers may write to
them.
`

const aboutEvents = `One record per stored event.

Reading
- isolation.level=read_committed is required. Events are written in transactions; other readers see
  events that were never appended.
- Records are compressed with zstd unless ALK_PUBLIC_COMPRESSION is gzip or none; they keep what they
  were written with. The client has to support it: kafkajs as it comes has no zstd and crashes on it.
  With a codec of a few lines it reads zstd too (docs/subscribe.md).
- Offsets have gaps where transactions end. Position and completeness go by sequence_number.
- With read_committed every event is there exactly once. A reader that commits its offsets after
  its work sees some events twice after a crash: (tenant_id, sequence_number) identifies them.

Order
- The key is the tenant_id. A tenant's events are in one partition for ever: murmur2 of the key's
  UTF-8 bytes, as Kafka's default partitioner computes it, modulo the number of partitions over which
  the tenant was placed. Topics may get more partitions; tenants that are there stay where they are.
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

const aboutTraces = `One record per fact about an execution: it has started or ended, a span of it
has, something happened in a span, its details were erased, or it is a piece of a value that had no
room in its span. What an execution is now follows from
its facts in the order of fact_number; of several execution.started the last one counts.

Reading
- As the topic of the events: read_committed, compressed, offsets with gaps, the key is the tenant_id, a
  tenant's facts are in one partition for ever. (tenant_id, chain_sequence) identifies repeats.
- Within a tenant chain_sequence goes up from 1 by 1; the facts of its executions are mixed. Within
  an execution fact_number goes up from 1 by 1, and the sequence_number of its trace events does.
- Spans may arrive before their parent, and after the end of their execution.
- Where a span has {"$ref": "sha256:..."}, the payload.text of the facts span.payload with this
  payload.sha256, by payload.chunk, make the value. They come in the same transaction as the span, or
  earlier in the execution.
- Readers should stop at a ce_type that they don't know, and pass over a type that they don't know.

Value
- Compact JSON that begins with the bytes of its core. It never changes: a fact whose details are
  erased through the API stays here as it was until the topic's retention ends.

Verifying the chain, ${TRACE_SCHEME}
- SHA-256 is taken of UTF-8 bytes and written as 64 lower-case hex digits; JCS is RFC 8785; \\n is
  one line feed.
- If there are details: details_hash = SHA-256(details_salt + "\\n" + JCS(details))
- core = every member but details, details_salt, tenant_id, chain_sequence, created_at, prev_hash,
  content_hash and hash (details_hash is a part of it)
  content_hash = SHA-256(JCS(core))
- hash = SHA-256("${TRACE_SCHEME}" + "\\n" + tenant_id + "\\n" + chain_sequence + "\\n" + created_at
  + "\\n" + content_hash + "\\n" + prev_hash)
- prev_hash is the hash of the fact before, 64 zeros for chain_sequence 1.
- A chain is intact if all of this holds for every fact, no chain_sequence is missing and no
  fact_number of an execution is. GET /api/v1/executions/{id}/verify finds a missing last fact too.
`

const aboutCheckpoints = `One record per signed checkpoint: the size and the Merkle root of a tenant's
chain of events, or of its chain of trace facts (chain: "traces"). Made about every 10 seconds while
the chain grows, and on request.

Reading
- As the topic of the events. Kept for ever: a checkpoint that you keep elsewhere is what shows that
  the chain before it was rewritten.

Value
- Compact JSON. Only note counts; the other members say again what it says, and when it was made.
- note is a C2SP tlog-checkpoint (origin \`<service name>/<tenant_id>\` for events,
  \`<service name>/<tenant_id>/traces\` for trace facts; size, root) in a C2SP signed note, Ed25519.
  The keys are served at /.well-known/alk-keys.json; keep them too.

Verifying the tree
- RFC 9162, section 2.1, with SHA-256. Leaf i is the event with sequence_number i + 1, or the fact
  with chain_sequence i + 1; the input of its leaf hash is the 32 bytes of \`hash\`.
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

/** A topic that others may read. */
interface PublicTopic {
  /** Names of its channel, its message and its schema in the document. */
  readonly name: "events" | "traces" | "checkpoints"
  readonly message: string
  readonly schema: string
  readonly record: RecordContract
  readonly type: string
  readonly title: string
  readonly about: string
  readonly summary: string
  readonly example: {
    readonly summary: string
    readonly headers: (serviceName: string) => JsonRecord
    readonly payload: JsonRecord
  }
}

const publicTopics: ReadonlyArray<PublicTopic> = [
  {
    name: "events",
    message: "auditEvent",
    schema: "AuditEvent",
    record: auditEventRecord,
    type: AUDIT_EVENT_TYPE,
    title: "Audit events",
    about: aboutEvents,
    summary: "One event was appended to its tenant's chain.",
    example: {
      summary: "The first event of a tenant.",
      headers: (serviceName) => auditEventHeaders(serviceName, exampleLink),
      payload: exampleEvent as unknown as JsonRecord
    }
  },
  {
    name: "traces",
    message: "traceFact",
    schema: "TraceFact",
    record: traceFactRecord,
    type: TRACE_FACT_TYPE,
    title: "Trace facts",
    about: aboutTraces,
    summary: "One fact was appended to its tenant's chain of trace facts.",
    example: {
      summary: "The first fact of a tenant.",
      headers: (serviceName) => traceFactHeaders(serviceName, exampleFactPlace),
      payload: parseJson(exampleFactValue) as JsonRecord
    }
  },
  {
    name: "checkpoints",
    message: "checkpoint",
    schema: "Checkpoint",
    record: checkpointRecord,
    type: CHECKPOINT_TYPE,
    title: "Checkpoints",
    about: aboutCheckpoints,
    summary: "A tenant's chain was signed as it is.",
    example: {
      summary: "Over the first event of a tenant.",
      headers: (serviceName) => checkpointHeaders(serviceName, exampleCheckpoint),
      payload: exampleCheckpoint as unknown as JsonRecord
    }
  }
]

const channel = (
  { about: description, message: name, name: kind, record, title }: PublicTopic,
  { eventsRetentionMs, partitions, topicPrefix }: AsyncApiPlace
): JsonRecord => {
  const topic = topicName(topicPrefix, record.topic)
  return {
    address: topic,
    title,
    description,
    servers: [{ $ref: "#/servers/kafka" }],
    messages: { [name]: { $ref: `#/components/messages/${name}` } },
    bindings: {
      kafka: {
        topic,
        partitions,
        topicConfiguration: {
          "cleanup.policy": ["delete"],
          "retention.ms":
            kind === "checkpoints" || eventsRetentionMs === "forever" ? -1 : eventsRetentionMs,
          "max.message.bytes": MESSAGE_BYTES_MAX
        },
        bindingVersion
      }
    }
  }
}

const message = (
  { example, record, schema, summary, type }: PublicTopic,
  { serviceName }: AsyncApiPlace
): JsonRecord => ({
  name: type,
  title: record.title,
  summary,
  description: record.description,
  contentType: "application/json",
  headers: { $ref: `#/components/schemas/${schema}Headers` },
  payload: { $ref: `#/components/schemas/${schema}` },
  bindings: { kafka: { key: describe(record.key).schema, bindingVersion } },
  examples: [
    {
      name: "first",
      summary: example.summary,
      headers: example.headers(serviceName),
      payload: example.payload
    }
  ]
})

const operationTitles = {
  events: "An event was appended",
  traces: "A fact was appended",
  checkpoints: "A checkpoint was signed"
}

const operation = ({ message: name, name: channelName }: PublicTopic): JsonRecord => ({
  action: "send",
  channel: { $ref: `#/channels/${channelName}` },
  title: operationTitles[channelName],
  summary: "Sent once it is durable and has its place.",
  messages: [{ $ref: `#/channels/${channelName}/messages/${name}` }]
})

const schemas = (): JsonRecord =>
  moveReferences(
    Object.assign(
      {},
      ...publicTopics.map(({ record, schema: name }) => {
        const { definitions, schema } = describeValue(record)
        const headers = describe(record.headers).schema
        return { [name]: schema, [`${name}Headers`]: headers, ...definitions }
      })
    ) as JsonRecord
  ) as JsonRecord

/** One member for each public topic. */
const forEachTopic = (
  name: (topic: PublicTopic) => string,
  value: (topic: PublicTopic) => JsonRecord
): JsonRecord => Object.fromEntries(publicTopics.map((topic) => [name(topic), value(topic)]))

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
  channels: forEachTopic(
    ({ name }) => name,
    (topic) => channel(topic, place)
  ),
  operations: forEachTopic(({ schema }) => `append${schema}`, operation),
  components: {
    messages: forEachTopic(
      ({ message: name }) => name,
      (topic) => message(topic, place)
    ),
    schemas: schemas()
  }
})

/** The same as YAML: `schemas/asyncapi.yaml`, `GET /asyncapi.yaml`. */
export const asyncApiYaml = (place: AsyncApiPlace): string => toYaml(asyncApiDocument(place))
