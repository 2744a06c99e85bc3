/** Events of every class of OCSF that alk writes, and the way back from OCSF to the stored event. */
import { ocsfLine } from "../../../src/exports/ocsf/OcsfEvent.ts"
import { Chain } from "../../verify/support/Chains.ts"

/** Type of the resource, action, class and activity. */
export const mapped: ReadonlyArray<
  readonly [resourceType: string, action: string, classUid: number, activityId: number]
> = [
  ["application", "user.login", 3002, 1],
  ["application", "session.signed_in", 3002, 1],
  ["user", "auth.LogOut", 3002, 2],
  ["user", "user.create", 3001, 1],
  ["account", "account.enabled", 3001, 2],
  ["user", "user.password.change", 3001, 3],
  ["user", "user.reset-password", 3001, 4],
  ["Service_Account", "account.suspend", 3001, 5],
  ["member", "team.member.removed", 3001, 6],
  ["user", "role.grant", 3001, 7],
  ["user", "role.revoked", 3001, 8],
  ["user", "user.lock", 3001, 9],
  ["user", "user.mfa.enabled", 3001, 10],
  ["user", "user.mfa.disable", 3001, 11],
  ["user", "user.update", 3001, 99],
  ["user", "user.read", 6003, 2],
  ["user", "user.impersonate", 6003, 99],
  ["role", "role.create", 3004, 1],
  ["api_key", "key.read", 3004, 2],
  ["policy", "policy.changed", 3004, 3],
  ["group", "group.delete", 3004, 4],
  ["device", "device.move", 3004, 5],
  ["device", "device.enroll", 3004, 6],
  ["device", "device.unenrolled", 3004, 7],
  ["secret", "secret.enable", 3004, 8],
  ["secret", "secret.disabled", 3004, 9],
  ["certificate", "certificate.activate", 3004, 10],
  ["certificate", "certificate.deactivated", 3004, 11],
  ["tenant", "tenant.suspend", 3004, 12],
  ["tenant", "tenant.resumed", 3004, 13],
  ["api-key", "key.rotate", 3004, 99],
  ["document", "document.create", 6003, 1],
  ["document", "document.viewed", 6003, 2],
  ["document", "document.rename", 6003, 3],
  ["audit_event", "alk.event.erased", 6003, 4],
  ["payment", "payment.approve", 6003, 99]
]

const SOURCE = { serviceName: "alk", version: "1.0.0" }
export const toLine = ocsfLine(SOURCE)

const actors = [
  { id: "user_1", type: "human", email: "ann@example.com" },
  { id: "agent", type: "agent", email: "no address" },
  { id: "cron", type: "system" }
] as const
const details = [{ ip: "192.0.2.1" }, { ip: "here", source_ip: "2001:db8::1" }, { 9: 1, a: 2 }]

const chain = new Chain("acme").extend(mapped.length * actors.length, (index) => {
  const [type, action] = mapped[index % mapped.length]!
  const at = Math.floor(index / mapped.length)
  return {
    actor: actors[at]!,
    action,
    resource: { id: "r", type, ...(index % 2 === 0 ? { name: "Näme" } : {}) },
    outcome: (["success", "failure", "error"] as const)[index % 3]!,
    ...(index % 4 === 0 ? {} : { metadata: details[at]! })
  }
})

/** The stored JSON of events of each row of `mapped`, of all kinds of actors and details; one erased. */
export const sampleBodies: ReadonlyArray<string> = [...chain.bodies, chain.erase(1)]

const MARK = ',"metadata":'

/** The stored JSON again, as a reader without code of alk's would make it. */
export const storedBody = (line: string): string => {
  const { actor, entity, metadata, resources, status_code, unmapped } = JSON.parse(line)
  const thing = resources?.[0] ?? entity
  const { type_id, uid, email_addr = unmapped.actor_email } = actor.user
  const type = { 1: "human", 3: "system" }[type_id as 1 | 3] ?? "agent"
  const resource = unmapped.resource ?? { id: thing.uid, type: thing.type, name: thing.name }
  const text = JSON.stringify({
    id: metadata.uid,
    timestamp: metadata.original_time,
    actor: { id: uid, type, email: email_addr },
    action: metadata.event_code,
    resource: { id: resource.id, type: resource.type, name: resource.name },
    outcome: status_code,
    ...(unmapped.metadata === undefined ? {} : { metadata: "?" })
  })
  const { actor_email: _, chain: __, metadata: ___, resource: ____, ...chained } = unmapped
  const { content_hash, created_at, details_hash, details_salt, erased_at, hash } = chained
  const { prev_hash, sequence_number, tenant_id } = chained
  const rest = JSON.stringify({
    tenant_id,
    sequence_number,
    created_at,
    prev_hash,
    details_salt,
    details_hash,
    content_hash,
    hash,
    erased_at
  })
  // What unmapped holds is at the end of the line, and its metadata at the end of that.
  const given = line.slice(line.indexOf(MARK, line.indexOf('"unmapped":')) + MARK.length, -2)
  const whole = unmapped.metadata === undefined ? text : text.replace('"?"}', () => `${given}}`)
  return `${whole.slice(0, -1)},${rest.slice(1)}`
}
