/**
 * Every handler of the contract, one layer per group. A feature joins by adding its handlers here
 * and its group in `Api`.
 */
import { Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { layerAdminHandlers } from "./AdminHandlers.ts"
import { Api } from "./Api.ts"
import { layerAdminAuthorization, layerAuthorization } from "./Authorization.ts"
import { layerChainHandlers } from "./ChainHandlers.ts"
import { layerErasureHandlers } from "./ErasureHandlers.ts"
import { layerExportHandlers } from "./ExportHandlers.ts"
import { layerIngestHandlers } from "./IngestHandlers.ts"
import { layerOtlpHandlers, layerOtlpRefusals } from "./OtlpHandlers.ts"
import { layerQueryHandlers } from "./QueryHandlers.ts"
import {
  layerShareAuthorization,
  layerShareExportHandlers,
  layerShareLinksHandlers
} from "./ShareHandlers.ts"
import { layerStreamHandlers } from "./StreamHandlers.ts"
import { layerTraceHandlers } from "./TraceHandlers.ts"
import { layerVerifyHandlers } from "./VerifyHandlers.ts"

/** The routes of the contract, added to the router. */
export const layerApiRoutes = HttpApiBuilder.layer(Api).pipe(
  Layer.provide([
    layerAdminHandlers,
    layerChainHandlers,
    layerErasureHandlers,
    layerExportHandlers,
    layerIngestHandlers,
    layerOtlpHandlers,
    layerQueryHandlers,
    layerShareExportHandlers,
    layerShareLinksHandlers,
    layerStreamHandlers,
    layerTraceHandlers,
    layerVerifyHandlers
  ]),
  Layer.provide([
    layerAdminAuthorization,
    layerAuthorization,
    layerOtlpRefusals,
    layerShareAuthorization
  ])
)
