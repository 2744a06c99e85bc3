/**
 * Records of other systems as events: which of their fields is the actor, the action, the resource. A
 * line in, a line out. The record itself becomes the metadata as it was written, so no number in it is
 * rounded. Needs Node from 20 on and no package.
 *
 *     node map.mjs okta < records.ndjson > events.ndjson
 */
import { createHash } from "node:crypto"
import { createInterface } from "node:readline"

/** Characters that an id of an event, and one of an actor or a resource, may have. */
const ID_MAX = 256
const PARTY_ID_MAX = 1_024

const one = (list) => (Array.isArray(list) ? (list[0] ?? {}) : {})
const words = (...parts) => parts.filter(Boolean).join(" ")
const machine = (isOne) => (isOne ? "system" : "human")

/** What each source has, as one object: id, time, actor, email, type, action, resource, kind, name, outcome. */
const sources = {
  cloudtrail: (r) => {
    const who = r.userIdentity ?? {}
    const asked = r.requestParameters ?? {}
    const isDenied = /Denied|Unauthorized/.test(r.errorCode)
    return {
      id: r.eventID,
      time: r.eventTime,
      actor: who.arn ?? who.principalId ?? who.userName ?? who.invokedBy ?? who.type,
      type: machine(["AWSService", "AWSAccount"].includes(who.type)),
      action: words(r.eventSource, r.eventName).replace(" ", "/"),
      resource: one(r.resources).ARN ?? asked.bucketName ?? asked.userName ?? asked.roleName,
      kind: one(r.resources).type ?? r.eventSource,
      outcome: isDenied ? "failure" : r.errorCode ? "error" : "success"
    }
  },
  kubernetes: (r) => {
    const ref = r.objectRef ?? {}
    const code = r.responseStatus?.code ?? 200
    return {
      // An auditID is a request: its stages share it.
      id: r.auditID && `${r.auditID}/${r.stage}`,
      time: r.stageTimestamp ?? r.requestReceivedTimestamp,
      actor: r.user?.username,
      type: machine(r.user?.username?.startsWith("system:")),
      action: words(r.verb, [ref.resource, ref.subresource].filter(Boolean).join("/")),
      resource: [ref.namespace, ref.resource, ref.name].filter(Boolean).join("/") || r.requestURI,
      kind: ref.resource ?? "url",
      outcome: code < 400 ? "success" : code < 500 ? "failure" : "error"
    }
  },
  okta: (r) => ({
    id: r.uuid,
    time: r.published,
    actor: r.actor?.id,
    email: r.actor?.alternateId,
    type: machine(r.actor && r.actor.type !== "User"),
    action: r.eventType,
    resource: one(r.target).id,
    kind: one(r.target).type,
    name: one(r.target).displayName,
    outcome: /FAILURE|DENY/.test(r.outcome?.result) ? "failure" : "success"
  }),
  github: (r) => ({
    id: r._document_id,
    time: r["@timestamp"] ?? r.created_at,
    actor: r.actor ?? r.user,
    type: machine(r.actor_is_bot || /\[bot\]$/.test(r.actor)),
    action: r.action,
    resource: r.repo ?? r.org ?? r.business,
    kind: r.repo ? "repository" : r.org ? "organization" : "enterprise",
    outcome: /fail|reject/.test(r.action) ? "failure" : "success"
  }),
  gitlab: (r) => {
    const details = r.details ?? r.detail ?? {}
    return {
      id: r.id,
      time: r.created_at,
      actor: r.author_id ?? details.author_email,
      email: details.author_email,
      action: details.event_name ?? details.custom_message ?? r.event_type ?? r.method,
      resource: r.entity_path ?? details.target_id ?? r.path,
      kind: r.entity_type ?? details.target_type,
      name: details.target_details
    }
  },
  google_workspace: (r) => ({
    id: r.id?.uniqueQualifier && `${r.id.time}/${r.id.uniqueQualifier}`,
    time: r.id?.time,
    actor: r.actor?.profileId ?? r.actor?.email ?? r.actor?.key,
    email: r.actor?.email,
    action: words(r.id?.applicationName, one(r.events).name ?? r.name),
    resource: r.parameters?.doc_id ?? r.parameters?.USER_EMAIL ?? r.id?.customerId,
    kind: one(r.events).type ?? r.type,
    outcome: /failure/.test(one(r.events).name ?? r.name) ? "failure" : "success"
  }),
  google_cloud: (r) => {
    const what = r.protoPayload ?? {}
    const who = what.authenticationInfo ?? {}
    const code = Number(what.status?.code ?? 0)
    return {
      // An insertId is unique in its log and time only.
      id: r.insertId && `${r.logName}/${r.timestamp}/${r.insertId}`,
      time: r.timestamp ?? r.receiveTimestamp,
      actor: who.principalEmail ?? who.principalSubject,
      email: who.principalEmail,
      type: machine(/^system:|gserviceaccount\.com$/.test(who.principalEmail)),
      action: what.methodName,
      resource: what.resourceName,
      kind: r.resource?.type ?? what.serviceName,
      // 7 is PERMISSION_DENIED, 16 UNAUTHENTICATED.
      outcome: code === 0 ? "success" : [7, 16].includes(code) ? "failure" : "error"
    }
  },
  azure: (r) => {
    const user = r.properties?.initiatedBy?.user ?? {}
    const claims = r.identity?.claims ?? {}
    const email = claims["http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress"]
    return {
      // Records of one operation share their ids, so the id is the hash of the record.
      time: r.time,
      actor:
        claims["http://schemas.microsoft.com/identity/claims/objectidentifier"]
        ?? user.id
        ?? r.properties?.userId
        ?? r.callerIpAddress,
      email: email ?? user.userPrincipalName ?? r.properties?.userPrincipalName,
      action: r.operationName,
      resource: r.resourceId,
      kind: r.category,
      outcome: /^(fail|unauth|denied|5\d)/i.test(r.resultType ?? "") ? "failure" : "success"
    }
  },
  slack: (r) => {
    const thing = r.entity?.[r.entity.type] ?? {}
    return {
      id: r.id,
      time: r.date_create,
      actor: r.actor?.user?.id,
      email: r.actor?.user?.email,
      type: machine(r.actor?.type && r.actor.type !== "user"),
      action: r.action,
      resource: thing.id ?? r.context?.location?.id,
      kind: r.entity?.type,
      name: thing.name
    }
  },
  auth0: (r) => {
    const log = r.data ?? r
    const who = log.details?.request?.auth?.user ?? {}
    return {
      id: r.log_id ?? log.log_id,
      time: log.date,
      actor: who.user_id ?? log.user_id ?? log.client_id,
      email: who.email ?? log.user_name,
      // Calls of the API have one type, and differ in what they are described as.
      action: /api/.test(log.type) ? words(log.type, log.description) : log.type,
      resource: log.client_id ?? log.connection_id,
      kind: "client",
      name: log.client_name,
      outcome: /^f/.test(log.type) ? "failure" : "success"
    }
  },
  onepassword: (r) => {
    const who = r.user ?? r.target_user ?? r.actor_details ?? {}
    const isFailed = r.category && r.category !== "success"
    return {
      // A sample of item usages has the uuid of its item: with the time it is one of a usage.
      id: r.uuid && `${r.uuid}/${r.timestamp}`,
      time: r.timestamp,
      actor: who.uuid ?? r.actor_uuid,
      email: who.email,
      action: words(r.action ?? r.type ?? "use", r.object_type ?? (r.item_uuid && "item")),
      resource: r.item_uuid ?? r.object_uuid ?? r.session_uuid,
      kind: r.object_type ?? (r.item_uuid ? "item" : "session"),
      outcome: isFailed ? "failure" : "success"
    }
  },
  stripe: (r) => ({
    id: r.id,
    time: r.created,
    actor: r.account ?? "stripe",
    type: "system",
    action: r.type,
    resource: r.data?.object?.id,
    kind: r.data?.object?.object,
    name: r.data?.object?.name
  }),
  teleport: (r) => ({
    id: r.uid,
    time: r.time,
    actor: r.user ?? r.login,
    action: r.event,
    resource: r.server_id ?? r.name ?? r.cluster_name,
    kind: r.server_id ? "server" : "cluster",
    outcome: r.success === false ? "failure" : "success"
  })
}

