/**
 * Events and receipts that a client kept, each compared with the stored rows at the sequences that
 * it names. The rest of the chain is not read.
 */
import { Clock, Effect } from "effect"
import { ChainEnds } from "../actors/chainEnds/ChainEnds.ts"
import type { Head } from "../domain/chain/Chains.ts"
import { type AuditEvent, AuditEvent as AuditEventSchema } from "../domain/events/AuditEvent.ts"
import {
  faultOf,
  type Recomputed,
  recompute,
  recomputeInSteps,
  SCHEME
} from "../domain/events/HashChain.ts"
import { inSlices } from "../domain/InSlices.ts"
import { canonicalize } from "../domain/json/CanonicalJson.ts"
import type { JsonValue } from "../domain/json/Json.ts"
import { type Receipt, toAnswer } from "../domain/records/Receipt.ts"
import type { StoredRow } from "../ports/EventStore.ts"
import { caughtUp } from "./CaughtUp.ts"
import { chainedEvents } from "./ChainProofs.ts"
import { contentFault, type Fault } from "./ChainSource.ts"
import { type ErasureLookup, type Erasures, erasuresOfRows, learnErasures } from "./Erasures.ts"
import { faultsOf } from "./EventSource.ts"
import { chainRecompute } from "./RecomputeInProgram.ts"
import { ABSENT, type Break, Breaks, reportOf, type VerifyReport } from "./VerifyReport.ts"

/** A receipt as the service answers it, and the sequences in it. */
export interface ClientReceipt {
  /** The receipt_id, whatever it is. */
  readonly id: unknown
  /** All its members. */
  readonly given: Readonly<Record<string, unknown>>
  /** Accepted ids with their sequences, duplicates at those of the first event. */
  readonly events: ReadonlyArray<{ readonly id: string; readonly sequenceNumber: number }>
  /** Hash of the chain after the request; undefined if nothing was appended. */
  readonly head: { readonly sequenceNumber: number; readonly hash: string } | undefined
}

/** The stored rows of some sequences, and the erasures of those that say they were erased. */
interface Stored {
  readonly rows: ReadonlyMap<number, ReadonlyArray<StoredRow>>
  readonly erasures: Erasures
  readonly head: Head | undefined
  readonly lookup: ErasureLookup
}

const load = Effect.fnUntraced(function* (
  tenantId: string,
  sequenceNumbers: ReadonlyArray<number>
) {
  const ends = yield* ChainEnds
  const port = yield* chainRecompute
  const head = yield* ends.head({ tenantId, chain: "events" })
  yield* caughtUp(tenantId, "events")
  const wanted = [...new Set(sequenceNumbers)].sort((left, right) => left - right)
  const found = yield* port.sample(tenantId, wanted)
  const rows = Map.groupBy(found, ({ sequenceNumber }) => sequenceNumber)
  const lookup = { tenantId, port, chained: yield* chainedEvents(tenantId) }
  const erasures = yield* erasuresOfRows(lookup, found)
  return { rows, erasures, head, lookup } satisfies Stored
})

const missing = (sequenceNumber: number, id: string | null, head: Head | undefined): Break => {
  const length = head?.sequence_number ?? 0
  const isAfterHead = sequenceNumber > length
  return {
    sequence_number: sequenceNumber,
    event_id: id,
    reason: isAfterHead ? "tail_missing" : "sequence_gap",
    expected: `an event at sequence ${sequenceNumber}`,
    actual: isAfterHead ? `a chain of ${length} events` : ABSENT
  }
}

/** What is wrong with the stored rows of a sequence by themselves; the first readable one. */
const storedAt = (
  tenantId: string,
  sequenceNumber: number,
  { erasures, rows }: Stored,
  breaks: Breaks
): Recomputed | undefined => {
  let first: Recomputed | undefined
  for (const row of rows.get(sequenceNumber) ?? []) {
    const found = recompute(row.body)
    const add = (fault: Fault) =>
      breaks.add({ sequence_number: sequenceNumber, event_id: found?.event.id ?? null, ...fault })
    if (found === undefined) {
      add(contentFault("the JSON of an event", "bytes that are none"))
      continue
    }
    for (const fault of faultsOf(tenantId, row, found, erasures)) add(fault)
    if (first !== undefined && first.event.hash !== found.event.hash) {
      add({
        reason: "duplicate_sequence",
        expected: "one event for each sequence number",
        actual: `another event with hash ${found.event.hash}`
      })
    }
    first ??= found
  }
  return first
}

