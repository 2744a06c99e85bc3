/** Erasing what has left the metadata of events, before the events are. */
import { Effect } from "effect"
import type { AuditEvent } from "../../domain/events/AuditEvent.ts"
import { EMPTY_BATCH } from "../../domain/records/EventBatch.ts"
import { holderOf, mayHaveValues } from "../../domain/records/EventValues.ts"
import { StoreUnavailable } from "../../ports/EventStore.ts"
import { type Idempotency, type IdempotencyKey, type Ingest, markOf } from "../ingest/Ingest.ts"

export interface ErasureRequest {
  readonly tenantId: string
  /** Id of the API key that asks: the actor of the erasure event. */
  readonly keyId: string
  readonly eventId: string
  readonly reason: string
  readonly idempotency: { readonly key: IdempotencyKey; readonly body: Buffer } | undefined
}

/** What makes an erasure, or a part of it, repeatable. */
export const erasureKey = (
  { idempotency, tenantId }: ErasureRequest,
  part = ""
): Idempotency | undefined => {
  if (idempotency === undefined) return undefined
  const key = { ...idempotency.key, path: idempotency.key.path + part }
  return { key, mark: markOf(tenantId, key, idempotency.body, { forgetConflict: false }) }
}

/**
 * Erases the values of these events. An event that is erased names none any more, so this comes first;
 * asked again, it finds them erased. The outcome where they are not gone: the events have to stay then.
 */
export const eraseValues = Effect.fnUntraced(function* (
  ingest: Ingest["Service"],
  request: ErasureRequest,
  targets: ReadonlyArray<AuditEvent>
) {
  const { keyId: erasedBy, reason, tenantId } = request
  const holders = targets
    .filter(({ metadata }) => mayHaveValues(metadata))
    .map(({ content_hash }) => holderOf(content_hash))
  if (holders.length === 0) return undefined
  const op = "execution.erase" as const
  const traces = holders.map((executionId, index) => ({ op, index, executionId, reason, erasedBy }))
  const outcome = yield* ingest.ingest({
    tenantId,
    items: { events: EMPTY_BATCH, errors: [], warnings: [], traces },
    until: "visible",
    idempotency: erasureKey(request, "/values")
  })
  if (outcome.kind !== "visible") return outcome
  // What a client has sent may look like a reference.
  const wrong = outcome.receipt.errors.find(({ code }) => code !== "not_found")
  if (wrong === undefined) return undefined
  return yield* new StoreUnavailable({ operation: "erase", cause: new Error(wrong.message) })
})