const sha256 = (text) => createHash("sha256").update(text).digest("hex")
const isThere = (value) => ["number", "string"].includes(typeof value) && value !== ""

/** An id that fits: what is longer is its hash, since the record has it whole. */
const fitting = (value, max, fallback) => {
  const text = isThere(value) ? String(value) : fallback
  return text.length <= max ? text : `sha256:${sha256(text)}`
}

const TIME = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d(?:\.\d+)?)(Z|[+-]\d\d:\d\d)?$/i

/**
 * RFC 3339 of seconds, of milliseconds, and of texts, which are UTC without a zone. Undefined for what is
 * no time: the event then has the time of its acceptance, and the record the text.
 */
const timeOf = (value) => {
  if (typeof value === "number") return new Date(value < 1e11 ? value * 1_000 : value).toISOString()
  const [, day, clock, zone = "Z"] = TIME.exec(value) ?? []
  return day && `${day}T${clock}${zone}`
}

const textOf = (value, max) =>
  typeof value === "string" && value !== "" ? [...value].slice(0, max).join("") : undefined

/** The text of the event of a record: its metadata is the text of the record. */
const eventOf = (source, record) => {
  const found = sources[source](JSON.parse(record))
  const id = fitting(found.id, ID_MAX, sha256(record))
  const email = found.email?.includes?.("@") ? textOf(found.email, 320) : undefined
  const event = {
    // Ids of two sources may be the same.
    id: fitting(`${source}:${id}`, ID_MAX),
    timestamp: isThere(found.time) ? timeOf(found.time) : undefined,
    actor: {
      id: fitting(found.actor, PARTY_ID_MAX, "unknown"),
      type: found.type ?? "human",
      email
    },
    action: textOf(found.action, ID_MAX) ?? source,
    resource: {
      id: fitting(found.resource, PARTY_ID_MAX, source),
      type: fitting(found.kind, ID_MAX, source),
      name: textOf(found.name, 1_024)
    },
    outcome: found.outcome ?? "success"
  }
  return `${JSON.stringify(event).slice(0, -1)},"metadata":${record}}`
}

const [, , source = ""] = process.argv
if (!Object.hasOwn(sources, source)) {
  console.error(`usage: node map.mjs SOURCE, one of ${Object.keys(sources).join(", ")}`)
  process.exit(2)
}
for await (const line of createInterface({ input: process.stdin })) {
  const record = line.trim()
  if (record !== "") process.stdout.write(`${eventOf(source, record)}\n`)
}
