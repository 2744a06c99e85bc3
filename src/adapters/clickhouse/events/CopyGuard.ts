/**
 * Whether reads of a tenant's events have to merge rows because some are there more than once
 * although no insert was repeated: a list must not show an event twice. Verification reports such
 * rows; here they are only noticed, by counting, and so a little later than they come.
 */
import { Clock, Effect } from "effect"
import { BoundedMap } from "../../../domain/BoundedMap.ts"
import type { StoreUnavailable } from "../../../ports/EventStore.ts"
import type { StoreClient } from "../client/StoreClient.ts"

/** Milliseconds for which a count is believed; longer where counting takes long. */
const BELIEVED_MS = 2_000
const TIMES_AS_LONG = 50
/** Tenants whose count is remembered. */
const TENANTS_MAX = 10_000

interface Counted {
  readonly merge: boolean
  readonly until: number
}

export class CopyGuard {
  readonly #store: StoreClient
  readonly #counted = new BoundedMap<Counted>(TENANTS_MAX)

  constructor(store: StoreClient) {
    this.#store = store
  }

  /** True if a read, named by its operation, has to merge; `deduplicate` says so without asking. */
  merges(
    operation: string,
    tenantId: string,
    deduplicate: boolean
  ): Effect.Effect<boolean, StoreUnavailable> {
    if (deduplicate) return Effect.succeed(true)
    return Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const known = this.#counted.get(tenantId)
      if (known !== undefined && known.until > now) return Effect.succeed(known.merge)
      return this.#hasCopies(operation, tenantId).pipe(
        Effect.tap((merge) =>
          Effect.map(Clock.currentTimeMillis, (end) => {
            const until = end + Math.max(BELIEVED_MS, TIMES_AS_LONG * (end - now))
            this.#counted.set(tenantId, { merge, until })
          })
        )
      )
    })
  }

  #hasCopies(operation: string, tenantId: string) {
    return this.#store.readOne(
      operation,
      (bind) =>
        "SELECT count() > max(sequence_number) - min(sequence_number) + 1"
        + ` FROM ${this.#store.events} WHERE ${bind.tenant(tenantId)} AND sequence_number >= 1`,
      (row) => row.uint8() === 1
    )
  }
}
