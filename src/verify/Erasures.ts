/**
 * Which events may be without their details: those that a chained erasure event names by sequence
 * and content. An erasure event counts only if it recomputes itself; where it is in the chain
 * is checked like that of any other event.
 */
import { Effect } from "effect"
import type { AuditEvent } from "../domain/events/AuditEvent.ts"
import { ERASURE_RESOURCE_TYPE, erasureOf } from "../domain/events/Erasure.ts"
import { faultOf, recompute } from "../domain/events/HashChain.ts"
import { type ChainRecompute, type ErasedRow, SAMPLE_ROWS_MAX } from "../ports/ChainRecompute.ts"
import type { StoredRow } from "../ports/EventStore.ts"
import { caughtUp } from "./CaughtUp.ts"

/** What an erasure event says of the event that it names. */
interface Named {
  readonly contentHash: string
  readonly eventId: string
  readonly erasedAt: string
}

/** The erasures found so far for the events at hand. */
export class Erasures {
  readonly #named = new Map<number, Array<Named>>()

  /** Take the stored JSON of what claims to be an erasure event of this tenant. */
  learn(tenantId: string, body: string): void {
    const found = recompute(body)
    if (found === undefined || !found.exact) return
    if (faultOf(found, undefined, false) !== undefined) return
    const { event } = found
    const erasure = erasureOf(event)
    const { resource, tenant_id } = event
    if (erasure === undefined || tenant_id !== tenantId) return
    if (resource.type !== ERASURE_RESOURCE_TYPE) return
    // An event can only be erased once it is in the chain.
    if (erasure.sequence_number >= event.sequence_number) return
    const others = this.#named.get(erasure.sequence_number) ?? []
    others.push({
      contentHash: erasure.content_hash,
      eventId: resource.id,
      erasedAt: event.created_at
    })
    this.#named.set(erasure.sequence_number, others)
  }

  /** True if one was found that names this sequence, whatever it says of it. */
  names(sequenceNumber: number): boolean {
    return this.#named.has(sequenceNumber)
  }

  /** True if the chain says that this event with this content was erased at this time. */
  covers({ contentHash, erasedAt, id, sequenceNumber }: ErasedRow): boolean {
    return (this.#named.get(sequenceNumber) ?? []).some(
      (named) =>
        named.contentHash === contentHash && named.erasedAt === erasedAt && named.eventId === id
    )
  }

  /** The same for the stored JSON of an event; false for one that does not say it was erased. */
  coversEvent({ content_hash, erased_at, id, sequence_number }: AuditEvent): boolean {
    return (
      erased_at !== undefined
      && this.covers({
        sequenceNumber: sequence_number,
        id,
        contentHash: content_hash,
        erasedAt: erased_at
      })
    )
  }
}

type Recompute = ChainRecompute["Service"]

/** Ask for as many at a time as one question may name. */
const learn = Effect.fnUntraced(function* (
  into: Erasures,
  recompute: Recompute,
  tenantId: string,
  sequenceNumbers: ReadonlyArray<number>
) {
  for (let at = 0; at < sequenceNumbers.length; at += SAMPLE_ROWS_MAX) {
    const part = sequenceNumbers.slice(at, at + SAMPLE_ROWS_MAX)
    for (const body of yield* recompute.erasures(tenantId, part)) into.learn(tenantId, body)
  }
})

/**
 * Look up who has erased these events. The details go a moment before the event that says so is
 * stored, and that one is in the log by then: where none is found, the store is waited for.
 */
export const learnErasures = Effect.fnUntraced(function* (
  recompute: Recompute,
  tenantId: string,
  sequenceNumbers: ReadonlyArray<number>
) {
  const erasures = new Erasures()
  yield* learn(erasures, recompute, tenantId, sequenceNumbers)
  const unnamed = sequenceNumbers.filter((sequence) => !erasures.names(sequence))
  if (unnamed.length === 0) return erasures
  yield* caughtUp(tenantId, "events")
  yield* learn(erasures, recompute, tenantId, unnamed)
  return erasures
})

/** A cheap look for what may be an event without its details. */
const seemsErased = ({ body }: StoredRow): boolean => body.includes('"erased_at":')

/** The erasures of those among the rows that say they were erased. */
export const erasuresOfRows = (
  recompute: Recompute,
  tenantId: string,
  rows: ReadonlyArray<StoredRow>
) =>
  learnErasures(
    recompute,
    tenantId,
    rows.filter(seemsErased).map(({ sequenceNumber }) => sequenceNumber)
  )
