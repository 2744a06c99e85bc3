/** Erasing what has left the metadata of events, before the events are. */
import { Effect } from "effect"
import { EMPTY_BATCH } from "../../domain/records/EventBatch.ts"
import { StoreUnavailable } from "../../ports/EventStore.ts"
import {
  fingerprintOf,
  type Idempotency,
  type IdempotencyKey,
  type Ingest
} from "../ingest/Ingest.ts"

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
  { idempotency, tenantId }: Pick<ErasureRequest, "idempotency" | "tenantId">,
  part = ""
): Idempotency | undefined => {
  if (idempotency === undefined) return undefined
  const key = { ...idempotency.key, path: idempotency.key.path + part }
  return {
    key,
    fingerprint: fingerprintOf(tenantId, key, idempotency.body, { forgetConflict: false })
  }
}

/** What an erasure of values says, and for whom. */
type ValueErasure = Pick<ErasureRequest, "idempotency" | "keyId" | "reason" | "tenantId">

/**
 * Erases what these executions hold. An event that is erased names no values any more, so this comes
 * first; asked again, it finds them erased. The outcome where they are not gone: the events have to stay
 * then.
 */
export const eraseHolders = Effect.fnUntraced(function* (
  ingest: Ingest["Service"],
  request: ValueErasure,
  holders: ReadonlyArray<string>
) {
  if (holders.length === 0) return undefined
  const { keyId: erasedBy, reason, tenantId } = request
  const op = "execution.erase" as const
  const shared = { op, reason, erasedBy, holdsValues: true as const }
  const traces = holders.map((executionId, index) => ({ ...shared, index, executionId }))
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