/** Content, link and hash of an event that was kept, and of the one that is in its place. */
const compare = (kept: AuditEvent, stored: Recomputed, breaks: Breaks): void => {
  const { contentHash, event, hash } = stored
  const differs = (
    reason: Break["reason"],
    name: string,
    keptValue: string,
    storedValue: string
  ): void => {
    if (keptValue === storedValue) return
    breaks.add({
      sequence_number: kept.sequence_number,
      event_id: kept.id,
      reason,
      expected: `${name} ${keptValue}, as kept`,
      actual: `${name} ${storedValue}`
    })
  }
  differs("content_mismatch", "content_hash", kept.content_hash, contentHash)
  differs("prev_hash_mismatch", "prev_hash", kept.prev_hash, event.prev_hash)
  differs("hash_mismatch", "hash", kept.hash, hash)
}

/** The JSON of a kept event; undefined for one that is too deep to have any. */
const textOf = (event: AuditEvent): string | undefined => {
  try {
    return JSON.stringify(event)
  } catch {
    // Deeper than the stack, so no event of this service.
    return undefined
  }
}

/** Names of the members of `value` that `schema` does not have, after `path`. */
const unknownMembers = (
  value: object,
  schema: { readonly fields: object },
  path = ""
): ReadonlyArray<string> =>
  Object.keys(value)
    .filter((name) => !Object.hasOwn(schema.fields, name))
    .map((name) => `${path}${name}`)

/** Members that no stored event has, so that no hash covers them; sorted. */
const surplusOf = (event: AuditEvent): ReadonlyArray<string> => {
  const { actor, resource } = AuditEventSchema.fields
  return [
    ...unknownMembers(event, AuditEventSchema),
    ...unknownMembers(event.actor, actor, "actor."),
    ...unknownMembers(event.resource, resource, "resource.")
  ].sort()
}

/** What is wrong with a kept event by itself. */
const clientEventFaults = (
  tenantId: string,
  kept: Recomputed,
  erasures: Erasures
): ReadonlyArray<Fault> => {
  const { event } = kept
  const faults: Array<Fault> = []
  const surplus = surplusOf(event)
  if (surplus.length > 0) {
    faults.push(contentFault("the members of an event and no others", surplus.join(", ")))
  }
  const fault = faultOf(kept, undefined, erasures.coversEvent(event))
  if (fault !== undefined) faults.push(fault)
  if (event.tenant_id !== tenantId) {
    faults.push(contentFault(`tenant ${tenantId}`, `tenant ${event.tenant_id}`))
  }
  return faults
}

interface Outcome {
  readonly tenantId: string
  readonly head: Head | undefined
  readonly sequenceNumbers: ReadonlyArray<number>
  readonly eventsChecked: number
  readonly erased: number
  readonly breaks: Breaks
  readonly unchecked?: ReadonlyArray<string>
  readonly started: number
}

const outcomeReport = ({ breaks, sequenceNumbers, unchecked = [], ...outcome }: Outcome) => {
  const sorted = [...sequenceNumbers].sort((left, right) => left - right)
  return reportOf({
    ...outcome,
    scheme: SCHEME,
    first: sorted[0],
    last: sorted.at(-1),
    breaks: breaks.list(),
    breaksTotal: breaks.total,
    isComplete: true,
    remarks: unchecked.length === 0 ? {} : { unchecked }
  }) satisfies Effect.Effect<VerifyReport>
}

const erasedAmong = (stored: ReadonlyMap<number, Recomputed | undefined>): number =>
  [...stored.values()].filter((found) => found?.event.erased_at !== undefined).length

/**
 * Events that a client kept, in any spelling: each recomputed, and compared with the chain at its
 * sequence. One that was erased since is valid.
 */
export const verifyClientEvents = Effect.fn("ClientEvidence.events")(function* (
  tenantId: string,
  events: ReadonlyArray<AuditEvent>
) {
  const started = yield* Clock.currentTimeMillis
  const sequenceNumbers = events.map(({ sequence_number }) => sequence_number)
  const stored = yield* load(tenantId, sequenceNumbers)
  const wasErased = events.filter(({ erased_at }) => erased_at !== undefined)
  const erasures = yield* learnErasures(
    stored.lookup,
    wasErased.map(({ sequence_number }) => sequence_number)
  )
  const breaks = new Breaks()
  const byStored = new Map<number, Recomputed | undefined>()
  for (const sequence of new Set(sequenceNumbers)) {
    byStored.set(sequence, storedAt(tenantId, sequence, stored, breaks))
  }
  for (const event of events) {
    // Each may be large: others have their turn between the steps.
    yield* Effect.yieldNow
    const { id, sequence_number } = event
    const text = textOf(event)
    const kept = text === undefined ? undefined : yield* inSlices(() => recomputeInSteps(text))
    const add = (fault: Fault) => breaks.add({ sequence_number, event_id: id, ...fault })
    if (kept === undefined) {
      add(contentFault("an event that RFC 8785 has a text for", "another one, as kept"))
      continue
    }
    for (const fault of clientEventFaults(tenantId, kept, erasures)) {
      add({ ...fault, actual: `${fault.actual}, as kept` })
    }
    const there = byStored.get(sequence_number)
    if (there !== undefined) compare(event, there, breaks)
    else if (!stored.rows.has(sequence_number)) {
      breaks.add(missing(sequence_number, id, stored.head))
    }
  }
  return yield* outcomeReport({
    tenantId,
    head: stored.head,
    sequenceNumbers,
    eventsChecked: events.length,
    erased: erasedAmong(byStored),
    breaks,
    started
  })
})

