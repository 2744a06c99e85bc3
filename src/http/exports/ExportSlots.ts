/** How many exports a tenant may have made at once. */
import { Context, Effect, Layer } from "effect"
import { type TakeSlot, tenantSlots } from "../messages/TenantSlots.ts"

/** The exports at once of each tenant. */
export class ExportSlots extends Context.Service<ExportSlots, { readonly take: TakeSlot }>()(
  "alk/http/ExportSlots"
) {}

/** Refuses nothing unless a number is configured. */
export const layerExportSlots = (limit: number | undefined): Layer.Layer<ExportSlots> =>
  Layer.succeed(
    ExportSlots,
    ExportSlots.of({
      take: limit === undefined ? () => Effect.void : tenantSlots("exports", limit)
    })
  )
