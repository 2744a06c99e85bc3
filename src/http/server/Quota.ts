/**
 * How many events a tenant may send per second, counted once for all processes of the port: a bucket
 * per tenant that refills steadily. A request is admitted while something is left, and its rest is owed.
 */
import { Context, Effect, Layer } from "effect"
import { ApiError } from "../messages/ApiError.ts"
import { ApiSettings } from "../messages/ApiSettings.ts"
import { ProcessGroup, type SharedBuckets } from "./ProcessGroup.ts"
import { TokenBuckets } from "./TokenBuckets.ts"

/** The events per second of each tenant. */
export class Quota extends Context.Service<
  Quota,
  {
    /** Take the events of a request out of the tenant's bucket, or refuse the request. */
    admit(tenantId: string, events: number): Effect.Effect<void, ApiError>
  }
>()("alk/http/Quota") {}

/** Tenants that send at the same time and are told apart, about 200 bytes each. */
export const TENANTS_MAX = 100_000

/** The bucket of each tenant: a second's worth of events. */
export const bucketsOf = (perSecond: number): TokenBuckets =>
  new TokenBuckets({ perSecond, capacity: perSecond, namesMax: TENANTS_MAX })

const rateLimited = (perSecond: number, wait: number): ApiError =>
  new ApiError({
    code: "rate_limited",
    message: `this tenant may send ${perSecond} events per second; try again in ${wait} s`,
    headers: {
      "retry-after": String(wait),
      "ratelimit-limit": String(perSecond),
      "ratelimit-remaining": "0",
      "ratelimit-reset": String(wait)
    }
  })

const limited = (perSecond: number, shared: SharedBuckets): Quota["Service"] => {
  const buckets = bucketsOf(perSecond)
  const take = shared("events", buckets)
  return Quota.of({
    admit: (tenantId, events) =>
      Effect.flatMap(take(tenantId, events), ({ admitted, left }) =>
        admitted ? Effect.void : Effect.fail(rateLimited(perSecond, buckets.secondsUntilOne(left)))
      )
  })
}

/** Admits everything unless a number of events per second is configured. */
export const layerQuota: Layer.Layer<Quota, never, ApiSettings> = Layer.effect(
  Quota,
  Effect.gen(function* () {
    const { eventsPerSecondMax } = yield* ApiSettings
    const { sharedBuckets } = yield* ProcessGroup
    return eventsPerSecondMax === undefined
      ? Quota.of({ admit: () => Effect.void })
      : limited(eventsPerSecondMax, sharedBuckets)
  })
)
