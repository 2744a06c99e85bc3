/**
 * How many exports a tenant may have made at once, counted in this process. A slot is taken with
 * the request and given back when its answer has been sent, or when the client has gone.
 */
import { Context, Effect, Layer, type Scope } from "effect"
import { ApiError } from "../messages/ApiError.ts"

/** The exports at once of each tenant. */
export class ExportSlots extends Context.Service<
  ExportSlots,
  {
    /** Take a slot for as long as the scope lasts, or refuse the request. */
    take(tenantId: string): Effect.Effect<void, ApiError, Scope.Scope>
  }
>()("alk/http/ExportSlots") {}

const refused = (limit: number): ApiError =>
  new ApiError({
    code: "rate_limited",
    message: `this tenant has ${limit} exports under way already, the most allowed; try again`,
    headers: { "ratelimit-limit": String(limit), "ratelimit-remaining": "0" }
  })

const limited = (limit: number): ExportSlots["Service"] => {
  const taken = new Map<string, number>()
  const add = (tenantId: string, by: 1 | -1) =>
    Effect.sync(() => {
      const now = (taken.get(tenantId) ?? 0) + by
      if (now === 0) taken.delete(tenantId)
      else taken.set(tenantId, now)
    })
  return ExportSlots.of({
    take: (tenantId) =>
      Effect.acquireRelease(
        Effect.suspend(() =>
          (taken.get(tenantId) ?? 0) >= limit ? Effect.fail(refused(limit)) : add(tenantId, 1)
        ),
        () => add(tenantId, -1)
      )
  })
}

/** Refuses nothing unless a number is configured. */
export const layerExportSlots = (limit: number | undefined): Layer.Layer<ExportSlots> =>
  Layer.succeed(
    ExportSlots,
    limit === undefined ? ExportSlots.of({ take: () => Effect.void }) : limited(limit)
  )
