/**
 * The port `ChainRecompute` for a store that can't hash: it finds no block perfect, so the program
 * goes through every row, and what else is asked is made of what every store answers.
 */
import { Effect, Option, Stream } from "effect"
import type { AuditEvent } from "../domain/events/AuditEvent.ts"
import { ERASURE_ACTION, erasureOf } from "../domain/events/Erasure.ts"
import { emptyFilter } from "../domain/events/EventFilter.ts"
import { parseEvent } from "../domain/events/StoredEvent.ts"
import { ChainRecompute } from "../ports/ChainRecompute.ts"
import { EventStore } from "../ports/EventStore.ts"

/** Over any event store. */
export const recomputeInProgram = (store: EventStore["Service"]): ChainRecompute["Service"] => ({
  blocks: () => Effect.succeed([]),
  sample: (tenantId, sequenceNumbers) =>
    Effect.forEach(sequenceNumbers, (sequence) =>
      Stream.runCollect(store.rows(tenantId, sequence, sequence))
    ).pipe(Effect.map((chunks) => chunks.flat(2))),
  erasures: (tenantId, sequenceNumbers) => {
    const wanted = new Set(sequenceNumbers)
    const names = (event: AuditEvent | undefined): boolean => {
      const erasure = event === undefined ? undefined : erasureOf(event)
      return erasure !== undefined && wanted.has(erasure.sequence_number)
    }
    const filter = { ...emptyFilter, action: ERASURE_ACTION }
    return store.scan({ tenantId, filter, order: "asc" }, false).pipe(
      Stream.map((bodies) => bodies.map(parseEvent).filter(names)),
      Stream.flattenIterable,
      // The scan says nothing of the row's own place.
      Stream.flatMap((event) =>
        store.rows(tenantId, event!.sequence_number, event!.sequence_number)
      ),
      Stream.map((rows) => rows.filter(({ body }) => names(parseEvent(body)))),
      Stream.runCollect,
      Effect.map((chunks) => chunks.flat())
    )
  },
  tenants: Effect.succeed([])
})

/** The store's own recomputation where it is provided, else the program's. */
export const chainRecompute: Effect.Effect<ChainRecompute["Service"], never, EventStore> =
  Effect.gen(function* () {
    const store = yield* EventStore
    const provided = yield* Effect.serviceOption(ChainRecompute)
    return Option.getOrElse(provided, () => recomputeInProgram(store))
  })
