/**
 * Which events may be without their details: those that a chained erasure event names by sequence
 * and content. An erasure event counts only if it recomputes itself and is in the chain: in the
 * part that is checked, where its place is checked as that of any event, or proven to be in it.
 */
import { Effect } from "effect"
import type { AuditEvent } from "../domain/events/AuditEvent.ts"
import { ERASURE_RESOURCE_TYPE, erasureOf } from "../domain/events/Erasure.ts"
import { faultOf, recompute } from "../domain/events/HashChain.ts"
import {
  type ChainRecompute,
  type ErasedRow,
  SAMPLE_ROWS_MAX,
  type SequenceRange
} from "../ports/ChainRecompute.ts"
import type { StoredRow } from "../ports/EventStore.ts"
import { caughtUp } from "./CaughtUp.ts"
import type { Chained, HashedRecord } from "./ChainProofs.ts"

/** The JSON of a row and its place. */
type PlacedBody = Pick<StoredRow, "body" | "sequenceNumber">

/** An erasure event, and what it says of the event that it names. */
interface Named extends HashedRecord {
  readonly target: number
  readonly contentHash: string
  readonly eventId: string
  readonly erasedAt: string
}

/** What a row says that claims to be an erasure event of this tenant, if it holds by itself. */
const namedBy = (tenantId: string, { body, sequenceNumber }: PlacedBody): Named | undefined => {
  const found = recompute(body)
  if (found === undefined || !found.exact) return undefined
  if (faultOf(found, undefined, false) !== undefined) return undefined
  const { event } = found
  const erasure = erasureOf(event)
  const { resource, sequence_number, tenant_id } = event
  if (erasure === undefined || tenant_id !== tenantId) return undefined
  if (resource.type !== ERASURE_RESOURCE_TYPE || sequence_number !== sequenceNumber)
    return undefined
  // An event can only be erased once it is in the chain.
  if (erasure.sequence_number >= sequence_number) return undefined
  return {
    sequenceNumber,
    hash: found.hash,
    target: erasure.sequence_number,
    contentHash: erasure.content_hash,
    eventId: resource.id,
    erasedAt: event.created_at
  }
}

/** The erasures found so far for the events at hand. */
export class Erasures {
  readonly #named = new Map<number, Array<Named>>()

  add(named: Named): void {
    const others = this.#named.get(named.target) ?? []
    others.push(named)
    this.#named.set(named.target, others)
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

/** Where erasures are looked up, and what shows that they are in the chain. */
export interface ErasureLookup {
  readonly tenantId: string
  readonly port: ChainRecompute["Service"]
  readonly chained: Chained
  /** The part of the chain that is checked, each row of it. */
  readonly checked?: SequenceRange
}

/** Ask for as many at a time as one question may name. */
const learn = Effect.fnUntraced(function* (
  into: Erasures,
  { chained, checked, port, tenantId }: ErasureLookup,
  sequenceNumbers: ReadonlyArray<number>
) {
  const isChecked = ({ sequenceNumber }: HashedRecord) =>
    checked !== undefined && sequenceNumber >= checked.first && sequenceNumber <= checked.last
  for (let at = 0; at < sequenceNumbers.length; at += SAMPLE_ROWS_MAX) {
    const part = sequenceNumbers.slice(at, at + SAMPLE_ROWS_MAX)
    const found = (yield* port.erasures(tenantId, part)).flatMap(
      (row) => namedBy(tenantId, row) ?? []
    )
    const proven = yield* chained(found.filter((named) => !isChecked(named)))
    for (const named of found) if (isChecked(named) || proven.has(named.hash)) into.add(named)
  }
})

/**
 * Look up who has erased these events. The details go a moment before the event that says so is
 * stored, and that one is in the log by then: where none is found, the store is waited for.
 */
export const learnErasures = Effect.fnUntraced(function* (
  lookup: ErasureLookup,
  sequenceNumbers: ReadonlyArray<number>
) {
  const erasures = new Erasures()
  yield* learn(erasures, lookup, sequenceNumbers)
  const unnamed = sequenceNumbers.filter((sequence) => !erasures.names(sequence))
  if (unnamed.length === 0) return erasures
  yield* caughtUp(lookup.tenantId, "events")
  yield* learn(erasures, lookup, unnamed)
  return erasures
})

/** A cheap look for what may be an event without its details. */
const seemsErased = ({ body }: PlacedBody): boolean => body.includes('"erased_at":')

/** The erasures of those among the rows that say they were erased. */
export const erasuresOfRows = (lookup: ErasureLookup, rows: ReadonlyArray<PlacedBody>) =>
  learnErasures(
    lookup,
    rows.filter(seemsErased).map(({ sequenceNumber }) => sequenceNumber)
  )
