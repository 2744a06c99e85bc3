/**
 * What is to be exported, for whom, and how that goes on record. Knows neither how an export is made
 * nor what becomes of it.
 */
import { Effect } from "effect"
import type { Bounds, ExportRequest } from "../../exports/ExportScope.ts"
import type { ReportRequest } from "../../exports/report/Report.ts"
import type { ExportStage, JobProgress } from "../../ports/ExportJob.ts"
import { SystemAuditLog } from "../../services/administration/SystemAuditLog.ts"
import type { Failure } from "../messages/Failure.ts"

/** What is to be exported, and for whom. */
export interface ExportOrder extends ExportRequest {
  /** The API key or the share link: the actor on the record. */
  readonly askedBy: ReportRequest["askedBy"]
  /** Where this process is reached, unless the configuration says where the service is. */
  readonly ownUrl: string
  /** Asked when there is something to hand out, before it goes on record. */
  readonly permit?: Effect.Effect<void, Failure>
}

/** How far the making of an export has come. */
export interface Told {
  readonly stage: ExportStage
  readonly progress?: JobProgress
}

/** An order, the request that it came with, and who is told how far its export has come. */
export interface Making extends ExportOrder {
  /** Of CSV: it begins with a byte order mark. */
  readonly bom?: boolean
  /** The request as the report shows it. */
  readonly line: string
  readonly told?: (told: Told) => Effect.Effect<void>
}

/** What the record says of an export. */
interface ExportFacts {
  readonly bounds: Bounds
  readonly filter: object | null
  readonly events: number
  readonly head_hash: string | null
  readonly generated_at: string
  readonly report_id?: string
}

/** Puts an export on record in the chain of the system tenant. */
export const recordExport = (
  { askedBy, tenantId }: ExportOrder,
  resourceType: string,
  facts: ExportFacts
) =>
  Effect.flatMap(SystemAuditLog, (auditLog) =>
    auditLog.log({
      actor: askedBy.id,
      action: "export.created",
      resource: { type: resourceType, id: tenantId },
      metadata: { tenant_id: tenantId, ...facts }
    })
  )
