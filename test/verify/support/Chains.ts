/**
 * Whole chains as the sequencer stores them, made from plain fields: every hash is right, so that
 * whatever a test changes afterwards is the only thing that is wrong.
 */

import type { Head } from "../../../src/domain/chain/Chains.ts"
import { GENESIS_HASH } from "../../../src/domain/chain/Chains.ts"
import {
  appendSuffix,
  bodyText,
  type CanonicalFields,
  contentHash,
  coreText,
  detailsHash,
  detailsText,
  linkHash
} from "../../../src/domain/events/HashChain.ts"
import { canonicalize, quote } from "../../../src/domain/json/CanonicalJson.ts"
import type { JsonObject } from "../../../src/domain/json/Json.ts"

/** What a client may send; everything has a default. */
export interface Fields {
  readonly id?: string
  readonly timestamp?: string
  readonly actor?: { readonly id: string; readonly type: string; readonly email?: string }
  readonly action?: string
  readonly resource?: { readonly id: string; readonly type: string; readonly name?: string }
  readonly outcome?: string
  readonly metadata?: object
  readonly salt?: string
  readonly createdAt?: string
}

const SALT = "00112233445566778899aabbccddeeff"
const FIRST_CREATED = Date.UTC(2026, 10, 21, 12)

/** A time in canonical form, so many microseconds behind the first one of every chain. */
export const createdAt = (micros: number): string =>
  new Date(FIRST_CREATED + Math.floor(micros / 1000)).toISOString().slice(0, -1)
  + `${String(micros % 1000).padStart(3, "0")}Z`

const optionalQuote = (text: string | undefined): string | undefined =>
  text === undefined ? undefined : quote(text)

const textsOf = (fields: Fields, sequence: number): CanonicalFields => {
  const somebody = { id: `user-${sequence % 3}`, type: "human", email: "u@example.com" }
  const actor = fields.actor ?? somebody
  const resource = fields.resource ?? { id: `doc-${sequence}`, type: "document", name: "Plan" }
  return {
    id: quote(fields.id ?? `event-${sequence}`),
    timestamp: quote(fields.timestamp ?? createdAt(sequence * 1_000_000)),
    actorId: quote(actor.id),
    actorType: quote(actor.type),
    actorEmail: optionalQuote(actor.email),
    action: quote(fields.action ?? "document.read"),
    resourceId: quote(resource.id),
    resourceType: quote(resource.type),
    resourceName: optionalQuote(resource.name),
    outcome: quote(fields.outcome ?? "success"),
    metadata:
      fields.metadata === undefined ? undefined : canonicalize(fields.metadata as JsonObject)
  }
}

/** A chain that grows event by event. */
export class Chain {
  readonly tenantId: string
  readonly bodies: Array<string> = []
  head: Head | undefined

  constructor(tenantId: string) {
    this.tenantId = tenantId
  }

  /** Append an event; gives its stored JSON. */
  append(fields: Fields = {}): string {
    const sequenceNumber = (this.head?.sequence_number ?? 0) + 1
    const texts = textsOf(fields, sequenceNumber)
    const details = detailsText(texts)
    const salt = fields.salt ?? SALT
    const hashOfDetails = details === undefined ? undefined : detailsHash(salt, details)
    const link = {
      tenantId: this.tenantId,
      sequenceNumber,
      createdAt: fields.createdAt ?? createdAt(sequenceNumber),
      contentHash: contentHash(coreText(texts, hashOfDetails)),
      prevHash: this.head?.hash ?? GENESIS_HASH
    }
    const hash = linkHash(link)
    const body =
      bodyText(texts)
      + appendSuffix({
        ...link,
        hash,
        ...(hashOfDetails === undefined ? {} : { detailsSalt: salt, detailsHash: hashOfDetails })
      })
    this.head = { sequence_number: sequenceNumber, hash, created_at: link.createdAt }
    this.bodies.push(body)
    return body
  }

  /** Append so many events. */
  extend(count: number, fields: (index: number) => Fields = () => ({})): this {
    for (let index = 0; index < count; index++) this.append(fields(index))
    return this
  }

  /** Append the event that erases the details of a sequence; gives the erased form of that one. */
  erase(sequence: number, fields: Fields = {}): string {
    const event = JSON.parse(this.bodies[sequence - 1]!)
    this.append({
      action: "alk.event.erased",
      actor: { id: "key_1", type: "system" },
      resource: { id: event.id, type: "audit_event" },
      metadata: {
        reason: "asked for",
        sequence_number: sequence,
        content_hash: event.content_hash
      },
      ...fields
    })
    return erasedForm(this.bodies[sequence - 1]!, this.head!.created_at)
  }
}

/** The stored JSON of an event whose details were erased. */
export const erasedForm = (body: string, erasedAt: string): string => {
  const event = JSON.parse(body)
  const texts = textsOf(
    {
      ...event,
      actor: { id: event.actor.id, type: event.actor.type },
      resource: { id: event.resource.id, type: event.resource.type }
    },
    event.sequence_number
  )
  return (
    bodyText({ ...texts, metadata: undefined })
    + appendSuffix({
      tenantId: event.tenant_id,
      sequenceNumber: event.sequence_number,
      createdAt: event.created_at,
      prevHash: event.prev_hash,
      contentHash: event.content_hash,
      hash: event.hash,
      ...(event.details_hash === undefined ? {} : { detailsHash: event.details_hash }),
      erasedAt
    })
  )
}
