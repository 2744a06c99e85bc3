/**
 * Erasing the details of an event: finds what the id names and writes the chained event that says
 * so. The details themselves are taken out by the projection, which reads that event like any other.
 */
import { Context, Effect, Layer, Redacted, Schema } from "effect"
import { Visibility } from "../actors/Visibility.ts"
import { RESERVED_ACTION_PREFIX, type AuditEvent } from "../domain/AuditEvent.ts"
import type { PreparedEvent } from "../domain/Command.ts"
import { ERASURE_ACTION, ERASURE_RESOURCE_TYPE } from "../domain/Erasure.ts"
import { emptyFilter } from "../domain/EventFilter.ts"
import { formatMicros, nowMicros } from "../domain/Timestamp.ts"
import { EventStore, type StoreUnavailable } from "../ports/EventStore.ts"
import {
  Ingest,
  markOf,
  type IdempotencyKey,
  type IngestFailure,
  type IngestOutcome
} from "./Ingest.ts"
import { prepareItem } from "./Prepare.ts"

/** Events of one id that one request erases at most; there are several past the dedup window. */
const SAME_ID_MAX = 100

export interface ErasureRequest {
  readonly tenantId: string
  /** Id of the API key that asks: the actor of the erasure event. */
  readonly keyId: string
  readonly eventId: string
  readonly reason: string
  readonly idempotency: { readonly key: IdempotencyKey; readonly body: Buffer } | undefined
}

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
    /** `undefined` if everything the id names was erased before. */
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
): PreparedEvent => {
  const prepared = prepareItem(
    {
      actor: { id: keyId, type: "system" },
      action: ERASURE_ACTION,
      resource: { id: eventId, type: ERASURE_RESOURCE_TYPE },
      outcome: "success",
      metadata: {
        reason,
        sequence_number: target.sequence_number,
        content_hash: target.content_hash
      }
    },
    {
      index,
      mode: "single",
      tenantId,
      acceptedAt: formatMicros(nowMicros()),
      secret,
      isOwn: true,
      ...(idempotency === undefined
        ? {}
        : {
            idempotencyKey: `${idempotency.key.method} ${idempotency.key.path} ${idempotency.key.key}`
          })
    }
  )
  if ("error" in prepared) {
    throw new Error(`an erasure event is invalid: ${prepared.error.message}`)
  }
  return prepared.ok
}

const make = Effect.fnUntraced(function*(secret: string) {
  const ingest = yield* Ingest
  const store = yield* EventStore
  const visibility = yield* Visibility

  const erase = Effect.fn("EventErasures.erase")(function*(request: ErasureRequest) {
    const { eventId, idempotency, tenantId } = request
    const { final } = visibility.of(tenantId)
    const { bodies } = yield* store.page(
      {
        tenantId,
        filter: { ...emptyFilter, id: eventId },
        order: "asc",
        offset: 0,
        limit: SAME_ID_MAX
      },
      final
    )
    const found = bodies.map((body) => JSON.parse(body) as AuditEvent)
    const [first] = found
    if (first === undefined) return yield* new EventUnknown({ eventId })
    if (first.action.startsWith(RESERVED_ACTION_PREFIX)) {
      return yield* new EventReserved({ action: first.action })
    }
    const targets = found.filter(({ erased_at }) => erased_at === undefined)
    // With a key the sequencer has to say whether it is the first time, whatever there is to erase.
    if (targets.length === 0 && idempotency === undefined) return undefined
    const events = targets.map((target, index) => erasureEvent(secret, request, target, index))
    return yield* ingest.ingest({
      tenantId,
      items: { events, errors: [], warnings: [] },
      until: "visible",
      idempotency: idempotency && {
        key: idempotency.key,
        mark: markOf(tenantId, idempotency.key, idempotency.body, false)
      }
    })
  })

  return EventErasures.of({ erase })
})

/** `secret` is `ALK_SECRET`. */
export const layerEventErasures = (
  secret: Redacted.Redacted
): Layer.Layer<EventErasures, never, Ingest | EventStore | Visibility> =>
  Layer.effect(EventErasures, make(Redacted.value(secret)))
