/**
 * A stored event as an event of OCSF (schema.ocsf.io), version 1.4.0, without losing anything: what
 * OCSF has no attribute for, the facts of the chain above all, is in `unmapped`, so that the stored
 * event and its hashes can be computed from it.
 */
import { isIP } from "node:net"
import { Schema } from "effect"
import type { Actor, AuditEvent } from "../../domain/events/AuditEvent.ts"
import { SCHEME } from "../../domain/events/HashChain.ts"
import { metadataOf } from "../../domain/events/StoredEvent.ts"
import { parseJson } from "../../domain/json/Json.ts"
import { ocsfActivityOf } from "./OcsfClass.ts"

/** The version of OCSF that is written. The later ones up to 1.8.0 take the same events. */
export const OCSF_VERSION = "1.4.0"

/** What an event does not say itself. */
export interface OcsfSource {
  readonly serviceName: string
  /** Of alk's API. */
  readonly version: string
}

const Text = Schema.String
const Milliseconds = Schema.Int.annotate({ description: "Since 1970, UTC." })

const OcsfUser = Schema.Struct({
  uid: Text,
  name: Schema.optionalKey(Text),
  email_addr: Schema.optionalKey(Text),
  type_id: Schema.Literals([1, 3, 99]).annotate({
    description: "1: a person. 3: a system. 99: what `type` says."
  }),
  type: Text
}).annotate({ identifier: "OcsfUser" })

const OcsfEndpoint = Schema.Struct({
  ip: Schema.optionalKey(Text),
  name: Schema.optionalKey(Schema.Literal("unknown"))
}).annotate({
  identifier: "OcsfEndpoint",
  description: "From metadata.ip, source_ip or client_ip; named unknown where OCSF demands one."
})

const OcsfThing = Schema.Struct({
  uid: Schema.optionalKey(Text),
  name: Schema.optionalKey(Text),
  type: Schema.optionalKey(Text)
}).annotate({ identifier: "OcsfThing" })

const OcsfProduct = Schema.Struct({
  name: Schema.Literal("alk"),
  vendor_name: Schema.Literal("alk"),
  version: Text
}).annotate({ identifier: "OcsfProduct" })

const OcsfMetadata = Schema.Struct({
  version: Schema.Literal(OCSF_VERSION),
  product: OcsfProduct,
  log_provider: Text.annotate({ description: "ALK_SERVICE_NAME." }),
  tenant_uid: Text.annotate({ description: "tenant_id of the event." }),
  uid: Text.annotate({ description: "id of the event, unique in its tenant." }),
  sequence: Schema.Int.annotate({ description: "sequence_number of the event." }),
  event_code: Text.annotate({ description: "action of the event, as it was sent." }),
  original_time: Text.annotate({ description: "timestamp of the event, with microseconds." }),
  logged_time: Milliseconds
}).annotate({ identifier: "OcsfMetadata" })

const Resource = Schema.Struct({ id: Text, type: Text, name: Schema.optionalKey(Text) })

const Unmapped = Schema.Struct({
  chain: Schema.Literal(SCHEME),
  tenant_id: Text,
  sequence_number: Schema.Int,
  created_at: Text,
  prev_hash: Text,
  details_salt: Schema.optionalKey(Text),
  details_hash: Schema.optionalKey(Text),
  content_hash: Text,
  hash: Text,
  erased_at: Schema.optionalKey(Text),
  actor_email: Schema.optionalKey(Text).annotateKey({
    description: "Where it has not the form that OCSF asks of an address."
  }),
  resource: Schema.optionalKey(Resource).annotateKey({
    description: "Where the class has no attribute that holds all of it."
  }),
  metadata: Schema.optionalKey(Schema.JsonObject)
}).annotate({
  identifier: "OcsfUnmapped",
  description: "The facts of the chain, and what OCSF has no attribute for."
})

/** Everything that alk writes. Which of the attributes of the classes are there, the class says. */
export const OcsfEvent = Schema.Struct({
  class_uid: Schema.Literals([3001, 3002, 3004, 6003]),
  class_name: Text,
  category_uid: Schema.Literals([3, 6]),
  category_name: Text,
  activity_id: Schema.Int,
  activity_name: Text.annotate({ description: "OCSF's caption; the action where it is 99." }),
  type_uid: Schema.Int.annotate({ description: "class_uid times 100 and activity_id." }),
  type_name: Text,
  time: Milliseconds,
  severity_id: Schema.Literal(1).annotate({ description: "Informational: alk judges nothing." }),
  severity: Schema.Literal("Informational"),
  status_id: Schema.Literals([1, 2]),
  status: Schema.Literals(["Success", "Failure"]),
  status_code: Text.annotate({ description: "outcome of the event." }),
  metadata: OcsfMetadata,
  actor: Schema.Struct({ user: OcsfUser }).annotate({ identifier: "OcsfActor" }),
  src_endpoint: Schema.optionalKey(OcsfEndpoint),
  api: Schema.optionalKey(Schema.Struct({ operation: Text })).annotateKey({
    description: "Of 6003."
  }),
  resources: Schema.optionalKey(Schema.Array(OcsfThing)).annotateKey({ description: "Of 6003." }),
  entity: Schema.optionalKey(OcsfThing).annotateKey({ description: "Of 3004." }),
  user: Schema.optionalKey(OcsfUser).annotateKey({
    description: "Of 3001: whose account it is. Of 3002: who signs in."
  }),
  service: Schema.optionalKey(OcsfThing).annotateKey({ description: "Of 3002." }),
  unmapped: Unmapped
}).annotate({
  identifier: "OcsfEvent",
  title: "An audit event as alk writes it for OCSF",
  description: "One line of format=ocsf. OCSF's own schemas take it, too."
})
export type OcsfEvent = typeof OcsfEvent.Type

