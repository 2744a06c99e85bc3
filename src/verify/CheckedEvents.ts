/**
 * Events for whoever selects among them: each recomputed as it is read, linked to the one before,
 * and the last one in the chain. What a verification has found before says nothing of the rows that
 * are read after it, and which rows a condition of the store selects is covered by no hash.
 */
import { Context, Effect, Layer, Stream } from "effect"
import type { ChainEnds } from "../actors/chainEnds/ChainEnds.ts"
import type { ProjectionProgress } from "../actors/log/ProjectionProgress.ts"
import { GENESIS_HASH } from "../domain/chain/Chains.ts"
import type { AuditEvent } from "../domain/events/AuditEvent.ts"
import { emptyFilter } from "../domain/events/EventFilter.ts"
import { type Recomputed, recompute } from "../domain/events/HashChain.ts"
import type { SequenceRange } from "../ports/ChainRecompute.ts"
import type { EventLog, LogUnavailable } from "../ports/EventLog.ts"
import { EventStore, type StoredRow, StoreUnavailable } from "../ports/EventStore.ts"
import { chainedEvents } from "./ChainProofs.ts"
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
     * Every event of a range, ascending. Fails with the first one that does not hold; who stops
     * before the end does not know that they are those of the chain.
     */
    of(
      tenantId: string,
      range: SequenceRange,
      deduplicate: boolean
    ): Stream.Stream<ReadonlyArray<CheckedEvent>, LogUnavailable | StoreUnavailable>
  }
>()("alk/CheckedEvents") {}

/** Events between which others have their turn. */
const SLICE_EVENTS = 500

const isOther = (sequence: number) => {
  const cause = new Error(`event ${sequence} is no longer what the chain says`)
  return Effect.fail(new StoreUnavailable({ operation: "read checked events", cause }))
}

const make = Effect.gen(function* () {
  const store = yield* EventStore
  const port = yield* chainRecompute
  const context = yield* Effect.context<ChainEnds | EventLog | EventStore | ProjectionProgress>()

  const read = Effect.fnUntraced(function* (
    tenantId: string,
    { first, last }: SequenceRange,
    deduplicate: boolean
  ) {
    const lookup = { tenantId, port, chained: yield* chainedEvents(tenantId) }
    let previous = {
      sequence: first - 1,
      hash: first === 1 ? GENESIS_HASH : (undefined as string | undefined)
    }

    const follows = ({ event }: Recomputed): boolean =>
      previous.hash === undefined || event.prev_hash === previous.hash

    /** The next event; undefined if this is another one. */
    const taken = (body: string, erasures: Erasures): CheckedEvent | undefined => {
      const sequenceNumber = previous.sequence + 1
      const row: StoredRow = { sequenceNumber, version: 0, body, wrongColumns: [] }
      const found = recompute(body)
      if (found === undefined || !follows(found)) return undefined
      if (faultsOf(tenantId, row, found, erasures).length > 0) return undefined
      previous = { sequence: sequenceNumber, hash: found.hash }
      return { body, event: found.event }
    }

    const checked = Effect.fnUntraced(function* (bodies: ReadonlyArray<string>) {
      const from = previous.sequence + 1
      const rows = bodies.map((body, at) => ({ sequenceNumber: from + at, body }))
      const erasures = yield* erasuresOfRows(lookup, rows)
      const events: Array<CheckedEvent> = []
      for (const [at, body] of bodies.entries()) {
        if (at % SLICE_EVENTS === 0) yield* Effect.yieldNow
        const event = taken(body, erasures)
        if (event === undefined) return yield* isOther(previous.sequence + 1)
        events.push(event)
      }
      return events
    })

    const end = Effect.suspend(() => {
      const { hash, sequence } = previous
      if (sequence !== last || hash === undefined) return isOther(sequence + 1)
      return lookup
        .chained([{ sequenceNumber: last, hash }])
        .pipe(Effect.flatMap((proven) => (proven.has(hash) ? Effect.void : isOther(last))))
    })

    const filter = { ...emptyFilter, fromSequence: first, toSequence: last }
    return store
      .scan({ tenantId, filter, order: "asc" }, deduplicate)
      .pipe(
        Stream.mapEffect(checked),
        Stream.concat(Stream.fromEffectDrain(end)),
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
