/**
 * Erasing the details of an event: finds what the id names and writes the chained event that says
 * so. The details themselves are taken out by the projection, which reads it like any other event.
 */
import { Context, Effect, Layer, Option, RcMap, Redacted, Schema, Semaphore, Stream } from "effect"
import { WrittenEvents, type WrittenReader } from "../../actors/follower/WrittenEvents.ts"
import { ProjectionProgress } from "../../actors/log/ProjectionProgress.ts"
import { treeNameOf } from "../../domain/chain/Chains.ts"
import { type AuditEvent, RESERVED_ACTION_PREFIX } from "../../domain/events/AuditEvent.ts"
import { ERASURE_ACTION, ERASURE_RESOURCE_TYPE, erasureOf } from "../../domain/events/Erasure.ts"
import { type EventFilter, emptyFilter } from "../../domain/events/EventFilter.ts"
import { faultOf, type Recomputed, recompute } from "../../domain/events/HashChain.ts"
import { parseEvent } from "../../domain/events/StoredEvent.ts"
import { BATCH_ITEMS_MAX } from "../../domain/records/Command.ts"
import { type PreparedEvent, toBatch } from "../../domain/records/EventBatch.ts"
import { holdersOf } from "../../domain/records/EventValues.ts"
import { EventStore, StoreUnavailable } from "../../ports/EventStore.ts"
import { Checkpoints } from "../checkpoints/Checkpoints.ts"
import { Ingest, type IngestFailure, type IngestOutcome, keyOption } from "../ingest/Ingest.ts"
import { prepareOwnEvent } from "../ingest/Prepare.ts"
import { type ErasureRequest, eraseHolders, erasureKey } from "./ValueErasures.ts"

/** Events of one id that are read at a time; there are several past the dedup window. */
const PAGE_EVENTS = 100

/** The tenant has no event with this id. */
export class EventUnknown extends Schema.TaggedError<EventUnknown>()("EventUnknown", {
  eventId: Schema.String
}) {}

/** The service's own events can't be erased: they say what was. */
export class EventReserved extends Schema.TaggedError<EventReserved>()("EventReserved", {
  action: Schema.String
}) {}

export class EventErasures extends Context.Service<
  EventErasures,
  {
    /**
     * Erases what the id names, at most 1000 events at a time. `undefined` if all of it was erased
     * before.
     */
    erase(
      request: ErasureRequest
    ): Effect.Effect<
      IngestOutcome | undefined,
      EventUnknown | EventReserved | IngestFailure | StoreUnavailable
    >
  }
>()("alk/EventErasures") {}

const erasureEvent = (
  secret: string,
  { eventId, idempotency, keyId, reason, tenantId }: ErasureRequest,
  target: AuditEvent,
  index: number
): PreparedEvent =>
  prepareOwnEvent(
    {
      actor: { id: keyId, type: "system" },
      action: ERASURE_ACTION,
      resource: { id: eventId, type: ERASURE_RESOURCE_TYPE },
      metadata: {
        reason,
        sequence_number: target.sequence_number,
        content_hash: target.content_hash
      }
    },
    { index, tenantId, secret, isOwn: true, ...keyOption(idempotency?.key) }
  )

const notErased = (cause: unknown) =>
  Effect.fail(new StoreUnavailable({ operation: "erase", cause }))

/**
 * Events as they were written: rows of the store say only where to look. Of one that has left the
 * topic the row has to do, if its hashes come out as they are stored and a signed tree has them.
 */
const makeWritten = Effect.gen(function* () {
  const checkpoints = yield* Checkpoints
  const store = yield* EventStore
  const projection = yield* ProjectionProgress

  const proven = Effect.fnUntraced(function* (tenantId: string, { event }: Recomputed) {
    const tree = treeNameOf(tenantId, "events")
    const { eventHash } = yield* checkpoints.inclusion(tree, event.sequence_number)
    return eventHash === event.hash ? event : undefined
  })

  const read = Effect.fnUntraced(
    function* (reader: WrittenReader, tenantId: string, id: string, sequence: number) {
      const { final: deduplicate } = projection.of(tenantId)
      const row = yield* store.byId(tenantId, id, sequence, deduplicate)
      if (row === undefined) return undefined
      const found = yield* reader.at(tenantId, row.offset)
      if (found !== "removed") return found
      const recomputed = recompute(row.body)
      if (recomputed?.event.tenant_id !== tenantId) return undefined
      const isErased = recomputed.event.erased_at !== undefined
      return faultOf(recomputed, undefined, isErased) === undefined
        ? yield* proven(tenantId, recomputed)
        : undefined
    },
    Effect.catchTags({
      CheckpointMismatch: notErased,
      CheckpointTimedOut: notErased,
      LogUnavailable: notErased,
      OffsetOutOfRange: notErased,
      ProofRefused: notErased
    })
  )

  /** The event with this id and number. Fails if the store has another one in its place. */
  return Effect.fnUntraced(function* (
    reader: WrittenReader,
    tenantId: string,
    id: string,
    sequence: number
  ) {
    const event = yield* read(reader, tenantId, id, sequence)
    if (event?.id === id && event.sequence_number === sequence) return event
    const where = { tenantId, sequenceNumber: sequence }
    yield* Effect.logError("AN EVENT TO ERASE IS NOT STORED AS IT WAS WRITTEN", where)
    return yield* notErased(
      new Error(`event ${sequence} is stored otherwise than alk.events has it`)
    )
  })
})