/** Members of a receipt that are compared with the chain itself. */
const CHAINED = ["status", "ids", "duplicates", "first_sequence_number", "last_sequence_number"]

/** Members of a kept receipt that only the stored receipt can be compared with. */
const unchained = ({ given, head }: ClientReceipt): ReadonlyArray<string> =>
  Object.keys(given)
    .filter((name) => !CHAINED.includes(name) && !(name === "head_hash" && head !== undefined))
    .sort()

/** RFC 8785 text, or "another value" where there is none. */
const canonicalText = (value: unknown): string => {
  if (value === undefined || value === null) return ABSENT
  try {
    return canonicalize(value as JsonValue)
  } catch {
    // An unpaired surrogate, or deeper than the stack: no receipt of this service.
    return "another value"
  }
}

/** Members of a kept receipt that are not as the service stored them. */
const compareReceipt = (kept: ClientReceipt, stored: Receipt, breaks: Breaks): void => {
  const answer = toAnswer(stored)
  const place = kept.head?.sequenceNumber ?? kept.events[0]?.sequenceNumber ?? 1
  for (const name of [...unchained(kept), "duplicates"]) {
    const [said, known] = [kept.given[name], answer[name]].map(canonicalText)
    if (said === known) continue
    const expected = `${name} ${known}, as the receipt was stored`
    const fault = contentFault(expected, `${name} ${said}, as kept`)
    breaks.add({ sequence_number: place, event_id: null, ...fault })
  }
}

/**
 * A receipt that a client kept: its events at their sequences, the hash after them, and every other
 * member compared with the receipt as it is stored (undefined if there is none).
 */
export const verifyClientReceipt = Effect.fn("ClientEvidence.receipt")(function* (
  tenantId: string,
  kept: ClientReceipt,
  storedReceipt: Receipt | undefined
) {
  const { events, head } = kept
  const started = yield* Clock.currentTimeMillis
  const sequenceNumbers = [
    ...events.map(({ sequenceNumber }) => sequenceNumber),
    ...(head === undefined ? [] : [head.sequenceNumber])
  ]
  const stored = yield* load(tenantId, sequenceNumbers)
  const breaks = new Breaks()
  const byStored = new Map<number, Recomputed | undefined>()
  for (const sequence of new Set(sequenceNumbers)) {
    byStored.set(sequence, storedAt(tenantId, sequence, stored, breaks))
    if (!stored.rows.has(sequence)) breaks.add(missing(sequence, null, stored.head))
  }
  for (const { id, sequenceNumber } of events) {
    const there = byStored.get(sequenceNumber)
    if (there === undefined || there.event.id === id) continue
    const event_id = there.event.id
    const fault = contentFault(`id ${id}, as the receipt says`, `id ${event_id}`)
    breaks.add({ sequence_number: sequenceNumber, event_id, ...fault })
  }
  const last = head === undefined ? undefined : byStored.get(head.sequenceNumber)
  if (head !== undefined && last !== undefined && last.hash !== head.hash) {
    breaks.add({
      sequence_number: head.sequenceNumber,
      event_id: last.event.id,
      reason: "hash_mismatch",
      expected: `hash ${head.hash}, as the receipt says`,
      actual: `hash ${last.hash}`
    })
  }
  if (storedReceipt !== undefined) compareReceipt(kept, storedReceipt, breaks)
  return yield* outcomeReport({
    tenantId,
    head: stored.head,
    sequenceNumbers,
    eventsChecked: byStored.size,
    erased: erasedAmong(byStored),
    breaks,
    unchecked: storedReceipt === undefined ? unchained(kept) : [],
    started
  })
})

/** A checkpoint without the signature of a known key, or of another tree. */
export const forgedCheckpointReport = Effect.fn("ClientEvidence.checkpoint")(function* (
  tenantId: string,
  treeSize: number,
  problem: string
) {
  const started = yield* Clock.currentTimeMillis
  const ends = yield* ChainEnds
  const breaks = new Breaks()
  breaks.add({
    sequence_number: Math.max(1, treeSize),
    event_id: null,
    reason: "checkpoint_mismatch",
    expected: "a checkpoint of this chain, signed by a published key",
    actual: problem
  })
  const head = yield* ends.head({ tenantId, chain: "events" })
  const none = { sequenceNumbers: [], eventsChecked: 0, erased: 0 }
  return yield* outcomeReport({ tenantId, head, breaks, started, ...none })
})
