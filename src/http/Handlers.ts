/**
 * Every handler of the contract, one layer per group. A feature joins by adding its handlers here
 * and its group in `Api`.
 */
import { Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "./Api.ts"
import { layerAdminHandlers } from "./admin/AdminHandlers.ts"
import { layerPartitionsHandlers } from "./admin/PartitionsHandlers.ts"
import { layerQuarantineHandlers } from "./admin/QuarantineHandlers.ts"
import { layerRetentionHandlers } from "./admin/RetentionHandlers.ts"
import { layerShareAuthorization, layerSharedHandlers } from "./admin/SharedHandlers.ts"
import { layerShareLinksHandlers } from "./admin/ShareHandlers.ts"
import { layerChainHandlers } from "./chain/ChainHandlers.ts"
import { layerErasureHandlers } from "./events/ErasureHandlers.ts"
import { layerIngestHandlers } from "./events/IngestHandlers.ts"
import { layerQueryHandlers } from "./events/QueryHandlers.ts"
import { layerStreamHandlers } from "./events/StreamHandlers.ts"
import { layerExportHandlers } from "./exports/ExportHandlers.ts"
import { layerExportJobsHandlers } from "./exports/jobs/JobHandlers.ts"
import { layerMeHandlers } from "./me/MeHandlers.ts"
import { layerOtlpHandlers, layerOtlpRefusals } from "./otlp/OtlpHandlers.ts"
import { layerAdminAuthorization, layerAuthorization } from "./server/Authorization.ts"
import { layerRefusals } from "./server/Refusals.ts"
import { layerSessionHandlers } from "./sessions/SessionHandlers.ts"
import { layerSqlHandlers } from "./sql/SqlHandlers.ts"
import { layerTraceHandlers } from "./traces/TraceHandlers.ts"
import { layerVerifyHandlers } from "./verification/VerifyHandlers.ts"

/** The routes of the contract, added to the router. */
export const layerApiRoutes = HttpApiBuilder.layer(Api).pipe(
  Layer.provide([
    layerAdminHandlers,
    layerChainHandlers,
    layerErasureHandlers,
    layerExportHandlers,
    layerExportJobsHandlers,
    layerIngestHandlers,
    layerMeHandlers,
    layerOtlpHandlers,
    layerPartitionsHandlers,
    layerQuarantineHandlers,
    layerQueryHandlers,
    layerRetentionHandlers,
    layerSessionHandlers,
    layerSharedHandlers,
    layerShareLinksHandlers,
    layerSqlHandlers,
    layerStreamHandlers,
    layerTraceHandlers,
    layerVerifyHandlers
  ]),
  Layer.provide([
    layerAdminAuthorization,
    layerAuthorization,
    layerOtlpRefusals,
    layerRefusals,
    layerShareAuthorization
  ])
)
