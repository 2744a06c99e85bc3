/**
 * Stored events as the sequencer writes them, member by member in its order, made for tests of the
 * store: their hashes are only unique, not right, because the store never looks at them.
 */
import { createHash } from "node:crypto"
import type { AuditEvent } from "../../../../src/domain/events/AuditEvent.ts"
import { canonicalize } from "../../../../src/domain/json/CanonicalJson.ts"
import type { JsonObject } from "../../../../src/domain/json/Json.ts"
import type { EventRow } from "../../../../src/ports/EventStore.ts"

const hex = (text: string) => createHash("sha256").update(text).digest("hex")

/** A time of day in canonical form, `second` seconds after the start of 2026. */
export const timeAt = (second: number): string =>
  new Date(Date.UTC(2026, 0, 1) + second * 1000).toISOString().replace("Z", "000Z")

export type Sample = Partial<Omit<AuditEvent, "tenant_id" | "sequence_number">>

/** An event with everything that it needs. */
export const storedEvent = (tenant: string, sequence: number, sample: Sample = {}): AuditEvent => ({
  id: `evt-${tenant}-${sequence}`,
  timestamp: timeAt(sequence),
  actor: { id: "user_1", type: "human" },
  action: "document.read",
  resource: { id: "doc_1", type: "document" },
  outcome: "success",
  tenant_id: tenant,
  sequence_number: sequence,
  created_at: timeAt(sequence),
  prev_hash: sequence === 1 ? "0".repeat(64) : hex(`${tenant} ${sequence - 1}`),
  content_hash: hex(`content ${tenant} ${sequence}`),
  hash: hex(`${tenant} ${sequence}`),
  ...sample
})

/** The bytes that stand in the topic. */
export const bodyOf = (event: AuditEvent): Buffer => {
  const { action, actor, id, metadata, outcome, resource, timestamp, ...rest } = event
  const { content_hash, created_at, erased_at, hash, prev_hash, ...more } = rest
  const { sequence_number, tenant_id, ...details } = more
  const sent = JSON.stringify({
    id,
    timestamp,
    actor: { id: actor.id, type: actor.type, email: actor.email },
    action,
    resource: { id: resource.id, type: resource.type, name: resource.name },
    outcome
  })
  const added = JSON.stringify({
    tenant_id,
    sequence_number,
    created_at,
    prev_hash,
    ...details,
    content_hash,
    hash,
    erased_at
  })
  const middle = metadata === undefined ? "" : `,"metadata":${canonicalize(metadata as JsonObject)}`
  return Buffer.from(`${sent.slice(0, -1)}${middle},${added.slice(1)}`, "utf8")
}

export const rowsOf = (
  events: ReadonlyArray<AuditEvent>,
  partition = 0,
  firstOffset = 0
): ReadonlyArray<EventRow> =>
  events.map((event, index) => ({ partition, offset: firstOffset + index, body: bodyOf(event) }))

/** `n` events of one tenant, sequence 1 to n, each made by `sample`. */
export const chainOf = (
  tenant: string,
  n: number,
  sample: (sequence: number) => Sample = () => ({})
): ReadonlyArray<AuditEvent> =>
  Array.from({ length: n }, (_, index) => storedEvent(tenant, index + 1, sample(index + 1)))

export const textsOf = (events: ReadonlyArray<AuditEvent>): ReadonlyArray<string> =>
  events.map((event) => bodyOf(event).toString("utf8"))
