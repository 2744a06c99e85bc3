/**
 * How many events a tenant may send per second, counted in this process: a bucket per tenant that
 * refills steadily. A request is admitted while something is left, and its rest is owed.
 */
import { Context, Effect, Layer } from "effect"
import { ApiError } from "./ApiError.ts"
import { ApiSettings } from "./ApiSettings.ts"

/** The events per second of each tenant. */
export class Quota extends Context.Service<
  Quota,
  {
    /** Take the events of a request out of the tenant's bucket, or refuse the request. */
    admit(tenantId: string, events: number): Effect.Effect<void, ApiError>
  }
>()("alk/http/Quota") {}

interface Bucket {
  /** Below zero after a request larger than what was left. */
  left: number
  at: number
}

const rateLimited = (perSecond: number, left: number): ApiError => {
  const wait = Math.max(1, Math.ceil((1 - left) / perSecond))
  return new ApiError({
    code: "rate_limited",
    message: `this tenant may send ${perSecond} events per second; try again in ${wait} s`,
    headers: {
      "retry-after": String(wait),
      "ratelimit-limit": String(perSecond),
      "ratelimit-remaining": "0",
      "ratelimit-reset": String(wait)
    }
  })
}

const limited = (perSecond: number): Quota["Service"] => {
  const buckets = new Map<string, Bucket>()
  return Quota.of({
    admit: (tenantId, events) =>
      Effect.suspend(() => {
        const now = performance.now()
        const bucket = buckets.get(tenantId) ?? { left: perSecond, at: now }
        const left = Math.min(perSecond, bucket.left + ((now - bucket.at) / 1_000) * perSecond)
        const admitted = left >= 1
        buckets.set(tenantId, { left: admitted ? left - events : left, at: now })
        return admitted ? Effect.void : Effect.fail(rateLimited(perSecond, left))
      })
  })
}

/** Admits everything unless a number of events per second is configured. */
export const layerQuota: Layer.Layer<Quota, never, ApiSettings> = Layer.effect(
  Quota,
  Effect.map(ApiSettings, ({ eventsPerSecondMax }) =>
    eventsPerSecondMax === undefined
      ? Quota.of({ admit: () => Effect.void })
      : limited(eventsPerSecondMax)
  )
)
