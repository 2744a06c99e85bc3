/**
 * Which records of a partition of `alk.events` have to lose their details: those that an erasure event
 * of the same chain names. Only one that continues its chain and recomputes counts.
 */
import type { AuditEvent } from "../events/AuditEvent.ts"
import { ERASURE_ACTION, ERASURE_RESOURCE_TYPE, erasureOf } from "../events/Erasure.ts"
import { eraseEvent, faultOf, recompute } from "../events/HashChain.ts"
import { parseEvent } from "../events/StoredEvent.ts"
import type { RecordFate, TransactionOutcome } from "../records/RecordFate.ts"
import { ChainOrder, type ForgettingTopic, madeIn, type TopicRecord } from "./ForgettingTopic.ts"

interface Erased {
  readonly contentHash: string
  readonly eventId: string
  readonly erasedAt: string
}

/** What a tenant has erased. */
interface OfTenant {
  readonly bySequence: Map<number, Erased>
  readonly ids: Set<string>
}

/** As it is in every erasure event; other events may hold it too, in their metadata. */
const MARK = Buffer.from(`"action":"${ERASURE_ACTION}"`)

/** What an event erases that holds by itself. */
const genuineErasure = (body: string) => {
  const found = recompute(body)
  if (found === undefined || !found.exact) return undefined
  if (faultOf(found, undefined, false) !== undefined) return undefined
  const { event } = found
  const erasure = erasureOf(event)
  if (erasure === undefined || event.resource.type !== ERASURE_RESOURCE_TYPE) return undefined
  return erasure.sequence_number < event.sequence_number ? { event, erasure } : undefined
}

/** The same event without its details; undefined if there is nothing to take away. */
const forgotten = (event: AuditEvent, { contentHash, erasedAt, eventId }: Erased) => {
  if (event.content_hash !== contentHash || event.id !== eventId) return undefined
  return event.erased_at === undefined ? Buffer.from(eraseEvent(event, erasedAt)) : undefined
}

export class ErasedEvents implements ForgettingTopic {
  readonly #order: ChainOrder
  readonly #tenants = new Map<string, OfTenant>()
  /** Erasures of events that count, each once. */
  erasures = 0

  /** `isCut`: the start of the partition is gone. */
  constructor(isCut: boolean) {
    this.#order = new ChainOrder("events", isCut)
  }

  learn(record: TopicRecord): void {
    const link = this.#order.next(record)
    if (link === undefined || record.value?.includes(MARK) !== true) return
    const found = genuineErasure(record.value.toString())
    if (found === undefined) return
    const { erasure, event } = found
    const { bySequence, ids } = madeIn(this.#tenants, link.tenantId, () => ({
      bySequence: new Map<number, Erased>(),
      ids: new Set<string>()
    }))
    // Of two erasures of one event the first counts, as in the store.
    if (bySequence.has(erasure.sequence_number)) return
    bySequence.set(erasure.sequence_number, {
      contentHash: erasure.content_hash,
      eventId: event.resource.id,
      erasedAt: event.created_at
    })
    ids.add(event.resource.id)
    this.erasures += 1
  }

  fateOf(record: TopicRecord, outcome: TransactionOutcome): RecordFate {
    const tenant = this.#tenants.get(record.key?.toString() ?? "")
    if (tenant === undefined || record.value === null) return "keep"
    if (outcome === "aborted") {
      // What was tried before it was written: no reader sees it, under whatever number it is.
      const id = parseEvent(record.value.toString())?.id
      return id !== undefined && tenant.ids.has(id) ? "drop" : "keep"
    }
    const link = this.#order.linkOf(record)
    const erased = link && tenant.bySequence.get(link.sequenceNumber)
    if (erased === undefined) return "keep"
    const event = parseEvent(record.value.toString())
    const value = event && forgotten(event, erased)
    return value === undefined ? "keep" : { value }
  }

  /** True if the tenant has erased an event with this id. */
  isErased(tenantId: string, id: string): boolean {
    return this.#tenants.get(tenantId)?.ids.has(id) === true
  }
}