const UNKNOWN = "unknown"
/** What OCSF takes for an e-mail address. */
const EMAIL_FORM = /^[a-zA-Z0-9!#$%&'*+\-/=?^_`{|}~.,]+@[a-zA-Z0-9-]+\.[a-zA-Z0-9-.]+$/
/** Characters of an address in OCSF. */
const IP_LENGTH_MAX = 40
const ADDRESS_NAMES = ["ip", "source_ip", "client_ip"] as const

const userTypes = {
  human: { type_id: 1, type: "User" },
  system: { type_id: 3, type: "System" },
  agent: { type_id: 99, type: "agent" }
} as const

const actorUser = ({ email, id, type }: Actor): typeof OcsfUser.Type => ({
  uid: id,
  ...(email !== undefined && EMAIL_FORM.test(email) ? { email_addr: email } : {}),
  ...userTypes[type]
})

const addressOf = ({ metadata = {} }: AuditEvent): string | undefined => {
  const found = ADDRESS_NAMES.map((name) => metadata[name]).find(
    (value): value is string => typeof value === "string" && isIP(value) !== 0
  )
  return found === undefined || found.length > IP_LENGTH_MAX ? undefined : found
}

const named = (name: string | undefined) => (name === undefined ? {} : { name })

type Subject = Pick<OcsfEvent, "api" | "entity" | "resources" | "service" | "user">

/** What the event is about, in the attributes of its class. */
const subjectOf = (classUid: OcsfEvent["class_uid"], event: AuditEvent): Subject => {
  const { action, actor, resource } = event
  const { id: uid, name, type } = resource
  const thing = { uid, ...named(name), type }
  switch (classUid) {
    case 3001:
      return { user: { uid, ...named(name), type_id: 99, type } }
    case 3002:
      return { user: actorUser(actor), service: { uid, ...named(name) } }
    case 3004:
      return { entity: thing }
    case 6003:
      return { api: { operation: action }, resources: [thing] }
  }
}

const endpointOf = (classUid: OcsfEvent["class_uid"], event: AuditEvent) => {
  const ip = addressOf(event)
  if (ip !== undefined) return { src_endpoint: { ip } }
  return classUid === 6003 ? { src_endpoint: { name: UNKNOWN } as const } : {}
}

/** Without `metadata`, whose text is not to be written anew. */
const unmappedOf = (classUid: OcsfEvent["class_uid"], event: AuditEvent): typeof Unmapped.Type => {
  const { actor, content_hash, created_at, details_hash, details_salt, erased_at, hash } = event
  const { prev_hash, resource, sequence_number, tenant_id } = event
  const { email } = actor
  return {
    chain: SCHEME,
    tenant_id,
    sequence_number,
    created_at,
    prev_hash,
    ...(details_salt === undefined ? {} : { details_salt }),
    ...(details_hash === undefined ? {} : { details_hash }),
    content_hash,
    hash,
    ...(erased_at === undefined ? {} : { erased_at }),
    ...(email === undefined || EMAIL_FORM.test(email) ? {} : { actor_email: email }),
    ...(classUid === 3001 || classUid === 3002 ? { resource } : {})
  }
}

const metadataFor = (
  event: AuditEvent,
  { serviceName, version }: OcsfSource
): OcsfEvent["metadata"] => ({
  version: OCSF_VERSION,
  product: { name: "alk", vendor_name: "alk", version },
  log_provider: serviceName,
  tenant_uid: event.tenant_id,
  uid: event.id,
  sequence: event.sequence_number,
  event_code: event.action,
  original_time: event.timestamp,
  logged_time: Date.parse(event.created_at)
})

const toOcsf = (event: AuditEvent, source: OcsfSource): OcsfEvent => {
  const { action, actor, outcome, resource, timestamp } = event
  const { caption, id, kind } = ocsfActivityOf(action, resource.type)
  return {
    class_uid: kind.uid,
    class_name: kind.name,
    category_uid: kind.category.uid,
    category_name: kind.category.name,
    activity_id: id,
    activity_name: id === 99 ? action : caption,
    type_uid: kind.uid * 100 + id,
    type_name: `${kind.name}: ${caption}`,
    time: Date.parse(timestamp),
    severity_id: 1,
    severity: "Informational",
    status_id: outcome === "success" ? 1 : 2,
    status: outcome === "success" ? "Success" : "Failure",
    status_code: outcome,
    metadata: metadataFor(event, source),
    actor: { user: actorUser(actor) },
    ...endpointOf(kind.uid, event),
    ...subjectOf(kind.uid, event),
    unmapped: unmappedOf(kind.uid, event)
  }
}

/** How the text of every event ends: of `unmapped` and of the whole. */
const END = "}}"

/** The stored JSON of an event as one line of OCSF, without its end. */
export const ocsfLine =
  (source: OcsfSource) =>
  (body: string): string => {
    const event = parseJson(body) as AuditEvent
    const text = JSON.stringify(toOcsf(event, source))
    return event.metadata === undefined
      ? text
      : `${text.slice(0, -END.length)},"metadata":${metadataOf(body)}${END}`
  }