const make = Effect.fnUntraced(function* (secret: string) {
  const ingest = yield* Ingest
  const store = yield* EventStore
  const projection = yield* ProjectionProgress
  const events = yield* WrittenEvents
  const written = yield* makeWritten

  /** Pages of the events of a filter, in the order of the chain. */
  const pagesOf = (tenantId: string, filter: EventFilter) =>
    Stream.paginate(0, (afterSequence) => {
      const { final: deduplicate } = projection.of(tenantId)
      const query = { tenantId, filter, order: "asc", offset: 0, limit: PAGE_EVENTS } as const
      return Effect.map(store.page({ ...query, afterSequence }, deduplicate), ({ bodies }) => {
        const events = bodies.flatMap((body) => parseEvent(body) ?? [])
        const last = events.length < PAGE_EVENTS ? undefined : events.at(-1)
        return [[events], Option.fromUndefinedOr(last?.sequence_number)] as const
      })
    })

  /** What erases events with this id as the store has it, by the number that it names. */
  const erasuresOf = Effect.fnUntraced(function* (tenantId: string, eventId: string) {
    const filter = { ...emptyFilter, action: ERASURE_ACTION, resourceId: eventId }
    const pages = yield* Stream.runCollect(pagesOf(tenantId, filter))
    return Map.groupBy(pages.flat(), (event) => erasureOf(event)?.sequence_number)
  })

  /** What there is to erase, as much of it as one request may. */
  const targetsOf = Effect.fnUntraced(function* (tenantId: string, eventId: string) {
    const reader = yield* Effect.catchTag(events.reader, "LogUnavailable", notErased)
    const erasures = yield* Effect.cached(erasuresOf(tenantId, eventId))
    /** True if an event of the chain has erased this one: its row may say that without one. */
    const isErased = Effect.fnUntraced(function* (sequence: number) {
      for (const { id, sequence_number } of (yield* erasures).get(sequence) ?? []) {
        const erasure = yield* written(reader, tenantId, id, sequence_number)
        if (erasureOf(erasure)?.sequence_number === sequence) return true
      }
      return false
    })
    const targets = new Map<number, AuditEvent>()
    let reserved: EventReserved | undefined
    let isKnown = false
    const take = Effect.fnUntraced(function* (page: ReadonlyArray<AuditEvent>) {
      for (const { erased_at, sequence_number } of page) {
        const event = yield* written(reader, tenantId, eventId, sequence_number)
        const { action } = event
        if (action.startsWith(RESERVED_ACTION_PREFIX)) {
          reserved ??= new EventReserved({ action })
          continue
        }
        isKnown = true
        if (erased_at === undefined || !(yield* isErased(sequence_number))) {
          targets.set(sequence_number, event)
        }
      }
      return targets.size < BATCH_ITEMS_MAX
    })
    const pages = pagesOf(tenantId, { ...emptyFilter, id: eventId })
    yield* pages.pipe(Stream.takeWhileEffect(take), Stream.runDrain)
    if (!isKnown) return yield* reserved ?? new EventUnknown({ eventId })
    return [...targets.values()].slice(0, BATCH_ITEMS_MAX)
  }, Effect.scoped)

  const eraseOnce = Effect.fnUntraced(function* (request: ErasureRequest) {
    const { eventId, tenantId } = request
    const idempotency = erasureKey(request)
    const targets = yield* targetsOf(tenantId, eventId)
    // With a key the sequencer has to say whether it is the first time, even without anything to erase.
    if (targets.length === 0 && idempotency === undefined) return undefined
    const undone = yield* eraseHolders(ingest, request, holdersOf(targets))
    if (undone !== undefined) return undone
    const events = targets.map((target, index) => erasureEvent(secret, request, target, index))
    return yield* ingest.ingest({
      tenantId,
      items: { events: toBatch(events), errors: [], warnings: [] },
      until: "visible",
      idempotency
    })
  })

  const turns = yield* RcMap.make({ lookup: (_: string) => Semaphore.make(1) })

  /** One request after the other of each event: what one has erased, the next one finds erased. */
  const erase = Effect.fn("EventErasures.erase")(function* (request: ErasureRequest) {
    const turn = yield* RcMap.get(turns, JSON.stringify([request.tenantId, request.eventId]))
    return yield* turn.withPermit(eraseOnce(request))
  }, Effect.scoped)

  return EventErasures.of({ erase })
})

/** `secret` is `ALK_SECRET`. */
export const layerEventErasures = (
  secret: Redacted.Redacted
): Layer.Layer<
  EventErasures,
  never,
  Checkpoints | EventStore | Ingest | ProjectionProgress | WrittenEvents
> => Layer.effect(EventErasures, make(Redacted.value(secret)))
