/**
 * Events to select from: each recomputed as it is read, linked to the one before it,
 * and the last one in the chain. What a verification has found before says nothing of the rows that
 * are read after it, and which rows a condition of the store selects is covered by no hash.
 */
import { Context, Effect, Layer, Stream } from "effect"
import type { ChainEnds } from "../actors/chainEnds/ChainEnds.ts"
import type { ProjectionProgress } from "../actors/log/ProjectionProgress.ts"
import type { AuditEvent } from "../domain/events/AuditEvent.ts"
import { emptyFilter } from "../domain/events/EventFilter.ts"
import { recompute } from "../domain/events/HashChain.ts"
import { inSlices } from "../domain/InSlices.ts"
import type { Sliced } from "../domain/Slices.ts"
import type { SequenceRange } from "../ports/ChainRecompute.ts"
import type { EventLog, LogUnavailable } from "../ports/EventLog.ts"
import { EventStore, type StoredRow, type StoreUnavailable } from "../ports/EventStore.ts"
import { chainedEvents } from "./ChainProofs.ts"
import { CheckedLinks } from "./CheckedLinks.ts"
import { type Erasures, erasuresOfRows } from "./Erasures.ts"
import { faultsOf } from "./EventSource.ts"
import { chainRecompute } from "./RecomputeInProgram.ts"

export interface CheckedEvent {
  /** As it is stored. */
  readonly body: string
  readonly event: AuditEvent
}

export class CheckedEvents extends Context.Service<
  CheckedEvents,
  {
    /**
     * Every event of a range, ascending. Fails with the first one that does not hold. Until it
     * has ended, it is not known that they are those of the chain.
     */
    of(
      tenantId: string,
      range: SequenceRange,
      deduplicate: boolean
    ): Stream.Stream<ReadonlyArray<CheckedEvent>, LogUnavailable | StoreUnavailable>
  }
>()("alk/CheckedEvents") {}

const make = Effect.gen(function* () {
  const store = yield* EventStore
  const port = yield* chainRecompute
  const context = yield* Effect.context<ChainEnds | EventLog | EventStore | ProjectionProgress>()

  const read = Effect.fnUntraced(function* (
    tenantId: string,
    range: SequenceRange,
    deduplicate: boolean
  ) {
    const lookup = { tenantId, port, chained: yield* chainedEvents(tenantId) }
    const links = new CheckedLinks("event", range, lookup.chained)

    /** The next event; undefined if this is another one. */
    const taken = (body: string, erasures: Erasures): CheckedEvent | undefined => {
      const row: StoredRow = { sequenceNumber: links.next, version: 0, body, wrongColumns: [] }
      const found = recompute(body)
      if (found === undefined || faultsOf(tenantId, row, found, erasures).length > 0) {
        return undefined
      }
      const { event, hash } = found
      const { prev_hash: prevHash, sequence_number: sequenceNumber } = event
      return links.take({ sequenceNumber, hash, prevHash }) ? { body, event } : undefined
    }

    /** The events up to the first that is another one; one in a step. */
    function* eventsOf(
      bodies: ReadonlyArray<string>,
      erasures: Erasures
    ): Sliced<ReadonlyArray<CheckedEvent>> {
      const events: Array<CheckedEvent> = []
      for (const body of bodies) {
        const event = taken(body, erasures)
        if (event === undefined) break
        events.push(event)
        yield
      }
      return events
    }

    const checked = Effect.fnUntraced(function* (bodies: ReadonlyArray<string>) {
      const from = links.next
      const rows = bodies.map((body, at) => ({ sequenceNumber: from + at, body }))
      const erasures = yield* erasuresOfRows(lookup, rows)
      const events = yield* inSlices(() => eventsOf(bodies, erasures))
      return events.length === bodies.length ? events : yield* links.refuse()
    })

    const filter = { ...emptyFilter, fromSequence: range.first, toSequence: range.last }
    return store
      .scan({ tenantId, filter, order: "asc" }, deduplicate)
      .pipe(
        Stream.mapEffect(checked),
        Stream.concat(Stream.fromEffectDrain(links.end)),
        Stream.provideContext(context)
      )
  })

  return CheckedEvents.of({
    of: (tenantId, range, deduplicate) =>
      Stream.unwrap(read(tenantId, range, deduplicate).pipe(Effect.provideContext(context)))
  })
})

/** Uses `ChainRecompute` and `SignedCheckpoints` where they are provided. */
export const layerCheckedEvents: Layer.Layer<
  CheckedEvents,
  never,
  ChainEnds | EventLog | EventStore | ProjectionProgress
> = Layer.effect(CheckedEvents, make)
