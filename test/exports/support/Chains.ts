/** Chains of stored events for tests of exports, built with the writer's own functions. */
import { createHash } from "node:crypto"
import { GENESIS_HASH } from "../../../src/domain/chain/Chains.ts"
import type { AuditEvent } from "../../../src/domain/events/AuditEvent.ts"
import { ERASURE_ACTION, ERASURE_RESOURCE_TYPE } from "../../../src/domain/events/Erasure.ts"
import {
  appendSuffix,
  bodyText,
  type CanonicalFields,
  contentHash,
  coreText,
  detailsHash,
  detailsText,
  eraseEvent,
  linkHash
} from "../../../src/domain/events/HashChain.ts"
import { canonicalize, quote } from "../../../src/domain/json/CanonicalJson.ts"
import type { JsonObject } from "../../../src/domain/json/Json.ts"
import { formatMicros } from "../../../src/domain/Timestamp.ts"

export interface Item {
  readonly id?: string
  readonly timestamp?: string
  readonly actor?: { readonly id: string; readonly type: string; readonly email?: string }
  readonly action?: string
  readonly resource?: { readonly id: string; readonly type: string; readonly name?: string }
  readonly outcome?: string
  /** null for none. */
  readonly metadata?: object | null
  /** When the sequencer took it, canonical form. */
  readonly recordedAt?: string
}

/** Microseconds of 2026-01-01T00:00:00Z. */
const START = 1_767_225_600_000_000

const saltOf = (sequence: number): string =>
  createHash("sha256").update(`salt ${sequence}`).digest("hex").slice(0, 32)

const quoted = (text: string | undefined) => (text === undefined ? undefined : quote(text))

/** What the n-th event says unless it is told otherwise. */
const plain = (n: number) => ({
  id: `evt-${n}`,
  timestamp: formatMicros(START + n * 60_000_000),
  actor: { id: `user-${n % 7}`, type: "human", email: `user${n % 7}@example.com` },
  action: n % 3 === 0 ? "document.shared" : "document.read",
  resource: { id: `doc-${n % 50}`, type: "document", name: `Dökument ${n}` },
  outcome: n % 11 === 0 ? "failure" : "success",
  metadata: { n, note: `nöte ${n}`, nested: { ip: "192.0.2.1", ratio: 0.1 * n } } as object | null
})

/** A growing chain of one tenant. */
export class TestChain {
  readonly tenantId: string
  readonly bodies: Array<string> = []
  #hash = GENESIS_HASH

  constructor(tenantId: string, count = 0) {
    this.tenantId = tenantId
    for (let n = 1; n <= count; n++) this.add()
  }

  get length(): number {
    return this.bodies.length
  }

  event(sequence: number): AuditEvent {
    return JSON.parse(this.bodies[sequence - 1]!) as AuditEvent
  }

  /** Append an event; returns its sequence number. */
  add(item: Item = {}): number {
    const sequence = this.bodies.length + 1
    const event = { ...plain(sequence), ...item }
    const { actor, metadata, resource } = event as ReturnType<typeof plain> & Item
    const texts: CanonicalFields = {
      id: quote(event.id),
      timestamp: quote(event.timestamp),
      actorId: quote(actor.id),
      actorType: quote(actor.type),
      actorEmail: quoted(actor.email),
      action: quote(event.action),
      resourceId: quote(resource.id),
      resourceType: quote(resource.type),
      resourceName: quoted(resource.name),
      outcome: quote(event.outcome),
      metadata: metadata === null ? undefined : canonicalize(metadata as JsonObject)
    }
    const details = detailsText(texts)
    const salt = saltOf(sequence)
    const hashOfDetails = details === undefined ? undefined : detailsHash(salt, details)
    const content = contentHash(coreText(texts, hashOfDetails))
    const link = {
      tenantId: this.tenantId,
      sequenceNumber: sequence,
      createdAt: item.recordedAt ?? formatMicros(START + 86_400_000_000 + sequence * 1_000),
      contentHash: content,
      prevHash: this.#hash
    }
    const hash = linkHash(link)
    const suffix = appendSuffix({
      ...link,
      hash,
      ...(hashOfDetails === undefined ? {} : { detailsSalt: salt, detailsHash: hashOfDetails })
    })
    this.bodies.push(bodyText(texts) + suffix)
    this.#hash = hash
    return sequence
  }

  /** Take the details of an event out and chain the event that says so. */
  erase(sequence: number, reason = "asked for"): number {
    const target = this.event(sequence)
    const erasure = this.add({
      actor: { id: "key_1", type: "system" },
      action: ERASURE_ACTION,
      resource: { id: target.id, type: ERASURE_RESOURCE_TYPE },
      outcome: "success",
      metadata: { reason, sequence_number: sequence, content_hash: target.content_hash }
    })
    this.eraseOutside(sequence, this.event(erasure).created_at)
    return erasure
  }

  /** Take the details of an event out without saying so anywhere. */
  eraseOutside(sequence: number, erasedAt: string): void {
    this.bodies[sequence - 1] = eraseEvent(this.event(sequence), erasedAt)
  }

  /** The same chain up to a sequence, to be continued otherwise. */
  branch(length: number): TestChain {
    const other = new TestChain(this.tenantId)
    other.bodies.push(...this.bodies.slice(0, length))
    other.#hash = length === 0 ? GENESIS_HASH : this.event(length).hash
    return other
  }
}

/** Texts that break whoever does not treat them as text. */
export const hostileItems: ReadonlyArray<Item> = [
  { id: 'a"b\\c', resource: { id: "../../etc/passwd", type: "x", name: "\u0007 bell \u001b[2J" } },
  { actor: { id: "<script>alert(1)</script>", type: "agent" }, metadata: null },
  { resource: { id: "=cmd|' /C calc'!A0", type: "sheet", name: "\u202e right to left" } },
  { metadata: { __proto__x: 1, "": "", é: "é", "\ud83d\ude00": "😀", "\ufb33": "דּ" } },
  { metadata: JSON.parse('{"__proto__":{"polluted":true},"constructor":{"x":1}}') as object },
  { metadata: { numbers: [0, -1.5, 1e21, 1e-7, 123456789012345680000, 4.35, 5e-324] } },
  { metadata: { text: "line\nfeed\ttab \u2028 separator", sequence_number: 999 } },
  { metadata: { tenant_id: "other", ',"tenant_id":': '","tenant_id":"x"' } },
  { metadata: {} },
  { actor: { id: "nobody", type: "system" }, resource: { id: "r", type: "t" }, metadata: null },
  { resource: { id: "empty name", type: "t", name: "" }, metadata: null },
  { timestamp: "2261-12-31T23:59:59.999999Z" },
  { timestamp: "1970-01-01T00:00:00.000000Z" },
  { metadata: { deep: Array.from({ length: 30 }).reduce<unknown>((inner) => [inner], "x") } }
]
